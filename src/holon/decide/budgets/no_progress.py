"""The limit on self-started turns that make no progress.

Owns:  which messages count as started by the runtime, and when such a message may start a turn; the
       place of a new follow-up in its chain, and the limit of a chain.
Rule 1: ticks for work, reminders and deadlines, timers, follow-ups, and wake hints without content
        are the runtime's own. Operators, finished tasks and outside content are not: they are never
        delayed, and each of them resets the count.
Rule 2: a turn made progress when a call that changes something succeeded, or when the operator
        interjected. A follow-up the agent left itself, or a note in a work item of its own, is no
        progress (decision 0031).
Rule 3: after SELF_STARTED_FREE_COUNT_MAX such turns in a row without progress, each next one waits
        twice as long as the last. After SELF_STARTED_COUNT_MAX the operator is informed, once, and
        the agent rests until outside input arrives. Messages that come up meanwhile are kept and
        shown in its next turn, except ticks of repeating timers.
Rule 4: turns that lie SELF_STARTED_APART_MS apart are no storm, however little they do.
Rule 5: a chain begins with a message that is no follow-up and counts every follow-up since, also
        when a turn leaves itself several. The runtime counts; what a model claims does not matter.
Rule 6: a follow-up beyond the limit is refused. Continuous work belongs in a work item, which the
        scheduler offers again and watches for progress.
Rule 7: an operator interjection during a turn begins a new chain.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from holon.model.agents import TurnRateState
from holon.model.budgets import UpdateTurnRate
from holon.model.limits import (
    FOLLOWUPS_PER_CHAIN_COUNT_MAX,
    SELF_STARTED_APART_MS,
    SELF_STARTED_COUNT_MAX,
    SELF_STARTED_FREE_COUNT_MAX,
    SELF_STARTED_HOLD_MS_MIN,
)
from holon.model.queue import (
    FollowupChain,
    MessageEnvelope,
    MessageKind,
    SystemOrigin,
    is_contentful,
)
from holon.model.record import Record
from holon.model.turns.transcript import Interjection, RecordedCall, TranscriptEntry
from holon.model.values import AgentId, Instant, MessageId, later

HINT_SUBSYSTEM: Final = "wake_hint"
_OWN_SUBSYSTEMS: Final = frozenset({"work_queue", "recheck", "wait_deadline"})
_OWN_KINDS: Final = frozenset({MessageKind.TIMER_TICK, MessageKind.INTERNAL_FOLLOWUP})
_NO_PROGRESS_TOOLS: Final = frozenset({"Enqueue", "UpdateWorkItem"})


class Start(Record, tag=True, frozen=True, kw_only=True):
    """The turn may begin; this is to be remembered with it."""

    pace: TurnRateState


class DelayStart(Record, tag=True, frozen=True, kw_only=True):
    """The message waits until then."""

    until: Instant


class StopSelfStarts(Record, tag=True, frozen=True, kw_only=True):
    """Inform the operator and start nothing more."""

    pace: TurnRateState


class SuppressStart(Record, tag=True, frozen=True, kw_only=True):
    """The operator knows; the message starts nothing and is shown later."""


StartDecision: TypeAlias = Start | DelayStart | StopSelfStarts | SuppressStart


def is_self_started(message: MessageEnvelope) -> bool:
    """Whether a turn on this message would be the runtime's own doing."""
    if message.kind in _OWN_KINDS:
        return True
    if not isinstance(message.origin, SystemOrigin):
        return False
    if message.origin.subsystem == HINT_SUBSYSTEM:
        return not is_contentful(message.body)
    return message.origin.subsystem in _OWN_SUBSYSTEMS


def decide_start(pace: TurnRateState, *, self_started: bool, now: datetime) -> StartDecision:
    """Decide whether a message may start a turn now."""
    if not self_started:
        return Start(pace=_restarted(pace))
    if pace.gave_up:
        return SuppressStart()
    count = _streak(pace, now=now)
    if count >= SELF_STARTED_COUNT_MAX:
        return StopSelfStarts(pace=_with(pace, count=count, at=now, gave_up=True))
    until = _delayed_until(pace, count, now=now)
    if until is not None and now < until:
        return DelayStart(until=until)
    return Start(pace=_with(pace, count=count + 1, at=now))


