"""A crash between answering a call and ending its command leaves no command that nobody knows."""

import contextlib
from functools import partial

import pytest

from holon.model.commits import AuditedCommit
from holon.ports.store import Ticket
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, run_house
from tests.runtime.shellwork import receipts, shell_setup, tasks
from tests.runtime.telling import LifeLostError
from tests.support.builders import MAIN
from tests.support.crash_store import CrashPlan, CrashStore, Side

FOREGROUND = [
    rule("build", calls("ExecCommand", cmd="server", yield_time_ms=60_000), says("it is built")),
    rule("batch", calls("ExecCommandBatch", items=[{"cmd": "make"}]), says("it is built")),
]


@pytest.mark.requirement("command-tools:cut-off-command-is-ended")
@pytest.mark.parametrize("asked", ["build", "batch"])
@pytest.mark.parametrize("act", ["stop", "pause", "abort_run"])
@pytest.mark.parametrize("side", list(Side))
def test_a_crash_just_after_an_operator_cut_a_call_off_leaves_no_command(
    act: str, asked: str, side: Side
) -> None:
    plan = CrashPlan("control:req_2", side)  # the first one made the agent

    async def story(house: House) -> None:
        await house.prompt(asked)
        await house.rest(5_000)
        assert len(house.shell.running) == 1
        with contextlib.suppress(LifeLostError):
            await getattr(house.host.control, act)(MAIN)
        await house.rest(1_000)
        assert house.shell.running == []
        [told] = receipts(house)[:1]
        assert (told["ok"], told["kind"]) == (False, "interrupted")
        assert tasks(house) == []

    wrap = partial(CrashStore, plan=plan)
    run_house(story, script=FOREGROUND, setup=shell_setup(wrap=wrap))
    assert plan.has_struck


def test_a_task_that_runs_is_no_stray() -> None:
    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(20_000)
        await house.restart()
        assert [task.status.value for task in tasks(house)] == ["running"]
        assert len(house.shell.running) == 1

    script = [rule("build", calls("ExecCommand", cmd="server", yield_time_ms=5), says("it runs"))]
    run_house(story, script=script, setup=shell_setup())


@pytest.mark.requirement("command-tools:cut-off-command-is-ended")
@pytest.mark.parametrize("asked", ["build", "batch"])
def test_a_call_is_not_answered_as_cut_off_while_its_command_runs(asked: str) -> None:
    running_when_told: list[int] = []

    class Watching(CrashStore):
        """Counts the commands that run when a recovery answers for them."""

        house: House

        def submit(self, commit: AuditedCommit) -> Ticket:
            if commit.commit_id.startswith("resume:"):
                running_when_told.append(len(self.house.shell.running))
            return super().submit(commit)

    async def story(house: House) -> None:
        Watching.house = house
        await house.prompt(asked)
        await house.rest(5_000)
        assert len(house.shell.running) == 1
        await house.restart()
        await house.rest(1_000)
        assert running_when_told == [0]

    wrap = partial(Watching, plan=CrashPlan(at=0, side=Side.BEFORE))  # which never strikes
    run_house(story, script=FOREGROUND, setup=shell_setup(wrap=wrap))
