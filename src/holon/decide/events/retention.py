"""Retention decisions: trusted time, leftovers of ended commands, unseen messages.

Owns:  the time retention goes by: the wall clock's, or an earlier one after a jump; which folders
       of ended commands go, by age, bytes and number; how much less is kept of each agent while the
       database is above its cap, and the commit that drops the oldest unseen messages.
Rule 1: deletion cannot be undone, and a wall clock may be set ahead by mistake. Its lead over the
        monotonic clock counts only after it has lasted for CLOCK_TRUST_MS; a step back counts at
        once.
Rule 2: a stretch is monotonic time. Of each stretch the lowest lead counts, at its end: a jump is
        trusted after one to two stretches, however many others follow it.
Rule 3: a process that has just started has not observed what happened before. It trusts the wall
        clock as far as stored records confirm it: from what is older than a stretch up, over no gap
        longer than CLOCK_GAP_MS_MAX. A step shorter than that is not detected.
Rule 4: a machine that was off, or asleep, has a wall clock that is ahead as well. It is right, and
        old records go a stretch or two later.
Rule 5: what is in use stays, however old and large: the files of a task that has not ended, or
        whose result has not been read.
Rule 6: the files of a command that has just ended stay for a while: its result may still be under
        way.
Rule 7: of the rest the oldest go first, a bounded number at a time.
Rule 8: dropping messages leaves an event in the same commit that says how many, and which.
Rule 9: a turn that began meanwhile may have shown the messages; then none is dropped.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from holon.model.agents import AgentState, UnseenLetGo
from holon.model.commits import AgentGeneration, Commit, MarkSeen, RecordEvent
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import (
    CLOCK_GAP_MS_MAX,
    CLOCK_TRUST_MS,
    COMMIT_IDS_KEPT_FULL_MS_MIN,
    RETENTION_FULL_EVENTS_COUNT_MIN,
    RETENTION_FULL_TURNS_COUNT_MIN,
    RUN_FOLDERS_COUNT_MAX,
    RUN_KEPT_MS_MIN,
)
from holon.model.record import Record
from holon.model.tasks import EndedRun
from holon.model.values import MessageId, from_micros, to_micros

_STRETCH: Final = timedelta(milliseconds=CLOCK_TRUST_MS)
_GAP_MAX: Final = timedelta(milliseconds=CLOCK_GAP_MS_MAX)
_STRETCH_NS: Final = CLOCK_TRUST_MS * 1_000_000


class ClockTrust(Record, frozen=True, kw_only=True):
    """How far the wall may be ahead of the monotonic reading, in microseconds."""

    lead_micros: int
    lowest_micros: int  # the lowest lead in the stretch that runs
    since_ns: int  # when that began


def confirmation_moments(now: datetime) -> tuple[datetime, ...]:
    """The moments by which the newest record is to be known at a start, oldest first."""
    step_count = 2 * CLOCK_TRUST_MS // CLOCK_GAP_MS_MAX
    return tuple(now - _STRETCH + number * _GAP_MAX / 2 for number in range(step_count + 1))


def confirmed_time(
    newest: Sequence[datetime | None], *, oldest: datetime | None, now: datetime
) -> datetime:
    """Return how far stored records confirm that it is `now`.

    `newest` are the newest ones by each asked moment, and `oldest` is the first event of the log.
    """
    if oldest is None:
        return now  # nothing has happened yet that could be forgotten
    believed = newest[0] or min(oldest, now - _STRETCH)
    for moment in (*newest[1:], now):
        if moment is None or moment - believed > _GAP_MAX:
            break
        believed = max(believed, moment)
    return believed


def initial_trust(believed: datetime, *, now: datetime, monotonic_ns: int) -> ClockTrust:
    """Return what a process begins with."""
    lead_micros = to_micros(min(believed, now)) - monotonic_ns // 1_000
    wall = to_micros(now) - monotonic_ns // 1_000
    return ClockTrust(lead_micros=lead_micros, lowest_micros=wall, since_ns=monotonic_ns)


def updated_trust(trust: ClockTrust, *, now: datetime, monotonic_ns: int) -> ClockTrust:
    """Return what is trusted after another reading of both clocks."""
    wall = to_micros(now) - monotonic_ns // 1_000
    lead, lowest = min(trust.lead_micros, wall), min(trust.lowest_micros, wall)
    if monotonic_ns - trust.since_ns < _STRETCH_NS:
        return ClockTrust(lead_micros=lead, lowest_micros=lowest, since_ns=trust.since_ns)
    return ClockTrust(lead_micros=lowest, lowest_micros=wall, since_ns=monotonic_ns)


def trusted_now(trust: ClockTrust, *, monotonic_ns: int) -> datetime:
    """Return the moment that is believed to have come."""
    return from_micros(trust.lead_micros + monotonic_ns // 1_000)


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
        is_within_bounds = count <= RUN_FOLDERS_COUNT_MAX and size <= policy.bytes_max
        if is_within_bounds and run.ended_at > aged_at:
            break
        if run.run_id not in used:
            chosen.append(run)
            count, size = count - 1, size - run.size_bytes
    return chosen


def tighter_policy(policy: RetentionPolicy) -> RetentionPolicy | None:
    """Return a policy that keeps half as much of each agent; None when it keeps the least.

    What is kept of each agent, however old, adds up over all agents and can exceed the cap of the
    database on its own. A policy that already keeps less than the minimum stays as it is.
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


def drop_unseen_commit(agent: AgentState, oldest: Sequence[MessageId], *, now: datetime) -> Commit:
    """Show none of these messages any more, and record that."""
    agent_id = agent.identity.agent_id
    let_go = UnseenLetGo(
        message_count=len(oldest), first_message_id=oldest[0], last_message_id=oldest[-1]
    )
    return Commit(
        commit_id=f"unseen:{agent_id}:{oldest[-1]}",
        at=now,
        changes=(
            MarkSeen(agent_id=agent_id, message_ids=tuple(oldest)),
            RecordEvent(agent_id=agent_id, event=let_go),
        ),
        expects=(AgentGeneration(agent_id=agent_id, generation=agent.generation),),
    )
