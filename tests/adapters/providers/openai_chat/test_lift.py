"""What a Chat Completions answer means."""

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.adapters.providers.openai_chat.answer import lift
from holon.model.limits import TOOL_ARGUMENTS_BYTES_MAX
from holon.model.providers.attempts import (
    ProviderError,
    ProviderOverloadedError,
    RequestRejectedError,
    TokenUsage,
    UnreadableResponseError,
)
from holon.model.turns.conversation import TextBlock, ThinkingBlock, ToolUseBlock
from holon.model.turns.turn import StopReason
from holon.model.values import CallId, JsonValue
from tests.adapters.providers.openai_chat.chat_samples import ORIGIN, response, wire_call

CALL = ToolUseBlock(call_id=CallId("c1"), name="ExecCommand", input={"cmd": "ls"})


@pytest.mark.parametrize(
    ("message", "reason", "blocks", "stop"),
    [
        ({"content": "hi"}, "stop", (TextBlock(text="hi"),), StopReason.END_TURN),
        ({"content": "hi"}, "length", (TextBlock(text="hi"),), StopReason.MAX_TOKENS),
        ({"content": "hi"}, "eos_token", (TextBlock(text="hi"),), StopReason.END_TURN),
        (
            {"content": None, "tool_calls": [wire_call()]},
            "tool_calls",
            (CALL,),
            StopReason.TOOL_USE,
        ),
        ({"content": "", "tool_calls": [wire_call()]}, "stop", (CALL,), StopReason.TOOL_USE),
        ({"tool_calls": [wire_call()]}, "length", (CALL,), StopReason.MAX_TOKENS),
        (
            {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            "stop",
            (TextBlock(text="ab"),),
            StopReason.END_TURN,
        ),
        (
            {"content": None, "refusal": "I will not."},
            "stop",
            (TextBlock(text="I will not."),),
            StopReason.END_TURN,
        ),
        (
            {"reasoning_content": "hm", "content": "yes"},
            "stop",
            (
                ThinkingBlock(text="hm", signature="reasoning_content", origin=ORIGIN),
                TextBlock(text="yes"),
            ),
            StopReason.END_TURN,
        ),
        (
            {"content": '<tool_call>{"name": "ExecCommand"}</tool_call>'},
            "stop",
            (TextBlock(text='<tool_call>{"name": "ExecCommand"}</tool_call>'),),
            StopReason.END_TURN,
        ),
    ],
)
def test_an_answer_becomes_blocks_and_a_reason(
    message: dict[str, Any], reason: str, blocks: tuple[object, ...], stop: StopReason
) -> None:
    answer = lift(response(message, reason), thinking_origin=ORIGIN)
    assert answer.blocks == blocks
    assert answer.stop_reason is stop


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ('{"cmd":"ls"}', {"cmd": "ls"}),
        ({"cmd": "ls"}, {"cmd": "ls"}),
        ("", {}),
        (None, {}),
        ('{"cmd":', '{"cmd":'),
        ('{"n": 1e999}', '{"n": 1e999}'),
    ],
)
def test_arguments_are_json_or_the_text_the_model_wrote(told: JsonValue, read: JsonValue) -> None:
    answer = lift(
        response({"tool_calls": [wire_call(arguments=told)]}, "tool_calls"), thinking_origin=ORIGIN
    )
    (block,) = answer.blocks
    assert isinstance(block, ToolUseBlock)
    assert block.input == read


@pytest.mark.requirement("provider-http:missing-usage-is-absent")
@pytest.mark.parametrize(
    ("usage", "read"),
    [
        (None, None),
        ({}, TokenUsage()),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
            TokenUsage(input_tokens=9, output_tokens=2),
        ),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}},
            TokenUsage(input_tokens=9, cache_read_tokens=8),
        ),
        (
            {"prompt_tokens": 9, "prompt_cache_hit_tokens": 7, "prompt_tokens_details": None},
            TokenUsage(input_tokens=9, cache_read_tokens=7),
        ),
    ],
)
def test_usage_is_read_where_there_is_any(usage: JsonValue, read: TokenUsage | None) -> None:
    answer = lift(response({"content": "hi"}, usage=usage), thinking_origin=ORIGIN)
    assert answer.usage == read


