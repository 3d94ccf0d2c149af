"""What the audit log says about an agent's pace.

Owns:  the events of agents that are slowed down, or held by a used-up budget.
"""

from holon.model.budget import BudgetMeasure, BudgetScope
from holon.model.ids import MessageId
from holon.model.instant import Instant
from holon.model.record import Record


class MessageHeld(Record, tag_field="kind", tag="message_held", frozen=True, kw_only=True):
    """The agent's turns have moved nothing of late: this message waits before it starts one."""

    message_id: MessageId
    until: Instant


class SelfStartsEnded(Record, tag_field="kind", tag="self_starts_ended", frozen=True, kw_only=True):
    """The runtime starts no more turns by itself until something comes from outside."""

    turn_count: int


class BudgetUsedUp(Record, tag_field="kind", tag="budget_used_up", frozen=True, kw_only=True):
    """The agent begins no turn until then."""

    scope: BudgetScope
    measure: BudgetMeasure
    used: int
    allowed: int
    until: Instant


class BudgetFreed(Record, tag_field="kind", tag="budget_freed", frozen=True, kw_only=True):
    """There is room in the budget again."""
