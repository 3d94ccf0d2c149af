"""Parses query strings into the type a route declares.

Owns:  strict parsing of query parameters; the query types shared by several routes; page cursors.
Rule 1: a number is ASCII digits only: no sign, space, underscore or exponent.
Rule 2: an unknown or repeated parameter is refused.
Rule 3: bounds are part of the type: a number outside them is refused, not clamped.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Final, TypeVar
from urllib.parse import unquote_plus

import msgspec
from msgspec import Meta, inspect

from holon.model.errors import BadInputError
from holon.model.events.briefs import OperatorVisibility
from holon.model.events.reads import EventOrder
from holon.model.limits import (
    EVENT_PAGE_COUNT_DEFAULT,
    EVENT_PAGE_COUNT_MAX,
    ID_CHARS_MAX,
    SURFACE_PAGE_COUNT_DEFAULT,
    SURFACE_PAGE_COUNT_MAX,
    SURFACE_TURNS_COUNT_DEFAULT,
    SURFACE_TURNS_COUNT_MAX,
)
from holon.model.values import parse_record_id
from holon.projections.events.envelope import EventProjection
from holon.wire.codec import shape_error
from holon.wire.strict_body import explained

T = TypeVar("T", bound=msgspec.Struct)

_DIGITS: Final = re.compile(r"[0-9]{1,19}", re.ASCII)
_WORDS: Final = {"true": True, "false": False}
_QUOTED_CHARS_MAX: Final = 40
_Id = TypeVar("_Id", bound=str)
Cursor = Annotated[str, Meta(min_length=1, max_length=ID_CHARS_MAX)]
Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Epoch = Annotated[str, Meta(min_length=1, max_length=64)]
PageLimit = Annotated[int, Meta(ge=1, le=SURFACE_PAGE_COUNT_MAX)]


class BadQueryError(BadInputError):
    """A query parameter is not what the route takes."""

    code = "bad_query"


def read_query(text: str, kind: type[T]) -> T:
    """Return the parameters as `kind`, or raise BadQueryError naming the offending one."""
    given: dict[str, object] = {}
    for part in text.split("&") if text else ():
        name, _, raw = part.partition("=")
        if name in given:
            raise _fault(f"{name[:_QUOTED_CHARS_MAX]!r} is given twice", name, "give it once")
        if name not in _names(kind):
            quoted = f"there is no parameter {name[:_QUOTED_CHARS_MAX]!r} here"
            raise _fault(quoted, name, _known(kind))
        given[name] = _value(name, unquote_plus(raw), kind)
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as wrong:
        fault = explained(shape_error(wrong), b"", kind)
        raise BadQueryError(fault.message, hint=fault.hint, field=fault.field) from None


def _fault(message: str, name: str, hint: str) -> BadQueryError:
    return BadQueryError(message, hint=hint, field=name[:_QUOTED_CHARS_MAX] or None)


def _known(kind: type[msgspec.Struct]) -> str:
    names = ", ".join(sorted(_names(kind)))
    return f"its parameters are: {names}" if names else "this route takes no parameters"


def _value(name: str, raw: str, kind: type[msgspec.Struct]) -> object:
    expected = _scalars(kind).get(name)
    if expected is int:
        if _DIGITS.fullmatch(raw) is None:
            quoted = f"{name} takes a whole number, not {raw[:_QUOTED_CHARS_MAX]!r}"
            raise _fault(quoted, name, "write it with the digits 0 to 9 alone")
        return int(raw)
    if expected is bool:
        if raw not in _WORDS:
            raise _fault(f"{name} is true or false", name, "use one of: true, false")
        return _WORDS[raw]
    return raw


@cache
def _names(kind: type[msgspec.Struct]) -> frozenset[str]:
    """The parameters there are."""
    return frozenset(each.encode_name for each in msgspec.structs.fields(kind))


@cache
def _scalars(kind: type[msgspec.Struct]) -> dict[str, type]:
    """Which parameters are numbers or truth values; the rest is text of some form."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    scalars: dict[str, type] = {}
    for each in info.fields:
        variants = each.type.types if isinstance(each.type, inspect.UnionType) else (each.type,)
        for variant in variants:
            if isinstance(variant, inspect.IntType):
                scalars[each.encode_name] = int
            elif isinstance(variant, inspect.BoolType):
                scalars[each.encode_name] = bool
    return scalars


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


def after_id(query: AfterQuery, kind: Callable[[str], _Id], *, what: str) -> _Id | None:
    """Return the record a page begins after, or nothing for the first page."""
    return None if query.after is None else kind(parse_record_id(query.after, what=what))


def next_after(query: AfterQuery, shown: Sequence[_Id]) -> _Id | None:
    """Return the record the next page begins after; after a page that is not full there is none."""
    return shown[-1] if len(shown) >= query.limit else None
