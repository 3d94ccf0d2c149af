"""Activation: what an agent should do next, from its rows alone.

Owns:  the order in which reasons to act are considered, and the backoff of work without progress.
Rule 1: the first match wins: posture, queue, wake hints, the current item, a queued item, rechecks.
        Hints come before work, so that an agent with endless work still receives them.
Rule 2: only runnable items are offered. An offer never moves the focus; the agent picks.
Rule 3: an item that was offered and did not move is offered again at growing intervals, and after
        NO_PROGRESS_ACTIVATIONS_COUNT_MAX vain offers the operator is asked. An item in backoff does
        not hold back the others.
Rule 4: while a message is deferred because no provider answers, the runtime offers nothing of its
        own: it would be deferred as well. The operator, timers and finished tasks still get their
        turn; any other event is kept, and shown in the next one.
Rule 5: while a message is delayed because turns make no progress, and when self-started turns have
        stopped, nothing of the runtime's own is offered either; hints with content are still
        delivered.
Rule 6: an agent whose budget is used up begins nothing; when the named moment has come, the budget
        is checked again.
Rule 7: the decision carries the activation memory to store, so the count survives a restart.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from typing import Final, TypeAlias

import msgspec

from holon.decide.agents.lifecycle import may_run
from holon.decide.work.projection import is_runnable
from holon.model.agents import AgentStatus
from holon.model.events.reads import AgentSnapshot, WeighedItem
from holon.model.limits import (
    BUDGET_WINDOW_MS,
    MESSAGE_BODY_BYTES_MAX,
    NO_PROGRESS_ACTIVATIONS_COUNT_MAX,
    NO_PROGRESS_BACKOFF_MS_MAX,
    NO_PROGRESS_BACKOFF_MS_MIN,
    USAGE_STEP_MS,
)
from holon.model.record import Record
from holon.model.values import Instant, later
from holon.model.wake import WakeHint
from holon.model.work import ActivationMemory

# Half of what a message may hold: the rest is for what the tick wraps around the hints.
_HINTS_PER_TICK_BYTES_MAX: Final = MESSAGE_BODY_BYTES_MAX // 2


class StayInactive(Record, frozen=True, kw_only=True):
    """The agent's posture lets nothing run."""

    status: AgentStatus


class RunQueue(Record, frozen=True, kw_only=True):
    """A message waits or is claimed: give the agent a lane."""


class EmitHintTick(Record, frozen=True, kw_only=True):
    """Turn these parked hints into a system tick; what does not fit waits for the next one."""

    hints: tuple[WakeHint, ...]


class ContinueActive(Record, frozen=True, kw_only=True):
    """Tick the agent to continue its current item."""

    item: WeighedItem
    memory: ActivationMemory


class OfferQueued(Record, frozen=True, kw_only=True):
    """Tick the agent so that it can pick this queued item."""

    item: WeighedItem
    memory: ActivationMemory


class EmitRecheckTick(Record, frozen=True, kw_only=True):
    """One tick for every blocker whose reminder is due."""

    items: tuple[WeighedItem, ...]


class AskOperator(Record, frozen=True, kw_only=True):
    """The item does not move; a person has to look. The answer starts the count afresh."""

    item: WeighedItem
    memory: ActivationMemory


class ReviewBudget(Record, frozen=True, kw_only=True):
    """The moment has come at which a used-up budget was to have room again."""


class RestUntil(Record, frozen=True, kw_only=True):
    """Work exists, but it is delayed until then."""

    moment: Instant


class Rest(Record, frozen=True, kw_only=True):
    """Nothing to do until something happens."""


WorkDecision: TypeAlias = ContinueActive | OfferQueued | AskOperator
ActivationDecision: TypeAlias = (
    StayInactive
    | RunQueue
    | ReviewBudget
    | EmitHintTick
    | WorkDecision
    | EmitRecheckTick
    | RestUntil
    | Rest
)


def decide_activation(snapshot: AgentSnapshot, *, now: datetime) -> ActivationDecision:
    """Name the next thing to do. First matching rule wins; read top to bottom."""
    status = snapshot.agent.posture.status
    if not may_run(status):
        return StayInactive(status=status)
    if snapshot.claimed_message_id is not None:
        return RunQueue()
    if (until := snapshot.agent.pace.budget_until) is not None:
        return RestUntil(moment=until) if is_held_until(until, now=now) else ReviewBudget()
    if snapshot.heads:
        return RunQueue()
    return _offer_something(snapshot, now=now)


