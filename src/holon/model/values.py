"""Value types: identifiers, moments and JSON.

Owns:  one type per kind of id, the prefix of each kind, and the checks for ids from outside; the
       time type of records and its conversions for the database and the timers; `JsonValue` and the
       check that a value is exact JSON.
Rule 1: the id source port creates ids; this module only checks them.
Rule 2: an id from outside passes `parse_agent_id` or `parse_record_id` before it is used, so an id
        can never be a path, an option or a page of text.
Rule 3: a moment is a timezone-aware UTC datetime; on the wire it is ISO-8601.
Rule 4: stored moments are whole microseconds since the epoch, so comparing them is exact.
Rule 5: no function reads a clock.
Rule 6: NaN and infinities have no JSON form; a value holding one is refused, never sent as null.
Rule 7: text must be encodable; a lone surrogate is refused.
Rule 8: nesting is bounded, so that no recursive reader can overflow its stack.
"""

import math
import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Final, NewType, TypeAlias

import msgspec

from holon.model.errors import BadIdError, NotJsonError
from holon.model.limits import ID_CHARS_MAX, JSON_DEPTH_MAX

AgentId = NewType("AgentId", str)
MessageId = NewType("MessageId", str)
TurnId = NewType("TurnId", str)
CallId = NewType("CallId", str)
BriefId = NewType("BriefId", str)
TaskId = NewType("TaskId", str)
TimerId = NewType("TimerId", str)
WaitId = NewType("WaitId", str)
WorkItemId = NewType("WorkItemId", str)
SummaryId = NewType("SummaryId", str)
TriggerId = NewType("TriggerId", str)
WorkspaceId = NewType("WorkspaceId", str)
EpisodeId = NewType("EpisodeId", str)
RequestId = NewType("RequestId", str)
AGENT_ID_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9_-]*")
RECORD_ID_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9_:.-]*")
Instant: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
JsonValue: TypeAlias = Any  # a recursive alias would be truer, but msgspec cannot decode into one


class IdPrefix(StrEnum):
    """What an id starts with, so that a person can distinguish kinds."""

    MESSAGE = "msg"
    TURN = "turn"
    BRIEF = "brief"
    TASK = "task"
    TIMER = "timer"
    WAIT = "wait"
    WORK_ITEM = "work"
    SUMMARY = "sum"
    TRIGGER = "trig"
    OCCUPANCY = "occ"
    EPISODE = "ep"
    REQUEST = "req"
    TEMPORARY_RUN = "tmp_run"  # an agent made for one run


def parse_agent_id(text: str) -> AgentId:
    """Return `text` as an agent id, or raise BadIdError."""
    _require_form(text, AGENT_ID_PATTERN, what="agent id")
    return AgentId(text)


def parse_record_id(text: str, *, what: str) -> str:
    """Return `text` if it has the form of a record id, or raise BadIdError naming `what`."""
    _require_form(text, RECORD_ID_PATTERN, what=what)
    return text


def _require_form(text: str, pattern: re.Pattern[str], *, what: str) -> None:
    if not text:
        raise BadIdError(
            f"the {what} is empty", hint=f"the {what} has at least one letter or digit"
        )
    if len(text) > ID_CHARS_MAX:
        raise BadIdError(
            f"the {what} is {len(text)} characters long",
            hint=f"use at most {ID_CHARS_MAX} characters",
        )
    if pattern.fullmatch(text) is None:
        raise BadIdError(
            f"{text!r} is not a valid {what}",
            hint="use lower-case letters, digits, '-' and '_', starting with a letter or digit",
        )


def to_micros(moment: datetime) -> int:
    """Return whole microseconds since the epoch."""
    return (moment - EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the moment that lies `micros` after the epoch."""
    return EPOCH + timedelta(microseconds=micros)


def later(moment: datetime, *, by_ms: int) -> datetime:
    """Return the moment `by_ms` milliseconds after `moment`."""
    return moment + timedelta(milliseconds=by_ms)


def require_json(value: JsonValue) -> None:
    """Raise NotJsonError unless `value` has an exact JSON form."""
    pending: list[tuple[JsonValue, int]] = [(value, 0)]
    while pending:
        item, depth = pending.pop()
        children = _children_of(item)
        if children and depth >= JSON_DEPTH_MAX:
            raise NotJsonError(f"JSON nested deeper than {JSON_DEPTH_MAX} levels")
        pending += [
            (child, depth + 1)
            for child in children
            if type(child) is not str or not child.isascii()  # which most are
        ]


def _children_of(item: JsonValue) -> Collection[JsonValue]:
    """Return what is nested in a value, once the value itself is known to be JSON."""
    match item:
        case None | bool() | int():
            return ()
        case float() if math.isfinite(item):
            return ()
        case float():
            raise NotJsonError("JSON has no form for NaN or infinity")
        case str():
            require_unicode(item)
            return ()
        case list() | tuple():
            return item
        case dict():
            _require_keys(item)
            return item.values()
        case _:
            raise NotJsonError(f"{type(item).__name__} is not a JSON value")


def _require_keys(item: dict[object, JsonValue]) -> None:
    for key in item:
        if not isinstance(key, str):
            raise NotJsonError("JSON object keys are text")
        require_unicode(key)


def require_unicode(text: str) -> None:
    """Raise NotJsonError when `text` holds a lone surrogate."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotJsonError("text holds a lone surrogate") from None
