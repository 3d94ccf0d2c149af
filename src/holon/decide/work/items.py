"""Work item revisions, with everything that changes along with them.

Owns:  blocking, unblocking, rechecking, editing and completing an item, and the form of an
       objective; which waits end, which reminder is opened and what is expected when an item is
       revised; access to an item; releasing the focus.
Rule 1: every change is a new revision; nothing is edited in place. A revision equal to the last is
        no change.
Rule 2: a recheck reminds; it never unblocks. Clearing the blocker clears the reminder with it.
Rule 3: an edit touches what it names and nothing else; a todo list is replaced as a whole.
Rule 4: a blocked item always has a reminder; the wait that carries it begins and ends with the
        blocker. A revision that leaves the blocker alone leaves its reminder alone.
Rule 5: a completed item has no waits, and no agent focuses on it.
Rule 6: operator requests and the agent's tools make these changes the same way.
Rule 7: an operator's change to an item answers the questions asked about it. An agent's change
        answers nothing.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from holon.model.commits import (
    Change,
    Expect,
    FocusWorkItem,
    MoveWait,
    OpenWait,
    PutWorkItem,
    WaitInState,
    WorkItemAtRevision,
    WorkItemWaitsForOnly,
)
from holon.model.errors import Refusal, RefusalCode
from holon.model.limits import OBJECTIVE_CHARS_MAX
from holon.model.record import Record
from holon.model.values import WaitId, WorkItemId
from holon.model.wake import WaitKind, WaitRecord, WaitState
from holon.model.work import PlanArtifact, PlanStatus, TodoItem, WorkItemRecord, WorkItemState


class WorkItemEdit(Record, frozen=True, kw_only=True):
    """The changes of an edit; what it leaves out stays."""

    objective: str | None = None
    plan_status: PlanStatus | None = None
    todo_list: tuple[TodoItem, ...] | None = None
    plan_artifact: PlanArtifact | None = None


def objective_refusal(objective: str) -> Refusal | None:
    """Return why a text is no objective, or None when it is one."""
    if objective.strip() and len(objective) <= OBJECTIVE_CHARS_MAX:
        return None
    return Refusal(
        code=RefusalCode.BAD_OBJECTIVE,
        message=f"an objective is 1 to {OBJECTIVE_CHARS_MAX} characters and not blank",
        hint="say in a sentence or two what shall be true when it is done",
        field="objective",
    )


def edit(item: WorkItemRecord, changed: WorkItemEdit, *, now: datetime) -> WorkItemRecord:
    """Return the edited item."""
    named = msgspec.structs.asdict(changed).items()
    return _revised(item, now=now, **{name: part for name, part in named if part is not None})


def has_same_content(item: WorkItemRecord, revised: WorkItemRecord) -> bool:
    """Whether a revision differs from the item in nothing but its number and its moment."""
    return item == msgspec.structs.replace(
        revised, revision=item.revision, updated_at=item.updated_at
    )


def consume_recheck(item: WorkItemRecord, *, now: datetime) -> WorkItemRecord:
    """The reminder was delivered; the blocker stands."""
    return _revised(item, now=now, recheck_consumed_at=now)


def block(
    item: WorkItemRecord, *, blocked_by: str, recheck_at: datetime, now: datetime
) -> WorkItemRecord:
    """The item waits for something; look again at `recheck_at`."""
    return _revised(
        item, now=now, blocked_by=blocked_by, recheck_at=recheck_at, recheck_consumed_at=None
    )


def unblock(item: WorkItemRecord, *, now: datetime) -> WorkItemRecord:
    """Nothing stands in the way any more."""
    return _revised(item, now=now, blocked_by=None, recheck_at=None, recheck_consumed_at=None)


def complete(item: WorkItemRecord, *, now: datetime) -> WorkItemRecord:
    """The objective is met."""
    return _revised(
        item,
        now=now,
        state=WorkItemState.COMPLETED,
        blocked_by=None,
        recheck_at=None,
        recheck_consumed_at=None,
    )


def _revised(item: WorkItemRecord, *, now: datetime, **changed: object) -> WorkItemRecord:
    return msgspec.structs.replace(item, revision=item.revision + 1, updated_at=now, **changed)


class ChangePlan(Record, frozen=True, kw_only=True):
    """What becomes true together, and what must still hold then."""

    changes: tuple[Change, ...]
    expects: tuple[Expect, ...] = ()


def open_item(item: WorkItemRecord | None, work_item_id: WorkItemId) -> WorkItemRecord | Refusal:
    """Return the item when it can still be worked on."""
    if item is None:
        return unknown_item(work_item_id)
    if item.state is WorkItemState.COMPLETED:
        return Refusal(
            code=RefusalCode.WORK_ITEM_COMPLETED,
            message=f"work item {work_item_id} is completed",
            hint="open a new item for further work",
            field="work_item_id",
        )
    return item


def unknown_item(work_item_id: WorkItemId) -> Refusal:
    """Refuse an item that does not exist for this caller."""
    return Refusal(
        code=RefusalCode.WORK_ITEM_NOT_FOUND,
        message=f"there is no work item {work_item_id}",
        hint="list the agent's work items to find its id",
        field="work_item_id",
    )


def needs_reminder(item: WorkItemRecord) -> bool:
    """Whether the item stands blocked until a moment to look again."""
    return item.blocked_by is not None and item.recheck_at is not None


def put_revision(revised: WorkItemRecord) -> ChangePlan:
    """Write a revision that moves neither the blocker nor the item's end."""
    return ChangePlan(changes=(PutWorkItem(item=revised),), expects=(_unmoved(revised),))


