"""Mutants in the loop of an agent: looking, taking up, and making results durable."""

import re
from collections.abc import Callable

import anyio
import anyio.lowlevel
import msgspec

from holon.decide.text import fencing
from holon.decide.turns.recovery import (
    AbandonTurnPlan,
    ResumeTurnPlan,
    SetAsideTurnPlan,
    TurnPlan,
    plan_turn,
)
from holon.model.commits import Commit, FinishToolCall
from holon.model.queue import MessageKind
from holon.model.turns.tools import ToolCallRecord
from holon.model.turns.transcript import TurnLog
from holon.model.turns.turn import ToolReceipt
from holon.model.values import AgentId
from holon.runtime.turns.driver import TurnDriver
from holon.runtime.turns.lane import Lane, _Claimed
from holon.runtime.wake.scheduler import Scheduler
from tests.mutants.planting import plant_function, plant_method


def plant_m2() -> None:
    """Leave every turn open that an earlier process was cut off in."""
    _forget_cut_off_turns(tuple(MessageKind))


def _forget_cut_off_turns(kinds: tuple[MessageKind, ...]) -> None:
    """Make lanes pass over claimed messages of these kinds, as if another lane had them."""
    honest = Lane._look

    async def look(
        self: Lane, agent_id: AgentId, before_look: Callable[[], None]
    ) -> _Claimed | bool:
        reads, now = self._store.reads, self._clock.now()
        snapshot = await reads.agents.snapshot(agent_id, now=now)
        claimed = snapshot.claimed_message_id if snapshot is not None else None
        entry = await reads.queue.message(claimed) if claimed is not None else None
        if entry is not None and entry.message.kind in kinds:
            before_look()
            return False
        return await honest(self, agent_id, before_look)

    plant_method(Lane, "_look", look)


def plant_m3() -> None:
    """Commit what a tool changed first, and that it did so afterwards."""
    honest = TurnDriver._finish_call

    async def split(self: TurnDriver, call: ToolCallRecord, *, last: bool) -> ToolReceipt:
        hold, message_id = self._lease, self._live.turn.message_id
        finished = await self._runner.run(call, hold, message_id=message_id)
        effects = tuple(c for c in finished.commit.changes if not isinstance(c, FinishToolCall))
        if not effects:
            return await honest(self, call, last=last)
        for part, changes in (("effect", effects), ("done", finished.commit.changes[-1:])):
            commit = Commit(
                commit_id=f"tool:{call.effect_id}:{part}",
                at=finished.commit.at,
                changes=changes,
                expects=(hold.fence,),
            )
            await self._writer.try_apply(commit)
        return finished.receipt

    plant_method(TurnDriver, "_finish_call", split)


def plant_m4() -> None:
    """Take the news down after the look, not before it."""

    async def late(self: Scheduler, agent_id: AgentId, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                await self._lane.run(agent_id, before_look=lambda: None, may_go_on=lambda: True)
                await anyio.lowlevel.checkpoint()  # where the original wrote its idle state
        finally:
            self._news.pop(agent_id, None)
            del self._running[agent_id]

    plant_method(Scheduler, "_run_lane", late)


def plant_m16() -> None:
    """Take a cut-off turn up again without answering its unfinished calls."""

    def careless(log: TurnLog) -> TurnPlan:
        match plan_turn(log):
            case ResumeTurnPlan():
                return ResumeTurnPlan(interrupted=())
            case AbandonTurnPlan(reason=reason, failure=failure):
                return AbandonTurnPlan(reason=reason, failure=failure, interrupted=())
            case SetAsideTurnPlan() as plan:
                return msgspec.structs.replace(plan, interrupted=())

    plant_function(plan_turn, careless)


def plant_m18() -> None:
    """Take up what people said, but not what the runtime had told itself."""
    _forget_cut_off_turns((MessageKind.SYSTEM_TICK, MessageKind.TIMER_TICK))


def plant_h16() -> None:
    """Give back, one by one, the blanks before what might have been a token of a prompt."""
    _, line = fencing._patterns()
    token = re.compile(r"<(?=\s*/?\s*(?:system|assistant|user)\b)", re.IGNORECASE)
    plant_function(fencing._patterns, lambda: (token, line))
