"""What an encoded conversation shares with the one before it."""

from typing import Final

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from holon.adapters.providers.openai_responses.conversation_memo import ConversationMemo
from holon.adapters.providers.openai_responses.items import Item, ItemStyle, items_of
from holon.model.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    UserMessage,
)
from holon.model.ids import AgentId
from tests.adapters.providers.openai_responses.canned import (
    OPENAI,
    every_block,
    result,
    sealed_by,
    use,
    user,
)

MAIN: Final = AgentId("main")
STYLE: Final = ItemStyle(thinking_origin=OPENAI.thinking_origin, freeform={"ApplyPatch": "patch"})


class Lowering:
    """Lowers, and counts how often it had to."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(
        self, message: ConversationMessage, before: ConversationMessage | None
    ) -> list[Item]:
        self.count += 1
        return items_of(message, STYLE, before=before)


def afresh(conversation: tuple[ConversationMessage, ...]) -> list[bytes]:
    items = []
    before: ConversationMessage | None = None
    for message in conversation:
        items += [msgspec.json.encode(each) for each in items_of(message, STYLE, before=before)]
        before = message
    return items


def test_a_growing_conversation_is_lowered_once() -> None:
    memo, lowering = ConversationMemo(), Lowering()
    messages = (*every_block(OPENAI), AssistantMessage(blocks=(sealed_by(OPENAI),)), user("x"))
    for count in range(1, len(messages) + 1):
        encoded = memo.encoded(MAIN, messages[:count], lowering)
        assert [bytes(item) for item in encoded.items] == afresh(messages[:count])
        assert len(encoded.compared) == sum(
            b'"encrypted_content"' not in bytes(item) for item in encoded.items
        )
    assert lowering.count == len(messages)


def test_an_opening_that_is_laid_out_anew_each_round_breaks_nothing() -> None:
    memo, lowering = ConversationMemo(), Lowering()
    said = AssistantMessage(blocks=(TextBlock(text="a"),))
    first = memo.encoded(MAIN, (user("Turn text"), said), lowering)
    second = memo.encoded(MAIN, (user("Turn text"), said, user("More")), lowering)
    assert lowering.count == 3
    assert all(a is b for a, b in zip(first.items, second.items, strict=False))


def test_equal_answers_are_not_taken_for_the_same() -> None:
    memo, lowering = ConversationMemo(), Lowering()
    for number in (1, True, 1.0):
        call = AssistantMessage(blocks=(use("c", "ExecCommand", {"n": number}),))
        encoded = memo.encoded(MAIN, (user("Hi"), call), lowering)
        assert [bytes(item) for item in encoded.items] == afresh((user("Hi"), call))


def test_agents_are_bounded_and_kept_apart() -> None:
    memo, lowering = ConversationMemo(agents_max=1), Lowering()
    for name in ("a", "b", "a"):
        conversation = (user(name),)
        encoded = memo.encoded(AgentId(name), conversation, lowering)
        assert [bytes(item) for item in encoded.items] == afresh(conversation)


_POOL: Final[tuple[ConversationMessage, ...]] = (
    user("a"),
    user("b"),
    AssistantMessage(blocks=(TextBlock(text="c"), sealed_by(OPENAI))),
    AssistantMessage(blocks=(use("c1", "ExecCommand", {}),)),
    UserMessage(blocks=(result("c1"), TextBlock(text="d"))),
    UserMessage(blocks=()),
)


@given(
    conversations=st.lists(
        st.tuples(st.lists(st.sampled_from(_POOL), max_size=6), st.booleans()), max_size=6
    )
)
def test_whatever_came_before_the_bytes_are_those_of_lowering_afresh(
    conversations: list[tuple[list[ConversationMessage], bool]],
) -> None:
    memo, lowering = ConversationMemo(), Lowering()
    for messages, is_copied in conversations:
        conversation = tuple(
            msgspec.structs.replace(message) if is_copied else message for message in messages
        )
        encoded = memo.encoded(MAIN, conversation, lowering)
        assert [bytes(item) for item in encoded.items] == afresh(conversation)