def put_blocker(
    revised: WorkItemRecord,
    waits: Sequence[WaitRecord],
    *,
    now: datetime,
    wait_id: WaitId | None,
) -> ChangePlan:
    """Write a revision that moves the blocker or ends the item; `waits` are its open ones.

    `wait_id` names the new reminder; it is required when one is to be opened.
    """
    done = revised.state is WorkItemState.COMPLETED
    ended = tuple(
        MoveWait(
            agent_id=wait.agent_id,
            wait_id=wait.id,
            state=WaitState.CANCELLED if wait.state is WaitState.ACTIVE else WaitState.RESOLVED,
            by=revised.id,
        )
        for wait in waits
        if done or wait.kind is WaitKind.RECHECK
    )
    return ChangePlan(
        changes=(*ended, PutWorkItem(item=revised), *_reminder(revised, wait_id, now=now)),
        expects=(
            _unmoved(revised),
            WorkItemWaitsForOnly(work_item_id=revised.id, wait_count=len(waits)),
            *(WaitInState(wait_id=wait.id, state=wait.state) for wait in waits),
        ),
    )


def answer_questions(item: WorkItemRecord, waits: Sequence[WaitRecord]) -> ChangePlan:
    """End the item's waits for the operator, who has acted on it; `waits` are its open ones.

    The count of waits is expected too, so that a question asked meanwhile is not overlooked.
    A completed item has nothing left to ask; its waits end with it.
    """
    if item.state is WorkItemState.COMPLETED:
        return ChangePlan(changes=())
    operator_waits = tuple(
        wait for wait in waits if wait.kind is WaitKind.OPERATOR and wait.state is WaitState.ACTIVE
    )
    return ChangePlan(
        changes=tuple(
            MoveWait(agent_id=wait.agent_id, wait_id=wait.id, state=WaitState.RESOLVED, by=item.id)
            for wait in operator_waits
        ),
        expects=(
            WorkItemWaitsForOnly(work_item_id=item.id, wait_count=len(waits)),
            *(WaitInState(wait_id=wait.id, state=wait.state) for wait in operator_waits),
        ),
    )


def released_focus(item: WorkItemRecord, *, focus: WorkItemId | None) -> tuple[FocusWorkItem, ...]:
    """Release the focus on an item that is over."""
    if focus != item.id:
        return ()
    return (FocusWorkItem(agent_id=item.agent_id, work_item_id=None),)


def _unmoved(revised: WorkItemRecord) -> WorkItemAtRevision:
    return WorkItemAtRevision(work_item_id=revised.id, revision=revised.revision - 1)


def _reminder(
    item: WorkItemRecord, wait_id: WaitId | None, *, now: datetime
) -> tuple[OpenWait, ...]:
    if wait_id is None or item.blocked_by is None or item.recheck_at is None:
        return ()
    wait = WaitRecord(
        id=wait_id,
        agent_id=item.agent_id,
        kind=WaitKind.RECHECK,
        waiting_for=item.blocked_by,
        created_at=now,
        deadline_at=item.recheck_at,
        work_item_id=item.id,
    )
    return (OpenWait(wait=wait),)


def waits_after(waits: Sequence[WaitRecord], changes: Sequence[Change]) -> tuple[WaitRecord, ...]:
    """The item's open waits as these changes leave them."""
    ended = {change.wait_id for change in changes if isinstance(change, MoveWait)}
    opened = (change.wait for change in changes if isinstance(change, OpenWait))
    return (*(wait for wait in waits if wait.id not in ended), *opened)