@pytest.mark.requirement("provider-http:missing-usage-is-absent")
@pytest.mark.parametrize(
    "usage",
    [
        3,
        [],
        "none",
        {"prompt_tokens": "9"},
        {"prompt_tokens": 9.5, "completion_tokens": 2},
        {"prompt_tokens": -1},
        {"prompt_tokens": 9, "prompt_tokens_details": []},
    ],
)
def test_odd_usage_never_costs_the_answer(usage: JsonValue) -> None:
    answer = lift(response({"content": "hi"}, usage=usage), thinking_origin=ORIGIN)
    assert (answer.blocks, answer.usage) == ((TextBlock(text="hi"),), None)


@pytest.mark.requirement("provider-http:unreadable-answers-fail-fast")
@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"choices": []},
        {"choices": {}},
        {"choices": [{}]},
        {"choices": [{"message": {"content": "hi"}}]},
        response({"content": "hi"}, None),
        response({"content": 3}),
        response({"content": [3]}),
        response({"content": None}),
        response({"content": ""}),
        response({"content": "hi"}, "tool_calls"),
        response({"tool_calls": [wire_call(), wire_call()]}, "tool_calls"),
        response({"tool_calls": [wire_call(call_id="")]}, "tool_calls"),
        response({"tool_calls": [{"id": "c1"}]}, "tool_calls"),
        response({"tool_calls": [{"id": "c1", "function": {"name": ""}}]}, "tool_calls"),
        response({"tool_calls": [wire_call(arguments=3)]}, "tool_calls"),
        response({"tool_calls": "none"}, "tool_calls"),
        response({"tool_calls": [wire_call(arguments="x" * (TOOL_ARGUMENTS_BYTES_MAX + 1))]}),
    ],
)
def test_an_answer_of_the_wrong_shape_is_unreadable(value: JsonValue) -> None:
    with pytest.raises(UnreadableResponseError):
        lift(value, thinking_origin=ORIGIN)


@pytest.mark.parametrize("reason", ["content_filter", "sensitive"])
def test_a_filtered_answer_is_a_refusal(reason: str) -> None:
    with pytest.raises(RequestRejectedError, match="content filter"):
        lift(response({"content": "hi"}, reason), thinking_origin=ORIGIN)


@pytest.mark.requirement("provider-http:broken-off-answers-are-retryable")
@pytest.mark.parametrize(
    "reason", ["error", "abort", "insufficient_system_resource", "network_error"]
)
@pytest.mark.parametrize("said", [{"content": "I shall now"}, {"tool_calls": [wire_call()]}])
def test_an_answer_the_server_broke_off_is_no_answer(said: JsonValue, reason: str) -> None:
    broken = response(said, reason, usage={"prompt_tokens": 9})
    with pytest.raises(ProviderOverloadedError, match=reason) as raised:
        lift(broken, thinking_origin=ORIGIN)
    assert raised.value.usage == TokenUsage(input_tokens=9)


KEYS = [
    *("choices", "message", "content", "tool_calls", "function", "name", "arguments", "id"),
    *("finish_reason", "usage", "prompt_tokens", "refusal", "reasoning", "text", "index"),
]
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(string.printable, max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=20,
)
MESSAGES = st.dictionaries(st.sampled_from(KEYS), ANY_JSON, max_size=5)


@given(value=ANY_JSON | st.builds(response, MESSAGES, st.sampled_from(["stop", "tool_calls"])))
def test_any_json_is_an_answer_or_a_provider_error(value: JsonValue) -> None:
    try:
        answer = lift(value, thinking_origin=ORIGIN)
    except ProviderError:
        return
    assert answer.blocks
