"""Reading a cron expression.

Owns:  the five fields (minute, hour, day of the month, month, day of the week), their names, and
       the nicknames @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually.
Rule 1: a field is a list of `*`, a value, a range `a-b`, each with an optional step `/n`; `a/n`
        means from `a` to the end. Months and days of the week have names; Sunday is 0 and 7.
Rule 2: when the day of the month and the day of the week both name days, either is enough, as in
        every cron. A field that begins with `*` names none: the other one then decides alone.
Rule 3: a range that runs backwards, a step of 0 and a value out of bounds are refused, with the
        field they stand in.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from holon.model.errors import HolonError
from holon.model.limits import CRON_EXPRESSION_CHARS_MAX
from holon.model.record import Record

_MONTHS: Final = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

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


class BadCronError(HolonError):
    """An expression that is no schedule."""

    code = "bad_cron"


class _Field(Record, frozen=True, kw_only=True):
    """What one of the five fields may hold."""

    name: str
    low: int
    high: int
    names: Mapping[str, int] = MappingProxyType({})


_FIELDS: Final = (
    _Field(name="minute", low=0, high=59),
    _Field(name="hour", low=0, high=23),
    _Field(name="day of the month", low=1, high=31),
    _Field(
        name="month",
        low=1,
        high=12,
        names={name: number for number, name in enumerate(_MONTHS, start=1)},
    ),
    _Field(
        name="day of the week",
        low=0,
        high=7,
        names={name: number for number, name in enumerate(_WEEKDAYS)},
    ),
)


class CronTimes(Record, frozen=True, kw_only=True):
    """The wall-clock times an expression names. Each is ascending and has no value twice."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # Sunday is 0
    either_day: bool  # a day of the month or one of the week is enough


@lru_cache(maxsize=256)
def parse_cron(expression: str) -> CronTimes:
    """Read an expression, or raise BadCronError saying which field is wrong."""
    if len(expression) > CRON_EXPRESSION_CHARS_MAX:
        raise _bad(f"longer than {CRON_EXPRESSION_CHARS_MAX} characters")
    words = _expanded(expression).lower().split()
    if len(words) != len(_FIELDS):
        raise _bad(f"it has {len(words)} fields, not {len(_FIELDS)}")
    minutes, hours, days, months, weekdays = (
        _values(word, field) for word, field in zip(words, _FIELDS, strict=True)
    )
    return CronTimes(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=frozenset(days),
        months=frozenset(months),
        weekdays=frozenset(value % len(_WEEKDAYS) for value in weekdays),
        either_day=not words[2].startswith("*") and not words[4].startswith("*"),
    )


def _expanded(expression: str) -> str:
    text = expression.strip()
    if not text.startswith("@"):
        return text
    if (meant := _NICKNAMES.get(text.lower())) is None:
        raise _bad(f"there is no nickname {text!r}")
    return meant


def _values(word: str, field: _Field) -> set[int]:
    return {value for part in word.split(",") for value in _part(part, field)}


def _part(part: str, field: _Field) -> Iterator[int]:
    span, has_step, step_text = part.partition("/")
    step = _number(step_text, field) if has_step else 1
    if step < 1:
        raise _bad("a step is at least 1", field)
    if span == "*":
        first, last = field.low, field.high
    elif "-" in span:
        first, last = (_value(end, field) for end in span.split("-", 1))
    else:
        first = _value(span, field)
        last = field.high if has_step else first
    if first > last:
        raise _bad(f"the range {span} runs backwards; write it as two", field)
    return iter(range(first, last + 1, step))


def _value(text: str, field: _Field) -> int:
    found = field.names.get(text)
    value = _number(text, field) if found is None else found
    if not field.low <= value <= field.high:
        raise _bad(f"{value} is not between {field.low} and {field.high}", field)
    return value


def _number(text: str, field: _Field) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len("59")):
        raise _bad(f"{text!r} is no value", field)
    return int(text)


def _bad(problem: str, field: _Field | None = None) -> BadCronError:
    where = "" if field is None else f" in the field {field.name}"
    return BadCronError(
        f"this is no cron expression: {problem}{where}",
        hint="write five fields, such as `30 9 * * mon-fri`, or a nickname such as @daily",
    )
