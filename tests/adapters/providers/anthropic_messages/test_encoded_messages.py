"""The conversation as JSON: joined bit by bit, and always what it would be in one go."""

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from holon.adapters.providers.anthropic_messages.request import EncodedMessages
from holon.model.turns.conversation import ConversationMessage, TextBlock, UserMessage
from holon.model.values import JsonValue
from tests.adapters.providers.anthropic_messages.sample_requests import rounds, said, user

NOTHING = {"type": "text", "text": "(nothing was said)"}


class Lowering:
    """Lowers words alone, and counts how often it is asked to."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, message: ConversationMessage, marks: frozenset[int]) -> Sequence[JsonValue]:
        self.count += 1
        return [
            {"text": block.text, "marked": index in marks}
            for index, block in enumerate(message.blocks)
            if isinstance(block, TextBlock) and block.text
        ]


def _encoded(
    messages: EncodedMessages,
    conversation: Sequence[ConversationMessage],
    marks: dict[int, frozenset[int]],
) -> bytes:
    text = messages.between(b"<", b">", key="a", conversation=tuple(conversation), marks=marks)
    assert text[:1] + text[-1:] == b"<>"
    return text[1:-1]


def _in_one_go(
    conversation: Sequence[ConversationMessage], marks: dict[int, frozenset[int]]
) -> list[dict[str, Any]]:
    lowering = Lowering()
    messages: list[dict[str, Any]] = []
    for index, message in enumerate(conversation):
        role = "user" if isinstance(message, UserMessage) else "assistant"
        content = list(lowering(message, marks.get(index, frozenset())))
        if content and messages and messages[-1]["role"] == role:
            messages[-1]["content"] += content
        elif content:
            messages.append({"role": role, "content": content})
    if not messages or messages[0]["role"] == "assistant":
        messages.insert(0, {"role": "user", "content": [NOTHING]})
    if messages[-1]["role"] == "assistant":
        messages.append({"role": "user", "content": [NOTHING]})
    return messages


TEXTS = st.lists(st.sampled_from(["", "a", "ü\n"]), max_size=2)
MESSAGES = st.one_of(TEXTS.map(lambda texts: user(*texts)), TEXTS.map(lambda texts: said(*texts)))


SHOWN = st.tuples(
    st.lists(MESSAGES, max_size=4), st.dictionaries(st.integers(0, 4), st.just(frozenset({0})))
)


@given(st.lists(MESSAGES, max_size=4), st.lists(SHOWN, max_size=5))
def test_whatever_came_before_the_text_is_what_it_would_be_in_one_go(
    shared: list[ConversationMessage],
    shown: list[tuple[list[ConversationMessage], dict[int, frozenset[int]]]],
) -> None:
    encoded = EncodedMessages(Lowering())
    for own, marks in shown:
        conversation = (*shared, *own)
        expected = msgspec.json.encode(_in_one_go(conversation, marks))
        assert _encoded(encoded, conversation, marks) == expected
        assert _encoded(encoded, conversation, marks) == expected


def test_a_growing_conversation_is_lowered_once_but_for_the_marked_message() -> None:
    lowering = Lowering()
    encoded = EncodedMessages(lowering)
    conversation = (user("go"), *rounds(0, 200))
    costs = []
    for length in range(1, len(conversation) + 1, 2):
        before = lowering.count
        _encoded(encoded, conversation[:length], {length - 1: frozenset({0})})
        costs.append(lowering.count - before)
    # The message that lost its mark, the answer to it, and the message that is marked now.
    assert set(costs[1:]) == {3}


def test_a_message_that_differs_is_never_mistaken_for_the_one_that_was_there() -> None:
    encoded = EncodedMessages(Lowering())
    words: list[ConversationMessage] = [user("q"), said("a")] * 16
    first = _encoded(encoded, (*words, user("end")), {})
    changed = _encoded(encoded, (user("other"), *words[1:], user("end")), {})
    assert b"other" in changed
    assert b"other" not in first
    assert _encoded(encoded, (*words, user("end")), {}) == first
