"""Mutants in what an end and the next start make of work that was on its way."""

import contextlib
from collections.abc import Callable
from datetime import datetime

from holon.decide.queue.admission import Admitted
from holon.decide.queue.commits import fire_commit
from holon.decide.turns.recovery import TurnPlan, plan_turn
from holon.decide.wake.ticks import timer_tick
from holon.decide.wake.timers import decide_fire
from holon.model.commits import AgentAdmits
from holon.model.events.reads import DueTimer
from holon.model.limits import HOUR_MS
from holon.model.queue import AdmissionReceipt
from holon.model.turns.transcript import TurnLog
from holon.model.values import AgentId, later
from holon.model.wake import Cron
from holon.ports.store import Store
from holon.runtime.commits import apply_patiently
from holon.runtime.queue import Ingress
from holon.runtime.turns.lane import Lane, _Claimed
from holon.runtime.turns.recovery import Recovery
from holon.runtime.wake.dispatcher import TimerDispatcher
from tests.mutants.planting import plant_function, plant_method


def plant_m21() -> None:
    """Run a cron slot first, and write down that it ran when the work should be over."""
    honest = TimerDispatcher._fire

    async def run_then_note(self: TimerDispatcher, due: DueTimer, now: datetime) -> None:
        if not isinstance(due.timer.schedule, Cron):
            await honest(self, due, now)
            return
        fire, clock = decide_fire(due, now=now), self._clock
        if fire.queues_tick:
            await self._ingress.admit(timer_tick(due, fire))
        await clock.sleep_until(later(now, by_ms=HOUR_MS // 2))
        expects = (AgentAdmits(agent_id=due.timer.agent_id),)
        noted = fire_commit(due, fire=fire, tick=None, expects=expects, now=clock.now())
        await apply_patiently(self._store, noted, clock=clock)

    plant_method(TimerDispatcher, "_fire", run_then_note)


def plant_m22() -> None:
    """Keep what comes for a busy agent in memory, until its turn is over."""
    queue, honest = Ingress._queue, Lane._look
    waiting: list[tuple[Store, Ingress, Admitted]] = []

    async def keep(self: Ingress, admitted: Admitted) -> AdmissionReceipt | None:
        store, message = self._store, admitted.message
        snapshot = await store.reads.agents.snapshot(message.agent_id, now=message.created_at)
        if snapshot is None or snapshot.claimed_message_id is None:
            return await queue(self, admitted)
        waiting.append((store, self, admitted))
        return AdmissionReceipt(agent_id=message.agent_id, message_id=message.id)

    async def look(
        self: Lane, agent_id: AgentId, before_look: Callable[[], None]
    ) -> _Claimed | bool:
        mine = [
            entry
            for entry in waiting
            if entry[0] is self._store and entry[2].message.agent_id == agent_id
        ]
        for entry in mine:
            waiting.remove(entry)
            await queue(entry[1], entry[2])
        return await honest(self, agent_id, before_look)

    plant_method(Ingress, "_queue", keep)
    plant_method(Lane, "_look", look)


def plant_m23() -> None:
    """Start as if all was well when taking up what an earlier process left has failed."""
    honest = Recovery.run

    async def unmoved(self: Recovery) -> None:
        with contextlib.suppress(Exception):
            await honest(self)

    plant_method(Recovery, "run", unmoved)


def plant_m24() -> None:
    """Go on claiming while the host drains and another is about to take over."""
    honest = Lane.run

    async def go_on(
        self: Lane,
        agent_id: AgentId,
        *,
        before_look: Callable[[], None],
        may_go_on: Callable[[], bool],
    ) -> None:
        del may_go_on
        await honest(self, agent_id, before_look=before_look, may_go_on=lambda: True)

    plant_method(Lane, "run", go_on)


def plant_h17() -> None:
    """Take up a turn however often the process ended in it."""

    def never_aside(log: TurnLog, *, ended_process: bool = False) -> TurnPlan:
        del ended_process
        return plan_turn(log)

    plant_function(plan_turn, never_aside)
