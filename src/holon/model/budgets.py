"""Budgets and rate limits: how much agents may use, and how much they used.

Owns:  budgets, usage steps and the hold of a used-up budget; the members of the union `Change`
       (model/commits) and the events that slow an agent down, pause its turns or resume them.
Rule 1: a budget without a number has no bound; a budget without any number holds no agent.
Rule 2: turns count over an hour, tokens and cost over a day. Both windows slide with time.
Rule 3: cost is in millionths of a US dollar, and only of models whose price is known.
"""

from enum import StrEnum

from holon.model.agents import TurnRateState
from holon.model.record import Record
from holon.model.values import AgentId, Instant, MessageId


class BudgetScope(StrEnum):
    """Whose usage a budget bounds."""

    AGENT = "agent"
    RUNTIME = "runtime"


class BudgetMeasure(StrEnum):
    """What is bounded."""

    TURNS_PER_HOUR = "turns_per_hour"
    TOKENS_PER_DAY = "tokens_per_day"
    COST_PER_DAY = "cost_micros_per_day"


class Budget(Record, frozen=True, kw_only=True):
    """What one scope may use."""

    turns_per_hour: int | None = None
    tokens_per_day: int | None = None
    cost_micros_per_day: int | None = None


class BudgetPolicy(Record, frozen=True, kw_only=True):
    """What each agent may use, and what all of them may use together."""

    agent: Budget = Budget()
    runtime: Budget = Budget()

    @property
    def is_off(self) -> bool:
        """Whether nothing is bounded."""
        return self == BudgetPolicy()


class UsageStep(Record, frozen=True, kw_only=True):
    """What turns that ended within one step used."""

    began_at: Instant
    turn_count: int = 0
    tokens: int = 0
    cost_micros: int = 0


class BudgetHold(Record, frozen=True, kw_only=True):
    """A budget that is used up, and when it has room again."""

    scope: BudgetScope
    measure: BudgetMeasure
    used: int
    allowed: int
    until: Instant


class ModelPrice(Record, frozen=True, kw_only=True):
    """US dollars per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class UpdateTurnRate(Record, tag=True, frozen=True, kw_only=True):
    """Count a turn the runtime started by itself, or begin to count anew. Budgets stay."""

    agent_id: AgentId
    pace: TurnRateState


class HoldMessage(Record, tag=True, frozen=True, kw_only=True):
    """Let a queued message wait for a moment before it may be claimed."""

    agent_id: AgentId
    message_id: MessageId
    until: Instant


class PauseTurns(Record, tag=True, frozen=True, kw_only=True):
    """Begin no turn of the agent until its budget has room again."""

    agent_id: AgentId
    hold: BudgetHold


class UnpauseTurns(Record, tag=True, frozen=True, kw_only=True):
    """The budget has room again."""

    agent_id: AgentId


class ReviewHolds(Record, tag=True, frozen=True, kw_only=True):
    """Have every hold checked again now, since the budgets may have changed."""


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
    """The budget has room again."""
