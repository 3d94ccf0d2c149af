"""Events as they happen, to whoever keeps reading.

Owns:  one stream from its opening to its end: frames, heartbeats and the last word.
Rule 1: where a stream begins is settled before it is answered: a place that is lost is a refusal
        with a status, not a stream that ends.
Rule 2: a stream says why it ends: its reader fell behind, its place was lost, its token is no
        longer good. A reader that takes nothing is cut off by the connection.
Rule 3: a silent stream says every now and then that it lives, and checks that it may; over TCP also
        whenever the token is another.
Rule 4: what happens is told at once; what follows within a moment is told together, since looking
        and sending cost the same for one event as for many.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final, NamedTuple

import anyio

from holon.http.exchange import Door
from holon.http.page_queries import StreamQuery
from holon.http.route import Call
from holon.http.token_watch import TokenWatch
from holon.model.errors import BadInputError, HolonError, StoreError
from holon.model.limits import EVENT_HEARTBEAT_MS, SECOND_MS
from holon.runtime.event_feed import CursorLostError, EventReader, Page, SubscriberLaggedError
from holon.wire.codec import encode
from holon.wire.error_body import STREAM_CLOSED, ErrorBody

LAST_EVENT_ID: Final = b"last-event-id"
_OPENED: Final = b": open\n\n"
_HEARTBEAT: Final = b": heartbeat\n\n"
_NUMBER_DIGITS_MAX: Final = 18


class BadLastEventIdError(BadInputError):
    """The header that says where to go on is not a number."""

    code = "bad_last_event_id"
    hint = "send the id of the last event, as it came"


@dataclass(frozen=True, kw_only=True, slots=True)
class Stream:
    """What one stream is made of."""

    opened: AbstractContextManager[EventReader]
    framed: Callable[[Page], Awaitable[bytes]]
    call: Call
    watch: TokenWatch

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the stream, piece by piece, until there is a reason to end it."""
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
            yield _closed("unauthorized", "the token is no longer good", "ask with the new one")

    def _watched(self) -> AbstractContextManager[None]:
        return nullcontext() if self._needs_no_token else self.watch.watched()

    def _may_go_on(self) -> bool:
        return self._needs_no_token or self.call.still_allowed()

    @property
    def _needs_no_token(self) -> bool:
        """Over TCP the token may change; who is at a unix socket does not."""
        return self.call.head.peer.door is Door.UNIX


class Cursor(NamedTuple):
    """Where a reader wants to go on, and on which timeline if it says so."""

    epoch: str | None
    after: int | None


def resumed_after(call: Call, asked: StreamQuery) -> Cursor:
    """Return where a reader wants to go on: a browser's header counts more than its first URL."""
    values = call.head.values(LAST_EVENT_ID)
    if not values:
        return Cursor(asked.event_log_epoch, asked.after_seq)
    epoch, colon, text = values[0].decode("latin-1").rpartition(":")
    is_number = text.isascii() and text.isdigit() and len(text) <= _NUMBER_DIGITS_MAX
    if len(values) > 1 or not is_number:
        raise BadLastEventIdError(f"{text[:40]!r} is not the id of an event")
    return Cursor(epoch if colon else asked.event_log_epoch, int(text))


async def _news(reader: EventReader) -> bool:
    """Wait for more; False when it is time for a heartbeat."""
    with anyio.move_on_after(EVENT_HEARTBEAT_MS / SECOND_MS):
        await reader.news()
        return True
    return False


def _last_word(error: HolonError) -> bytes:
    return _closed(error.code, error.message, error.hint)


def _closed(code: str, error: str, hint: str | None) -> bytes:
    body = encode(ErrorBody(ok=False, error=error, code=code, hint=hint))
    return b"event: %s\ndata: %s\n\n" % (STREAM_CLOSED.encode(), body)
