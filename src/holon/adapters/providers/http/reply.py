"""Reading an HTTP reply: caps, deadlines, credential masking. Shared by both clients.

Owns:  the headers of every call, the caps and deadlines of a body, the masking of credentials in
       replies, and attaching exchange facts to errors and answers.
Rule 1: a body is read up to its cap. A whole answer has one deadline; a stream may last, but
        neither stay silent nor last for ever. The cap of a stream is wider, because it repeats most
        content; what is kept of it has a cap of its own.
Rule 2: the credential of a call is masked in everything the server returns, before any code reads
        it.
Rule 3: an error inside a 200 becomes that error, not a malformed answer.
Rule 4: once a reply exists, every ProviderError carries diagnostics.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Final, Protocol, Self, TypeVar

import anyio
import msgspec

from holon.adapters.providers.http.exchange import (
    ExchangeFacts,
    ExchangeTimeouts,
    HttpCall,
    HttpReply,
    size_error,
    timeout_error,
)
from holon.adapters.providers.refusals import not_json, refusal_inside_200, refused
from holon.adapters.providers.wire_answer import decode_json
from holon.model.limits import (
    PROVIDER_ANSWER_BYTES_MAX,
    PROVIDER_ERROR_BYTES_MAX,
    PROVIDER_STREAM_BYTES_MAX,
    SECOND_MS,
)
from holon.model.providers.attempts import (
    ExchangeStage,
    FailureFlags,
    ProviderError,
    TransportDiagnostics,
    UnreadableResponseError,
)
from holon.model.turns.turn import ModelAnswer
from holon.model.values import JsonValue
from holon.ports.clock import Clock
from holon.wire.server_sent_events import SseEvent, SseParser, UnreadableStreamError

_Result = TypeVar("_Result")

_CREDENTIAL_HEADERS: Final = ("authorization", "x-api-key", "api-key")
_CREDENTIAL_CHARS_MIN: Final = 8  # masking something shorter would mangle ordinary words
_MASK: Final = b"[redacted]"


class ErrorMapping(msgspec.Struct, frozen=True):
    """The exceptions of a client, and their mapping to ProviderErrors."""

    errors: tuple[type[Exception], ...]
    to_provider_error: Callable[[Exception, ExchangeFacts], ProviderError]


class ReplyTimeouts(msgspec.Struct, frozen=True, kw_only=True):
    """The deadlines of a reply, and the error mapping of its client."""

    deadline_s: float
    idle_s: float
    stream_deadline_s: float
    mapping: ErrorMapping

    @classmethod
    def since(cls, began_s: float, timeouts: ExchangeTimeouts, mapping: ErrorMapping) -> Self:
        """Return the deadlines of an exchange that began at a moment."""
        return cls(
            deadline_s=began_s + timeouts.answer_ms / SECOND_MS,
            idle_s=timeouts.idle_ms / SECOND_MS,
            stream_deadline_s=began_s + timeouts.stream_ms / SECOND_MS,
            mapping=mapping,
        )


class BodyChunks(Protocol):
    """The body chunks that a client delivers."""

    def __anext__(self) -> Awaitable[bytes]:
        """Return the next chunk, or raise StopAsyncIteration at the end."""
        ...

    def aclose(self) -> Awaitable[None]:
        """Stop delivering."""
        ...


class CappedReply:
    """A response whose body is read once, under caps and deadlines, for any client."""

    def __init__(
        self,
        headers: Mapping[str, str],
        pieces: BodyChunks,
        facts: ExchangeFacts,
        timeouts: ReplyTimeouts,
    ) -> None:
        self._headers = headers
        self._body = pieces
        self._facts = facts
        self._patience = timeouts
        self._bytes_max = PROVIDER_ANSWER_BYTES_MAX

    @property
    def is_event_stream(self) -> bool:
        kind = self._headers.get("content-type", "").partition(";")[0]
        return kind.strip().lower() == "text/event-stream"

    @property
    def headers(self) -> Mapping[str, str]:
        return self._headers

    async def read(self) -> bytes:
        body = bytearray()
        while (piece := await self._next(self._patience.deadline_s)) is not None:
            body += piece
        self._facts.stage = ExchangeStage.DECODE
        return bytes(body)

    async def chunks(self) -> AsyncIterator[bytes]:
        self._bytes_max = PROVIDER_STREAM_BYTES_MAX
        async with aclosing(self._body):
            while True:
                idle_until_s = anyio.current_time() + self._patience.idle_s
                piece = await self._next(min(idle_until_s, self._patience.stream_deadline_s))
                if piece is None:
                    break
                yield piece
        self._facts.stage = ExchangeStage.DECODE

    def diagnostics(self) -> TransportDiagnostics:
        return self._facts.diagnostics()

    async def read_up_to(self, bytes_max: int, wait_ms: int) -> bytes:
        """Return the beginning of an error body; failures to read it are ignored."""
        body = bytearray()
        deadline_s = min(self._patience.deadline_s, anyio.current_time() + wait_ms / SECOND_MS)
        try:
            while len(body) < bytes_max:
                piece = await self._next(deadline_s)
                if piece is None:
                    break
                body += piece
        except ProviderError:
            pass  # the status suffices
        return bytes(body[:bytes_max])

    async def _take(self) -> bytes | None:
        try:
            return await self._body.__anext__()
        except StopAsyncIteration:
            return None

    async def _next(self, deadline_s: float) -> bytes | None:
        piece = await run_step(self._take, self._facts, deadline_s, self._patience.mapping)
        if piece is not None:
            self._facts.bytes_received += len(piece)
            if self._facts.bytes_received > self._bytes_max:
                raise size_error(self._bytes_max, self._facts)
        return piece


async def run_step(
    act: Callable[[], Awaitable[_Result]],
    facts: ExchangeFacts,
    deadline_s: float,
    mapping: ErrorMapping,
) -> _Result:
    """Run one step of an exchange under a deadline, with its exceptions mapped."""
    try:
        with anyio.fail_after(deadline_s - anyio.current_time()):
            return await act()
    except TimeoutError:
        raise timeout_error(facts) from None
    except mapping.errors as error:
        raise mapping.to_provider_error(error, facts) from None


async def refusal(
    call: HttpCall, reply: CappedReply, facts: ExchangeFacts, *, wait_ms: int, clock: Clock
) -> ProviderError:
    """Return the error for a status other than 2xx."""
    assert facts.status is not None
    body = await reply.read_up_to(PROVIDER_ERROR_BYTES_MAX, wait_ms)
    return refused(
        facts.status,
        reply.headers,
        _masked(body, call.headers),
        diagnostics=facts.diagnostics(),
        now=clock.now(),
    )


def headers_of(call: HttpCall) -> dict[str, str]:
    """Return the headers of a call, with those every call has."""
    # No compression: a compressed stream arrives in bursts, and could expand without bound.
    return {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "accept-encoding": "identity",
        "user-agent": "holon",
        **{name.lower(): value for name, value in call.headers.items()},
    }


def _masked(body: bytes, headers: Mapping[str, str]) -> bytes:
    for name, value in headers.items():
        if name.lower() in _CREDENTIAL_HEADERS:
            secret = value.split(" ")[-1]
            if len(secret) >= _CREDENTIAL_CHARS_MIN:
                body = body.replace(secret.encode(), _MASK)
    return body


@contextmanager
def with_diagnostics(reply: HttpReply) -> Iterator[None]:
    """Add the exchange's diagnostics to a ProviderError raised without any."""
    try:
        yield
    except ProviderError as error:
        if error.diagnostics is None:
            diagnostics = reply.diagnostics()
            flags = FailureFlags(
                is_decode=isinstance(error, UnreadableResponseError), status=diagnostics.status
            )
            error.diagnostics = msgspec.structs.replace(
                diagnostics,
                stage=ExchangeStage.DECODE,
                flags=flags,
                retry_after_ms=error.retry_after_ms,
            )
        raise


async def json_of(reply: HttpReply) -> JsonValue:
    """Return the JSON of a reply, or raise the error it contains."""
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
    """Yield the events of a reply as they complete. A caller that stops early closes this."""
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
    """Return the events that a chunk of a stream completes."""
    try:
        return parser.feed(piece)
    except UnreadableStreamError as error:
        raise UnreadableResponseError(str(error)) from None


def completed(answer: ModelAnswer, reply: HttpReply) -> ModelAnswer:
    """Return the answer with the diagnostics of its exchange."""
    diagnostics = msgspec.structs.replace(reply.diagnostics(), stage=ExchangeStage.COMPLETE)
    return msgspec.structs.replace(answer, diagnostics=diagnostics)
