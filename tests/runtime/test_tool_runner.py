"""Around a tool: its changes and its result are one commit, and it runs once if it must."""

import pytest

from holon.decide.work.items import WorkItemEdit
from holon.model.commits import RecordEvent, WorkItemAtRevision
from holon.model.events.event import ControlApplied, ToolExecuted
from holon.model.turns.tools import ToolOk, ToolSpec
from holon.model.values import JsonValue
from holon.runtime.commits import DECISIONS_COUNT_MAX
from holon.tools.registry import ToolRegistry
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.records import call_states, kept_items
from tests.support.builders import MAIN


class Watcher:
    """A tool that plans against a work item which moves while it plans."""

    spec = ToolSpec(name="Watch", description="watch", input_schema={"type": "object"})
    house: House

    def __init__(self, *, only_plans: bool, moves: int) -> None:
        self.only_plans = only_plans
        self.moves = moves
        self.run_count = 0

    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        self.run_count += 1
        [item] = kept_items(self.house)
        if self.run_count <= self.moves:
            await self.house.host.work.edit(item.id, WorkItemEdit(), blocked_by=None)
        return ToolExecution(
            outcome=ToolOk(result={"seen": item.revision}),
            changes=(
                RecordEvent(
                    agent_id=scene.agent_id,
                    event=ControlApplied(action="watched", request_id=scene.effect_id),
                ),
            ),
            expects=(WorkItemAtRevision(work_item_id=item.id, revision=item.revision),),
        )


def _watch(tool: Watcher, expected: int) -> None:
    async def story(house: House) -> None:
        tool.house = house
        item = await house.host.work.create(MAIN, objective="moving")
        await house.host.work.edit(item.id, WorkItemEdit(), blocked_by="nobody")
        await house.prompt("look")
        await house.rest(1_000)
        watched = [
            e
            for e in await house.events()
            if isinstance(e, ControlApplied)
            if e.action == "watched"
        ]
        executed = [e for e in await house.events() if isinstance(e, ToolExecuted)]
        assert len(watched) == len(executed) == expected
        await house.host.work.complete(item.id)

    script = [rule("look", calls("Watch"), says("seen"))]
    run_house(story, script=script, setup=Setup(tools=ToolRegistry((tool,))))


@pytest.mark.parametrize("moves", [0, 1, DECISIONS_COUNT_MAX - 1])
def test_a_tool_that_only_plans_is_planned_again_when_its_rows_moved(moves: int) -> None:
    tool = Watcher(only_plans=True, moves=moves)
    _watch(tool, 1)
    assert tool.run_count == moves + 1


def test_a_tool_with_an_outside_effect_is_run_once_whatever_its_rows_do() -> None:
    tool = Watcher(only_plans=False, moves=1)

    async def story(house: House) -> None:
        tool.house = house
        item = await house.host.work.create(MAIN, objective="moving")
        await house.host.work.edit(item.id, WorkItemEdit(), blocked_by="nobody")
        await house.prompt("look")
        await house.rest(1_000)
        assert tool.run_count == 1
        assert call_states(house) == ["interrupted"]
        assert house.model.heard("whether it took effect is unknown")
        await house.host.work.complete(item.id)

    script = [rule("look", calls("Watch"), says("seen"))]
    run_house(story, script=script, setup=Setup(tools=ToolRegistry((tool,))))
