"""What an ended response becomes."""

from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.adapters.providers.openai_responses.answer import LiftStyle, lift
from holon.model.limits import PROVIDER_OUTPUT_ITEMS_COUNT_MAX, TOOL_ARGUMENTS_BYTES_MAX
from holon.model.providers.attempts import (
    AuthRejectedError,
    ContextTooLongError,
    ProviderError,
    ProviderOverloadedError,
    RateLimitedError,
    RequestRejectedError,
    TokenUsage,
    UnreadableResponseError,
    UsageLimitedError,
)
from holon.model.turns.conversation import TextBlock, ThinkingBlock, tool_uses_of
from holon.model.turns.turn import ModelAnswer, StopReason
from tests.adapters.providers.openai_responses.canned import (
    OPENAI,
    SEALED,
    call_item,
    message_item,
    response,
    use,
)

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
STYLE: Final = LiftStyle(
    thinking_origin=OPENAI.thinking_origin, freeform={"ApplyPatch": "patch"}, now=NOW
)
CUSTOM: Final = {
    "type": "custom_tool_call",
    "id": "ctc_1",
    "call_id": "call_2",
    "name": "ApplyPatch",
    "input": "*** Begin",
}


def test_every_kind_of_item_becomes_its_block() -> None:
    answer = lift(response(SEALED, message_item("Hi"), call_item("call_1"), CUSTOM), STYLE)
    assert answer == ModelAnswer(
        blocks=(
            ThinkingBlock(
                text="Look first.",
                signature=msgspec.json.encode(SEALED).decode(),
                origin="openai_responses:openai/gpt-5.4",
            ),
            TextBlock(text="Hi"),
            use("call_1", "ExecCommand", {"cmd": "ls"}),
            use("call_2", "ApplyPatch", {"patch": "*** Begin"}),
        ),
        stop_reason=StopReason.TOOL_USE,
        usage=TokenUsage(input_tokens=100, output_tokens=7, cache_read_tokens=60),
    )


@pytest.mark.requirement("default-trigger:written-down-nowhere")
def test_reasoning_that_came_without_a_seal_is_kept_as_words_alone() -> None:
    open_item = {name: part for name, part in SEALED.items() if name != "encrypted_content"}
    answer = lift(response(open_item, message_item("Hi")), STYLE)
    thought = ThinkingBlock(text="Look first.", origin=OPENAI.thinking_origin)
    assert answer.blocks == (thought, TextBlock(text="Hi"))
    assert not thought.is_sealed


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [('{"cmd": "l', '{"cmd": "l'), ("", {}), ("[1]", [1]), ('{"a": NaN}', '{"a": NaN}')],
)
def test_arguments_that_are_no_json_stay_text(given_text: str, expected: Any) -> None:
    answer = lift(response(call_item("c", given_text)), STYLE)
    assert [call.input for call in tool_uses_of(answer.blocks)] == [expected]


