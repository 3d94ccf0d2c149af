"""Mutants in timers, waits and the brake on work that does not move."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

import msgspec
from anyio.abc import TaskGroup

from holon.decide.events.audit import audited
from holon.decide.queue.commits import cancel_timer_changes
from holon.decide.turns.closure import ContinuationFacts, resolve_continuation
from holon.decide.wake.activation import ActivationDecision, decide_activation
from holon.decide.wake.timers import next_slot
from holon.model.commits import (
    AdvanceTask,
    Change,
    Commit,
    Expect,
    MoveWait,
    QueueMessage,
    SettleMessage,
)
from holon.model.events.reads import AgentSnapshot
from holon.model.queue import MessageState
from holon.model.tasks import TaskRecord
from holon.model.turns.turn import Continuation
from holon.model.values import MessageId
from holon.model.wake import Every, TimerRecord, WaitKind, WaitRecord, WaitState
from holon.runtime.tasks.records import TaskService
from holon.runtime.wake.dispatcher import TimerDispatcher
from holon.tools.tool import ToolPorts, ToolScene
from holon.tools.wake import _replaced_rest
from tests.mutants.planting import plant_function, plant_method


def plant_m6() -> None:
    """Watch only the timers of agents that have a lane, as if timers lived in their agents."""
    honest = TimerDispatcher._dispatch_due

    async def nearsighted(self: TimerDispatcher, workers: TaskGroup, now: datetime) -> None:
        loaded = self._scheduler._running

        def start_once(
            workers: TaskGroup, what: TimerRecord | WaitRecord, act: Callable[[], Awaitable[None]]
        ) -> None:
            if isinstance(what, WaitRecord) or what.agent_id in loaded:
                TimerDispatcher._start_once(self, workers, what, act)

        self._start_once = start_once  # type: ignore[method-assign]  # this one dispatcher skips rows
        await honest(self, workers, now)

    plant_method(TimerDispatcher, "_dispatch_due", nearsighted)


def plant_m7() -> None:
    """End the waits on a task in one commit and queue its result in the next."""
    honest = TaskService._end

    async def hasty(self: TaskService, task: TaskRecord, advance: AdvanceTask) -> Commit:
        commit = await honest(self, task, advance)
        first = tuple(c for c in commit.changes if not isinstance(c, QueueMessage))
        ended = Commit(
            commit_id=f"{commit.commit_id}:first",
            at=commit.at,
            changes=first,
            expects=commit.expects,
        )
        await self._store.apply(audited(ended))
        rest = tuple(c for c in commit.changes if isinstance(c, QueueMessage))
        return Commit(commit_id=commit.commit_id, at=commit.at, changes=rest)

    plant_method(TaskService, "_end", hasty)


def plant_m8() -> None:
    """Let a new Sleep throw away the tick that an earlier one had already earned."""

    async def greedy(
        scene: ToolScene, ports: ToolPorts
    ) -> tuple[tuple[Change, ...], tuple[Expect, ...]]:
        changes, expects = await _replaced_rest(scene, ports)
        snapshot = await ports.reads.agents.snapshot(scene.agent_id, now=scene.now)
        for wait in snapshot.agent_waits if snapshot else ():
            if wait.kind is WaitKind.REST and wait.state is WaitState.TRIGGERED:
                moved = MoveWait(
                    agent_id=wait.agent_id, wait_id=wait.id, state=WaitState.RESOLVED, by="sleep"
                )
                dropped = SettleMessage(
                    agent_id=wait.agent_id,
                    message_id=MessageId(wait.triggered_by or ""),
                    state=MessageState.DROPPED,
                    reason="replaced",
                )
                changes = (*changes, moved, dropped)
        return changes, expects

    plant_function(_replaced_rest, greedy)


def plant_m12() -> None:
    """Key the memory of vain offers by the lane's generation, so that it never adds up."""

    def forgetful(snapshot: AgentSnapshot, *, now: datetime) -> ActivationDecision:
        fresh = msgspec.structs.replace(
            snapshot,
            current=snapshot.current and msgspec.structs.replace(snapshot.current, activation=None),
            queued=tuple(
                msgspec.structs.replace(weighed, activation=None) for weighed in snapshot.queued
            ),
        )
        return decide_activation(fresh, now=now)

    plant_function(decide_activation, forgetful)


def plant_m13() -> None:
    """Cancel a timer and leave the ticks it has already queued."""

    def forgiving(
        timer: TimerRecord, queued_ticks: Sequence[MessageId]
    ) -> tuple[tuple[Change, ...], tuple[Expect, ...]]:
        del queued_ticks
        return cancel_timer_changes(timer, ())

    plant_function(cancel_timer_changes, forgiving)


def plant_m14() -> None:
    """Count a repeating timer's next slot from when it fired."""

    def drifting(timer: TimerRecord, *, now: datetime) -> datetime | None:
        match timer.schedule:
            case Every(interval_ms=interval_ms):
                return now + timedelta(milliseconds=interval_ms)
            case _:
                return None

    plant_function(next_slot, drifting)


def plant_m19() -> None:
    """Let the reason an agent waits for decide alone, whatever wait a message ends."""

    def deaf(facts: ContinuationFacts) -> Continuation:
        return resolve_continuation(msgspec.structs.replace(facts, ends_wait=False))

    plant_function(resolve_continuation, deaf)
