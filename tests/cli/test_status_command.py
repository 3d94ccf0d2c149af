"""What `holon status` says of budgets, moments and guidance."""

from pathlib import Path

import pytest

from holon.cli.agents.status import summary_lines
from tests.cli.operator_desk import open_desk

AGENT = {"id": "main"}


def budget_lines(pace: object) -> list[str]:
    """The lines about an agent's pace, with single blanks."""
    lines = summary_lines({"agent": AGENT, "pace": pace})
    found = [" ".join(line.split()) for line in lines]
    return [line for line in found if line.startswith(("budget", "held"))]


@pytest.mark.requirement("scheduling-large:budgets-are-shown")
def test_each_budget_with_a_bound_has_a_line_and_so_has_what_holds_the_agent() -> None:
    measures = [
        {"scope": "agent", "measure": "turns_per_hour", "used": 3, "allowed": 5},
        {"scope": "agent", "measure": "tokens_per_day", "used": 70},
        {"scope": "runtime", "measure": "tokens_per_day", "used": 70, "allowed": 900},
        {"scope": "runtime", "measure": "cost_micros_per_day", "used": 15, "allowed": 2_500_000},
    ]
    pace = {"measures": measures, "held_until": "2026-01-02T03:04:05.678Z"}
    assert budget_lines(pace) == [
        "budget 3 of 5 turns in an hour (this agent's)",
        "budget 70 of 900 tokens in a day (the runtime's)",
        "budget $0.00 of $2.50 in a day (the runtime's)",
        "held until 2026-01-02 03:04:05 UTC (a budget is exhausted)",
    ]


def test_an_agent_that_leads_itself_nowhere_says_what_it_waits_for() -> None:
    (line,) = budget_lines({"measures": [], "rests_until_outside_input": True})
    assert line.startswith("held until new external input")


@pytest.mark.parametrize("pace", [None, {}, {"measures": [{"used": 1}]}])
def test_nothing_bounded_says_nothing(pace: object) -> None:
    assert budget_lines(pace) == []


def test_what_a_nearby_version_counts_is_shown_as_it_comes() -> None:
    odd = [{"scope": "house", "measure": "dreams", "used": 1, "allowed": 2}]
    assert budget_lines({"measures": odd}) == ["budget 1 of 2 dreams"]
    odd = [{"measure": "cost_micros_per_day", "used": "few", "allowed": 1_000_000}]
    assert budget_lines({"measures": odd}) == ["budget few of $1.00 in a day"]


def test_one_screen_has_one_form_for_moments_and_counts_one_as_one() -> None:
    summary = {
        "agent": {"id": "main", "sleeping_until": "2026-01-02T03:04:05.678Z"},
        "scheduling_posture": {"posture": "idle", "reason": "resting until 2026-01-02T03:04:05Z"},
        "counts": {"events": 1, "work_items": 1, "briefs": 2},
    }
    shown = "\n".join(summary_lines(summary))
    assert shown.count("2026-01-02 03:04:05 UTC") == 2
    assert "T03:04" not in shown
    assert "1 event, 1 work item, 2 briefs" in shown


def test_guidance_that_is_not_used_has_a_line() -> None:
    problem = "/home/agents/main/AGENTS.md is not used: it is a directory"
    shown = summary_lines({"agent": AGENT, "agents_md_problems": [problem]})
    assert f"problem  {problem}" in shown


@pytest.mark.requirement("budgets-inside-turns:unknown-price-is-said")
def test_a_cost_budget_that_cannot_see_a_model_has_a_line() -> None:
    lines = summary_lines({"agent": AGENT, "pace": {"unpriced_models": ["openai/gpt-none"]}})
    [line] = [line for line in lines if line.startswith("problem")]
    assert "does not count openai/gpt-none: the price is not known" in line


@pytest.mark.requirement("own-commands:told-plainly")
def test_what_commands_may_do_without_a_sandbox_has_a_line() -> None:
    policy = {
        "path_confinement": "not_enforced",
        "write_confinement": "not_enforced",
        "network_confinement": "not_enforced",
    }
    profile = {"process_execution_exposed": True}
    execution = {"profile": profile, "policy": policy}
    (line,) = (each for each in summary_lines({"execution": execution}) if "sandbox" in each)
    assert "they may read, change, reach what the user of the service may" in line
    held = {"profile": profile, "policy": dict.fromkeys(policy, "hard_enforced")}
    assert not any("sandbox" in each for each in summary_lines({"execution": held}))


@pytest.mark.requirement("own-commands:told-plainly")
async def test_the_status_of_an_agent_with_commands_says_that_nothing_confines_them(
    tmp_path: Path,
) -> None:
    async with open_desk(tmp_path / "home") as desk:
        told = await desk.said("status")
    assert "no sandbox: they may read, change, reach what the user of the service may" in told
