"""What the order of the log says of its stamps."""

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.adapters.sqlite.database.statements import Statements, named_queries
from holon.adapters.sqlite.log_segments import LogSegments, Place, Span, without
from holon.model.values import to_micros
from tests.adapters.sqlite.history_rows import LATER, History

DAY = timedelta(days=1)
NOW = to_micros(LATER)
spans = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda ends: (min(ends), max(ends)))


@given(whole=spans, taken=st.lists(spans, max_size=6))
def test_what_is_left_of_a_span_is_all_that_was_not_taken(whole: Span, taken: list[Span]) -> None:
    left = without(whole, taken)
    assert [moment for low, high in left for moment in range(low + 1, high + 1)] == [
        moment
        for moment in range(whole[0] + 1, whole[1] + 1)
        if not any(low < moment <= high for low, high in taken)
    ]


def read(path: Path, *days: int) -> LogSegments:
    """Read a log that begins at the start of the tests, and has a turn on each of these days."""
    history = History(path / "test.sqlite")
    for number, day in enumerate(days, start=1):
        history.add_turn(number, at=LATER + day * DAY)
    log = LogSegments(Statements(history.connection), named_queries("retention")["next_events"])
    assert log.catch_up()
    return log


BIRTH: Place = (1, NOW - 200 * 86_400_000_000)


@pytest.mark.parametrize(
    ("days", "by"),
    [((-150,), -150), ((100, -150), -150), ((-10, -300), -10), ((100,), None), ((), None)],
    ids=str,
)
def test_what_shows_when_something_was_written_is_credible_and_in_order(
    tmp_path: Path, days: tuple[int, ...], by: int | None
) -> None:
    log = read(tmp_path, 90, *days)
    ahead = (9, NOW + 90 * 86_400_000_000)
    written_by = log.written_by(ahead, BIRTH[1], present=NOW)
    assert written_by == (None if by is None else to_micros(LATER + by * DAY))


def test_the_own_stamp_shows_it_when_it_is_credible(tmp_path: Path) -> None:
    assert read(tmp_path, -10).written_by(BIRTH, 0, present=NOW) == BIRTH[1]


def test_a_log_of_very_many_stretches_is_remembered_as_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.adapters.sqlite.log_segments._STRETCHES_COUNT_MAX", 3)
    log = read(tmp_path, 0, -300, 10, -299, 20)
    everywhere = log.after((0, 0), below=2**62)
    assert len(everywhere) == 3
    assert min(low for low, _ in everywhere) < to_micros(LATER - 300 * DAY)
