"""How an agent's work has gone so far, in figures.

Owns:  the execution profile that status surfaces show: averages over an agent's whole life.
Rule 1: it describes and steers nothing: no rule reads it.
Rule 2: it is derived from the kept totals, so it outlives what retention deletes.
"""

from collections.abc import Sequence

from holon.model.agent import AgentTotals
from holon.model.record import Record
from holon.model.tool import ToolLatency


class ExecutionHistory(Record, frozen=True, kw_only=True):
    """Averages; each is absent while there is nothing to take it over."""

    turn_count: int
    tool_call_count: int
    rounds_per_turn: float | None = None
    input_tokens_per_round: float | None = None
    output_tokens_per_round: float | None = None
    ms_per_tool_call: float | None = None


def execution_history(totals: AgentTotals, latencies: Sequence[ToolLatency]) -> ExecutionHistory:
    """Return the figures of an agent."""
    turns, rounds = totals.turn_index, totals.model_round_count
    calls = sum(each.call_count for each in latencies)
    return ExecutionHistory(
        turn_count=turns,
        tool_call_count=calls,
        rounds_per_turn=_mean(rounds, turns),
        input_tokens_per_round=_mean(totals.input_tokens, rounds),
        output_tokens_per_round=_mean(totals.output_tokens, rounds),
        ms_per_tool_call=_mean(sum(each.total_ms for each in latencies), calls),
    )


def _mean(total: int, count: int) -> float | None:
    return round(total / count, 2) if count else None
