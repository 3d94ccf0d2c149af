"""What an agent has cost so far.

Owns:  the token summary that status surfaces show.
Rule 1: it is read from persisted totals, never summed up from a window of the transcript.
"""

from holon.model.agent import AgentTotals
from holon.model.provider_attempt import TokenUsage
from holon.model.record import Record


class AgentTokenUsageSummary(Record, frozen=True, kw_only=True):
    """Everything an agent used, and what its newest turn with token data did."""

    total: TokenUsage
    total_model_rounds: int
    last_turn: TokenUsage | None = None


def token_summary(totals: AgentTotals, last_reported: TokenUsage | None) -> AgentTokenUsageSummary:
    """Return the summary of an agent."""
    return AgentTokenUsageSummary(
        total=TokenUsage(input_tokens=totals.input_tokens, output_tokens=totals.output_tokens),
        total_model_rounds=totals.model_round_count,
        last_turn=last_reported,
    )
