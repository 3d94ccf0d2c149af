"""How an agent's work has gone, as averages over all of it."""

import pytest

from holon.model.agents import AgentTotals
from holon.model.turns.tools import ToolLatency
from holon.projections.agents.summary import ExecutionHistory, execution_history


def a_latency(name: str, *, calls: int, total_ms: int) -> ToolLatency:
    return ToolLatency(tool_name=name, call_count=calls, total_ms=total_ms, max_ms=1, last_ms=1)


@pytest.mark.requirement("console:execution-profile-is-shown")
def test_averages_are_taken_over_turns_rounds_and_calls() -> None:
    totals = AgentTotals(turn_index=4, model_round_count=10, input_tokens=905, output_tokens=25)
    latencies = [
        a_latency("ExecCommand", calls=2, total_ms=900),
        a_latency("Sleep", calls=1, total_ms=1),
    ]
    assert execution_history(totals, latencies) == ExecutionHistory(
        turn_count=4,
        tool_call_count=3,
        rounds_per_turn=2.5,
        input_tokens_per_round=90.5,
        output_tokens_per_round=2.5,
        ms_per_tool_call=300.33,
    )


def test_without_any_work_there_is_nothing_to_average() -> None:
    none = execution_history(AgentTotals(), ())
    assert none == ExecutionHistory(turn_count=0, tool_call_count=0)
