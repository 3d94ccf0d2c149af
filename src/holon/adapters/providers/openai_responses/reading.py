"""From a reply to what `lift` takes: the response JSON, streamed or not, and how to read it.

Owns:  which of the two forms a reply has, and what reading it depends on, for both OpenAI wires.
Rule 1: an event feed is read as one even where its content type was lost on the way.
"""

from contextlib import aclosing
from typing import Final

from holon.adapters.providers.http_exchange import HttpReply
from holon.adapters.providers.json_reading import decode_json
from holon.adapters.providers.openai_responses.lift import LiftStyle
from holon.adapters.providers.openai_responses.lower import LoweredRequest
from holon.adapters.providers.openai_responses.stream import ResponseStream
from holon.adapters.providers.refusals import not_json
from holon.adapters.providers.reply_reading import events_in, events_of
from holon.model.json_value import JsonValue
from holon.model.provider_errors import UnreadableResponseError
from holon.ports.clock import Clock
from holon.ports.provider import Hear
from holon.wire.server_sent_events import SseParser

_FEED_HEADS: Final = (b"event:", b"data:", b":")


async def response_in(reply: HttpReply, hear: Hear) -> JsonValue:
    """Return the ended response a reply holds; progress is heard on the way."""
    if reply.is_event_stream:
        return await _told_live(reply, hear)
    body = await reply.read()
    if body.lstrip().startswith(_FEED_HEADS):
        return _told_at_once(body, hear)
    try:
        return decode_json(body, "the response")
    except UnreadableResponseError:
        raise not_json(body, reply.diagnostics()) from None


def lift_style(lowered: LoweredRequest, clock: Clock | None) -> LiftStyle:
    """Return how the answer to a request is read; the clock is for resets told as a moment."""
    return LiftStyle(
        thinking_origin=lowered.style.thinking_origin,
        freeform=lowered.style.freeform,
        now=None if clock is None else clock.now(),
        silence_counts=lowered.silence_counts,
    )


async def _told_live(reply: HttpReply, hear: Hear) -> JsonValue:
    stream = ResponseStream()
    async with aclosing(events_of(reply)) as events:
        async for event in events:
            for progress in stream.feed(event):
                hear(progress)
            if stream.is_finished:
                break
    return stream.finish()


def _told_at_once(body: bytes, hear: Hear) -> JsonValue:
    stream = ResponseStream()
    for event in events_in(body, SseParser()):
        for progress in stream.feed(event):
            hear(progress)
    return stream.finish()
