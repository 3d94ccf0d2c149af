"""When a provider accepts requests again, from headers and error fields.

Owns:  the formats of a wait: headers in seconds, milliseconds, durations and dates, and the fields
       of usage-limit errors.
Rule 1: an absolute moment counts from `now`, an argument; nothing here reads a clock.
Rule 2: an unreadable or absurdly distant moment is ignored.
Rule 3: of several limits the exhausted ones count, and the last of them to reset decides.
"""

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final, TypeGuard

from holon.model.limits import PROVIDER_NAMED_WAIT_MS_MAX, SECOND_MS
from holon.model.values import JsonValue

_UNITS_MS: Final[Mapping[str, float]] = {
    "ms": 1,
    "s": SECOND_MS,
    "m": 60 * SECOND_MS,
    "h": 3_600 * SECOND_MS,
    "d": 86_400 * SECOND_MS,
}
_DURATION: Final = re.compile(r"(?:\d{1,9}(?:\.\d{1,9})?(?:ms|s|m|h|d))+\Z")
_DURATION_PART: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d)")
_EPOCH_S_MIN: Final = 1_000_000_000  # a larger number of seconds is a moment, not a span
_EPOCH_MS_MIN: Final = 1_000_000_000_000
_MILLISECOND: Final = timedelta(milliseconds=1)
_REMAINING_AND_RESET: Final = (
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
)


def retry_after_ms(headers: Mapping[str, str], *, now: datetime | None) -> int | None:
    """Return the wait that `Retry-After` (or its millisecond form) asks for."""
    exact = _number(headers.get("retry-after-ms"))
    if exact is not None:
        return _wait(exact)
    return wait_of(headers.get("retry-after"), now=now)


def limit_reset_ms(headers: Mapping[str, str], *, now: datetime | None) -> int | None:
    """Return when the limits that are used up come back, where the headers say so."""
    waits = (
        wait_of(headers.get(reset), now=now)
        for remaining, reset in _REMAINING_AND_RESET
        if _number(headers.get(remaining, "0")) == 0
    )
    return max((wait for wait in waits if wait is not None), default=None)


def error_reset_ms(error: Mapping[str, JsonValue], *, now: datetime | None) -> int | None:
    """Return the wait a usage-limit error names in its own fields."""
    spans = (error.get(key) for key in ("resets_in_seconds", "retry_after", "retry_after_seconds"))
    return _first(
        [
            *(_wait(span * SECOND_MS) for span in spans if _is_number(span)),
            wait_of(error.get("resets_at"), now=now),
        ]
    )


def wait_of(value: JsonValue, *, now: datetime | None) -> int | None:
    """Return the wait one value stands for: a span, a duration, a date or a moment."""
    if _is_number(value):
        value = str(value)
    if not isinstance(value, str) or len(value) > 100:
        return None
    value = value.strip()
    number = _number(value)
    if number is not None:
        return _wait_of_number(number, now=now)
    if _DURATION.match(value):
        parts = _DURATION_PART.findall(value)
        return _wait(sum(float(amount) * _UNITS_MS[unit] for amount, unit in parts))
    moment = _moment(value)
    return None if moment is None else _until(moment, now=now)


def _wait_of_number(number: float, *, now: datetime | None) -> int | None:
    if number < _EPOCH_S_MIN:
        return _wait(number * SECOND_MS)
    seconds = number / SECOND_MS if number >= _EPOCH_MS_MIN else number
    try:
        return _until(datetime.fromtimestamp(seconds, UTC), now=now)
    except (OverflowError, ValueError, OSError):
        return None


def _moment(text: str) -> datetime | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(text)
        except (ValueError, OverflowError, TypeError, IndexError):
            continue
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return None


def _until(moment: datetime, *, now: datetime | None) -> int | None:
    # Rounded up: coming back a fraction too early costs another refusal.
    return None if now is None else _wait(math.ceil((moment - now) / _MILLISECOND))


def _wait(wait_ms: float) -> int | None:
    # Compared, never converted: JSON has whole numbers that no float can hold.
    if not wait_ms <= PROVIDER_NAMED_WAIT_MS_MAX:
        return None
    return math.ceil(max(0, wait_ms))


def _number(text: str | None) -> float | None:
    if text is None or not re.fullmatch(r"-?\d{1,17}(\.\d{1,9})?", text.strip()):
        return None
    return float(text)


def _is_number(value: JsonValue) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _first(waits: Iterable[int | None]) -> int | None:
    return next((wait for wait in waits if wait is not None), None)
