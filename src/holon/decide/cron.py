"""When a cron expression comes round, in the time zone it was written for.

Owns:  the next slot after a moment.
Rule 1: slots are times on the wall clock of the zone; each becomes one moment.
Rule 2: a slot in the hour that spring skips fires at the first moment after the gap. Several such
        slots fire there together, as one.
Rule 3: a slot in the hour that autumn repeats fires once, when the clock shows it first.
Rule 4: the search is bounded. An expression with no slot within CRON_SEARCH_DAYS_MAX, such as the
        30th of February, never comes round at all.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from holon.decide.cron_expression import BadCronError, CronTimes, parse_cron
from holon.model.limits import CRON_SEARCH_DAYS_MAX, CRON_ZONE_CHARS_MAX
from holon.model.wake import Cron

_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)
_LAST_YEAR = 9_990  # nearer to the end of the calendar, arithmetic with zones overflows


def read_cron(expression: str, *, zone: str) -> Cron:
    """Return a schedule that comes round, or raise BadCronError."""
    parse_cron(expression)
    if zone_of(zone) is None:
        raise BadCronError(
            f"there is no time zone {zone[:CRON_ZONE_CHARS_MAX]!r}",
            hint="use a name such as Europe/Berlin or UTC",
        )
    return Cron(expression=" ".join(expression.split()), zone=zone)


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
    """Return the first slot later than `after`, or nothing when there is none.

    A zone this machine has forgotten since is read as UTC: a timer does not stop for that.
    """
    times, zone = parse_cron(cron.expression), zone_of(cron.zone) or UTC
    for day in _days(times, since=_local_day(after, zone)):
        if (slot := _slot_on(day, times, zone, after=after)) is not None:
            return slot
    return None


def _local_day(moment: datetime, zone: tzinfo) -> date:
    """The day before the one it is: a gap may carry a slot over midnight."""
    return moment.astimezone(zone).date() - _DAY


def _days(times: CronTimes, *, since: date) -> Iterator[date]:
    day, last = since, since + CRON_SEARCH_DAYS_MAX * _DAY
    while day <= last and day.year <= _LAST_YEAR:
        if day.month not in times.months:
            day = (day.replace(day=28) + 4 * _DAY).replace(day=1)
            continue
        if _is_named(day, times):
            yield day
        day += _DAY


def _is_named(day: date, times: CronTimes) -> bool:
    in_month = day.day in times.days
    in_week = day.isoweekday() % 7 in times.weekdays
    return in_month or in_week if times.either_day else in_month and in_week


def _slot_on(day: date, times: CronTimes, zone: tzinfo, *, after: datetime) -> datetime | None:
    """Return the first slot of the day later than `after`: moments rise with the wall clock."""
    for hour in times.hours:
        if moment_of(_wall(day, hour, times.minutes[-1]), zone) <= after:
            continue
        for minute in times.minutes:
            if (moment := moment_of(_wall(day, hour, minute), zone)) > after:
                return moment
    return None


def _wall(day: date, hour: int, minute: int) -> datetime:
    return datetime.combine(day, time(hour, minute))


def moment_of(wall: datetime, zone: tzinfo) -> datetime:
    """Return the moment a clock on the wall shows this time first, or the end of the gap."""
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment
    return _gap_end(wall, zone)


def _gap_end(wall: datetime, zone: tzinfo) -> datetime:
    """Return the moment the clock jumped over `wall`, by halving the time it may lie in.

    Read with the offset that came into force, a skipped time lies before the jump; read with the
    one that went, it lies at or after it.
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
