"""The changes that slow an agent down, or let it go on.

Owns:  those members of the union `Change` (model/commit) that are about an agent's pace.
"""

from holon.model.agent import AgentPace
from holon.model.budget import BudgetHold
from holon.model.ids import AgentId, MessageId
from holon.model.instant import Instant
from holon.model.record import Record


class RememberPace(Record, tag=True, frozen=True, kw_only=True):
    """Count a turn the runtime started by itself, or begin to count anew. Budgets stay."""

    agent_id: AgentId
    pace: AgentPace


class HoldMessage(Record, tag=True, frozen=True, kw_only=True):
    """Let a queued message wait for a moment before it may be claimed."""

    agent_id: AgentId
    message_id: MessageId
    until: Instant


class HoldTurns(Record, tag=True, frozen=True, kw_only=True):
    """Begin no turn of the agent until its budget has room again."""

    agent_id: AgentId
    hold: BudgetHold


class ReleaseTurns(Record, tag=True, frozen=True, kw_only=True):
    """The budget has room again."""

    agent_id: AgentId


class ReviewHolds(Record, tag=True, frozen=True, kw_only=True):
    """Have every hold looked at again now: the budgets may not be what they were."""
