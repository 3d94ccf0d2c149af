"""What happens to a work item, as new revisions of its record.

Owns:  blocking, unblocking, rechecking, editing and completing an item, and what an objective is.
Rule 1: every change is a new revision; nothing is edited in place. What says the same as before is
        no change.
Rule 2: a recheck reminds; it never unblocks. Clearing the blocker clears the reminder with it.
Rule 3: an edit touches what it names and nothing else; a todo list is replaced as a whole.
"""

from datetime import datetime

import msgspec

from holon.model.limits import OBJECTIVE_CHARS_MAX
from holon.model.record import Record
from holon.model.refusal import Refusal, RefusalCode
from holon.model.work_item import (
    PlanArtifact,
    PlanStatus,
    TodoItem,
    WorkItemRecord,
    WorkItemState,
)


class Edit(Record, frozen=True, kw_only=True):
    """What an edit changes; what it leaves out stays."""

    objective: str | None = None
    plan_status: PlanStatus | None = None
    todo_list: tuple[TodoItem, ...] | None = None
    plan_artifact: PlanArtifact | None = None


def objective_refusal(objective: str) -> Refusal | None:
    """Say why a text is no objective, or nothing when it is one."""
    if objective.strip() and len(objective) <= OBJECTIVE_CHARS_MAX:
        return None
    return Refusal(
        code=RefusalCode.BAD_OBJECTIVE,
        message=f"an objective is 1 to {OBJECTIVE_CHARS_MAX} characters and not blank",
        hint="say in a sentence or two what shall be true when it is done",
        field="objective",
    )


def edit(item: WorkItemRecord, changed: Edit, *, now: datetime) -> WorkItemRecord:
    """The item says something else than before."""
    named = msgspec.structs.asdict(changed).items()
    return _revised(item, now=now, **{name: part for name, part in named if part is not None})


def says_the_same(item: WorkItemRecord, revised: WorkItemRecord) -> bool:
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
