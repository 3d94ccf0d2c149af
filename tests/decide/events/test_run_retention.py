"""Which ended commands give up their files: the old, the many, the large, never a used one."""

from datetime import timedelta

import pytest

from holon.decide.events import retention
from holon.decide.events.retention import runs_to_forget, tighter_policy
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import (
    COMMIT_IDS_KEPT_FULL_MS_MIN,
    DAY_MS,
    HISTORY_TURNS_COUNT_DEFAULT,
    HOUR_MS,
    RETENTION_FULL_EVENTS_COUNT_MIN,
    RUN_KEPT_MS_MIN,
)
from holon.model.tasks import EndedRun
from tests.support.manual_clock import DAWN

POLICY = RetentionPolicy(age_ms=DAY_MS, bytes_max=1_000, batch_count=10)


def run(run_id: str, *, ago_ms: int, size_bytes: int = 10) -> EndedRun:
    """A command that ended so long ago."""
    ended_at = DAWN - timedelta(milliseconds=ago_ms)
    return EndedRun(run_id=run_id, ended_at=ended_at, size_bytes=size_bytes)


def forgotten(*runs: EndedRun, in_use: tuple[str, ...] = ()) -> list[str]:
    """The ids that go, in the order they go."""
    chosen = runs_to_forget(runs, in_use=in_use, policy=POLICY, now=DAWN, trusted=DAWN)
    return [each.run_id for each in chosen]


@pytest.mark.requirement("task-tools:task-files-are-bounded")
@pytest.mark.parametrize(
    ("runs", "in_use", "gone"),
    [
        ((), (), []),
        ((run("young", ago_ms=HOUR_MS),), (), []),
        ((run("old", ago_ms=2 * DAY_MS), run("older", ago_ms=3 * DAY_MS)), (), ["older", "old"]),
        ((run("old", ago_ms=2 * DAY_MS),), ("old",), []),
        (
            tuple(run(f"r{n}", ago_ms=HOUR_MS * n, size_bytes=400) for n in (1, 2, 3, 4)),
            (),
            ["r4", "r3"],
        ),
        (
            tuple(run(f"r{n}", ago_ms=HOUR_MS * n, size_bytes=400) for n in (1, 2, 3, 4)),
            ("r4",),
            ["r3", "r2"],
        ),
        ((run("huge", ago_ms=RUN_KEPT_MS_MIN - 1, size_bytes=10**9),), (), []),
        ((run("huge", ago_ms=RUN_KEPT_MS_MIN + 1, size_bytes=10**9),), (), ["huge"]),
        (tuple(run(f"r{n}", ago_ms=2 * DAY_MS + n) for n in range(30)), (),
         [f"r{n}" for n in range(29, 19, -1)]),
    ],
    ids=["none", "young", "old", "old-in-use", "bytes", "bytes-in-use", "just-ended", "too-large",
         "a-batch"],
)  # fmt: skip
def test_what_goes(runs: tuple[EndedRun, ...], in_use: tuple[str, ...], gone: list[str]) -> None:
    assert forgotten(*runs, in_use=in_use) == gone


def test_more_folders_than_are_kept_lose_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "RUN_FOLDERS_COUNT_MAX", 3)
    runs = [run(f"r{n}", ago_ms=HOUR_MS * n, size_bytes=1) for n in (1, 2, 3, 4, 5)]
    assert forgotten(*runs, in_use=("r5",)) == ["r4", "r3"]


def test_above_the_cap_less_is_kept_of_each_agent_down_to_what_a_prompt_shows() -> None:
    policy, steps = RetentionPolicy(), 0
    while tighter := tighter_policy(policy):
        assert tighter.events_count_min <= policy.events_count_min
        assert tighter.turns_count_min <= policy.turns_count_min
        policy, steps = tighter, steps + 1
    assert policy.turns_count_min == HISTORY_TURNS_COUNT_DEFAULT
    assert policy.events_count_min == RETENTION_FULL_EVENTS_COUNT_MIN
    assert policy.commit_ids_kept_ms == COMMIT_IDS_KEPT_FULL_MS_MIN
    assert steps < 8, "each step is a whole pass over the log"


def test_a_policy_that_keeps_less_than_that_already_is_not_loosened() -> None:
    least = RetentionPolicy(events_count_min=5, turns_count_min=2, commit_ids_kept_ms=1)
    assert tighter_policy(least) is None
