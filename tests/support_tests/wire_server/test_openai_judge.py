"""The official OpenAI client reads what the server says as it is meant, on three wires."""

from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from holon.adapters.providers.scripted.script import Script, ScriptedCall, ScriptedRound
from holon.model.providers.models import TransportKind
from holon.model.turns.turn import StopReason
from tests.support.wire_server import chat_request, responses_request
from tests.support.wire_server.server import open_wire_server
from tests.support_tests.wire_server.clients import HELLO, LOOK, SCHEMA, openai_client

RESPONSES = TransportKind.OPENAI_RESPONSES
CODEX = TransportKind.OPENAI_CODEX_RESPONSES
CHAT = TransportKind.OPENAI_CHAT_COMPLETIONS
EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
TOOLS: Any = [
    {"type": "function", "name": "Look", "description": "l", "parameters": SCHEMA, "strict": True}
]
CHAT_TOOLS: Any = [
    {
        "type": "function",
        "function": {"name": "Look", "description": "l", "parameters": SCHEMA, "strict": True},
    }
]
PATCH: Any = [{"type": "custom", "name": "ApplyPatch", "description": "p"}]


def outputs_of(response: Response) -> list[Any]:
    """The calls of a response with an answer to each."""
    return [
        {"type": "function_call_output", "call_id": item.call_id, "output": "seen"}
        for item in response.output
        if item.type == "function_call"
    ]


async def test_a_whole_response_is_read_as_meant_and_gone_on_from_by_its_id() -> None:
    async with open_wire_server(LOOK) as server, openai_client(server, RESPONSES) as client:
        first = await client.responses.create(model="gpt-x", input="look", tools=TOOLS)
        second = await client.responses.create(
            model="gpt-x",
            input=outputs_of(first),
            tools=TOOLS,
            previous_response_id=first.id,
        )
    Response.model_validate(first.to_dict())
    reasoning, message, *calls = first.output
    assert reasoning.type == "reasoning"
    assert reasoning.summary[0].text == "The house, then."
    assert message.type == "message"
    assert first.output_text == "Let me look."
    assert [(c.name, c.arguments) for c in calls if c.type == "function_call"] == [
        ("Look", '{"at":"the red house"}'),
        ("Look", '{"at":"the tree"}'),
    ]
    assert first.status == "completed"
    assert second.output_text == "The house is red, and the tree is green."
    assert second.previous_response_id == first.id
    assert second.usage is not None
    assert second.usage.input_tokens_details.cached_tokens > 0
    assert second.usage.total_tokens == second.usage.input_tokens + second.usage.output_tokens


async def test_a_conversation_can_be_replayed_item_by_item() -> None:
    async with open_wire_server(LOOK) as server, openai_client(server, RESPONSES) as client:
        asked: Any = [{"role": "user", "content": "look"}]
        sealed: Any = ["reasoning.encrypted_content"]
        first = await client.responses.create(
            model="gpt-x", input=asked, tools=TOOLS, store=False, include=sealed
        )
        said: Any = [item.to_dict(exclude_none=True) for item in first.output]
        second = await client.responses.create(
            model="gpt-x", input=[*asked, *said, *outputs_of(first)], tools=TOOLS, store=False
        )
    assert second.output_text == "The house is red, and the tree is green."


async def test_every_streamed_event_has_its_official_form_and_adds_up() -> None:
    async with open_wire_server(LOOK) as server, openai_client(server, RESPONSES) as client:
        stream = await client.responses.create(
            model="gpt-x", input="look", tools=TOOLS, stream=True
        )
        events = [event async for event in stream]
    for event in events:
        EVENTS.validate_python(event.to_dict())
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert text == "Let me look."
    written = "".join(e.delta for e in events if e.type == "response.function_call_arguments.delta")
    assert written == '{"at":"the red house"}{"at":"the tree"}'
    thought = "".join(e.delta for e in events if e.type == "response.reasoning_summary_text.delta")
    assert thought == "The house, then."
    done = [e.item for e in events if e.type == "response.output_item.done"]
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.output == done


async def test_the_clients_own_stream_reader_arrives_at_the_same_response() -> None:
    async with (
        open_wire_server(LOOK) as server,
        openai_client(server, RESPONSES) as client,
        client.responses.stream(model="gpt-x", input="look", tools=TOOLS) as stream,
    ):
        final = await stream.get_final_response()
    assert final.output_text == "Let me look."
    assert [item.type for item in final.output] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]


async def test_a_freeform_tool_is_called_with_plain_text() -> None:
    script = Script(
        rounds=(
            ScriptedRound(calls=(ScriptedCall(name="ApplyPatch", input={"patch": "*** Begin"}),)),
        )
    )
    async with open_wire_server(script) as server, openai_client(server, RESPONSES) as client:
        whole = await client.responses.create(model="gpt-x", input="patch", tools=PATCH)
        stream = await client.responses.create(
            model="gpt-x", input="patch", tools=PATCH, stream=True
        )
        events = [event async for event in stream]
    [item] = whole.output
    assert item.type == "custom_tool_call"
    assert (item.name, item.input) == ("ApplyPatch", "*** Begin")
    written = [e.delta for e in events if e.type == "response.custom_tool_call_input.delta"]
    assert "".join(written) == "*** Begin"
    for event in events:
        EVENTS.validate_python(event.to_dict())


