"""Follows an event stream across reconnects.

Owns:  reading server-sent events, and resuming after the last one received.
Rule 1: an event is yielded once: after a break the stream is resumed from the last id. A closing
        frame of the runtime counts as a break; the response to the reconnect decides what follows.
Rule 2: data that is not an event of a runtime is an error: the server may be another program.
Rule 3: a stream that breaks repeatedly is given up. An unknown cursor is an error at once, so that
        the caller starts over; so is a cursor of another epoch, after the home was restored.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from holon.client.connection import ForeignServerError, HttpResponse, SilentRuntimeError
from holon.client.control_client import ControlClient, Query
from holon.client.endpoint import NoRuntimeError
from holon.model.limits import (
    CLIENT_RECONNECT_MS_MAX,
    CLIENT_RECONNECTS_COUNT_MAX,
    CLIENT_STREAM_IDLE_MS_MAX,
    CLIENT_STREAM_LINE_BYTES_MAX,
    SECOND_MS,
)
from holon.model.values import JsonValue
from holon.wire.codec import STREAM_CLOSED
from holon.wire.server_sent_events import SseEvent, SseParser, UnreadableStreamError

EPOCH: Final = "event_log_epoch"
EPOCH_CHANGED: Final = "log_epoch_changed"
_FIRST_PAUSE_MS = 100
_TEXTS: Final = ("agent_id", "ts", "type")  # of every event


def follow(
    client: ControlClient,
    path: str,
    *,
    pause: Callable[[float], object],
    query: Query | None = None,
    cursor: str = "after_seq",
) -> Iterator[SseEvent]:
    """Yield events as they happen; `cursor` is the query parameter that resumes a stream."""
    asked, idle_s = dict(query or {}), CLIENT_STREAM_IDLE_MS_MAX / SECOND_MS
    broken_count, came_through = 0, False
    while True:
        try:
            with client.open_stream(path, asked, timeout_s=idle_s) as answer:
                came_through = True
                for event in read_events(answer):
                    if event.event == STREAM_CLOSED:
                        break
                    broken_count = 0
                    if event.id is not None:
                        asked[cursor] = event.id
                        if event.data and EPOCH not in asked:
                            asked[EPOCH] = _epoch_of(event)
                    if event.data:
                        yield event
        except (NoRuntimeError, SilentRuntimeError, ForeignServerError):
            if not came_through or broken_count >= CLIENT_RECONNECTS_COUNT_MAX:
                raise
        broken_count += 1
        wait_ms = min(_FIRST_PAUSE_MS * 2**broken_count, CLIENT_RECONNECT_MS_MAX)
        pause(wait_ms / SECOND_MS)


def _epoch_of(event: SseEvent) -> str | None:
    """Return the epoch of an event; an older runtime sends none."""
    try:
        told = msgspec.json.decode(event.data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    epoch = told.get(EPOCH) if isinstance(told, dict) else None
    return epoch if isinstance(epoch, str) else None


def envelope_of(event: SseEvent) -> JsonValue:
    """Decode an event, or raise ForeignServerError."""
    try:
        found = msgspec.json.decode(event.data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        found = None
    told = found if isinstance(found, dict) else {}
    is_whole = type(told.get("event_seq")) is int and isinstance(told.get("payload"), dict)
    if not is_whole or not all(isinstance(told.get(name), str) for name in _TEXTS):
        raise ForeignServerError(
            "the stream contains invalid events",
            hint="it may be a runtime of another version, or another program",
        )
    return told


def read_events(answer: HttpResponse) -> Iterator[SseEvent]:
    """Yield the events of one answer until it ends; comments keep it alive and say nothing.

    One without data is no event: its id says how far what was passed over reaches.
    """
    parser = SseParser(
        line_bytes_max=CLIENT_STREAM_LINE_BYTES_MAX,
        event_bytes_max=CLIENT_STREAM_LINE_BYTES_MAX,
        bare_ids=True,
    )
    for piece in answer:
        try:
            yield from parser.feed(piece)
        except UnreadableStreamError as error:
            raise ForeignServerError(str(error)) from None
