"""Runtime-owned ticks: what the runtime tells an idle agent of its own accord.

Owns:  turning an activation decision into the one commit that queues its tick.
Rule 1: a tick goes through the same admission as any message; models cannot make one.
Rule 2: at most one tick of a key waits at a time; the unique column sees to it, not memory. Hints
        that bring something have a key of their own: a blank tick may be held back, they never are.
Rule 3: a desk that returns False has changed nothing, and looking again would find the same rows.
        The lane rests: whoever moved the rows meanwhile has left news, and a tick that is in the
        way is news itself once its moment has come.
"""

from typing import Final

import msgspec

from holon.decide.activation import (
    AskOperator,
    ContinueActive,
    EmitHintTick,
    EmitRecheckTick,
    OfferQueued,
)
from holon.decide.admission import Admitted
from holon.decide.desk_commits import OperatorQuestion, ask_operator_commit, queue_change
from holon.decide.tick_texts import (
    continue_text,
    hint_refs,
    hint_tick_body,
    offer_text,
    question_text,
    recheck_text,
)
from holon.decide.work_item_changes import consume_recheck
from holon.model.commit import (
    Change,
    Commit,
    MoveWait,
    PutWorkItem,
    RememberActivation,
    TakeWakeHints,
)
from holon.model.expectation import (
    AgentGeneration,
    Applied,
    Expect,
    WaitInState,
    WakeHintAtRevision,
    WorkItemAtRevision,
)
from holon.model.ids import AgentId, BriefId, IdPrefix, WaitId, WorkItemId
from holon.model.ingress import IngressRequest
from holon.model.message import MessageBody, MessageKind, Priority, TextBody
from holon.model.provenance import AdmissionContext, DeliverySurface, SystemOrigin
from holon.model.refusal import RefusedError
from holon.model.snapshot import AgentSnapshot
from holon.model.wait import WaitKind, WaitRecord, WaitState
from holon.ports.clock import Clock
from holon.ports.failpoint import Failpoint, Failpoints
from holon.ports.id_source import IdSource
from holon.ports.store import Store
from holon.runtime.decided_commit import apply_patiently
from holon.runtime.execution_place import AgentPlaces
from holon.runtime.ingress import Ingress


