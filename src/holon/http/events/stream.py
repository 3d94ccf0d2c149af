"""One event stream from its start to its end, and the watch on the control token.

Owns:  frames, heartbeats and the closing frame of a stream; the single poll of the token on behalf
       of all streams over TCP.
Rule 1: the token is polled once a second for all streams together, and not at all without streams.
Rule 2: the watch only wakes the streams; each stream decides whether it may continue.
Rule 3: the start position is resolved before the response begins: a lost position is a refusal with
        a status, not a stream that ends.
Rule 4: the closing frame names the reason: the reader lagged, the position was lost, the token is
        no longer valid. A reader that does not receive is cut off by the connection.
Rule 5: an idle stream sends heartbeats and rechecks its authorization; over TCP also when the token
        changes.
Rule 6: the first event is sent at once; those that follow within a moment are sent together, since
        a query and a write cost the same for one event as for many.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final, NamedTuple

import anyio

from holon.http.access import Token
from holon.http.exchange import SocketKind
from holon.http.query import StreamQuery
from holon.http.route import Call
from holon.model.errors import BadInputError, HolonError, StoreError
from holon.model.limits import EVENT_HEARTBEAT_MS, SECOND_MS
from holon.ports.clock import Clock
from holon.runtime.events.feed import CursorLostError, EventReader, Page, SubscriberLaggedError
from holon.wire.codec import STREAM_CLOSED, ErrorBody, encode

TOKEN_LOOK_MS: Final = 1 * SECOND_MS
LAST_EVENT_ID: Final = b"last-event-id"
_OPENED: Final = b": open\n\n"
_HEARTBEAT: Final = b": heartbeat\n\n"
_NUMBER_DIGITS_MAX: Final = 18


class TokenWatch:
    """Wakes the streams of one server when the token changes."""

    def __init__(self) -> None:
        self._stream_count = 0
        self._wanted = anyio.Event()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Poll the token while the block runs."""
        self._stream_count += 1
        self._wanted.set()
        try:
            yield
        finally:
            self._stream_count -= 1
            if not self._stream_count:
                self._wanted = anyio.Event()

    async def run(self, token: Token, clock: Clock, wake_all: Callable[[], None]) -> None:
        """Poll until cancelled; wake all streams when the token changes."""
        while True:
            await self._wanted.wait()
            previous = token.digest()
            wake_all()  # streams that checked before this poll check again
            while self._stream_count:
                await clock.sleep_for(TOKEN_LOOK_MS)
                digest = token.digest()
                if digest != previous:
                    previous = digest
                    wake_all()


class BadLastEventIdError(BadInputError):
    """The Last-Event-ID header is not an event id."""

    code = "bad_last_event_id"
    hint = "send the id of the last event exactly as received"


@dataclass(frozen=True, kw_only=True, slots=True)
class EventStream:
    """One event stream."""

    opened: AbstractContextManager[EventReader]
    framed: Callable[[Page], Awaitable[bytes]]
    call: Call
    watch: TokenWatch

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the chunks of the stream until it ends."""
        with self.opened as reader, self._watched():
            yield _OPENED
            while self._may_go_on():
                try:
                    page = await reader.page()
                    frames = await self.framed(page) if page else b""
                except (CursorLostError, SubscriberLaggedError, StoreError) as error:
                    yield _last_word(error)
                    return
                if frames:
                    yield frames
                    await reader.gather()
                elif not page and not await _news(reader):
                    yield _HEARTBEAT
            yield _closed(
                "unauthorized", "the token is no longer valid", "reconnect with the new token"
            )

    def _watched(self) -> AbstractContextManager[None]:
        return nullcontext() if self._needs_no_token else self.watch.watched()

    def _may_go_on(self) -> bool:
        return self._needs_no_token or self.call.still_allowed()

    @property
    def _needs_no_token(self) -> bool:
        """A TCP peer depends on the token, which may change; the peer of a Unix socket is fixed."""
        return self.call.head.peer.socket_kind is SocketKind.UNIX


class Cursor(NamedTuple):
    """Where a reader resumes, and in which epoch if it names one."""

    epoch: str | None
    after: int | None


def resumed_after(call: Call, query: StreamQuery) -> Cursor:
    """Return where a reader resumes; the header of a reconnect takes precedence over the URL."""
    values = call.head.values(LAST_EVENT_ID)
    if not values:
        return Cursor(query.event_log_epoch, query.after_seq)
    epoch, colon, text = values[0].decode("latin-1").rpartition(":")
    is_number = text.isascii() and text.isdigit() and len(text) <= _NUMBER_DIGITS_MAX
    if len(values) > 1 or not is_number:
        raise BadLastEventIdError(f"{text[:40]!r} is not the id of an event")
    return Cursor(epoch if colon else query.event_log_epoch, int(text))


async def _news(reader: EventReader) -> bool:
    """Wait for more events; False when a heartbeat is due."""
    with anyio.move_on_after(EVENT_HEARTBEAT_MS / SECOND_MS):
        await reader.news()
        return True
    return False


def _last_word(error: HolonError) -> bytes:
    return _closed(error.code, error.message, error.hint)


def _closed(code: str, error: str, hint: str | None) -> bytes:
    body = encode(ErrorBody(ok=False, error=error, code=code, hint=hint))
    return b"event: %s\ndata: %s\n\n" % (STREAM_CLOSED.encode(), body)
