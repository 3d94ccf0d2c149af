"""Work items as an operator handles them: enqueue, focus, block, unblock, complete.

Owns:  work items as control-plane mutations; no message is made, the scheduler sees the rows.
Rule 1: enqueueing an item never replaces what the agent is working on.
Rule 2: a blocked item always has a reminder; the wait that carries it lives and dies with the
        blocker.
"""

from collections.abc import Callable
from datetime import datetime

from holon.decide import work_item_changes
from holon.decide.agent_lifecycle import admits
from holon.decide.agent_refusals import refuse_stopped, refuse_unknown
from holon.model.commit import Change, Commit, FocusWorkItem, MoveWait, OpenWait, PutWorkItem
from holon.model.expectation import (
    AgentAdmits,
    Expect,
    WaitInState,
    WorkItemAtRevision,
    WorkItemWaitsForOnly,
)
from holon.model.ids import AgentId, IdPrefix, WaitId, WorkItemId, parse_agent_id, parse_record_id
from holon.model.instant import later
from holon.model.limits import LABEL_CHARS_MAX, OBJECTIVE_CHARS_MAX, RECHECK_DEFAULT_MS
from holon.model.refusal import Refusal, RefusalCode, RefusedError
from holon.model.wait import WaitKind, WaitRecord, WaitState
from holon.model.work_item import WorkItemRecord, WorkItemState
from holon.runtime.decided_commit import commit_decided
from holon.runtime.services import Services


class WorkDesk:
    """Work items of one host."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def create(self, agent_id: AgentId, *, objective: str) -> WorkItemRecord:
        """Open an item in the agent's queue."""
        parse_agent_id(agent_id)
        if not objective.strip() or len(objective) > OBJECTIVE_CHARS_MAX:
            raise RefusedError(
                Refusal(
                    code=RefusalCode.BAD_OBJECTIVE,
                    message=f"an objective is 1 to {OBJECTIVE_CHARS_MAX} characters and not blank",
                    field="objective",
                )
            )
        now = self._services.clock.now()
        item = WorkItemRecord(
            id=WorkItemId(self._services.ids.fresh(IdPrefix.WORK_ITEM)),
            agent_id=agent_id,
            objective=objective,
            created_at=now,
            updated_at=now,
        )

        async def decide() -> Commit | Refusal:
            agent = await self._services.store.reads.agent(agent_id)
            if agent is None:
                return refuse_unknown(agent_id)
            if not admits(agent.posture.status):
                return refuse_stopped(agent_id)
            return self._commit(
                (PutWorkItem(item=item),), (AgentAdmits(agent_id=agent_id),), now=now
            )

        await commit_decided(self._services.store, decide)
        return item

    async def focus(self, work_item_id: WorkItemId) -> None:
        """Make an open item the agent's focus."""

        async def decide() -> Commit | Refusal:
            item = await self._open_item(work_item_id)
            if isinstance(item, Refusal):
                return item
            focused = FocusWorkItem(agent_id=item.agent_id, work_item_id=item.id)
            unmoved = WorkItemAtRevision(work_item_id=item.id, revision=item.revision)
            return self._commit((focused,), (unmoved,), now=self._services.clock.now())

        await commit_decided(self._services.store, decide)

    async def block(
        self, work_item_id: WorkItemId, *, blocked_by: str, recheck_after_ms: int | None = None
    ) -> None:
        """Say what an item waits for; without a moment to look again, one is chosen."""
        reason = blocked_by[:LABEL_CHARS_MAX]

        def blocked(item: WorkItemRecord, now: datetime) -> WorkItemRecord:
            recheck_at = later(now, by_ms=recheck_after_ms or RECHECK_DEFAULT_MS)
            return work_item_changes.block(item, blocked_by=reason, recheck_at=recheck_at, now=now)

        await self._revise(work_item_id, blocked)

    async def unblock(self, work_item_id: WorkItemId) -> None:
        """Clear the blocker and its reminder."""
        await self._revise(work_item_id, lambda item, now: work_item_changes.unblock(item, now=now))

    async def complete(self, work_item_id: WorkItemId) -> None:
        """Mark an item completed; what it waited for no longer matters."""
        await self._revise(
            work_item_id, lambda item, now: work_item_changes.complete(item, now=now)
        )

    async def _revise(
        self,
        work_item_id: WorkItemId,
        revise: Callable[[WorkItemRecord, datetime], WorkItemRecord],
    ) -> None:
        async def decide() -> Commit | Refusal:
            now = self._services.clock.now()
            item = await self._open_item(work_item_id)
            if isinstance(item, Refusal):
                return item
            revised = revise(item, now)
            ended, unmoved = await self._ended_waits(revised)
            unmoved = (
                WorkItemAtRevision(work_item_id=item.id, revision=item.revision),
                *unmoved,
            )
            changes = (*ended, PutWorkItem(item=revised), *self._reminder(revised, now))
            return self._commit(changes, unmoved, now=now)

        await commit_decided(self._services.store, decide)

    async def _ended_waits(
        self, item: WorkItemRecord
    ) -> tuple[tuple[Change, ...], tuple[Expect, ...]]:
        """Reminders of the old blocker end; a completed item waits for nothing at all."""
        done = item.state is WorkItemState.COMPLETED
        waits = await self._services.store.reads.item_waits(item.id)
        changes = tuple(
            MoveWait(
                agent_id=wait.agent_id,
                wait_id=wait.id,
                state=WaitState.CANCELLED if wait.state is WaitState.ACTIVE else WaitState.RESOLVED,
                by=item.id,
            )
            for wait in waits
            if done or wait.kind is WaitKind.RECHECK
        )
        unmoved = (WaitInState(wait_id=wait.id, state=wait.state) for wait in waits)
        count = WorkItemWaitsForOnly(work_item_id=item.id, wait_count=len(waits))
        return changes, (count, *unmoved)

    def _reminder(self, item: WorkItemRecord, now: datetime) -> tuple[Change, ...]:
        if item.blocked_by is None or item.recheck_at is None:
            return ()
        wait = WaitRecord(
            id=WaitId(self._services.ids.fresh(IdPrefix.WAIT)),
            agent_id=item.agent_id,
            kind=WaitKind.RECHECK,
            waiting_for=item.blocked_by,
            created_at=now,
            deadline_at=item.recheck_at,
            work_item_id=item.id,
        )
        return (OpenWait(wait=wait),)

    async def _open_item(self, work_item_id: WorkItemId) -> WorkItemRecord | Refusal:
        parse_record_id(work_item_id, what="work item id")
        item = await self._services.store.reads.work_item(work_item_id)
        if item is None:
            return Refusal(
                code=RefusalCode.WORK_ITEM_NOT_FOUND,
                message=f"there is no work item {work_item_id}",
                hint="list the agent's work items to find its id",
            )
        if item.state is WorkItemState.COMPLETED:
            return Refusal(
                code=RefusalCode.WORK_ITEM_COMPLETED,
                message=f"work item {work_item_id} is completed",
                hint="open a new item for further work",
            )
        return item

    def _commit(
        self, changes: tuple[Change, ...], expects: tuple[Expect, ...], *, now: datetime
    ) -> Commit:
        request_id = self._services.ids.fresh(IdPrefix.REQUEST)
        return Commit(commit_id=f"control:{request_id}", at=now, changes=changes, expects=expects)
