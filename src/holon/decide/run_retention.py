"""What retention may remove beyond what age decides.

Owns:  the choice among the folders of ended commands, by age, by their bytes and by their number;
       and how much less is kept of each agent while the database is above its cap.
Rule 1: what is in use stays, however old and large: the files of a task that has not ended, or
        whose result nobody has read yet.
Rule 2: what has just ended stays for a while: its result may be on its way.
Rule 3: of the rest the oldest go first, a bounded number at a time.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import msgspec

from holon.model.command import EndedRun
from holon.model.limits import (
    COMMIT_IDS_KEPT_FULL_MS_MIN,
    RETENTION_FULL_EVENTS_COUNT_MIN,
    RETENTION_FULL_TURNS_COUNT_MIN,
    RUN_FOLDERS_COUNT_MAX,
    RUN_KEPT_MS_MIN,
)
from holon.model.retention import RetentionPolicy


def runs_to_forget(
    runs: Sequence[EndedRun],
    *,
    in_use: Collection[str],
    policy: RetentionPolicy,
    now: datetime,
    trusted: datetime,
) -> Sequence[EndedRun]:
    """Return the runs to forget now, oldest first; `trusted` is what ages go by."""
    used = frozenset(in_use)
    aged_at = trusted - timedelta(milliseconds=policy.age_ms)
    settled_at = now - timedelta(milliseconds=RUN_KEPT_MS_MIN)
    count, size = len(runs), sum(run.size_bytes for run in runs)
    chosen = list[EndedRun]()
    for run in sorted(runs, key=lambda run: (run.ended_at, run.run_id)):
        if len(chosen) == policy.batch_count or run.ended_at > settled_at:
            break
        fits = count <= RUN_FOLDERS_COUNT_MAX and size <= policy.bytes_max
        if fits and run.ended_at > aged_at:
            break
        if run.run_id not in used:
            chosen.append(run)
            count, size = count - 1, size - run.size_bytes
    return chosen


def tightened(policy: RetentionPolicy) -> RetentionPolicy | None:
    """Return a policy that keeps half as much of each agent; None when it keeps the least.

    What is kept of each agent, however old, adds up over all agents and can exceed the cap of the
    database on its own. A policy that already keeps less than the least stays as it is.
    """
    tighter = msgspec.structs.replace(
        policy,
        events_count_min=_halved(policy.events_count_min, RETENTION_FULL_EVENTS_COUNT_MIN),
        turns_count_min=_halved(policy.turns_count_min, RETENTION_FULL_TURNS_COUNT_MIN),
        commit_ids_kept_ms=_halved(policy.commit_ids_kept_ms, COMMIT_IDS_KEPT_FULL_MS_MIN),
    )
    return None if tighter == policy else tighter


def _halved(kept: int, least: int) -> int:
    return max(min(kept, least), kept // 2)