class TickDesk:
    """Emits ticks for one host."""

    WORK_QUEUE: Final = "work_queue"  # the origin of offers of work
    BLANK_HINTS: Final = "wake_hint"  # the keys of ticks for hints
    NEWS: Final = "wake_news"

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
        agent_id = snapshot.agent.identity.agent_id
        hints = decision.hints
        waits = [hint.wait_id for hint in hints if hint.wait_id is not None]
        brings_something = any(hint.brings_something for hint in hints)
        plain = self._request(
            agent_id,
            subsystem="wake_hint",
            body=hint_tick_body(hints),
            tick_key=self.NEWS if brings_something else self.BLANK_HINTS,
            wait_id=waits[0] if waits else None,
        )
        tick = msgspec.structs.replace(
            plain,
            source_refs=hint_refs(hints),
            correlation_id=hints[0].correlation_id if len(hints) == 1 else None,
            causation_id=hints[0].causation_id if len(hints) == 1 else None,
        )
        taken = TakeWakeHints(
            agent_id=agent_id, source_keys=tuple(hint.source_key for hint in decision.hints)
        )
        unmoved = tuple(
            WakeHintAtRevision(
                agent_id=agent_id, source_key=hint.source_key, revision=hint.revision
            )
            for hint in decision.hints
        )
        return await self._emit(snapshot, tick, changes=(taken,), expects=unmoved)

    async def emit_work_tick(
        self, snapshot: AgentSnapshot, decision: ContinueActive | OfferQueued
    ) -> bool:
        """Offer an item to the agent, and remember having done so."""
        item = decision.item.item
        continues = isinstance(decision, ContinueActive)
        text = continue_text(decision.item) if continues else offer_text(decision.item)
        tick = self._request(
            snapshot.agent.identity.agent_id,
            subsystem=self.WORK_QUEUE,
            body=TextBody(text=text),
            tick_key=f"work:{item.id}",
            work_item_id=item.id,
        )
        return await self._emit(
            snapshot,
            tick,
            changes=(RememberActivation(memory=decision.memory),),
            expects=(WorkItemAtRevision(work_item_id=item.id, revision=item.revision),),
        )

    async def emit_recheck_tick(self, snapshot: AgentSnapshot, decision: EmitRecheckTick) -> bool:
        """Remind the agent of its blockers; the items stay blocked."""
        now = self._clock.now()
        changes: list[Change] = []
        expects: list[Expect] = []
        first_wait: WaitId | None = None
        for weighed in decision.items:
            item = weighed.item
            expects.append(WorkItemAtRevision(work_item_id=item.id, revision=item.revision))
            changes.append(PutWorkItem(item=consume_recheck(item, now=now)))
            for wait in weighed.waits:
                if wait.kind is WaitKind.RECHECK and wait.state is WaitState.ACTIVE:
                    first_wait = first_wait or wait.id
                    expects.append(WaitInState(wait_id=wait.id, state=WaitState.ACTIVE))
                    changes.append(
                        MoveWait(
                            agent_id=wait.agent_id,
                            wait_id=wait.id,
                            state=WaitState.RESOLVED,
                            by="recheck_due",
                        )
                    )
        tick = self._request(
            snapshot.agent.identity.agent_id,
            subsystem="recheck",
            body=TextBody(text=recheck_text(decision.items)),
            tick_key="recheck",
            wait_id=first_wait,
        )
        return await self._emit(snapshot, tick, changes=tuple(changes), expects=tuple(expects))

    async def ask_operator(self, snapshot: AgentSnapshot, decision: AskOperator) -> bool:
        """Stop offering the item and ask a person, once."""
        now = self._clock.now()
        agent_id = snapshot.agent.identity.agent_id
        wait = WaitRecord(
            id=WaitId(self._ids.fresh(IdPrefix.WAIT)),
            agent_id=agent_id,
            kind=WaitKind.OPERATOR,
            waiting_for="how to go on with an item that does not move",
            created_at=now,
            deadline_at=None,
            work_item_id=decision.item.item.id,
        )
        question = OperatorQuestion(
            item=decision.item.item,
            wait=wait,
            brief_id=BriefId(self._ids.fresh(IdPrefix.BRIEF)),
            text=question_text(decision.item),
            memory=decision.memory,
            workspace_id=(await self._agent_places.current(agent_id)).workspace_id,
        )
        return await self._apply(ask_operator_commit(question, snapshot=snapshot, now=now))

    async def _emit(
        self,
        snapshot: AgentSnapshot,
        request: IngressRequest,
        *,
        changes: tuple[Change, ...],
        expects: tuple[Expect, ...],
    ) -> bool:
        """Queue the tick with what belongs to it; False when the agent cannot have it now."""
        try:
            admitted: Admitted = await self._ingress.judge(request)
        except RefusedError:
            return False
        agent = snapshot.agent
        commit = Commit(
            commit_id=f"tick:{admitted.message.id}",
            at=admitted.message.created_at,
            changes=(*changes, queue_change(admitted)),
            expects=(
                AgentGeneration(agent_id=agent.identity.agent_id, generation=agent.generation),
                *expects,
            ),
        )
        await self._failpoints.reach(Failpoint.TICK_BEFORE_COMMIT)
        return await self._apply(commit)

    async def _apply(self, commit: Commit) -> bool:
        """Whether the commit is in the rows now; if not, they moved, or have no place for it."""
        outcome = await apply_patiently(self._store, commit, clock=self._clock)
        return isinstance(outcome, Applied)

    @staticmethod
    def _request(
        agent_id: AgentId,
        *,
        subsystem: str,
        body: MessageBody,
        tick_key: str,
        work_item_id: WorkItemId | None = None,
        wait_id: WaitId | None = None,
    ) -> IngressRequest:
        return IngressRequest(
            agent_id=agent_id,
            kind=MessageKind.SYSTEM_TICK,
            origin=SystemOrigin(subsystem=subsystem),
            body=body,
            surface=DeliverySurface.RUNTIME_SYSTEM,
            admission=AdmissionContext.RUNTIME_OWNED,
            priority=Priority.BACKGROUND,
            tick_key=tick_key,
            work_item_id=work_item_id,
            wait_id=wait_id,
        )
