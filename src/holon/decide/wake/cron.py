"""Cron expressions: validation, and the next slot in a time zone.

Owns:  what Holon requires of `cronsim`, which parses the five fields and iterates wall-clock times.
Rule 1: an expression has five fields, or is a nickname. Extensions of cronsim (seconds, `L`, `#`)
        are refused. Both the day of the month and of the week may name days: either is then enough,
        unless one begins with `*`; then both must hold.
Rule 2: slots are times on the wall clock of the zone; each becomes one moment.
Rule 3: a slot in the hour that spring skips fires at the first moment after the gap. Several such
        slots fire there together, as one.
Rule 4: a slot in the hour that autumn repeats fires once, when the clock shows it first.
Rule 5: the search is bounded: cronsim gives up after fifty years. An expression with no slot, such
        as the 30th of February, has no next slot.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from holon.model.errors import HolonError
from holon.model.limits import CRON_EXPRESSION_CHARS_MAX, CRON_ZONE_CHARS_MAX
from holon.model.wake import Cron

_SECOND: Final = timedelta(seconds=1)
_SOME_DAY: Final = datetime(2000, 1, 1, tzinfo=UTC)
_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "minute": "0 to 59",
        "hour": "0 to 23",
        "day of the month": "1 to 31",
        "month": "1 to 12 or jan to dec",
        "day of the week": "0 to 7 or sun to sat",
    }
)
_NICKNAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "@hourly": "0 * * * *",
        "@daily": "0 0 * * *",
        "@midnight": "0 0 * * *",
        "@weekly": "0 0 * * 0",
        "@monthly": "0 0 1 * *",
        "@yearly": "0 0 1 1 *",
        "@annually": "0 0 1 1 *",
    }
)
# cronsim reads the range `9-9/2` as `9/2`, which is 9, 11, 13 …; cron means the 9 alone.
_RANGE_OF_ONE: Final = re.compile(r"\b(\w++)-\1/0*+[1-9][0-9]*+(?![^,\s])")


class BadCronError(HolonError):
    """An expression that is no schedule."""

    code = "bad_cron"


def read_cron(expression: str, *, zone: str) -> Cron:
    """Return a schedule in a zone this machine knows, or raise BadCronError."""
    read_fields(expression)
    if zone_of(zone) is None:
        raise BadCronError(
            f"there is no time zone {zone[:CRON_ZONE_CHARS_MAX]!r}",
            hint="use a name such as Europe/Berlin or UTC",
        )
    return Cron(expression=" ".join(expression.split()), zone=zone)


@lru_cache(maxsize=256)
def read_fields(expression: str) -> str:
    """Return the five fields of an expression, or raise BadCronError saying which one is wrong."""
    if len(expression) > CRON_EXPRESSION_CHARS_MAX:
        raise _bad(f"longer than {CRON_EXPRESSION_CHARS_MAX} characters")
    text = expression.strip().lower()
    if text.startswith("@") and text not in _NICKNAMES:
        raise _bad(f"there is no nickname {text!r}")
    words = _RANGE_OF_ONE.sub(r"\1", _NICKNAMES.get(text, text)).split()
    if len(words) != len(_FIELDS):
        raise _bad(f"it has {len(words)} fields, not {len(_FIELDS)}")
    for place, (name, values) in enumerate(_FIELDS.items()):
        # One field at a time: cronsim refuses the 30th of February too, which is only never due.
        alone = ("*",) * place + (words[place],) + ("*",) * (len(_FIELDS) - place - 1)
        if not _is_plain(" ".join(alone)):
            raise _bad(
                f"{words[place][:60]!r} is no value of the field {name}: write {values}, ranges"
                " that do not run backwards, and steps of 1 or more"
            )
    return " ".join(words)


def _is_plain(fields: str) -> bool:
    """Whether cronsim reads these fields as numbers alone."""
    try:
        read = CronSim(fields, _SOME_DAY)
    except CronSimError:
        return False
    return all(isinstance(each, int) and each >= 0 for each in (*read.days, *read.weekdays))


def _bad(problem: str) -> BadCronError:
    return BadCronError(
        f"this is no cron expression: {problem}",
        hint="write five fields, such as `30 9 * * mon-fri`, or a nickname such as @daily",
    )


def zone_of(name: str) -> tzinfo | None:
    """Return the time zone of that name, where this machine knows it."""
    if name == "UTC":
        return UTC
    if len(name) > CRON_ZONE_CHARS_MAX:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def next_cron_slot(cron: Cron, *, after: datetime) -> datetime | None:
    """Return the first slot later than `after`, or None.

    A zone this machine has forgotten since is read as UTC: a timer does not stop for that.
    """
    fields, zone = read_fields(cron.expression), zone_of(cron.zone) or UTC
    try:
        # Without a zone cronsim walks the wall clock alone: its own rules for the hours that are
        # skipped and repeated depend on how a field is written.
        for wall in CronSim(fields, after.astimezone(zone).replace(tzinfo=None)):
            if (moment := moment_of(wall, zone)) > after:
                return moment
    except (CronSimError, OverflowError):
        pass  # a day that no month has; the end of the calendar
    return None


def moment_of(wall: datetime, zone: tzinfo) -> datetime:
    """Return the moment a clock on the wall shows this time first, or the end of the gap."""
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment
    return _gap_end(wall, zone)


def _gap_end(wall: datetime, zone: tzinfo) -> datetime:
    """Return the moment the clock jumped over `wall`, by halving the time it may lie in.

    Read with the offset that came into force, a skipped time lies before the jump; read with the
    one before, it lies at or after it.
    """
    before = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    after = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    offset = after.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + (after - before) // 2
        middle = middle.replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == offset:
            after = middle
        else:
            before = middle
    return after
