"""Commands in the background: recorded before they are tasks, ended once, and found again."""

from typing import Any

import msgspec
import pytest

from holon.model.limits import COMMAND_STOP_GRACE_MS
from holon.model.tasks import TaskStatus
from holon.model.values import TaskId
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, run_house
from tests.runtime.shellwork import receipts, results, shell_setup, task_results, tasks
from tests.support.builders import MAIN
from tests.support.crash_store import CrashPlan, CrashStore, Side
from tests.support.fault_store import DiskFault
from tests.support.scripted_shell import CommandScript

BUILD = [
    rule("make: ended", says("built")),
    rule("build", calls("ExecCommand", cmd="make"), says("it runs on")),
]


async def a_minute(house: House) -> None:
    """Long enough for everything that ends by itself."""
    await house.rest(120_000)


@pytest.mark.requirement("command-tools:the-same-process-is-promoted")
def test_a_command_that_outlasts_its_yield_goes_on_as_a_task_and_its_result_comes_once() -> None:
    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(20_000)
        [running] = tasks(house)
        assert running.status is TaskStatus.RUNNING
        assert [process.run_id for process in house.shell.running] == [running.detail["run_id"]]
        await a_minute(house)
        [ended] = tasks(house)
        assert (ended.status, ended.exit_status) == (TaskStatus.COMPLETED, 0)
        assert len(await task_results(house)) == 1
        assert house.model.heard("ended with exit status 0")
        assert house.model.heard("compiling")
        assert len(house.shell.started) == 1

    house = run_house(story, script=BUILD, setup=shell_setup())
    [promoted] = results(house)
    assert promoted["disposition"] == "promoted_to_task"
    assert promoted["task_handle"]["task_id"] == tasks(house)[0].id
    assert "compiling" in promoted["initial_output_preview"]
    assert "exit_status" not in promoted


@pytest.mark.requirement("task-tools:failure-carries-an-artifact")
def test_a_command_that_fails_in_the_background_says_how() -> None:
    async def story(house: House) -> None:
        await house.prompt("try")
        await a_minute(house)
        [ended] = tasks(house)
        assert (ended.status, ended.exit_status) == (TaskStatus.FAILED, 2)
        assert ended.failure is not None
        assert (ended.failure.kind, ended.failure.exit_status) == ("command_failed", 2)

    script = [rule("try", calls("ExecCommand", cmd="fail"), says("ok"))]
    run_house(story, script=script, setup=shell_setup())


@pytest.mark.requirement("task-tools:running-command-is-attached-again")
@pytest.mark.parametrize("down_ms", [0, 10_000])
def test_a_task_that_still_runs_after_a_restart_goes_on_and_delivers(down_ms: int) -> None:
    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(20_000)
        await house.restart(down_ms=down_ms)
        [task] = tasks(house)
        assert task.status is TaskStatus.RUNNING
        await a_minute(house)
        assert tasks(house)[0].status is TaskStatus.COMPLETED
        assert len(await task_results(house)) == 1
        assert len(house.shell.started) == 1
        assert house.model.heard("compiling")

    run_house(story, script=BUILD, setup=shell_setup())


@pytest.mark.requirement("task-tools:end-during-downtime-is-reported")
def test_a_task_that_ended_while_the_runtime_was_down_is_reported_before_it_is_ready() -> None:
    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(20_000)
        await house.restart(down_ms=3_600_000)
        assert tasks(house)[0].status is TaskStatus.COMPLETED
        await a_minute(house)
        assert len(await task_results(house)) == 1
        assert house.model.heard("ended with exit status 0")

    run_house(story, script=BUILD, setup=shell_setup())


@pytest.mark.requirement("recovery:lost-task-says-why")
def test_a_task_nobody_can_find_any_more_is_interrupted_and_says_why() -> None:
    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(20_000)
        house.shell.lose(house.shell.started[0].run_id)
        await house.restart()
        [task] = tasks(house)
        assert task.status is TaskStatus.INTERRUPTED
        assert task.failure is not None
        await a_minute(house)
        assert len(await task_results(house)) == 1

    run_house(story, script=BUILD, setup=shell_setup())


