"""Runtime ticks: messages the runtime itself queues for an idle agent.

Owns:  admitting and committing each tick. What a tick says and changes is in decide/wake/ticks.
Rule 1: a method that returns False changed nothing, and reading again would find the same rows. The
        lane rests: a concurrent commit wakes it anyway, and a tick already queued for later wakes
        it when its moment comes.
"""

from holon.decide.queue.commits import ask_operator_commit
from holon.decide.wake.activation import (
    AskOperator,
    ContinueActive,
    EmitHintTick,
    EmitRecheckTick,
    OfferQueued,
)
from holon.decide.wake.ticks import (
    PlannedTick,
    hint_tick,
    operator_question,
    recheck_tick,
    tick_commit,
    work_tick,
)
from holon.model.commits import Applied, Commit
from holon.model.errors import RefusedError
from holon.model.events.reads import AgentSnapshot
from holon.model.values import BriefId, IdPrefix, WaitId
from holon.ports.clock import Clock, IdSource
from holon.ports.failpoint import Failpoint, Failpoints
from holon.ports.store import Store
from holon.runtime.commits import apply_patiently
from holon.runtime.queue import Ingress
from holon.runtime.workspaces.place import AgentPlaces


class TickService:
    """Emits ticks for one host."""

    def __init__(
        self,
        ingress: Ingress,
        *,
        store: Store,
        clock: Clock,
        ids: IdSource,
        agent_places: AgentPlaces,
        failpoints: Failpoints,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._agent_places = agent_places
        self._failpoints = failpoints
        self._ingress = ingress

    async def emit_hint_tick(self, snapshot: AgentSnapshot, decision: EmitHintTick) -> bool:
        """Hand the parked hints to a tick."""
        return await self._emit(
            snapshot, hint_tick(snapshot.agent.identity.agent_id, decision.hints)
        )

    async def emit_work_tick(
        self, snapshot: AgentSnapshot, decision: ContinueActive | OfferQueued
    ) -> bool:
        """Offer an item to the agent, and remember having done so."""
        return await self._emit(snapshot, work_tick(snapshot.agent.identity.agent_id, decision))

    async def emit_recheck_tick(self, snapshot: AgentSnapshot, decision: EmitRecheckTick) -> bool:
        """Remind the agent of its blockers; the items stay blocked."""
        agent_id, now = snapshot.agent.identity.agent_id, self._clock.now()
        return await self._emit(snapshot, recheck_tick(agent_id, decision, now=now))

    async def ask_operator(self, snapshot: AgentSnapshot, decision: AskOperator) -> bool:
        """Stop offering the item and ask a person, once."""
        now, place = (
            self._clock.now(),
            await self._agent_places.current(snapshot.agent.identity.agent_id),
        )
        question = operator_question(
            decision,
            wait_id=WaitId(self._ids.fresh(IdPrefix.WAIT)),
            brief_id=BriefId(self._ids.fresh(IdPrefix.BRIEF)),
            workspace_id=place.workspace_id,
            now=now,
        )
        return await self._apply(ask_operator_commit(question, snapshot=snapshot, now=now))

    async def _emit(self, snapshot: AgentSnapshot, planned: PlannedTick) -> bool:
        """Queue the tick with what belongs to it; False when the agent cannot have it now."""
        try:
            admitted = await self._ingress.judge(planned.request)
        except RefusedError:
            return False
        commit = tick_commit(planned, admitted, agent=snapshot.agent)
        await self._failpoints.reach(Failpoint.TICK_BEFORE_COMMIT)
        return await self._apply(commit)

    async def _apply(self, commit: Commit) -> bool:
        """Whether the commit is in the rows now; if not, they moved, or have no place for it."""
        outcome = await apply_patiently(self._store, commit, clock=self._clock)
        return isinstance(outcome, Applied)
