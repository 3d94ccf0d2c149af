"""From a reply to JSON or events, the same for every wire.

Owns:  reading a reply's body, and putting what is known of the exchange on errors and answers.
Rule 1: an error inside a 200 is that error, not an answer of the wrong shape.
Rule 2: no ProviderError leaves without diagnostics once a reply was there.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager

import msgspec

from holon.adapters.providers.http_exchange import HttpReply
from holon.adapters.providers.json_reading import decode_json
from holon.adapters.providers.refusals import not_json, refusal_inside_200
from holon.model.answer import ModelAnswer
from holon.model.json_value import JsonValue
from holon.model.provider_attempt import ExchangeStage, FailureFlags
from holon.model.provider_errors import ProviderError, UnreadableResponseError
from holon.wire.server_sent_events import SseEvent, SseParser, UnreadableStreamError


@contextmanager
def blaming(reply: HttpReply) -> Iterator[None]:
    """Put the exchange's facts on a ProviderError that was raised without any."""
    try:
        yield
    except ProviderError as error:
        if error.diagnostics is None:
            known = reply.diagnostics()
            flags = FailureFlags(
                is_decode=isinstance(error, UnreadableResponseError), status=known.status
            )
            error.diagnostics = msgspec.structs.replace(
                known, stage=ExchangeStage.DECODE, flags=flags, retry_after_ms=error.retry_after_ms
            )
        raise


async def json_of(reply: HttpReply) -> JsonValue:
    """Return the JSON a reply holds, or raise the error it holds instead."""
    body = await reply.read()
    try:
        value = decode_json(body, "the answer")
    except UnreadableResponseError:
        raise not_json(body, reply.diagnostics()) from None
    error = refusal_inside_200(value)
    if error is not None:
        raise error
    return value


async def events_of(reply: HttpReply) -> AsyncGenerator[SseEvent, None]:
    """Yield the events of a reply as they are complete. Whoever stops early closes this."""
    parser = SseParser()
    pieces = reply.chunks()
    try:
        async for piece in pieces:
            for event in events_in(piece, parser):
                yield event
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()


def events_in(piece: bytes, parser: SseParser) -> list[SseEvent]:
    """Return the events that a piece of a stream completes."""
    try:
        return parser.feed(piece)
    except UnreadableStreamError as error:
        raise UnreadableResponseError(str(error)) from None


def completed(answer: ModelAnswer, reply: HttpReply) -> ModelAnswer:
    """Return the answer with what is known of the exchange that brought it."""
    known = msgspec.structs.replace(reply.diagnostics(), stage=ExchangeStage.COMPLETE)
    return msgspec.structs.replace(answer, diagnostics=known)