@pytest.mark.requirement("task-tools:running-command-is-attached-again")
@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("commit", ["round:", "tool:", "task:"])
def test_a_crash_at_any_commit_of_the_way_leaves_one_task_or_none_and_no_stray_process(
    commit: str, side: Side
) -> None:
    """Before the task is on record its call is interrupted and its process ended."""
    plan = CrashPlan(commit, side)

    async def story(house: House) -> None:
        await house.prompt("build")
        await a_minute(house)
        await a_minute(house)
        owned = {task.detail["run_id"] for task in tasks(house)}
        assert {process.run_id for process in house.shell.running} <= owned
        assert all(task.status is TaskStatus.COMPLETED for task in tasks(house))
        assert len(await task_results(house)) == len(tasks(house))
        effects = [process.run_id for process in house.shell.started]
        assert len(effects) == len(set(effects))

    house = run_house(
        story, script=BUILD, setup=shell_setup(wrap=lambda store: CrashStore(store, plan))
    )
    assert plan.has_struck
    assert len(receipts(house)) >= 1


@pytest.mark.requirement("command-tools:cut-off-command-is-ended")
def test_a_foreground_command_cut_off_by_a_crash_is_interrupted_and_its_process_ended() -> None:
    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(5_000)
        assert len(house.shell.running) == 1
        await house.restart()
        assert house.shell.running == []
        assert house.shell.kept == []
        await a_minute(house)
        [told] = receipts(house)
        assert (told["ok"], told["kind"]) == (False, "interrupted")
        assert tasks(house) == []

    run_house(story, script=BUILD, setup=shell_setup())


def test_an_item_of_a_batch_cut_off_by_a_crash_is_ended_too() -> None:
    async def story(house: House) -> None:
        await house.prompt("look")
        await house.rest(5_000)
        assert [process.spec.cmd for process in house.shell.running] == ["make"]
        await house.restart()
        assert house.shell.running == []

    items = [{"cmd": "true"}, {"cmd": "make"}]
    script = [rule("look", calls("ExecCommandBatch", items=items), says("ok"))]
    run_house(story, script=script, setup=shell_setup())


@pytest.mark.requirement("command-tools:cut-off-command-is-ended")
@pytest.mark.parametrize("act", ["stop", "pause", "abort_run"])
def test_an_operator_who_ends_the_turn_ends_its_foreground_command(act: str) -> None:
    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(5_000)
        await getattr(house.host.control, act)(MAIN)
        await house.rest(1_000)
        assert house.shell.running == []
        assert house.shell.kept == []
        assert tasks(house) == []

    run_house(story, script=BUILD, setup=shell_setup())


@pytest.mark.requirement("task-tools:agent-stop-interrupts-tasks")
def test_stopping_an_agent_interrupts_its_tasks() -> None:
    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(20_000)
        await house.host.control.stop(MAIN)
        await house.rest(1_000)
        [task] = tasks(house)
        assert task.status is TaskStatus.INTERRUPTED
        assert task.failure is not None
        assert task.failure.kind == "task_interrupted_on_agent_stop"
        assert house.shell.running == []
        await house.host.control.resume(MAIN)
        await a_minute(house)
        assert house.model.heard("its agent was stopped")

    run_house(story, script=BUILD, setup=shell_setup())


@pytest.mark.requirement("task-tools:agent-stop-interrupts-tasks")
def test_a_stop_that_a_crash_cut_short_is_carried_out_by_the_next_life() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(20_000)
        await house.host.control.stop(MAIN)
        await house.restart()
        await house.rest(2 * COMMAND_STOP_GRACE_MS)
        assert tasks(house)[0].status is TaskStatus.INTERRUPTED
        assert house.shell.running == []

    script = [rule("begin", calls("ExecCommand", cmd="stubborn"), says("ok"))]
    run_house(story, script=script, setup=shell_setup())


@pytest.mark.parametrize("act", ["pause", "abort_run"])
def test_pausing_an_agent_or_ending_its_turn_leaves_its_tasks_alone(act: str) -> None:
    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(20_000)
        await house.prompt("slow")
        await house.rest(1_000)
        await getattr(house.host.control, act)(MAIN)
        await house.rest(1_000)
        assert tasks(house)[0].status is TaskStatus.RUNNING
        assert len(house.shell.running) == 1

    script = [*BUILD, rule("slow", says("done", after_ms=60_000))]
    run_house(story, script=script, setup=shell_setup())


@pytest.mark.requirement("task-tools:stop-terminates-then-forces")
@pytest.mark.parametrize("side", list(Side))
def test_a_stop_asked_for_before_a_crash_is_carried_out_after_it(side: Side) -> None:
    plan = CrashPlan("task:task_1:cancelling", side)

    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(20_000)
        await house.prompt("enough")
        await a_minute(house)
        if tasks(house)[0].status is TaskStatus.RUNNING:  # the request itself was lost
            await house.prompt("enough")
            await a_minute(house)
        assert tasks(house)[0].status is TaskStatus.CANCELLED
        assert house.shell.running == []
        assert len(await task_results(house)) == 1

    script = [
        rule("enough", calls("TaskStop", task_id="task_1"), says("stopping")),
        rule("begin", calls("ExecCommand", cmd="server"), says("it serves")),
    ]
    house = run_house(
        story, script=script, setup=shell_setup(wrap=lambda store: CrashStore(store, plan))
    )
    assert plan.has_struck
    assert tasks(house)[0].id == "task_1"


