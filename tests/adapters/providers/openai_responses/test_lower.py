"""What the Responses API is sent."""

from itertools import pairwise
from typing import Any, Final

import msgspec
import pytest
from pydantic import ValidationError

from holon.adapters.providers.openai_responses.request import RequestMemo, continued_body, lower
from holon.adapters.providers.wire_request import Endpoint
from holon.model.providers.models import SchemaMode
from holon.model.providers.prompt_frame import (
    ConversationPosition,
    PromptBlock,
    PromptCache,
    PromptFrame,
    ProviderRequest,
    Stability,
)
from holon.model.turns.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ThinkingBlock,
    UserMessage,
)
from holon.model.values import AgentId
from tests.adapters.providers.openai_responses.canned import (
    EXEC,
    FRAME,
    OPENAI,
    PATCH,
    SEALED,
    every_block,
    request_for,
    result,
    sealed_by,
    use,
    user,
)
from tests.adapters.providers.openai_responses.official_params import judged


def sent(
    endpoint: Endpoint, request: ProviderRequest, memo: RequestMemo | None = None
) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(whole(endpoint, request, memo))
    return body


def whole(endpoint: Endpoint, request: ProviderRequest, memo: RequestMemo | None = None) -> bytes:
    lowered = lower(endpoint, request, memo or RequestMemo())
    return lowered.body


def variant(**fields: Any) -> Endpoint:
    return msgspec.structs.replace(OPENAI, **fields)


ENDPOINTS: Final = {
    "plain": OPENAI,
    "strict": variant(schema_mode=SchemaMode.STRICT),
    "freeform": variant(freeform_tools=True),
    "reasoning": variant(reasoning_effort="high"),
    "streamed": variant(stream=True),
    "incremental": variant(incremental=True),
    "unlimited": variant(output_tokens_max=None),
    "everything": variant(
        schema_mode=SchemaMode.STRICT,
        freeform_tools=True,
        reasoning_effort="low",
        stream=True,
        incremental=True,
    ),
}


