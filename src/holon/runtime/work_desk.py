"""Work items as an operator handles them: enqueue, focus, edit, complete.

Owns:  work items as control-plane mutations; no message is made, the scheduler sees the rows.
Rule 1: enqueueing an item never replaces what the agent is working on.
Rule 2: what an operator changes is input from outside: an agent at rest may be started again.
        It answers what was asked about the item, which is then offered again if it can run.
Rule 3: what moves along with an item is decided in decide/work_item_commits, for agents too.
"""

from collections.abc import Callable
from datetime import datetime

import msgspec
from msgspec import UNSET, UnsetType

from holon.decide import work_item_changes
from holon.decide.agent_refusals import refuse_addressee, refuse_unknown
from holon.decide.keyed_record import key_conflict, keyed_id
from holon.decide.no_progress import count_anew
from holon.decide.quotas import work_item_quota
from holon.decide.work_item_changes import Edit
from holon.decide.work_item_commits import (
    answer_questions,
    needs_reminder,
    open_item,
    put_blocker,
    put_revision,
    released_focus,
)
from holon.model.commit import Change, Commit, FocusWorkItem, PutWorkItem
from holon.model.expectation import AgentAdmits, Expect, WorkItemAtRevision
from holon.model.ids import AgentId, IdPrefix, WaitId, WorkItemId, parse_agent_id, parse_record_id
from holon.model.instant import later
from holon.model.limits import RECHECK_DEFAULT_MS
from holon.model.refusal import Refusal, RefusedError
from holon.model.work_item import WorkItemRecord, WorkItemState
from holon.ports.clock import Clock
from holon.ports.id_source import IdSource
from holon.ports.store import Store
from holon.runtime.decided_commit import commit_decided
from holon.runtime.execution_place import AgentPlaces


class WorkDesk:
    """Work items of one host."""

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
        if (refusal := work_item_changes.objective_refusal(objective)) is not None:
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
        return item if key is None else await self._kept(item)

    async def _creation(self, item: WorkItemRecord) -> Commit | Refusal | None:
        reads, agent_id = self._store.reads, item.agent_id
        if await reads.work_item(item.id) is not None:
            return None  # made by an earlier request with the same key
        agent = await reads.agent(agent_id)
        if agent is None:
            return refuse_unknown(agent_id)
        if (refusal := refuse_addressee(agent)) is not None:
            return refusal
        counts = await reads.work_item_counts(agent_id)
        if (full := work_item_quota(counts.open_count)) is not None:
            return full
        return Commit(
            commit_id=f"work:{item.id}:created",
            at=item.created_at,
            changes=(PutWorkItem(item=item), count_anew(agent_id)),
            expects=(AgentAdmits(agent_id=agent_id),),
        )

    async def _kept(self, asked: WorkItemRecord) -> WorkItemRecord:
        """The item that is kept under a key, whichever request made it."""
        kept = await self._store.reads.work_item(asked.id) or asked
        if kept.revision == 1 and kept.objective != asked.objective:
            raise RefusedError(key_conflict(asked.id))
        return kept

    async def focus(self, work_item_id: WorkItemId) -> None:
        """Make an open item the agent's focus; whatever was asked about it is answered by that."""

        async def decide() -> Commit | Refusal:
            item = await self._open_item(work_item_id)
            if isinstance(item, Refusal):
                return item
            focused = FocusWorkItem(agent_id=item.agent_id, work_item_id=item.id)
            unmoved = WorkItemAtRevision(work_item_id=item.id, revision=item.revision)
            answered = answer_questions(item, await self._store.reads.item_waits(item.id))
            return self._commit(
                (*answered.changes, focused, count_anew(item.agent_id)),
                (unmoved, *answered.expects),
                now=self._clock.now(),
            )

        await commit_decided(self._store, decide)

    async def edit(
        self,
        work_item_id: WorkItemId,
        changed: Edit,
        *,
        blocked_by: str | UnsetType | None = UNSET,
        recheck_after_ms: int | None = None,
    ) -> None:
        """Say something else about an item, and what stands in its way if that has changed.

        An item that waits is looked at again; without a moment for that, one is chosen. Whatever
        was asked about the item is answered, also by a blocker: the item then waits for that.
        """
        if changed.objective is not None:
            refusal = work_item_changes.objective_refusal(changed.objective)
            if refusal is not None:
                raise RefusedError(refusal)

        def revised(item: WorkItemRecord, now: datetime) -> WorkItemRecord:
            edited = work_item_changes.edit(item, changed, now=now)
            if isinstance(blocked_by, str):
                recheck_at = later(now, by_ms=recheck_after_ms or RECHECK_DEFAULT_MS)
                edited = work_item_changes.block(
                    edited, blocked_by=blocked_by, recheck_at=recheck_at, now=now
                )
            elif blocked_by is None:
                edited = work_item_changes.unblock(edited, now=now)
            return msgspec.structs.replace(edited, revision=item.revision + 1)

        await self._revise(work_item_id, revised, moves_blocker=blocked_by is not UNSET)

    async def complete(self, work_item_id: WorkItemId) -> None:
        """Mark an item completed; what it waited for no longer matters, and nobody stays at it."""
        await self._revise(
            work_item_id, lambda item, now: work_item_changes.complete(item, now=now)
        )

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
            waits = await self._store.reads.item_waits(item.id)
            answered = answer_questions(revised, waits)
            planned = put_revision(revised)
            if moves_blocker:
                planned = put_blocker(revised, waits, now=now, wait_id=self._wait_id(revised))
            also = (*await self._released(revised), count_anew(item.agent_id))
            return self._commit(
                (*answered.changes, *planned.changes, *also),
                (*planned.expects, *answered.expects),
                now=now,
            )

        await commit_decided(self._store, decide)

    async def _released(self, item: WorkItemRecord) -> tuple[Change, ...]:
        if item.state is not WorkItemState.COMPLETED:
            return ()
        agent = await self._store.reads.agent(item.agent_id)
        focus = None if agent is None else agent.focus.current_work_item_id
        return released_focus(item, focus=focus)

    def _wait_id(self, item: WorkItemRecord) -> WaitId | None:
        return WaitId(self._ids.fresh(IdPrefix.WAIT)) if needs_reminder(item) else None

    async def _open_item(self, work_item_id: WorkItemId) -> WorkItemRecord | Refusal:
        parse_record_id(work_item_id, what="work item id")
        return open_item(await self._store.reads.work_item(work_item_id), work_item_id)

    def _commit(
        self, changes: tuple[Change, ...], expects: tuple[Expect, ...], *, now: datetime
    ) -> Commit:
        request_id = self._ids.fresh(IdPrefix.REQUEST)
        return Commit(commit_id=f"control:{request_id}", at=now, changes=changes, expects=expects)
