"""How long an agent's calls took is kept, per tool, and shown to it."""

import pytest

from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, run_house
from tests.runtime.records import kept_calls
from tests.runtime.shellwork import shell_setup
from tests.support.builders import MAIN, an_identity
from tests.tools.work_item_stage import perform, result_of


async def latencies(house: House, agent: str = MAIN) -> dict[str, tuple[int, int, int, int]]:
    """Count, total, longest and last, by tool."""
    seen = result_of(await perform(house, "AgentGet", {}, agent=agent))
    keys = ("call_count", "total_ms", "max_ms", "last_ms")
    rows = seen["agent"].get("tool_latency", [])
    found = {each["tool_name"]: [each[key] for key in keys] for each in rows}
    return {name: (count, total, most, last) for name, (count, total, most, last) in found.items()}


@pytest.mark.requirement("turn-complete:tool-latency-is-kept")
def test_calls_are_timed_and_summed_by_tool_for_each_agent_alone() -> None:
    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity("other"))
        await house.prompt("begin")
        await house.rest(60_000)
        await house.restart()
        await house.prompt("again")
        await house.rest(60_000)
        found = await latencies(house)
        assert found["ExecCommand"] == (3, 2_100, 2_000, 50)
        assert found["TaskList"] == (1, 0, 0, 0)
        assert await latencies(house, "other") == {}

    quick = calls("ExecCommand", cmd="quick")
    slow = calls("ExecCommand", cmd="server", yield_time_ms=2_000)
    script = [
        rule("again", quick, says("ok")),
        rule("begin", quick, slow, calls("TaskList"), says("ok")),
    ]
    run_house(story, script=script, setup=shell_setup())


def test_a_call_that_never_ran_is_not_timed() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(1_000)
        assert set(await latencies(house)) == {"Sleep"}
        assert [recorded.call.name for recorded in kept_calls(house)] == ["Nonsense", "Sleep"]

    run_house(story, script=[rule("begin", calls("Nonsense"), calls("Sleep", reason="enough"))])