def turn_rate_after(
    pace: TurnRateState, *, self_started: bool, moved: bool, now: datetime
) -> TurnRateState:
    """What is remembered when a turn has ended."""
    if moved or not self_started:
        return _restarted(pace)
    return _with(pace, count=pace.self_started_count, at=now)  # holds count from its end


def reset_turn_rate(agent_id: AgentId) -> UpdateTurnRate:
    """The change that goes with every operator act on an agent."""
    return UpdateTurnRate(agent_id=agent_id, pace=TurnRateState())


def made_any_progress(
    entries: Iterable[TranscriptEntry], calls: Iterable[RecordedCall], *, mutating: frozenset[str]
) -> bool:
    """Whether a turn changed anything, or had an operator interjection."""
    changing = mutating - _NO_PROGRESS_TOOLS
    return any(isinstance(entry.data, Interjection) for entry in entries) or any(
        each.call.name in changing and each.receipt is not None and not each.receipt.is_error
        for each in calls
    )


def self_starts_stopped_text(turn_count: int) -> str:
    """The operator's one notice that self-started turns have stopped."""
    return (
        f"The agent was started {turn_count} times in a row by ticks, timers or follow-ups of its"
        " own, without progress. It rests now: no more turns start by themselves, and new ticks and"
        " follow-ups are kept for its next turn.\n"
        "What to do: send it a message with instructions, complete or block its work items, or"
        " cancel its timers. Anything from outside, such as a prompt, a webhook or a finished task,"
        " wakes it as before."
    )


def _streak(pace: TurnRateState, *, now: datetime) -> int:
    last_at = pace.self_started_at
    if last_at is None or now - last_at >= timedelta(milliseconds=SELF_STARTED_APART_MS):
        return 0
    return pace.self_started_count


def _delayed_until(pace: TurnRateState, count: int, *, now: datetime) -> datetime | None:
    """Return the moment before which nothing starts, if the count has come so far.

    A clock that was set back since would hold the agent for as long as it jumped: it does not.
    """
    last_at = pace.self_started_at
    if last_at is None or last_at > now or count < SELF_STARTED_FREE_COUNT_MAX:
        return None
    doubled_ms = SELF_STARTED_HOLD_MS_MIN << (count - SELF_STARTED_FREE_COUNT_MAX)
    return later(last_at, by_ms=doubled_ms)


def _restarted(pace: TurnRateState) -> TurnRateState:
    return TurnRateState(budget_until=pace.budget_until)


def _with(pace: TurnRateState, *, count: int, at: datetime, gave_up: bool = False) -> TurnRateState:
    return TurnRateState(
        self_started_count=count,
        self_started_at=at,
        gave_up=gave_up,
        budget_until=pace.budget_until,
    )


class FollowupFacts(Record, frozen=True, kw_only=True):
    """The message a turn answers, and how many follow-ups its chain is known to have."""

    cause: MessageEnvelope
    known_count: int


class ChainUsedUp(Record, tag=True, frozen=True, kw_only=True):
    """There have been enough."""

    count: int


FollowupDecision: TypeAlias = FollowupChain | ChainUsedUp


def root_of(cause: MessageEnvelope) -> MessageId:
    """Return the message a follow-up of this one would go back to."""
    return cause.id if cause.followup is None else cause.followup.root_id


def next_in_chain(facts: FollowupFacts) -> FollowupDecision:
    """Return the place of the next follow-up, or that the chain is used up.

    Old follow-ups may have been forgotten, so what the message itself carries counts as well.
    """
    carried = 0 if facts.cause.followup is None else facts.cause.followup.number
    count = max(carried, facts.known_count)
    if count >= FOLLOWUPS_PER_CHAIN_COUNT_MAX:
        return ChainUsedUp(count=count)
    return FollowupChain(root_id=root_of(facts.cause), number=count + 1)