def test_a_row_nobody_runs_anything_for_is_cancelled_on_the_spot() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(20_000)
        [task] = tasks(house)
        orphan = msgspec.structs.replace(task, id=TaskId("task_9"), detail=None)
        await house.host.tasks.open(orphan)
        await house.prompt("enough")
        await house.rest(10_000)
        assert tasks(house)[1].status is TaskStatus.CANCELLED
        assert tasks(house)[0].status is TaskStatus.RUNNING

    script = [
        rule("enough", calls("TaskStop", task_id="task_9"), says("stopping")),
        rule("begin", calls("ExecCommand", cmd="server"), says("it serves")),
    ]
    run_house(story, script=script, setup=shell_setup())


@pytest.mark.requirement("task-tools:sibling-results-are-all-delivered")
def test_tasks_that_end_at_the_same_moment_each_deliver_their_result() -> None:
    async def story(house: House) -> None:
        await house.prompt("build")
        await a_minute(house)
        await a_minute(house)
        assert [task.status for task in tasks(house)] == [TaskStatus.COMPLETED] * 3
        told = [event.task_id for event in await task_results(house)]
        assert sorted(map(str, told)) == sorted(task.id for task in tasks(house))

    again: dict[str, Any] = {"cmd": "make", "duplicate_policy": "start_new", "yield_time_ms": 0}
    script = [
        rule("make: ended", says("built")),
        rule("build", *(calls("ExecCommand", **again) for _ in range(3)), says("three run")),
    ]
    run_house(story, script=script, setup=shell_setup())


@pytest.mark.requirement("command-tools:nothing-nameless-runs-on")
@pytest.mark.parametrize("is_restarted", [False, True])
def test_what_a_task_leaves_running_ends_with_it_and_the_model_is_told(is_restarted: bool) -> None:
    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(20_000)
        if is_restarted:
            await house.restart(down_ms=120_000)  # it ends while nobody looks
        await a_minute(house)
        [process] = house.shell.started
        assert process.exit is not None
        assert not process.left_running
        assert house.model.heard("compiling")
        assert house.model.heard("left running in the background was ended with it")

    make = CommandScript(after_ms=60_000, stdout=b"compiling\n", leaves_running=True)
    run_house(story, script=BUILD, setup=shell_setup(commands={"make": make}))


def test_the_disk_being_full_when_a_task_ends_only_delays_its_result() -> None:
    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(20_000)
        house.disk.fault = DiskFault.FULL
        await a_minute(house)
        assert tasks(house)[0].status is TaskStatus.RUNNING
        house.disk.fault = DiskFault.NONE
        await a_minute(house)
        assert tasks(house)[0].status is TaskStatus.COMPLETED
        assert len(await task_results(house)) == 1

    run_house(story, script=BUILD, setup=shell_setup())


@pytest.mark.requirement("command-tools:task-is-recorded-with-the-result")
def test_a_command_whose_promotion_never_became_durable_is_ended() -> None:
    """The result waits for a full disk when the operator ends the turn: there is no task."""

    async def story(house: House) -> None:
        house.disk.only = "tool:"
        house.disk.fault = DiskFault.FULL
        await house.prompt("begin")
        await house.rest(20_000)
        assert len(house.shell.running) == 1
        await house.host.control.abort_run(MAIN)
        await house.rest(1_000)
        assert house.shell.running == []
        assert house.shell.kept == []
        assert tasks(house) == []

    script = [rule("begin", calls("ExecCommand", cmd="server"), says("it serves"))]
    run_house(story, script=script, setup=shell_setup())


@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("number", range(3, 13))
def test_wherever_the_process_dies_no_call_runs_twice_and_no_result_is_lost(
    number: int, side: Side
) -> None:
    plan = CrashPlan(number, side)

    async def story(house: House) -> None:
        await house.prompt("build")
        for _ in range(3):
            await a_minute(house)
        assert house.shell.running == []
        assert all(task.status is TaskStatus.COMPLETED for task in tasks(house))
        assert len(await task_results(house)) == len(tasks(house))
        effects = [process.run_id for process in house.shell.started]
        assert len(effects) == len(set(effects))

    run_house(
        story,
        script=BUILD,
        setup=shell_setup(wrap=lambda store: CrashStore(store, plan), seed=number),
    )
