"""What may be said in the query of a page or a stream.

Owns:  the query types that several routes share, and where a page begins and the next one does.
Rule 1: bounds are part of the type: a number beyond them is refused, not bent.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from holon.model.brief import OperatorVisibility
from holon.model.ids import parse_record_id
from holon.model.limits import (
    EVENT_PAGE_COUNT_DEFAULT,
    EVENT_PAGE_COUNT_MAX,
    ID_CHARS_MAX,
    SURFACE_PAGE_COUNT_DEFAULT,
    SURFACE_PAGE_COUNT_MAX,
    SURFACE_TURNS_COUNT_DEFAULT,
    SURFACE_TURNS_COUNT_MAX,
)
from holon.model.surface import EventOrder
from holon.projections.event_envelope import EventProjection

_Id = TypeVar("_Id", bound=str)
Cursor = Annotated[str, Meta(min_length=1, max_length=ID_CHARS_MAX)]
Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Epoch = Annotated[str, Meta(min_length=1, max_length=64)]
PageLimit = Annotated[int, Meta(ge=1, le=SURFACE_PAGE_COUNT_MAX)]


class AfterQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of what follows a record."""

    after: Cursor | None = None
    limit: PageLimit = SURFACE_PAGE_COUNT_DEFAULT


class BeforeQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of what came before a record."""

    before: Cursor | None = None
    limit: PageLimit = SURFACE_PAGE_COUNT_DEFAULT


class TurnsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of the turns before one, by its index."""

    before: Number | None = None
    limit: Annotated[int, Meta(ge=1, le=SURFACE_TURNS_COUNT_MAX)] = SURFACE_TURNS_COUNT_DEFAULT


class EventsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Events strictly between two; read upwards from `after_seq` if it is given, else downwards."""

    event_log_epoch: Epoch | None = None  # that the numbers were given out in
    after_seq: Number | None = None
    before_seq: Number | None = None
    limit: Annotated[int, Meta(ge=1, le=EVENT_PAGE_COUNT_MAX)] = EVENT_PAGE_COUNT_DEFAULT
    order: EventOrder | None = None
    projection: EventProjection = EventProjection.OPERATOR
    max_level: OperatorVisibility = OperatorVisibility.TRACE  # what is read is narrowed by it


class StreamQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Events from now on, or after the one that is named."""

    event_log_epoch: Epoch | None = None  # that the number was given out in
    after_seq: Number | None = None
    projection: EventProjection = EventProjection.OPERATOR
    max_level: OperatorVisibility = OperatorVisibility.TRACE


def after_id(asked: AfterQuery, kind: Callable[[str], _Id], *, what: str) -> _Id | None:
    """Return the record a page begins after, or nothing for the first page."""
    return None if asked.after is None else kind(parse_record_id(asked.after, what=what))


def next_after(asked: AfterQuery, shown: Sequence[_Id]) -> _Id | None:
    """Return the record the next page begins after; after a page that is not full there is none."""
    return shown[-1] if len(shown) >= asked.limit else None
