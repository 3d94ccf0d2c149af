"""A flood of lines becomes a few lines and a count."""

import pytest

from holon.adapters.system.journal import LineRateLimiter, SuppressedLines
from holon.model.limits import (
    JOURNAL_EVENT_COUNT_MAX,
    JOURNAL_KEYS_COUNT_MAX,
    JOURNAL_SAME_COUNT_MAX,
    JOURNAL_WINDOW_MS,
)
from holon.ports.journal import LogLevel

INFO = LogLevel.INFO


def admitted(flood: LineRateLimiter, messages: list[str], *, now_ms: int = 0) -> int:
    return sum(flood.admits("event", message, INFO, now_ms=now_ms) for message in messages)


@pytest.mark.requirement("journal:a-flood-becomes-a-count")
def test_the_same_line_is_written_a_few_times_and_then_counted() -> None:
    flood = LineRateLimiter()
    assert admitted(flood, ["again"] * 1_000) == JOURNAL_SAME_COUNT_MAX
    assert flood.over(now_ms=JOURNAL_WINDOW_MS - 1) == []
    held = SuppressedLines("event", "again", INFO, 1_000 - JOURNAL_SAME_COUNT_MAX)
    assert flood.over(now_ms=JOURNAL_WINDOW_MS) == [held]
    assert flood.rest() == []
    assert admitted(flood, ["again"], now_ms=JOURNAL_WINDOW_MS) == 1


def test_different_lines_of_one_event_are_bounded_together() -> None:
    flood = LineRateLimiter()
    assert admitted(flood, [f"line {n}" for n in range(200)]) == JOURNAL_EVENT_COUNT_MAX
    assert flood.rest() == [SuppressedLines("event", "", INFO, 200 - JOURNAL_EVENT_COUNT_MAX)]


def test_other_events_are_not_held_back_by_a_flood() -> None:
    flood = LineRateLimiter()
    admitted(flood, ["again"] * 100)
    assert flood.admits("other", "again", INFO, now_ms=0)


def test_what_is_remembered_is_bounded_and_every_line_is_written_or_counted() -> None:
    flood = LineRateLimiter()
    written = 0
    for number in range(20):
        written += sum(
            flood.admits(f"event {number}", f"line {n}", INFO, now_ms=0) for n in range(100)
        )
    assert len(flood._windows) <= JOURNAL_KEYS_COUNT_MAX + 20
    assert written + sum(held.lines_count for held in flood.rest()) == 2_000
