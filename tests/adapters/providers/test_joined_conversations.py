"""A conversation kept as text: written once, never another's, and bounded."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.adapters.providers.wire_request import (
    NO_MARKS,
    ConversationTextCache,
    Marks,
    MessageText,
)
from holon.model.turns.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ToolUseBlock,
    UserMessage,
)
from holon.model.values import CallId, JsonValue

Conversation = tuple[ConversationMessage, ...]


class Notebook:
    """A memo whose text is every message behind the number of messages before it."""

    def __init__(self, *, conversations_max: int = 8, bytes_max: int = 10_000) -> None:
        self.memo = ConversationTextCache(
            start=0, conversations_max=conversations_max, bytes_max=bytes_max
        )
        self.written_count = 0

    def text(self, conversation: Conversation, *, key: str = "a", marks: Marks = NO_MARKS) -> bytes:
        def write(index: int, before: int) -> MessageText[int]:
            self.written_count += 1
            return MessageText(_line(conversation[index], before, marks.get(index)), before + 1)

        return bytes(self.memo.joined(key, conversation, write, marks=marks).text)


def _line(message: ConversationMessage, before: int, marks: frozenset[int] | None) -> bytes:
    return b"%d %b %d\n" % (before, msgspec.json.encode(message), len(marks or ()))


def _afresh(conversation: Conversation, marks: Marks) -> bytes:
    lines = (_line(message, i, marks.get(i)) for i, message in enumerate(conversation))
    return b"".join(lines)


def user(text: str) -> UserMessage:
    return UserMessage(blocks=(TextBlock(text=text),))


def calling(asked: JsonValue) -> AssistantMessage:
    call = ToolUseBlock(call_id=CallId("c"), name="ExecCommand", input=asked)
    return AssistantMessage(blocks=(call,))


def test_only_what_is_new_is_written() -> None:
    notebook = Notebook()
    messages = tuple(user(str(number)) for number in range(50))
    for count in range(1, 51):
        assert notebook.text(messages[:count]) == _afresh(messages[:count], {})
    assert notebook.written_count == 50


def test_an_opening_that_is_laid_out_anew_each_round_is_written_once() -> None:
    notebook, said = Notebook(), calling({})
    notebook.text((user("turn text"), said))
    notebook.text((user("turn text"), said, user("more")))
    assert notebook.written_count == 3


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (1, 1.0), (0.0, -0.0), ({"a": 1, "b": 2}, {"b": 2, "a": 1})],
)
def test_equal_answers_are_not_taken_for_the_same(one: JsonValue, other: JsonValue) -> None:
    notebook = Notebook()
    for asked in (one, other, one):
        conversation = (user("hi"), calling({"n": asked}), user("more"))
        assert notebook.text(conversation) == _afresh(conversation, {})


def test_a_mark_that_moves_rewrites_the_text_from_where_it_was() -> None:
    notebook = Notebook()
    messages = tuple(user(str(number)) for number in range(6))
    fixed = {1: frozenset({0})}
    notebook.text(messages[:4], marks={**fixed, 3: frozenset({0})})
    before = notebook.written_count
    marks = {**fixed, 5: frozenset({0})}
    assert notebook.text(messages, marks=marks) == _afresh(messages, marks)
    assert notebook.written_count - before == 3


def test_a_message_that_cannot_be_written_leaves_nothing_behind() -> None:
    memo = ConversationTextCache(start=None)
    conversation = (user("a"), user("b"))

    def failing(index: int, _: None) -> MessageText[None]:
        if index == 1:
            raise ValueError("unwritable")
        return MessageText(b"half", None)

    with pytest.raises(ValueError, match="unwritable"):
        memo.joined("a", conversation, failing)
    joined = memo.joined("a", conversation, lambda index, _: MessageText(b"whole", None))
    assert joined.text == b"wholewhole"


def test_conversations_are_bounded_by_count_and_kept_apart() -> None:
    notebook = Notebook(conversations_max=2)
    conversations = {key: (user(key),) for key in "abc"}
    for key, conversation in conversations.items():
        assert notebook.text(conversation, key=key) == _afresh(conversation, {})
    notebook.text(conversations["c"], key="c")
    notebook.text(conversations["b"], key="b")
    assert notebook.written_count == 3
    notebook.text(conversations["a"], key="a")
    assert notebook.written_count == 4


def test_conversations_are_bounded_by_bytes_and_a_huge_one_is_not_kept() -> None:
    notebook = Notebook(bytes_max=300)
    small, huge = (user("s"),), (user("h" * 400),)
    notebook.text(small, key="small")
    assert notebook.text(huge, key="huge") == _afresh(huge, {})
    assert notebook.written_count == 2
    notebook.text(huge, key="huge")
    notebook.text(small, key="small")
    notebook.text(small, key="small")
    assert notebook.written_count == 4


_POOL = (user("a"), user("b"), calling(1), calling(True), UserMessage(blocks=()))
_SHOWN = st.tuples(
    st.sampled_from("ab"),
    st.lists(st.sampled_from(_POOL), max_size=6),
    st.dictionaries(st.integers(0, 6), st.just(frozenset({0})), max_size=2),
    st.booleans(),
)


@given(st.lists(_SHOWN, max_size=8), st.integers(0, 400))
def test_whatever_came_before_the_text_is_the_one_written_afresh(
    shown: list[tuple[str, list[ConversationMessage], dict[int, frozenset[int]], bool]],
    bytes_max: int,
) -> None:
    notebook = Notebook(conversations_max=1, bytes_max=bytes_max)
    for key, messages, marks, is_copied in shown:
        conversation = tuple(
            msgspec.structs.replace(each) if is_copied else each for each in messages
        )
        assert notebook.text(conversation, key=key, marks=marks) == _afresh(conversation, marks)