def test_a_refusal_is_words() -> None:
    item = {"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}
    assert lift(response(item), STYLE).blocks == (TextBlock(text="No."),)


def test_items_nobody_knows_are_left_out() -> None:
    answer = lift(response({"type": "brand_new"}, message_item("Hi")), STYLE)
    assert answer.blocks == (TextBlock(text="Hi"),)
    assert answer.stop_reason is StopReason.END_TURN


def test_plain_text_for_a_tool_that_takes_none_is_handed_on_as_it_is() -> None:
    answer = lift(response({**CUSTOM, "name": "ExecCommand"}), STYLE)
    assert [call.input for call in tool_uses_of(answer.blocks)] == ["*** Begin"]


@pytest.mark.parametrize("usage", [None, [], {"input_tokens": "many"}, {"input_tokens": -1}])
def test_usage_that_cannot_be_read_costs_no_answer(usage: Any) -> None:
    assert lift(response(message_item("Hi"), usage=usage), STYLE).usage is None


def test_what_was_said_until_the_length_ran_out_is_an_answer() -> None:
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    answer = lift(response(message_item("Hal"), call_item("c", '{"cmd'), **cut), STYLE)
    assert answer.stop_reason is StopReason.MAX_TOKENS
    assert len(answer.blocks) == 2


UNREADABLE: Final[dict[str, Any]] = {
    "no object": [],
    "no output": {"status": "completed"},
    "output is no list": response() | {"output": {}},
    "an empty answer": response(),
    "only an empty text": response(message_item("")),
    "an item that is no object": response() | {"output": ["x"]},
    "an item without a type": response({"id": "x"}),
    "a repeated call id": response(call_item("c"), call_item("c")),
    "a call without an id": response({**call_item("c"), "call_id": None}),
    "a call with an empty id": response({**call_item("c"), "call_id": ""}),
    "a call without a name": response({**call_item("c"), "name": ""}),
    "arguments that are no text": response({**call_item("c"), "arguments": {}}),
    "huge arguments": response(call_item("c", "x" * (TOOL_ARGUMENTS_BYTES_MAX + 1))),
    "huge plain text": response({**CUSTOM, "input": "x" * (TOOL_ARGUMENTS_BYTES_MAX + 1)}),
    "a call nobody offered": response({"type": "shell_call", "call_id": "c"}),
    "too many items": response(
        *(message_item("x") for _ in range(PROVIDER_OUTPUT_ITEMS_COUNT_MAX + 1))
    ),
    "not ended": response(message_item("x"), status="in_progress"),
    "a status that is no text": response(message_item("x"), status=7),
    "a lone surrogate": response(message_item("\ud800")),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_response_nobody_could_act_on_is_unreadable(name: str) -> None:
    with pytest.raises(UnreadableResponseError):
        lift(UNREADABLE[name], STYLE)


FAILURES: Final[list[tuple[Any, type[ProviderError], int | None]]] = [
    ({"code": "rate_limit_exceeded", "message": "slow"}, RateLimitedError, None),
    (
        {"code": "rate_limit_exceeded", "message": "Please try again in 1.5s."},
        RateLimitedError,
        1_500,
    ),
    ({"code": "rate_limit_exceeded", "message": "Try again in 28ms."}, RateLimitedError, 28),
    (
        {"code": "rate_limit_exceeded", "message": "try again in 35 seconds"},
        RateLimitedError,
        35_000,
    ),
    ({"code": "server_is_overloaded"}, ProviderOverloadedError, None),
    ({"code": "slow_down"}, ProviderOverloadedError, None),
    ({"code": "server_error"}, ProviderOverloadedError, None),
    (None, ProviderOverloadedError, None),
    ({"code": "insufficient_quota"}, UsageLimitedError, None),
    ({"type": "usage_not_included"}, UsageLimitedError, None),
    ({"type": "usage_limit_reached", "resets_in_seconds": 90}, UsageLimitedError, 90_000),
    (
        {"type": "usage_limit_reached", "resets_at": int(NOW.timestamp()) + 60},
        UsageLimitedError,
        60_000,
    ),
    ({"code": "context_length_exceeded"}, ContextTooLongError, None),
    ({"code": "invalid_prompt", "message": "no"}, RequestRejectedError, None),
    ({"code": "invalid_api_key"}, AuthRejectedError, None),
    ({"code": "never_heard_of"}, RequestRejectedError, None),
]


@pytest.mark.requirement("provider-openai:failed-is-classified")
@pytest.mark.parametrize(("error", "kind", "wait_ms"), FAILURES)
def test_a_failed_response_is_the_error_it_names(
    error: Any, kind: type[ProviderError], wait_ms: int | None
) -> None:
    with pytest.raises(ProviderError) as caught:
        lift(response(status="failed", error=error), STYLE)
    assert type(caught.value) is kind
    assert caught.value.retry_after_ms == wait_ms
    assert caught.value.usage == TokenUsage(input_tokens=100, output_tokens=7, cache_read_tokens=60)


@pytest.mark.requirement("provider-openai:incomplete-is-classified")
@pytest.mark.parametrize("details", [{"reason": "content_filter"}, {}, None, "odd"])
def test_a_response_cut_for_another_reason_is_rejected(details: Any) -> None:
    cut = response(message_item("x"), status="incomplete", incomplete_details=details)
    with pytest.raises(RequestRejectedError):
        lift(cut, STYLE)


def test_an_error_inside_a_good_answer_is_that_error() -> None:
    with pytest.raises(RateLimitedError):
        lift({"error": {"code": "rate_limit_exceeded"}}, STYLE)


_KEYS = st.sampled_from(
    [
        "type",
        "id",
        "output",
        "status",
        "content",
        "text",
        "call_id",
        "name",
        "arguments",
        "input",
        "summary",
        "error",
        "usage",
        "incomplete_details",
        "reason",
        "code",
        "encrypted_content",
    ]
)
_TEXTS = st.text(max_size=5) | st.sampled_from(
    [
        "message",
        "reasoning",
        "function_call",
        "custom_tool_call",
        "output_text",
        "completed",
        "failed",
        "incomplete",
        "max_output_tokens",
        "{}",
        "ApplyPatch",
    ]
)
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS
_JSON = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=20,
)


@given(value=_JSON)
def test_any_json_is_an_answer_or_a_provider_error(value: Any) -> None:
    try:
        answer = lift(value, STYLE)
    except ProviderError:
        return
    assert answer.blocks


_ITEM = st.fixed_dictionaries({"type": _TEXTS}, optional=dict.fromkeys(("id", "content"), _JSON))
_ITEMS = st.lists(
    _ITEM | st.dictionaries(_KEYS, _JSON, max_size=6).map(lambda item: {"type": "message", **item}),
    max_size=4,
)


@given(output=_ITEMS, fields=st.dictionaries(_KEYS, _JSON, max_size=3))
def test_any_output_is_an_answer_or_a_provider_error(output: Any, fields: dict[str, Any]) -> None:
    try:
        answer = lift({"output": output, **fields}, STYLE)
    except ProviderError:
        return
    assert answer.blocks
