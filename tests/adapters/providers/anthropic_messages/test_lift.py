"""Whole answers, read."""

from typing import Any

import anthropic
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.adapters.providers.anthropic_messages.answer import lift, usage_in
from holon.adapters.providers.wire_answer import decode_json
from holon.model.limits import (
    PROVIDER_OPAQUE_CHARS_MAX,
    PROVIDER_OUTPUT_ITEMS_COUNT_MAX,
    TOOL_ARGUMENTS_BYTES_MAX,
)
from holon.model.providers.attempts import (
    ContextTooLongError,
    ProviderError,
    RequestRejectedError,
    TokenUsage,
    UnreadableResponseError,
)
from holon.model.turns.conversation import (
    AssistantMessage,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    UserMessage,
)
from holon.model.turns.turn import ModelAnswer, StopReason
from holon.model.values import CallId
from tests.adapters.providers.anthropic_messages.sample_requests import (
    ORIGIN,
    body_of,
    request,
    result,
    user,
)
from tests.adapters.providers.anthropic_messages.sample_streams import (
    CALL,
    FOUND,
    REDACTED,
    SEARCH,
    TEXT,
    THINKING,
    USAGE,
    answer,
)

USED = TokenUsage(
    input_tokens=240, output_tokens=7, cache_read_tokens=200, cache_creation_tokens=30
)
SLEEP = ToolUseBlock(call_id=CallId("toolu_1"), name="Sleep", input={"reason": "r"})
HELLO = TextBlock(text="Hello, wörld.")


def _lift(message: Any) -> ModelAnswer:
    return lift(message, origin=ORIGIN)


@pytest.mark.requirement("provider-anthropic:lift")
def test_every_kind_of_block_is_read() -> None:
    whole = answer(THINKING, REDACTED, TEXT, CALL, stop="tool_use")
    anthropic.types.Message.model_validate(whole)
    assert _lift(whole) == ModelAnswer(
        blocks=(
            ThinkingBlock(text="Let me see.", signature="c2ln", origin=ORIGIN),
            ThinkingBlock(text="", signature="c2VhbGVk", redacted=True, origin=ORIGIN),
            HELLO,
            SLEEP,
        ),
        stop_reason=StopReason.TOOL_USE,
        usage=USED,
    )


_TOO_MUCH = "x" * PROVIDER_OPAQUE_CHARS_MAX


@pytest.mark.requirement("provider-wire:hosted-items-are-kept")
@pytest.mark.parametrize(
    "pair",
    [
        ({**SEARCH, "input": {"query": _TOO_MUCH}}, FOUND),
        (SEARCH, {**FOUND, "content": [{"type": "web_search_result", "title": _TOO_MUCH}]}),
    ],
    ids=["call", "result"],
)
def test_a_hosted_call_is_left_out_together_with_its_result(pair: tuple[Any, Any]) -> None:
    others = {**SEARCH, "id": "srv_2"}, {**FOUND, "tool_use_id": "srv_2"}
    lifted = _lift(answer(*pair, *others, TEXT))
    opaque = [each for each in lifted.blocks if isinstance(each, OpaqueBlock)]
    assert [msgspec.json.decode(each.content) for each in opaque] == [*others]
    assert lifted.blocks[-1] == HELLO


@pytest.mark.requirement("provider-wire:hosted-items-are-kept")
def test_what_the_server_did_says_nothing_by_itself() -> None:
    with pytest.raises(UnreadableResponseError, match="empty"):
        _lift(answer(SEARCH, FOUND))
    paused = _lift(answer(SEARCH, stop="pause_turn"))
    assert paused.stop_reason is StopReason.MAX_TOKENS
    silent = lift(answer(SEARCH, FOUND), origin=ORIGIN, allow_empty=True)
    assert len(silent.blocks) == 2


@pytest.mark.requirement("provider-anthropic:thinking-goes-home")
def test_what_was_read_goes_back_word_for_word() -> None:
    whole = answer(THINKING, REDACTED, TEXT, CALL, stop="tool_use")
    told = AssistantMessage(blocks=_lift(whole).blocks)
    body = body_of(request(user("a"), told, UserMessage(blocks=(result("toolu_1"),))))
    assert body["messages"][1]["content"] == whole["content"]


STOPS = [
    ("end_turn", (TEXT,), StopReason.END_TURN, (HELLO,)),
    ("stop_sequence", (TEXT,), StopReason.END_TURN, (HELLO,)),
    ("tool_use", (CALL,), StopReason.TOOL_USE, (SLEEP,)),
    ("max_tokens", (TEXT,), StopReason.MAX_TOKENS, (HELLO,)),
    ("max_tokens", (TEXT, CALL), StopReason.MAX_TOKENS, (HELLO, SLEEP)),
    ("pause_turn", (TEXT,), StopReason.MAX_TOKENS, (HELLO,)),
    ("refusal", (TEXT,), StopReason.END_TURN, (HELLO,)),
    ("refusal", (TEXT, CALL), StopReason.END_TURN, (HELLO,)),
    ("end_turn", (TEXT, CALL), StopReason.TOOL_USE, (HELLO, SLEEP)),
    ("end_turn", ({**TEXT, "text": ""}, TEXT), StopReason.END_TURN, (HELLO,)),
]


