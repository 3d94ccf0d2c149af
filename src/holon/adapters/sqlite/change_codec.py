"""From records to what is stored.

Owns:  JSON text for records, and the columns that are derived from a record's content.
Rule 1: a stored record is encoded once. What moves about it later is a column; nothing stored is
        read, changed and encoded again.
"""

from datetime import datetime
from typing import Final

import msgspec

from holon.model.instant import to_micros
from holon.model.provenance import (
    CallbackOrigin,
    ChannelOrigin,
    OperatorOrigin,
    Origin,
    SystemOrigin,
    TaskOrigin,
    TimerOrigin,
    WebhookOrigin,
)
from holon.model.work_item import PlanStatus, WorkItemRecord, WorkItemState

_ENCODER: Final = msgspec.json.Encoder()
_ORIGIN_KINDS: Final[dict[type, str]] = {
    OperatorOrigin: "operator",
    ChannelOrigin: "channel",
    WebhookOrigin: "webhook",
    CallbackOrigin: "callback",
    TimerOrigin: "timer",
    SystemOrigin: "system",
    TaskOrigin: "task",
}


def encode(value: object) -> str:
    """Return a record, or a JSON value, as JSON text."""
    return _ENCODER.encode(value).decode()


def micros_or_none(moment: datetime | None) -> int | None:
    """Return a moment as stored, or nothing."""
    return None if moment is None else to_micros(moment)


def origin_kind(origin: Origin) -> str:
    """Return the tag of an origin."""
    return _ORIGIN_KINDS[type(origin)]


def can_run(item: WorkItemRecord) -> bool:
    """Whether the record alone does not keep the item from running; waits may still."""
    return (
        item.state is WorkItemState.OPEN
        and not item.blocked_by
        and item.plan_status is not PlanStatus.NEEDS_INPUT
    )


def recheck_due_at(item: WorkItemRecord) -> datetime | None:
    """Return when a blocked item's reminder comes, unless that reminder was used up."""
    if item.state is not WorkItemState.OPEN or not item.blocked_by or item.recheck_at is None:
        return None
    used_up = item.recheck_consumed_at is not None and item.recheck_consumed_at >= item.recheck_at
    return None if used_up else item.recheck_at
