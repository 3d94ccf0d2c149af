"""Whatever a provider wrote is read as exact JSON or refused with the place named."""

from typing import Any

import pytest

from holon.adapters.providers.wire_answer import (
    arguments_in,
    as_list,
    as_object,
    bounded_arguments,
    count_at,
    decode_json,
    finished_answer,
    may_be_empty,
    name_at,
    optional_list,
    optional_object,
    optional_text,
    text_at,
)
from holon.model.limits import TOOL_ARGUMENTS_BYTES_MAX
from holon.model.providers.attempts import TokenUsage, UnreadableResponseError
from holon.model.turns.conversation import (
    ConversationMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from holon.model.turns.turn import StopReason
from holon.model.values import CallId


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"NaN", b"1e400", b'"\xff"', b'"\\ud800"', b"[" * 5_000, b"[" * 80 + b"]" * 80],
)
def test_what_is_not_exact_json_is_unreadable(body: bytes) -> None:
    with pytest.raises(UnreadableResponseError, match="the answer is not JSON"):
        decode_json(body, "the answer")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("  ", {}),
        ('{"a": ', '{"a": '),
        ("ls -la", "ls -la"),
        ("[1]", [1]),
        ('{"a": NaN}', '{"a": NaN}'),
    ],
)
def test_arguments_that_are_no_json_stay_the_text_they_are(text: str, value: object) -> None:
    assert arguments_in(text, "call 0") == value


def test_arguments_that_are_too_large_or_not_unicode_are_unreadable() -> None:
    with pytest.raises(UnreadableResponseError, match="call 0 has more than"):
        arguments_in("x" * (TOOL_ARGUMENTS_BYTES_MAX + 1), "call 0")
    with pytest.raises(UnreadableResponseError, match="call 0 has more than"):
        bounded_arguments({"a": "x" * TOOL_ARGUMENTS_BYTES_MAX}, "call 0")
    with pytest.raises(UnreadableResponseError, match="not Unicode"):
        arguments_in("\ud800", "call 0")


HOLDER: dict[str, Any] = {"text": "a", "empty": "", "count": 3, "flag": True, "null": None}


def test_accessors_give_what_is_there() -> None:
    assert text_at(HOLDER, "text") == "a"
    assert optional_text(HOLDER, "null") is None
    assert count_at(HOLDER, "count") == 3
    assert count_at(HOLDER, "absent") == 0
    assert optional_object(HOLDER, "null", "it") is None
    assert optional_list(HOLDER, "null", "it") == []


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (lambda: as_object([], "the answer"), "the answer should be an object but is a list"),
        (lambda: as_list({}, "`choices`"), "`choices` should be a list but is a dict"),
        (lambda: text_at(HOLDER, "absent"), "`absent` in the answer should be text but is missing"),
        (lambda: text_at(HOLDER, "count"), "`count` in the answer should be text but is a int"),
        (lambda: name_at(HOLDER, "empty"), "`empty` in the answer is empty"),
        (lambda: count_at(HOLDER, "flag"), "`flag` in the answer should be a count"),
        (lambda: count_at({"n": -1}, "n"), "should be a count"),
        (lambda: count_at({"n": 2**60}, "n"), "should be a count"),
        (lambda: optional_object(HOLDER, "text", "it"), "`text` in it should be an object"),
    ],
)
def test_an_unfit_value_is_refused_with_its_place(read: Any, says: str) -> None:
    with pytest.raises(UnreadableResponseError, match=says):
        read()


CALL = ToolUseBlock(call_id=CallId("c1"), name="Sleep", input={})


@pytest.mark.parametrize(
    ("blocks", "stop", "says"),
    [
        ((), StopReason.END_TURN, "the answer is empty"),
        ((TextBlock(text=""),), StopReason.END_TURN, "the answer is empty"),
        ((TextBlock(text="a"),), StopReason.TOOL_USE, "stopped for a tool and named none"),
        ((CALL, CALL), StopReason.TOOL_USE, "repeats a tool call id"),
    ],
)
def test_an_answer_nobody_could_act_on_is_unreadable(
    blocks: tuple[TextBlock | ToolUseBlock, ...], stop: StopReason, says: str
) -> None:
    usage = TokenUsage(input_tokens=5)
    with pytest.raises(UnreadableResponseError, match=says) as raised:
        finished_answer(blocks, stop, usage)
    assert raised.value.usage == usage


RESULT = ToolResultBlock(call_id=CallId("c1"), content="done")
WORDS = TextBlock(text="and now?")


@pytest.mark.requirement("provider-http:silence-behind-results-ends-the-turn")
@pytest.mark.parametrize(
    ("conversation", "allow_empty"),
    [
        ((), False),
        ((UserMessage(blocks=()),), False),
        ((UserMessage(blocks=(WORDS,)),), False),
        ((UserMessage(blocks=(RESULT, WORDS)),), False),
        ((UserMessage(blocks=(WORDS,)), UserMessage(blocks=(RESULT, RESULT))), True),
    ],
)
def test_silence_is_an_answer_to_results_alone(
    conversation: tuple[ConversationMessage, ...], allow_empty: bool
) -> None:
    assert may_be_empty(conversation) is allow_empty
    silent = finished_answer((), StopReason.END_TURN, None, allow_empty=True)
    assert silent.blocks == ()
    with pytest.raises(UnreadableResponseError, match="the answer is empty"):
        finished_answer((), StopReason.MAX_TOKENS, None, allow_empty=True)
