"""What a Chat Completions server is sent."""

from typing import Any

import msgspec
import pytest

from holon.adapters.providers.openai_chat.request import RequestMemo, lower
from holon.adapters.providers.wire_request import Endpoint
from holon.model.providers.models import SchemaMode
from holon.model.providers.prompt_frame import PromptFrame, ProviderRequest
from holon.model.turns.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from holon.model.values import AgentId, CallId
from tests.adapters.providers.openai_chat.chat_samples import (
    ENDPOINT,
    ORIGIN,
    STREAMING,
    calling,
    request,
    result,
    user,
)

SYSTEM = {"role": "system", "content": "You are Holon.\n\nYou are agent main."}


def body(asked: ProviderRequest, endpoint: Endpoint = ENDPOINT) -> dict[str, Any]:
    decoded = msgspec.json.decode(lower(endpoint, asked, RequestMemo()).body)
    assert isinstance(decoded, dict)
    return decoded


@pytest.mark.requirement("provider-http:chat-completions-wire")
def test_a_conversation_is_sent_whole_in_the_wire_s_form() -> None:
    sent = body(
        request(
            user("list the files"),
            calling("c1"),
            result("c1", then="hurry"),
            calling("c2", "once more"),
            result("c2"),
            turn_scoped="It is noon.",
        )
    )
    function = {"name": "ExecCommand", "arguments": '{"cmd":"ls"}'}
    assert sent["model"] == "m1"
    assert sent["max_tokens"] == 512
    assert "stream" not in sent
    assert sent["messages"] == [
        SYSTEM,
        {"role": "user", "content": "list the files"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
        {"role": "user", "content": "hurry"},
        {
            "role": "assistant",
            "content": "once more",
            "tool_calls": [{"id": "c2", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c2", "content": "a.txt"},
        {"role": "user", "content": "It is noon."},
    ]


@pytest.mark.requirement("provider-http:relaxed-schemas-are-not-strict")
@pytest.mark.parametrize("mode", list(SchemaMode))
def test_tools_say_how_strict_their_schema_is(mode: SchemaMode) -> None:
    sent = body(request(user("hi")), msgspec.structs.replace(ENDPOINT, schema_mode=mode))
    (tool,) = sent["tools"]
    assert tool["type"] == "function"
    assert tool["function"]["strict"] is (mode is SchemaMode.STRICT)
    assert tool["function"]["parameters"]["additionalProperties"] is False


def test_a_streaming_request_asks_for_usage() -> None:
    sent = body(request(user("hi")), STREAMING)
    assert sent["stream"] is True
    assert sent["stream_options"] == {"include_usage": True}


def test_what_is_not_set_is_not_sent() -> None:
    bare = ProviderRequest(
        agent_id=AgentId("main"),
        frame=PromptFrame(system_prompt=""),
        conversation=(user("hi"),),
        tools=(),
    )
    endpoint = msgspec.structs.replace(ENDPOINT, output_tokens_max=None)
    assert body(bare, endpoint) == {
        "model": "m1",
        "messages": [{"role": "user", "content": "hi"}],
    }
    thoughtful = msgspec.structs.replace(endpoint, reasoning_effort="high")
    assert body(bare, thoughtful)["reasoning_effort"] == "high"


@pytest.mark.parametrize(
    ("block", "sent"),
    [
        (
            ThinkingBlock(text="hm", signature="reasoning_content", origin=ORIGIN),
            {"reasoning_content": "hm"},
        ),
        (ThinkingBlock(text="hm", signature="reasoning_content", origin="other:acme"), {}),
        (ThinkingBlock(text="hm", signature="a signature", origin=ORIGIN), {}),
        (ThinkingBlock(text="hm"), {}),
    ],
)
def test_reasoning_goes_back_only_to_where_it_came_from(
    block: ThinkingBlock, sent: dict[str, str]
) -> None:
    said = AssistantMessage(blocks=(block, TextBlock(text="yes")))
    message = body(request(user("hi"), said, user("so?")))["messages"][2]
    assert message == {"role": "assistant", "content": "yes", **sent}


def test_a_round_of_nothing_but_foreign_reasoning_keeps_its_place() -> None:
    said = AssistantMessage(blocks=(ThinkingBlock(text="hm", origin="other:acme"),))
    message = body(request(user("hi"), said, user("so?")))["messages"][2]
    assert message == {"role": "assistant", "content": ""}


@pytest.mark.parametrize("broken", ['{"cmd": ', [1, 2], None])
def test_broken_arguments_go_back_inside_an_object(broken: object) -> None:
    call = ToolUseBlock(call_id=CallId("c1"), name="ExecCommand", input=broken)
    sent = body(request(user("hi"), AssistantMessage(blocks=(call,)), result("c1")))
    arguments = sent["messages"][2]["tool_calls"][0]["function"]["arguments"]
    assert msgspec.json.decode(arguments) == {"invalid_arguments": broken}


def test_the_same_request_has_the_same_bytes_with_and_without_a_memo() -> None:
    asked = request(user("hi"), calling("c1"), result("c1"))
    memo = RequestMemo()
    first = lower(ENDPOINT, asked, memo)
    assert lower(ENDPOINT, asked, memo) == first
    assert lower(ENDPOINT, asked, RequestMemo()) == first


def test_a_longer_conversation_begins_with_the_bytes_of_the_shorter_one() -> None:
    memo = RequestMemo()
    said: list[ConversationMessage] = [user("hi")]
    before = b""
    for number in range(20):
        sent = lower(ENDPOINT, request(*said), memo).body
        messages = sent[: sent.index(b'],"tools"')]
        assert messages.startswith(before)
        before = messages
        said += [calling(f"c{number}"), result(f"c{number}")]