@pytest.mark.requirement("provider-anthropic:stop-reasons")
@pytest.mark.parametrize(("stop", "content", "reason", "blocks"), STOPS)
def test_each_stop_reason_has_its_meaning(
    stop: str, content: tuple[Any, ...], reason: StopReason, blocks: tuple[Any, ...]
) -> None:
    read = _lift(answer(*content, stop=stop))
    assert (read.stop_reason, read.blocks, read.usage) == (reason, blocks, USED)


FAILURES: list[tuple[str, Any, type[ProviderError]]] = [
    ("context is full", answer(TEXT, stop="model_context_window_exceeded"), ContextTooLongError),
    ("declined", answer(stop="refusal"), RequestRejectedError),
    ("declined blankly", answer({**TEXT, "text": " "}, stop="refusal"), RequestRejectedError),
    ("a tool that is not named", answer(TEXT, stop="tool_use"), UnreadableResponseError),
    ("nothing said", answer(), UnreadableResponseError),
    ("nothing but an empty text", answer({**TEXT, "text": ""}), UnreadableResponseError),
    ("an unknown stop", answer(TEXT, stop="compaction"), UnreadableResponseError),
    ("no stop", answer(TEXT, stop=None), UnreadableResponseError),
    ("the same id twice", answer(CALL, CALL, stop="tool_use"), UnreadableResponseError),
    ("no id", answer({**CALL, "id": ""}, stop="tool_use"), UnreadableResponseError),
    ("no name", answer({**CALL, "name": None}, stop="tool_use"), UnreadableResponseError),
    ("a foreign block", answer({"type": "hologram"}), UnreadableResponseError),
    ("a block without a kind", answer({"text": "x"}), UnreadableResponseError),
    ("a block of text", answer("x"), UnreadableResponseError),
    ("text that is none", answer({**TEXT, "text": 1}), UnreadableResponseError),
    (
        "sealed thinking without data",
        answer({"type": "redacted_thinking"}),
        UnreadableResponseError,
    ),
    ("content as text", {**answer(), "content": "x"}, UnreadableResponseError),
    (
        "too many blocks",
        answer(*[TEXT] * (PROVIDER_OUTPUT_ITEMS_COUNT_MAX + 1)),
        UnreadableResponseError,
    ),
    (
        "huge arguments",
        answer({**CALL, "input": {"x": "y" * TOOL_ARGUMENTS_BYTES_MAX}}),
        UnreadableResponseError,
    ),
    ("no arguments", answer({"type": "tool_use", "id": "a", "name": "b"}), UnreadableResponseError),
]


@pytest.mark.requirement("provider-anthropic:bad-answers-fail-fast")
@pytest.mark.parametrize(
    ("message", "kind"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES]
)
def test_an_answer_nobody_could_act_on_is_the_right_failure(
    message: Any, kind: type[ProviderError]
) -> None:
    with pytest.raises(ProviderError) as caught:
        _lift(message)
    assert type(caught.value) is kind
    assert caught.value.usage == USED
    assert not caught.value.retryable


@pytest.mark.parametrize("message", [None, [], "x", 1, {}, {"content": []}])
def test_something_else_than_an_answer_is_unreadable(message: Any) -> None:
    with pytest.raises(UnreadableResponseError):
        _lift(message)


def test_arguments_that_are_no_object_pass_to_the_tool_layer_as_they_are() -> None:
    read = _lift(answer({**CALL, "input": '{"a":'}, stop="tool_use"))
    assert read.blocks == (msgspec.structs.replace(SLEEP, input='{"a":'),)


@pytest.mark.requirement("provider-anthropic:usage")
@pytest.mark.parametrize(
    ("usage", "read"),
    [
        (USAGE, USED),
        (None, None),
        ("many", None),
        ({}, TokenUsage()),
        ({"input_tokens": 3, "output_tokens": 4}, TokenUsage(input_tokens=3, output_tokens=4)),
        ({"input_tokens": 3, "cache_read_input_tokens": None}, TokenUsage(input_tokens=3)),
        ({"input_tokens": -3, "output_tokens": "x", "cache_read_input_tokens": True}, TokenUsage()),
    ],
)
def test_usage_counts_everything_read_and_never_fails_an_answer(usage: Any, read: Any) -> None:
    assert usage_in(usage) == read
    assert _lift(answer(TEXT, usage=usage)).usage == read


KEYS = st.sampled_from(["type", "text", "id", "name", "input", "content", "stop_reason", "usage"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)
BLOCKS = st.sampled_from([TEXT, THINKING, REDACTED, CALL])
MAIMED = st.builds(
    lambda block, key, value: {**block, key: value}, BLOCKS, KEYS | st.just("thinking"), JSON
)
ANSWERS = st.builds(
    lambda content, stop, usage: {"content": content, "stop_reason": stop, "usage": usage},
    st.lists(MAIMED | BLOCKS, max_size=4) | JSON,
    st.sampled_from(["end_turn", "tool_use", "refusal", "pause_turn", "max_tokens"]) | JSON,
    JSON,
)


@given(ANSWERS | JSON)
def test_whatever_comes_is_an_answer_or_a_provider_error(value: Any) -> None:
    read = _read(value)
    if isinstance(read, ModelAnswer):
        judged = request(user("a"), AssistantMessage(blocks=read.blocks), user("b"))
        assert len(body_of(judged)["messages"]) in (1, 3)
    else:
        assert not read.retryable


def _read(value: Any) -> ModelAnswer | ProviderError:
    try:
        return _lift(decode_json(msgspec.json.encode(value), "it"))
    except ProviderError as error:
        return error