def is_held_until(moment: datetime, *, now: datetime) -> bool:
    """Whether a budget still holds the agent. After a clock was set back, none does for years."""
    return now < moment <= later(now, by_ms=BUDGET_WINDOW_MS + USAGE_STEP_MS)


def _offer_something(snapshot: AgentSnapshot, *, now: datetime) -> ActivationDecision:
    """What the runtime may start by itself while the queue is empty."""
    if snapshot.deferred_until is not None:
        return RestUntil(moment=snapshot.deferred_until)
    gave_up = snapshot.agent.pace.gave_up
    is_slow = gave_up or snapshot.slowed_until is not None
    if hints := tuple(hint for hint in snapshot.hints if hint.has_content or not is_slow):
        return EmitHintTick(hints=_fit_in_one_tick(hints))
    if snapshot.slowed_until is not None:
        return RestUntil(moment=snapshot.slowed_until)
    return Rest() if gave_up else _offer_work(snapshot, now=now)


def _offer_work(snapshot: AgentSnapshot, *, now: datetime) -> ActivationDecision:
    runnable = _runnable_items(snapshot)
    offered = next((item for item in runnable if _held_until(item, now=now) is None), None)
    if offered is not None:
        return _offer(offered, is_current=offered is snapshot.current, now=now)
    if snapshot.due_rechecks:
        return EmitRecheckTick(items=snapshot.due_rechecks)
    return _rest(runnable, now=now)


def _fit_in_one_tick(hints: tuple[WakeHint, ...]) -> tuple[WakeHint, ...]:
    sizes_bytes = accumulate(len(msgspec.json.encode(hint)) for hint in hints)
    fitting_count = sum(size_bytes <= _HINTS_PER_TICK_BYTES_MAX for size_bytes in sizes_bytes)
    return hints[: max(1, fitting_count)]


def _runnable_items(snapshot: AgentSnapshot) -> tuple[WeighedItem, ...]:
    current = () if snapshot.current is None else (snapshot.current,)
    return tuple(
        weighed
        for weighed in (*current, *snapshot.queued)
        if is_runnable(weighed.item, weighed.waits)
    )


def _offer(weighed: WeighedItem, *, is_current: bool, now: datetime) -> WorkDecision:
    count = _no_progress_count(weighed)
    if count >= NO_PROGRESS_ACTIVATIONS_COUNT_MAX:
        return AskOperator(item=weighed, memory=_remember(weighed, count=0, now=now))
    memory = _remember(weighed, count=count, now=now)
    if is_current:
        return ContinueActive(item=weighed, memory=memory)
    return OfferQueued(item=weighed, memory=memory)


def _rest(held: Sequence[WeighedItem], *, now: datetime) -> RestUntil | Rest:
    moments = [moment for item in held if (moment := _held_until(item, now=now)) is not None]
    return RestUntil(moment=min(moments)) if moments else Rest()


def _moved_since(weighed: WeighedItem, memory: ActivationMemory) -> bool:
    return weighed.item.revision > memory.revision_seen


def _no_progress_count(weighed: WeighedItem) -> int:
    """Return how many offers in a row, up to now, have not moved the item."""
    memory = weighed.activation
    if memory is None or _moved_since(weighed, memory):
        return 0
    return memory.no_progress_count + 1


def _held_until(weighed: WeighedItem, *, now: datetime) -> datetime | None:
    """Return the moment before which the item is not offered, if that is still to come."""
    memory = weighed.activation
    if memory is None or _moved_since(weighed, memory):
        return None
    # A clock that was set back to before the last offer would otherwise hold the item for as long
    # as it jumped.
    return memory.not_before if memory.last_at <= now < memory.not_before else None


def _remember(weighed: WeighedItem, *, count: int, now: datetime) -> ActivationMemory:
    return ActivationMemory(
        agent_id=weighed.item.agent_id,
        work_item_id=weighed.item.id,
        revision_seen=weighed.item.revision,
        no_progress_count=count,
        last_at=now,
        not_before=later(now, by_ms=_backoff_ms(count)),
    )


def _backoff_ms(no_progress_count: int) -> int:
    if no_progress_count == 0:
        return 0
    doubled_ms = NO_PROGRESS_BACKOFF_MS_MIN << (no_progress_count - 1)
    return min(NO_PROGRESS_BACKOFF_MS_MAX, doubled_ms)
