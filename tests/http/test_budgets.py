"""Budgets and what was used of them, as statuses over a real server show them."""

from pathlib import Path

import pytest

from holon.adapters.system.clock import SystemClock
from holon.model.budgets import Budget, BudgetPolicy
from holon.projections.agents.state import AgentStateSnapshot
from holon.projections.agents.summary import AgentSummary
from holon.projections.budgets import MeasureView
from holon.projections.runtime_status import RuntimeStatus
from holon.serve.compose import HostOptions
from holon.wire.codec import decode
from tests.http.serving import make_agent, settled
from tests.support.control_server import MAIN, ControlServer, ServerOptions, control_server
from tests.support.scripted_provider import ScriptedProvider, read_script
from tests.support.single_model import SingleModel

SCRIPT = b'{"rules": [{"rounds": [{"text": "Hello yourself."}]}]}'
POLICY = BudgetPolicy(agent=Budget(turns_per_hour=1), runtime=Budget(turns_per_hour=50))


def options(policy: BudgetPolicy) -> ServerOptions:
    models = SingleModel(ScriptedProvider(read_script(SCRIPT), SystemClock()))
    return ServerOptions(models=models, host=HostOptions(budgets=policy))


def turns(measures: tuple[MeasureView, ...]) -> dict[str, tuple[int, int | None]]:
    """What is shown of turns, by scope."""
    return {
        each.scope: (each.used, each.allowed)
        for each in measures
        if each.measure == "turns_per_hour"
    }


async def summary_of(server: ControlServer, agent_id: str = MAIN) -> AgentSummary:
    return decode((await server.operator.get(f"/agents/{agent_id}/status")).body, AgentSummary)


@pytest.mark.requirement("scheduling-large:budgets-are-shown")
async def test_an_agents_status_shows_what_it_used_and_what_holds_it(tmp_path: Path) -> None:
    async with control_server(tmp_path / "home", options(POLICY)) as server:
        await make_agent(server, "other")
        before = (await summary_of(server)).pace
        assert before is not None
        assert turns(before.measures) == {"agent": (0, 1), "runtime": (0, 50)}
        assert (before.used_up, before.held_until) == (None, None)
        await settled(server)
        after = (await summary_of(server)).pace
        assert after is not None
        assert turns(after.measures) == {"agent": (1, 1), "runtime": (1, 50)}
        assert after.used_up is not None
        assert after.used_up.scope == "agent"
        other = (await summary_of(server, "other")).pace
        assert other is not None
        assert turns(other.measures) == {"agent": (0, 1), "runtime": (1, 50)}
        state = (await server.operator.get(f"/agents/{MAIN}/state")).body
        assert decode(state, AgentStateSnapshot).agent.pace == after


@pytest.mark.requirement("scheduling-large:budgets-are-shown")
async def test_the_runtimes_status_shows_what_all_agents_used_together(tmp_path: Path) -> None:
    async with control_server(tmp_path / "home", options(BudgetPolicy())) as server:
        await make_agent(server, "other")
        await settled(server)
        await settled(server, agent_id=await make_agent(server, "third"))
        answer = await server.local.get("/control/runtime/status")
        told = decode(answer.body, RuntimeStatus).budgets
        assert turns(told) == {"runtime": (2, None)}
        assert {each.measure for each in told} == {
            "turns_per_hour",
            "tokens_per_day",
            "cost_micros_per_day",
        }
