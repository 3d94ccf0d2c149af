"""What the Codex backend is sent."""

from itertools import pairwise
from typing import Any, Final

import msgspec
import pytest
from pydantic import ValidationError

from holon.adapters.providers.openai_codex import OutputReplay, lower
from holon.adapters.providers.openai_responses.request import RequestMemo
from holon.adapters.providers.wire_request import Endpoint
from holon.model.providers.models import SchemaMode
from holon.model.providers.prompt_frame import PromptFrame, ProviderRequest
from holon.model.turns.conversation import AssistantMessage, ConversationMessage, UserMessage
from tests.adapters.providers.openai_responses.canned import (
    CODEX,
    EXEC,
    SEALED,
    every_block,
    request_for,
    result,
    use,
    user,
)
from tests.adapters.providers.openai_responses.official_params import judged


def whole(endpoint: Endpoint, request: ProviderRequest, memo: RequestMemo | None = None) -> bytes:
    lowered = lower(endpoint, request, memo or RequestMemo(), OutputReplay())
    return lowered.body


def sent(endpoint: Endpoint, request: ProviderRequest) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(whole(endpoint, request))
    return body


def variant(**fields: Any) -> Endpoint:
    return msgspec.structs.replace(CODEX, **fields)


ENDPOINTS: Final = {
    "plain": CODEX,
    "strict": variant(schema_mode=SchemaMode.STRICT),
    "freeform": variant(freeform_tools=True),
    "reasoning": variant(reasoning_effort="high"),
    "continuing makes no difference": variant(incremental=True, stream=False),
}


@pytest.mark.requirement("provider-openai:codex-request-shape")
def test_a_request_with_every_block_is_lowered_as_it_should_be() -> None:
    body = sent(CODEX, request_for(every_block(CODEX), tools=(EXEC,)))
    assert list(body)[-1] == "input"
    assert body == {
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
        "reasoning": None,
        "store": False,
        "stream": True,
        "include": [],
        "prompt_cache_key": "main:ctx:0011",
        "input": [
            _said("user", "input_text", "Fix it."),
            SEALED,
            _said("assistant", "output_text", "Looking."),
            _call("call_1", "ExecCommand", '{"cmd":"ls"}'),
            _call("call_2", "ApplyPatch", '{"patch":"*** Begin"}'),
            _call("call_3", "ExecCommand", '{"cmd": "l'),
            {"type": "function_call_output", "call_id": "call_1", "output": "a.py"},
            {"type": "function_call_output", "call_id": "call_2", "output": "done"},
            {"type": "function_call_output", "call_id": "call_3", "output": "bad input"},
            _said("user", "input_text", "And hurry."),
        ],
    }


def _said(role: str, kind: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


@pytest.mark.requirement("provider-openai:codex-request-shape")
def test_with_an_effort_the_reasoning_is_asked_for_sealed() -> None:
    body = sent(variant(reasoning_effort="high"), request_for((user("Hi"),)))
    assert body["reasoning"] == {"effort": "high"}
    assert body["include"] == ["reasoning.encrypted_content"]


@pytest.mark.requirement("provider-openai:codex-no-output-limit")
@pytest.mark.parametrize("name", ENDPOINTS)
def test_what_the_backend_refuses_is_never_sent(name: str) -> None:
    body = sent(ENDPOINTS[name], request_for(every_block(CODEX)))
    assert not {"max_output_tokens", "previous_response_id"} & body.keys()
    assert body["stream"] is True
    assert body["store"] is False
    assert {"reasoning", "include"} <= body.keys()


def test_an_empty_frame_still_has_the_fields_the_backend_wants() -> None:
    body = sent(CODEX, request_for((user("Hi"),), frame=PromptFrame(system_prompt=""), tools=()))
    assert (body["instructions"], body["tools"]) == ("", [])
    assert "prompt_cache_key" not in body


@pytest.mark.parametrize("name", ENDPOINTS)
def test_every_body_is_one_the_official_package_would_send(name: str) -> None:
    body = sent(ENDPOINTS[name], request_for(every_block(CODEX)))
    # The package wants stored answers to carry the names the platform gave them; here none have.
    for item in body["input"]:
        if item.get("role") == "assistant":
            item |= {"id": "msg_1", "status": "completed"}
            item["content"] = [{**part, "annotations": []} for part in item["content"]]
    assert judged(body) == body
    with pytest.raises(ValidationError):
        judged({**body, "input": [{"type": "function_call"}]})


@pytest.mark.parametrize("name", ENDPOINTS)
def test_a_longer_conversation_begins_with_the_bytes_of_the_shorter(name: str) -> None:
    memo = RequestMemo()
    messages: list[ConversationMessage] = [user("Begin.")]
    bodies = [whole(ENDPOINTS[name], request_for(messages), memo)]
    for number in range(10):
        call = use(f"c{number}", "ExecCommand", {"cmd": f"echo {number}"})
        messages.append(AssistantMessage(blocks=(call,)))
        messages.append(UserMessage(blocks=(result(f"c{number}"),)))
        bodies.append(whole(ENDPOINTS[name], request_for(messages), memo))
    for shorter, longer in pairwise(bodies):
        assert longer.startswith(shorter.removesuffix(b"]}"))