@pytest.mark.requirement("provider-openai:full-request-with-cache-key")
def test_a_request_with_every_block_is_lowered_as_it_should_be() -> None:
    assert sent(OPENAI, request_for(every_block(OPENAI), tools=(EXEC,))) == {
        "model": "gpt-5.4",
        "instructions": "You are an agent.\n\nProject notes.",
        "tools": [
            {
                "type": "function",
                "name": "ExecCommand",
                "description": "Runs a command.",
                "parameters": {**EXEC.input_schema, "additionalProperties": False},
                "strict": False,
            }
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "store": False,
        "prompt_cache_key": "main:ctx:0011",
        "max_output_tokens": 4096,
        "input": [
            _said("user", [{"type": "input_text", "text": "Fix it."}]),
            SEALED,
            _said("assistant", "Looking."),
            _call("call_1", "ExecCommand", '{"cmd":"ls"}'),
            _call("call_2", "ApplyPatch", '{"patch":"*** Begin"}'),
            _call("call_3", "ExecCommand", '{"cmd": "l'),
            {"type": "function_call_output", "call_id": "call_1", "output": "a.py"},
            {"type": "function_call_output", "call_id": "call_2", "output": "done"},
            {"type": "function_call_output", "call_id": "call_3", "output": "bad input"},
            _said("user", [{"type": "input_text", "text": "And hurry."}]),
        ],
    }


def _said(role: str, content: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"stream": True}, {"stream": True}),
        ({"incremental": True}, {"store": True}),
        (
            {"reasoning_effort": "high"},
            {"reasoning": {"effort": "high"}, "include": ["reasoning.encrypted_content"]},
        ),
        ({"output_tokens_max": 16}, {"max_output_tokens": 16}),
    ],
)
def test_each_option_of_an_endpoint_adds_its_fields(
    fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    request = request_for((user("Hi"),))
    plain = sent(OPENAI, request)
    assert sent(variant(**fields), request) == {**plain, **expected}


def test_a_bare_request_holds_only_what_it_needs() -> None:
    bare = request_for((user("Hi"),), frame=PromptFrame(system_prompt=" "), tools=())
    assert sent(variant(output_tokens_max=None), bare) == {
        "model": "gpt-5.4",
        "store": False,
        "input": [_said("user", [{"type": "input_text", "text": "Hi"}])],
    }


def test_a_grammar_tool_is_offered_and_replayed_as_plain_text() -> None:
    endpoint = variant(freeform_tools=True)
    body = sent(endpoint, request_for(every_block(endpoint)))
    assert body["tools"][1] == {
        "type": "custom",
        "name": "ApplyPatch",
        "description": "Changes files.",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
    }
    by_call = {item["call_id"]: item for item in body["input"] if "call_id" in item}
    assert [item["type"] for item in body["input"] if item.get("call_id") == "call_2"] == [
        "custom_tool_call",
        "custom_tool_call_output",
    ]
    assert {"name": "ApplyPatch", "input": "*** Begin"}.items() <= body["input"][4].items()
    assert by_call["call_1"]["type"] == "function_call_output"


@pytest.mark.parametrize(
    "arguments", [{"patch": 1}, {"patch": "x", "more": True}, "raw text", {}, None]
)
def test_a_call_that_plain_text_cannot_tell_stays_a_function_call(arguments: Any) -> None:
    calls = AssistantMessage(blocks=(use("c", "ApplyPatch", arguments),))
    conversation = (user("Hi"), calls, UserMessage(blocks=(result("c"),)))
    items = sent(variant(freeform_tools=True), request_for(conversation))["input"]
    assert [item["type"] for item in items[1:]] == ["function_call", "function_call_output"]


def test_the_memo_knows_a_tool_that_became_freeform_from_one_that_was_not() -> None:
    memo = RequestMemo()
    endpoint = variant(freeform_tools=True)
    conversation = every_block(endpoint)
    for tools in ((EXEC, PATCH), (EXEC,), (EXEC, PATCH)):
        request = request_for(conversation, tools=tools)
        assert sent(endpoint, request, memo) == sent(endpoint, request)


@pytest.mark.parametrize(
    "block",
    [
        ThinkingBlock(text="t", signature=None, origin=OPENAI.thinking_origin),
        ThinkingBlock(text="t", signature="{", origin=OPENAI.thinking_origin),
        ThinkingBlock(text="t", signature="[]", origin=OPENAI.thinking_origin),
        ThinkingBlock(
            text="t", signature='{"type":"reasoning","id":"rs"}', origin=OPENAI.thinking_origin
        ),
        msgspec.structs.replace(sealed_by(OPENAI), origin="openai_responses:other"),
        msgspec.structs.replace(sealed_by(OPENAI), origin=None),
    ],
)
def test_reasoning_that_this_endpoint_cannot_read_is_left_out(block: ThinkingBlock) -> None:
    conversation = (user("Hi"), AssistantMessage(blocks=(block, TextBlock(text="Hello"))))
    assert len(sent(OPENAI, request_for(conversation))["input"]) == 2


def test_keys_too_long_for_the_api_are_told_by_a_stable_stand_in() -> None:
    cache = PromptCache(agent_id=AgentId("a"), prompt_cache_key="k" * 65, context_fingerprint="f")
    frame = msgspec.structs.replace(FRAME, cache=cache)
    conversation = (
        AssistantMessage(blocks=(use("c" * 65, "ExecCommand", {}),)),
        UserMessage(blocks=(result("c" * 65),)),
    )
    body = sent(OPENAI, request_for(conversation, frame=frame))
    assert len(body["prompt_cache_key"]) == 64
    calls = {item["call_id"] for item in body["input"]}
    assert len(calls) == 1
    assert {len(call) for call in calls} == {64}


@pytest.mark.parametrize("name", ENDPOINTS)
def test_every_body_is_one_the_official_package_would_send(name: str) -> None:
    endpoint = ENDPOINTS[name]
    lowered = lower(endpoint, request_for(every_block(endpoint)), RequestMemo())
    item = msgspec.Raw(msgspec.json.encode(msgspec.json.decode(lowered.body)["input"][0]))
    shortened = continued_body(lowered.shape, [item], previous_response_id="resp_1")
    for body in (lowered.body, shortened):
        value = msgspec.json.decode(body)
        assert judged(value) == value


@pytest.mark.parametrize(
    "fields",
    [
        {"input": [{"type": "function_call", "name": "n", "arguments": "{}"}]},
        {"tools": [{"type": "function", "name": "n"}]},
        {"include": ["everything"]},
        {"store": "no"},
    ],
)
def test_the_official_package_refuses_what_is_wrong(fields: dict[str, Any]) -> None:
    body = sent(OPENAI, request_for(every_block(OPENAI)))
    with pytest.raises(ValidationError):
        judged({**body, **fields})


def grown(rounds: int) -> tuple[ConversationMessage, ...]:
    messages: list[ConversationMessage] = [user("Begin.")]
    for number in range(rounds):
        call = use(f"c{number}", "ExecCommand", {"cmd": f"echo {number}"})
        messages.append(AssistantMessage(blocks=(sealed_by(OPENAI), call)))
        messages.append(UserMessage(blocks=(result(f"c{number}", str(number)),)))
    return tuple(messages)


@pytest.mark.parametrize("name", ENDPOINTS)
def test_a_longer_conversation_begins_with_the_bytes_of_the_shorter(name: str) -> None:
    memo = RequestMemo()
    messages = grown(20)
    bodies = [
        whole(ENDPOINTS[name], request_for(messages[:count]), memo) for count in range(1, 42, 2)
    ]
    for shorter, longer in pairwise(bodies):
        assert longer.startswith(shorter.removesuffix(b"]}"))
        assert len(longer) > len(shorter)
    assert bodies[-1] == whole(ENDPOINTS[name], request_for(grown(20)))


def test_a_new_turn_keeps_the_bytes_of_the_history_before_it() -> None:
    history = grown(3)
    frames = [
        msgspec.structs.replace(
            FRAME,
            system_blocks=(PromptBlock(text=f"Turn {turn}", stability=Stability.TURN_SCOPED),),
        )
        for turn in (1, 2)
    ]
    place = ConversationPosition(message_index=len(history), block_index=0)
    first = whole(OPENAI, request_for((*history, user("One")), frame=frames[0], turn_start=place))
    second = whole(OPENAI, request_for((*history, user("Two")), frame=frames[1], turn_start=place))
    shared = whole(OPENAI, request_for(history)).removesuffix(b"]}")
    assert first.startswith(shared)
    assert second.startswith(shared)
