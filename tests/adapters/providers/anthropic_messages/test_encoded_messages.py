"""The conversation as JSON: joined by parts, and always what it would be in one go."""

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from holon.adapters.providers.anthropic_messages.encoded_messages import (
    RUN_MESSAGES_COUNT,
    EncodedMessages,
)
from holon.model.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    UserMessage,
)
from holon.model.json_value import JsonValue
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
    return b"".join(messages.parts(conversation, marks))


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


@given(
    st.lists(MESSAGES, max_size=3),
    st.integers(0, 3),
    st.lists(MESSAGES, max_size=6),
    st.sets(st.integers(0, 3 * RUN_MESSAGES_COUNT), max_size=2),
)
def test_parts_join_to_what_the_whole_would_be(
    head: list[ConversationMessage],
    runs_count: int,
    tail: list[ConversationMessage],
    marked: set[int],
) -> None:
    middle: list[ConversationMessage] = [user("q"), said("a")] * (
        RUN_MESSAGES_COUNT // 2 * runs_count
    )
    conversation = (*head, *middle, *tail)
    marks = {index: frozenset({0}) for index in marked}
    encoded = EncodedMessages(Lowering())
    _encoded(encoded, conversation[:-1], {})
    expected = msgspec.json.encode(_in_one_go(conversation, marks))
    assert _encoded(encoded, conversation, marks) == expected
    assert _encoded(encoded, conversation, marks) == expected
    unmarked = msgspec.json.encode(_in_one_go(conversation, {}))
    assert _encoded(encoded, conversation, {}) == unmarked


def test_a_growing_conversation_is_lowered_once_but_for_the_marked_message() -> None:
    lowering = Lowering()
    encoded = EncodedMessages(lowering)
    conversation = (user("go"), *rounds(0, 200))
    costs = []
    for length in range(1, len(conversation) + 1, 2):
        before = lowering.count
        _encoded(encoded, conversation[:length], {length - 1: frozenset({0})})
        costs.append(lowering.count - before)
    # The marked message itself, and what became part of the history since: two messages a round.
    assert set(costs[1:]) == {3}


def test_a_message_that_differs_is_never_mistaken_for_the_one_that_was_there() -> None:
    encoded = EncodedMessages(Lowering())
    words: list[ConversationMessage] = [user("q"), said("a")] * (RUN_MESSAGES_COUNT // 2)
    last = words[-1]
    first = _encoded(encoded, (*words, user("end")), {})
    changed = _encoded(encoded, (user("other"), *words[1:-1], last, user("end")), {})
    assert b"other" in changed
    assert b"other" not in first
    assert _encoded(encoded, (*words, user("end")), {}) == first


def test_runs_of_many_conversations_are_kept_within_a_bound() -> None:
    encoded = EncodedMessages(Lowering())
    for number in range(300):
        run = tuple(
            AssistantMessage(blocks=(TextBlock(text=f"{number}"),))
            for _ in range(RUN_MESSAGES_COUNT)
        )
        assert str(number).encode() in _encoded(encoded, run, {})
    assert len(encoded._runs) == 256
