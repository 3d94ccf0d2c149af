"""Work item control: an operator creates, focuses, edits and completes work items.

Owns:  work items as control-plane mutations: no message is created, the scheduler sees the rows.
       Requests are decided in decide/work/requests; what changes along with an item, in
       decide/work/items, for agents too.
"""

from collections.abc import Callable
from datetime import datetime

from msgspec import UNSET, UnsetType

from holon.decide.queue.idempotency import keyed_id
from holon.decide.work import items
from holon.decide.work.items import WorkItemEdit, needs_reminder, open_item
from holon.decide.work.requests import (
    creation_of,
    edited_item,
    existing_item,
    focus_commit,
    revision_commit,
)
from holon.model.commits import Commit
from holon.model.errors import Refusal, RefusedError, accepted
from holon.model.values import (
    AgentId,
    IdPrefix,
    WaitId,
    WorkItemId,
    parse_agent_id,
    parse_record_id,
)
from holon.model.work import WorkItemRecord
from holon.ports.clock import Clock, IdSource
from holon.ports.store import Store
from holon.runtime.commits import commit_decided
from holon.runtime.workspaces.place import AgentPlaces


class WorkService:
    """Edits work items for an operator."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: IdSource,
        agent_places: AgentPlaces,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._agent_places = agent_places

    async def create(
        self, agent_id: AgentId, *, objective: str, key: str | None = None
    ) -> WorkItemRecord:
        """Open an item in the agent's queue; the same `key` again gives the same item."""
        parse_agent_id(agent_id)
        if (refusal := items.objective_refusal(objective)) is not None:
            raise RefusedError(refusal)
        now = self._clock.now()
        item = WorkItemRecord(
            id=WorkItemId(
                self._ids.fresh(IdPrefix.WORK_ITEM)
                if key is None
                else keyed_id(IdPrefix.WORK_ITEM, agent_id, key)
            ),
            agent_id=agent_id,
            objective=objective,
            created_at=now,
            updated_at=now,
            workspace_id=(await self._agent_places.current(agent_id)).workspace_id,
        )

        await commit_decided(self._store, lambda: self._creation(item))
        if key is None:
            return item
        return accepted(existing_item(item, await self._store.reads.work.work_item(item.id)))

    async def _creation(self, item: WorkItemRecord) -> Commit | Refusal | None:
        reads = self._store.reads
        counts = await reads.work.work_item_counts(item.agent_id)
        return creation_of(
            item,
            kept=await reads.work.work_item(item.id),
            agent=await reads.agents.agent(item.agent_id),
            open_count=counts.open_count,
        )

    async def focus(self, work_item_id: WorkItemId) -> None:
        """Make an open item the agent's focus; this answers open questions about it."""

        async def decide() -> Commit | Refusal:
            item = await self._open_item(work_item_id)
            if isinstance(item, Refusal):
                return item
            waits = await self._store.reads.wake.item_waits(item.id)
            return focus_commit(self._commit_id(), item, waits, now=self._clock.now())

        await commit_decided(self._store, decide)

    async def edit(
        self,
        work_item_id: WorkItemId,
        changed: WorkItemEdit,
        *,
        blocked_by: str | UnsetType | None = UNSET,
        recheck_after_ms: int | None = None,
    ) -> None:
        """Edit an item, including its blocker if that changed.

        A blocked item is rechecked; without a given delay, a default one applies. An edit answers
        open questions about the item; so does a blocker, for which the item then waits.
        """
        if changed.objective is not None:
            refusal = items.objective_refusal(changed.objective)
            if refusal is not None:
                raise RefusedError(refusal)

        def revised(item: WorkItemRecord, now: datetime) -> WorkItemRecord:
            return edited_item(
                item, changed, blocked_by=blocked_by, recheck_after_ms=recheck_after_ms, now=now
            )

        await self._revise(work_item_id, revised, moves_blocker=blocked_by is not UNSET)

    async def complete(self, work_item_id: WorkItemId) -> None:
        """Complete an item: its waits end, and the agent's focus leaves it."""
        await self._revise(work_item_id, lambda item, now: items.complete(item, now=now))

    async def _revise(
        self,
        work_item_id: WorkItemId,
        revise: Callable[[WorkItemRecord, datetime], WorkItemRecord],
        *,
        moves_blocker: bool = True,
    ) -> None:
        async def decide() -> Commit | Refusal:
            now = self._clock.now()
            item = await self._open_item(work_item_id)
            if isinstance(item, Refusal):
                return item
            revised = revise(item, now)
            waits = await self._store.reads.wake.item_waits(item.id)
            return revision_commit(
                self._commit_id(),
                revised,
                waits,
                agent=await self._store.reads.agents.agent(item.agent_id),
                reminder_id=self._reminder_id(revised) if moves_blocker else None,
                moves_blocker=moves_blocker,
                now=now,
            )

        await commit_decided(self._store, decide)

    def _reminder_id(self, item: WorkItemRecord) -> WaitId | None:
        return WaitId(self._ids.fresh(IdPrefix.WAIT)) if needs_reminder(item) else None

    async def _open_item(self, work_item_id: WorkItemId) -> WorkItemRecord | Refusal:
        parse_record_id(work_item_id, what="work item id")
        return open_item(await self._store.reads.work.work_item(work_item_id), work_item_id)

    def _commit_id(self) -> str:
        return f"control:{self._ids.fresh(IdPrefix.REQUEST)}"
