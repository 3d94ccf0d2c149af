"""When to come back, in every way providers write it."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from holon.adapters.providers.reset_times import (
    error_reset_ms,
    limit_reset_ms,
    retry_after_ms,
    wait_of,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SOON = NOW + timedelta(seconds=90)


@pytest.mark.parametrize(
    ("headers", "wait_ms"),
    [
        ({"retry-after": "2"}, 2_000),
        ({"retry-after": "0.5"}, 500),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": format_datetime(SOON, usegmt=True)}, 90_000),
        ({"retry-after": format_datetime(NOW - timedelta(days=1), usegmt=True)}, 0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 250),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "9" * 17}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read(headers: dict[str, str], wait_ms: int | None) -> None:
    assert retry_after_ms(headers, now=NOW) == wait_ms


@pytest.mark.parametrize(
    ("told", "wait_ms"),
    [
        ("1s", 1_000),
        ("6m0s", 360_000),
        ("120ms", 120),
        ("1h2m3.5s", 3_723_500),
        (SOON.isoformat(), 90_000),
        ("2026-03-01T12:01:30Z", 90_000),
        (int(SOON.timestamp()), 90_000),
        (SOON.timestamp() * 1_000, 90_000),
        (30, 30_000),
        (True, None),
        ([], None),
        ("", None),
        ("9999999d", None),
        ("x" * 1_000, None),
        ("99999999999999999", None),
    ],
)
def test_a_wait_is_a_span_a_duration_or_a_moment(told: object, wait_ms: int | None) -> None:
    assert wait_of(told, now=NOW) == wait_ms


def test_without_a_clock_only_spans_count() -> None:
    assert wait_of("3", now=None) == 3_000
    assert wait_of(SOON.isoformat(), now=None) is None


def test_of_several_limits_the_last_used_up_one_decides() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "12",
        "x-ratelimit-reset-requests": "1h",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "6s",
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": SOON.isoformat(),
    }
    assert limit_reset_ms(headers, now=NOW) == 90_000
    assert limit_reset_ms({"x-ratelimit-reset": "5"}, now=NOW) == 5_000
    assert limit_reset_ms({}, now=NOW) is None


def test_a_usage_limit_names_its_reset_in_its_fields() -> None:
    assert error_reset_ms({"resets_in_seconds": 5, "resets_at": 0}, now=NOW) == 5_000
    assert error_reset_ms({"resets_at": SOON.timestamp()}, now=NOW) == 90_000
    assert error_reset_ms({"resets_in_seconds": float("inf")}, now=NOW) is None
    assert error_reset_ms({"resets_at": {"no": "number"}}, now=NOW) is None


@pytest.mark.parametrize(
    "told", [10**400, -(10**400), 1e308, float("nan")], ids=["huge", "least", "float", "none"]
)
def test_a_number_beyond_all_measure_is_no_wait_and_no_crash(told: float) -> None:
    for field in ("resets_in_seconds", "retry_after", "resets_at"):
        assert not error_reset_ms({field: told}, now=NOW)