async def test_a_response_that_was_cut_short_says_so() -> None:
    script = Script(rounds=(ScriptedRound(text="and", stop_reason=StopReason.MAX_TOKENS),))
    async with open_wire_server(script) as server, openai_client(server, RESPONSES) as client:
        whole = await client.responses.create(model="gpt-x", input="go", max_output_tokens=16)
        stream = await client.responses.create(model="gpt-x", input="go", stream=True)
        events = [event async for event in stream]
    assert whole.status == "incomplete"
    assert whole.incomplete_details is not None
    assert whole.incomplete_details.reason == "max_output_tokens"
    assert events[-1].type == "response.incomplete"


@pytest.mark.requirement("provider-scripted:codex-has-its-own-request-shape")
async def test_codex_only_streams_and_repeats_no_output_at_the_end() -> None:
    async with open_wire_server(LOOK) as server, openai_client(server, CODEX) as client:
        stream = await client.responses.create(
            model="gpt-codex",
            instructions="You are careful.",
            input=[{"role": "user", "content": "look"}],
            tools=TOOLS,
            store=False,
            stream=True,
            include=["reasoning.encrypted_content"],
        )
        events = [event async for event in stream]
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.output == []
    items = [e.item for e in events if e.type == "response.output_item.done"]
    assert [item.type for item in items] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    assert items[0].type == "reasoning"
    assert items[0].encrypted_content
    assert server.requests[0].path == "/backend-api/codex/responses"


@pytest.mark.requirement("provider-scripted:codex-has-its-own-request-shape")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_output_tokens": 100}, "Unsupported parameter: max_output_tokens"),
        ({"previous_response_id": "resp_1"}, "Unsupported parameter: previous_response_id"),
        ({"stream": False}, "Stream must be set to true"),
        ({"store": True}, "Store must be set to false"),
        ({"instructions": None}, "Instructions are required"),
    ],
)
async def test_codex_refuses_what_its_backend_refuses(change: dict[str, Any], words: str) -> None:
    asked: dict[str, Any] = {
        "model": "gpt-codex",
        "instructions": "You are careful.",
        "input": [{"role": "user", "content": "look"}],
        "store": False,
        "stream": True,
        **change,
    }
    async with open_wire_server(HELLO) as server, openai_client(server, CODEX) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(**asked)
    assert caught.value.response.json() == {"detail": words}


async def test_a_whole_completion_is_read_as_meant_over_two_rounds() -> None:
    async with open_wire_server(LOOK) as server, openai_client(server, CHAT) as client:
        messages: Any = [
            {"role": "system", "content": "You are careful."},
            {"role": "user", "content": "look"},
        ]
        first = await client.chat.completions.create(
            model="gpt-x", messages=messages, tools=CHAT_TOOLS
        )
        message = first.choices[0].message
        calls = message.tool_calls or []
        messages.append(message.to_dict(exclude_none=True))
        messages.extend(
            {"role": "tool", "tool_call_id": call.id, "content": "seen"} for call in calls
        )
        second = await client.chat.completions.create(
            model="gpt-x", messages=messages, tools=CHAT_TOOLS
        )
    ChatCompletion.model_validate(first.to_dict())
    assert first.choices[0].finish_reason == "tool_calls"
    assert message.content == "Let me look."
    assert [call.id for call in calls] == ["call_000001_0", "call_mine"]
    assert [call.function.arguments for call in calls if call.type == "function"] == [
        '{"at":"the red house"}',
        '{"at":"the tree"}',
    ]
    assert second.choices[0].message.content == "The house is red, and the tree is green."
    assert second.choices[0].finish_reason == "stop"
    assert second.usage is not None
    assert second.usage.prompt_tokens_details is not None
    assert second.usage.prompt_tokens_details.cached_tokens


async def test_streamed_chunks_have_their_official_form_and_add_up() -> None:
    async with open_wire_server(LOOK) as server, openai_client(server, CHAT) as client:
        stream = await client.chat.completions.create(
            model="gpt-x",
            messages=[{"role": "user", "content": "look"}],
            tools=CHAT_TOOLS,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk.to_dict())
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == "Let me look."
    written: dict[int, str] = {}
    for delta in deltas:
        for call in delta.tool_calls or []:
            assert call.function is not None
            grown = written.get(call.index, "") + (call.function.arguments or "")
            written[call.index] = grown
    assert written == {0: '{"at":"the red house"}', 1: '{"at":"the tree"}'}
    assert chunks[-1].usage is not None
    assert chunks[-2].choices[0].finish_reason == "tool_calls"


async def test_the_clients_own_chunk_reader_arrives_at_the_same_completion() -> None:
    async with (
        open_wire_server(LOOK) as server,
        openai_client(server, CHAT) as client,
        client.chat.completions.stream(
            model="gpt-x", messages=[{"role": "user", "content": "look"}], tools=CHAT_TOOLS
        ) as stream,
    ):
        final = await stream.get_final_completion()
    assert final.choices[0].message.content == "Let me look."
    assert len(final.choices[0].message.tool_calls or []) == 2


@pytest.mark.parametrize(
    ("ours", "official"),
    [
        (responses_request.FIELDS, ResponseCreateParamsStreaming),
        (chat_request.FIELDS, CompletionCreateParamsStreaming),
    ],
)
def test_the_server_knows_every_parameter_of_the_official_client(
    ours: frozenset[str], official: Any
) -> None:
    assert ours == frozenset(official.__annotations__)
