"""The official Anthropic client reads what the server says as it is meant."""

from typing import Any

from anthropic.types import Message, RawMessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from pydantic import TypeAdapter

from holon.adapters.providers.scripted.script import Script, ScriptedRound
from holon.model.turns.turn import StopReason
from tests.support.wire_server import messages_request
from tests.support.wire_server.server import open_wire_server
from tests.support_tests.wire_server.clients import LOOK, SCHEMA, anthropic_client

EVENTS: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
ASKED: dict[str, Any] = {
    "model": "claude-x",
    "max_tokens": 1_000,
    "system": "You are careful.",
    "messages": [{"role": "user", "content": "look"}],
    "tools": [{"name": "Look", "description": "l", "input_schema": SCHEMA}],
}


def check_first(message: Message) -> None:
    """What every way of asking must arrive at."""
    thinking, text, *uses = message.content
    assert thinking.type == "thinking"
    assert thinking.thinking == "The house, then."
    assert thinking.signature
    assert text.type == "text"
    assert text.text == "Let me look."
    assert [(use.id, use.name, use.input) for use in uses if use.type == "tool_use"] == [
        ("call_000001_0", "Look", {"at": "the red house"}),
        ("call_mine", "Look", {"at": "the tree"}),
    ]
    assert message.stop_reason == "tool_use"


async def test_a_whole_message_is_read_as_meant_over_two_rounds() -> None:
    async with open_wire_server(LOOK) as server, anthropic_client(server) as client:
        first = await client.messages.create(**ASKED)
        said: Any = [block.to_dict(exclude_none=True) for block in first.content]
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": "seen"}
            for block in first.content
            if block.type == "tool_use"
        ]
        rest = [{"role": "assistant", "content": said}, {"role": "user", "content": results}]
        second = await client.messages.create(**{**ASKED, "messages": [*ASKED["messages"], *rest]})
    Message.model_validate(first.to_dict())
    check_first(first)
    [text] = second.content
    assert text.type == "text"
    assert text.text == "The house is red, and the tree is green."
    assert second.stop_reason == "end_turn"


async def test_every_streamed_event_has_its_official_form() -> None:
    async with open_wire_server(LOOK) as server, anthropic_client(server) as client:
        stream = await client.messages.create(**ASKED, stream=True)
        events = [event async for event in stream]
    for event in events:
        EVENTS.validate_python(event.to_dict())
    assert (events[0].type, events[-1].type) == ("message_start", "message_stop")
    assert [e.type for e in events].count("content_block_start") == 4


async def test_the_clients_own_stream_reader_arrives_at_the_same_message() -> None:
    async with (
        open_wire_server(LOOK) as server,
        anthropic_client(server) as client,
        client.messages.stream(**ASKED) as stream,
    ):
        words = "".join([text async for text in stream.text_stream])
        final = await stream.get_final_message()
    assert words == "Let me look."
    check_first(final)
    assert final.usage.output_tokens > 1


async def test_a_message_that_was_cut_short_says_so() -> None:
    script = Script(rounds=(ScriptedRound(text="and", stop_reason=StopReason.MAX_TOKENS),))
    async with open_wire_server(script) as server, anthropic_client(server) as client:
        message = await client.messages.create(**ASKED)
    assert message.stop_reason == "max_tokens"


def test_the_server_knows_every_parameter_of_the_official_client() -> None:
    official = frozenset(MessageCreateParamsStreaming.__annotations__)
    assert official <= messages_request.FIELDS
