"""Work items as an operator handles them: enqueue, focus, block, unblock, complete.

Owns:  work items as control-plane mutations; no message is made, the scheduler sees the rows.
Rule 1: enqueueing an item never replaces what the agent is working on.
Rule 2: what moves along with an item is decided in decide/work_item_commits, for agents too.
"""

from collections.abc import Callable
from datetime import datetime

from holon.decide import work_item_changes
from holon.decide.agent_lifecycle import admits
from holon.decide.agent_refusals import refuse_stopped, refuse_unknown
from holon.decide.work_item_commits import needs_reminder, open_item, put_blocker
from holon.model.commit import Change, Commit, FocusWorkItem, PutWorkItem
from holon.model.expectation import AgentAdmits, Expect, WorkItemAtRevision
from holon.model.ids import AgentId, IdPrefix, WaitId, WorkItemId, parse_agent_id, parse_record_id
from holon.model.instant import later
from holon.model.limits import LABEL_CHARS_MAX, RECHECK_DEFAULT_MS
from holon.model.refusal import Refusal, RefusedError
from holon.model.work_item import WorkItemRecord
from holon.runtime.decided_commit import commit_decided
from holon.runtime.services import Services


class WorkDesk:
    """Work items of one host."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def create(self, agent_id: AgentId, *, objective: str) -> WorkItemRecord:
        """Open an item in the agent's queue."""
        parse_agent_id(agent_id)
        if (refusal := work_item_changes.objective_refusal(objective)) is not None:
            raise RefusedError(refusal)
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
            waits = await self._services.store.reads.item_waits(item.id)
            planned = put_blocker(revised, waits, now=now, wait_id=self._wait_id(revised))
            return self._commit(planned.changes, planned.expects, now=now)

        await commit_decided(self._services.store, decide)

    def _wait_id(self, item: WorkItemRecord) -> WaitId | None:
        return WaitId(self._services.ids.fresh(IdPrefix.WAIT)) if needs_reminder(item) else None

    async def _open_item(self, work_item_id: WorkItemId) -> WorkItemRecord | Refusal:
        parse_record_id(work_item_id, what="work item id")
        return open_item(await self._services.store.reads.work_item(work_item_id), work_item_id)

    def _commit(
        self, changes: tuple[Change, ...], expects: tuple[Expect, ...], *, now: datetime
    ) -> Commit:
        request_id = self._services.ids.fresh(IdPrefix.REQUEST)
        return Commit(commit_id=f"control:{request_id}", at=now, changes=changes, expects=expects)
