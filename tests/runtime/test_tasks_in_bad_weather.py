"""Many commands, stops and crashes at arbitrary moments; what must hold afterwards holds."""

from collections import Counter
from random import Random

import pytest

from holon.decide.tasks.commands import is_terminal
from holon.model.errors import RefusedError
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, run_house
from tests.runtime.records import kept_calls
from tests.runtime.shellwork import receipts, shell_setup, task_results, tasks
from tests.support.builders import MAIN

pytestmark = pytest.mark.long

BATCH = [{"cmd": "quick"}, {"cmd": "make", "yield_time_ms": 5_000}, {"cmd": "quick"}]
SCRIPT = [
    rule(": ended", says("noted")),
    rule(": stopped", says("noted")),
    rule("interrupted", says("noted")),
    rule("build", calls("ExecCommand", cmd="make", yield_time_ms=2_000), says("it runs")),
    rule("fail", calls("ExecCommand", cmd="fail", yield_time_ms=0), says("it runs")),
    rule("look", calls("ExecCommandBatch", items=BATCH), says("seen")),
    rule("halt", calls("TaskList"), calls("TaskStop", task_id="task_1"), says("stopped")),
    rule("wait", calls("TaskOutput", task_id="task_1", block=True), says("waited")),
]
ERRANDS = ["build", "fail", "look", "halt", "wait"]


@pytest.mark.requirement("task-tools:running-command-is-attached-again")
@pytest.mark.requirement("task-tools:sibling-results-are-all-delivered")
@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_every_call_has_one_result_and_every_process_an_owner(seed: int) -> None:
    chance = Random(seed)

    async def story(house: House) -> None:
        for _ in range(chance.randint(3, 10)):
            await house.prompt(chance.choice(ERRANDS))
            await house.rest(chance.choice([0, 1, 50, 3_000, 15_000, 70_000]))
            if chance.random() < 0.5:
                await house.restart(down_ms=chance.choice([0, 5_000, 100_000]))
            if chance.random() < 0.2:
                await pause_a_while(house, chance)
        await house.rest(1_800_000)
        assert house.shell.running == []
        assert all(is_terminal(task.status) for task in tasks(house))
        told = Counter(event.task_id for event in await task_results(house))
        assert told == Counter(task.id for task in tasks(house))
        started = Counter(process.run_id for process in house.shell.started)
        assert set(started.values()) <= {1}
        assert all(recorded.receipt is not None for recorded in kept_calls(house))

    house = run_house(story, script=SCRIPT, setup=shell_setup(seed=seed))
    assert receipts(house)


async def pause_a_while(house: House, chance: Random) -> None:
    """Stop or pause the agent and let it go on later."""
    try:
        await chance.choice([house.host.control.stop, house.host.control.pause])(MAIN)
        await house.rest(chance.choice([0, 10_000]))
        await house.host.control.resume(MAIN)
    except RefusedError:
        return
