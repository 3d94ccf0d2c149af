"""What happens to a work item, as new revisions of its record.

Owns:  creating, blocking, unblocking, rechecking and completing an item.
Rule 1: every change is a new revision; nothing is edited in place.
Rule 2: a recheck reminds; it never unblocks. Clearing the blocker clears the reminder with it.
"""

from datetime import datetime

import msgspec

from holon.model.work_item import WorkItemRecord, WorkItemState


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
