"""What a provider could read from its cache: the bytes of one request that the next one repeats."""

from itertools import pairwise

import msgspec
import pytest

from holon.adapters.providers.anthropic_messages.request import RequestMemo, lower
from holon.adapters.providers.wire_request import ContextEditing
from holon.model.providers.prompt_frame import PromptBlock, Stability
from holon.model.turns.conversation import ConversationMessage
from tests.adapters.providers.anthropic_messages.sample_requests import (
    FRAME,
    TOOLS,
    endpoint,
    marked_texts,
    request,
    rounds,
    said,
    user,
)

MARKER = b',"cache_control":{"type":"ephemeral"}'
END = b"]}]}"


def _frame(turn: int) -> PromptBlock:
    return PromptBlock(text=f"The moment is {turn}.", stability=Stability.TURN_SCOPED)


def _bytes(memo: RequestMemo, *conversation: ConversationMessage, turn: int, start: int) -> bytes:
    frame = msgspec.structs.replace(FRAME, context_blocks=(*FRAME.context_blocks, _frame(turn)))
    asked = request(*conversation, frame=frame, tools=TOOLS, turn_start=(start, 0))
    return lower(endpoint(context_editing=ContextEditing()), asked, memo).body


def _unmarked(body: bytes) -> bytes:
    return body.replace(MARKER, b"")


@pytest.mark.requirement("provider-anthropic:stable-prefix")
def test_each_round_of_a_turn_begins_with_the_bytes_of_the_round_before() -> None:
    memo = RequestMemo(endpoint())
    conversation = (user("go"), *rounds(0, 30))
    bodies = [
        _unmarked(_bytes(memo, *conversation[: 1 + 2 * count], turn=1, start=0))
        for count in range(31)
    ]
    for shorter, longer in pairwise(bodies):
        assert shorter.endswith(END)
        assert longer.startswith(shorter.removesuffix(b"]}"))


@pytest.mark.requirement("provider-anthropic:stable-prefix")
def test_a_new_turn_begins_with_everything_that_was_said_before_the_last_one() -> None:
    memo = RequestMemo(endpoint())
    history = (user("one"), *rounds(0, 3), said("done"))
    second = (*history, user("two"), *rounds(3, 6), said("done again"))
    third = (*second, user("three"))
    before = _bytes(memo, *second[:-1], turn=2, start=len(history))
    after = _bytes(memo, *third, turn=3, start=len(second))
    words_of_the_turn = before.index(b"The moment is 2.")
    shared = _unmarked(before[:words_of_the_turn])
    assert _unmarked(after).startswith(shared)
    assert b"done" in shared


@pytest.mark.requirement("provider-anthropic:stable-prefix")
def test_the_end_of_the_history_is_marked_throughout_a_turn() -> None:
    memo = RequestMemo(endpoint())
    history = (user("one"), *rounds(0, 2), said("the end of turn one"))
    for count in range(4):
        conversation = (*history, user("two"), *rounds(2, 2 + count))
        body = msgspec.json.decode(_bytes(memo, *conversation, turn=2, start=len(history)))
        last = f"result {1 + count}" if count else "two"
        assert marked_texts(body)[2:] == ["the end of turn one", last]


def test_the_same_request_gives_the_same_bytes_whatever_was_lowered_before() -> None:
    conversation = (user("go"), *rounds(0, 10))
    used = RequestMemo(endpoint())
    for count in range(10):
        _bytes(used, *conversation[: 1 + 2 * count], turn=1, start=0)
    fresh = _bytes(RequestMemo(endpoint()), *conversation, turn=1, start=0)
    assert _bytes(used, *conversation, turn=1, start=0) == fresh
    assert _bytes(used, *conversation, turn=1, start=0) == fresh


@pytest.mark.requirement("provider-anthropic:stable-prefix")
def test_markers_are_the_only_thing_that_moves() -> None:
    memo = RequestMemo(endpoint())
    bodies = [_bytes(memo, user("go"), *rounds(0, count), turn=1, start=0) for count in range(1, 8)]
    assert [body.count(MARKER) for body in bodies] == [3] * 7
