"""Where an agent's tools run, as it is told."""

from typing import Any

import pytest

from holon.model.workspaces import GuaranteeLevel
from holon.ports.unavailable import NoShell
from holon.runtime.workspaces.place import profile_of
from holon.tools.registry import local_registry
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.shellwork import results

HOME = "/home/agents/main"


def told(**setup: Any) -> dict[str, Any]:
    """What an agent reads about its execution, with a directory to work in where one is named."""

    async def story(house: House) -> None:
        house.places.directories.add("/project")
        await house.prompt("who am I")
        await house.rest(1_000)

    script = [rule("who am I", calls("AgentGet"), says("I see"))]
    [result] = results(run_house(story, script=script, setup=Setup(**setup)))
    found: dict[str, Any] = result["execution"]
    return found


@pytest.mark.requirement("execution:home-is-the-first-workspace")
def test_before_a_project_is_given_the_agents_home_is_its_workspace() -> None:
    execution = told(tools=local_registry())
    assert execution["workspace_id"] == "agent_home"
    assert {execution[field] for field in ("workspace_anchor", "execution_root", "cwd")} == {HOME}


@pytest.mark.requirement("execution:snapshot-is-exposed")
def test_a_given_workspace_is_the_root_of_file_and_shell_tools() -> None:
    execution = told(tools=local_registry(), workspace_root="/project")
    assert execution["workspace_id"] == "workspace_root"
    assert execution["execution_root"] == execution["workspace_anchor"] == "/project"
    assert execution["cwd"].startswith(execution["execution_root"])
    assert execution["projection_kind"] == "canonical_root"
    assert execution["profile"]["backend"] == "host_local"


@pytest.mark.requirement("execution:no-sandbox-is-implied")
def test_what_the_host_does_not_confine_is_said_not_to_be_enforced() -> None:
    policy = told(tools=local_registry())["policy"]
    assert set(policy.values()) <= {level.value for level in GuaranteeLevel}
    for boundary in (
        "path_confinement",
        "write_confinement",
        "network_confinement",
        "secret_isolation",
        "child_process_containment",
    ):
        assert policy[boundary] == "not_enforced"
    assert policy["process_execution"] == "runtime_shaped"


@pytest.mark.requirement("execution:snapshot-is-exposed")
def test_a_host_without_a_shell_says_that_it_runs_no_commands() -> None:
    profile = profile_of(NoShell())
    assert (profile.process_execution_exposed, profile.allow_background_tasks) == (False, False)
