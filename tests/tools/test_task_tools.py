"""TaskList, TaskStatus, TaskOutput, TaskInput and TaskStop, through the calls a model makes."""

from collections.abc import Sequence
from typing import Any

import pytest

from holon.decide.events.audit import audited
from holon.model.agents import AgentIdentity
from holon.model.commits import AdvanceTask, CreateTask
from holon.model.limits import (
    COMMAND_INPUT_BYTES_MAX,
    COMMAND_STOP_GRACE_MS,
    TASKS_ENDED_LISTED_COUNT_MAX,
)
from holon.model.tasks import TaskKind, TaskRecord, TaskStatus
from holon.model.values import TaskId
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, run_house
from tests.runtime.records import kept_waits
from tests.runtime.shellwork import receipts, results, shell_setup, task_results, tasks
from tests.support.builders import MAIN, START, a_commit, an_identity
from tests.support.scripted_provider import ScriptedRound

TASK = "task_1"


def after_start(cmd: str, *then: ScriptedRound, rest_ms: int = 600_000, **arguments: Any) -> House:
    """Start a command that becomes a task, then make these calls in the same turn."""

    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(rest_ms)

    start = calls("ExecCommand", cmd=cmd, yield_time_ms=1_000, **arguments)
    script = [rule("begin", start, *then, says("done"))]
    return run_house(story, script=script, setup=shell_setup())


def later_results(house: House) -> Sequence[dict[str, Any]]:
    """What the calls after the first one returned."""
    return results(house)[1:]


@pytest.mark.requirement("task-tools:status-is-lifecycle-without-output")
def test_status_tells_of_the_command_and_where_its_output_is_but_none_of_it() -> None:
    house = after_start("server", calls("TaskStatus", task_id=TASK), workdir=".", login=True)
    [told] = later_results(house)
    task = told["task"]
    assert (task["task_id"], task["kind"], task["status"]) == (TASK, "command_task", "running")
    command = task["command"]
    assert (command["cmd"], command["login"], command["tty"]) == ("server", True, False)
    assert command["workdir"] == "/home/agents/main"
    assert len(command["cmd_digest"]) == 64
    assert command["output_path"].endswith("/stdout")
    assert command["terminal_reentry"] is True
    assert command["promoted_from_exec_command"] is True
    assert (command["accepts_input"], "input_target" in command) == (False, False)
    assert "listening" not in str(told)


@pytest.mark.requirement("task-tools:list-shows-what-runs")
def test_the_list_shows_the_agents_own_tasks_that_have_not_ended() -> None:
    async def story(house: House) -> None:
        other: AgentIdentity = an_identity("other")
        await house.host.control.create_agent(other)
        await house.prompt("begin")
        await house.prompt("begin", agent="other")
        await house.rest(90_000)
        await house.prompt("list")
        await house.rest(1_000)

    script = [
        rule("make: ended", says("built")),
        rule("list", calls("TaskList"), says("I see")),
        rule(
            "begin",
            calls("ExecCommand", cmd="make", yield_time_ms=0),
            calls("ExecCommand", cmd="server", yield_time_ms=0),
            says("both run"),
        ),
    ]
    house = run_house(story, script=script, setup=shell_setup())
    told = results(house)[-1]
    assert told["task_count"] == 1
    assert [task["command"]["cmd"] for task in told["tasks"]] == ["server"]
    [ended] = told["recently_ended"]
    assert (ended["command"]["cmd"], ended["status"]) == ("make", "completed")


@pytest.mark.requirement("task-tools:list-shows-what-ended")
def test_the_list_shows_a_few_tasks_that_ended_of_late_newest_first() -> None:
    async def story(house: House) -> None:
        for number in range(TASKS_ENDED_LISTED_COUNT_MAX + 2):
            task = TaskRecord(
                id=TaskId(f"task_x{number}"),
                agent_id=MAIN,
                kind=TaskKind.COMMAND_TASK,
                status=TaskStatus.QUEUED,
                created_at=house.clock.now(),
                updated_at=house.clock.now(),
            )
            await house.store.apply(
                audited(a_commit(f"c:{number}", CreateTask(task=task), at=START))
            )
            ended = AdvanceTask(agent_id=MAIN, task_id=task.id, status=TaskStatus.CANCELLED)
            await house.store.apply(audited(a_commit(f"e:{number}", ended, at=house.clock.now())))
            await house.rest(10)
        await house.prompt("list")
        await house.rest(1_000)

    script = [rule("list", calls("TaskList"), says("I see"))]
    told = results(run_house(story, script=script, setup=shell_setup()))[-1]
    last = TASKS_ENDED_LISTED_COUNT_MAX + 1
    shown = [task["task_id"] for task in told["recently_ended"]]
    assert shown == [f"task_x{number}" for number in range(last, 1, -1)]
    assert told["tasks"] == []


@pytest.mark.parametrize("tool", ["TaskStatus", "TaskOutput", "TaskStop", "TaskInput"])
@pytest.mark.parametrize("task_id", ["task_9", "../../etc/passwd", "x" * 10_000])
def test_a_task_that_does_not_exist_is_named(tool: str, task_id: str) -> None:
    more: dict[str, Any] = {"input": "x"} if tool == "TaskInput" else {}
    house = after_start("quick", calls(tool, task_id=task_id, **more))
    told = receipts(house)[-1]
    assert (told["ok"], told["kind"], told["field"]) == (False, "task_not_found", "task_id")


def test_another_agents_task_does_not_exist() -> None:
    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity("other"))
        await house.prompt("begin")
        await house.rest(20_000)
        await house.prompt("meddle", agent="other")
        await house.rest(1_000)
        assert tasks(house)[0].status is TaskStatus.RUNNING

    script = [
        rule("meddle", calls("TaskStop", task_id=TASK), says("hm")),
        rule("begin", calls("ExecCommand", cmd="server"), says("it serves")),
    ]
    house = run_house(story, script=script, setup=shell_setup())
    assert receipts(house)[-1]["kind"] == "task_not_found"


@pytest.mark.requirement("task-tools:output-readiness-follows-the-record")
@pytest.mark.parametrize(
    ("cmd", "arguments", "status"),
    [
        ("server", {}, "not_ready"),
        ("server", {"block": True, "timeout_ms": 5_000}, "timeout"),
        ("make", {"block": True, "timeout_ms": 5_000}, "timeout"),
        ("make", {"block": True, "timeout_ms": 500_000}, "success"),
        ("fail", {"block": True, "timeout_ms": 500_000}, "success"),
    ],
    ids=str,
)
def test_output_is_ready_once_the_end_is_on_record(
    cmd: str, arguments: dict[str, Any], status: str
) -> None:
    house = after_start(cmd, calls("TaskOutput", task_id=TASK, **arguments))
    [told] = later_results(house)
    assert told["retrieval_status"] == status
    task = told["task"]
    assert task["output_preview"]
    assert task["output_truncated"] is False
    assert task["artifacts"][0]["path"].endswith("/stdout")
    whole = task["artifacts"][task["output_artifact"]]["path"]
    assert whole.rpartition("/")[2] == ("combined" if cmd == "make" else "stdout")
    if cmd == "fail":
        assert (task["status"], task["exit_status"]) == ("failed", 2)
        assert task["failure_artifact"]["kind"] == "command_failed"
    elif status == "success":
        assert (task["status"], task["exit_status"]) == ("completed", 0)
        assert "failure_artifact" not in task


def test_output_of_two_streams_names_them() -> None:
    house = after_start("make", calls("TaskOutput", task_id=TASK))
    [told] = later_results(house)
    preview = told["task"]["output_preview"]
    assert preview == "[stdout]\ncompiling\n\n[stderr]\na warning\n"


@pytest.mark.requirement("task-tools:output-falls-back-to-the-result")
def test_when_the_files_are_gone_the_recorded_result_is_shown() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(120_000)
        await house.shell.forget(house.shell.started[0].run_id)
        await house.prompt("look")
        await house.rest(1_000)

    script = [
        rule("make: ended", says("built")),
        rule("look", calls("TaskOutput", task_id=TASK), says("I see")),
        rule("begin", calls("ExecCommand", cmd="make"), says("it runs")),
    ]
    house = run_house(story, script=script, setup=shell_setup())
    told = results(house)[-1]
    assert told["retrieval_status"] == "success"
    assert "ended with exit status 0" in told["task"]["output_preview"]
    assert "compiling" in told["task"]["output_preview"]


@pytest.mark.requirement("task-tools:input-is-receipted")
@pytest.mark.parametrize(
    ("start", "accepted", "target"),
    [
        ({"accepts_input": True}, True, "stdin"),
        ({"tty": True}, True, "tty"),
        ({"tty": True, "accepts_input": False}, False, None),
        ({}, False, None),
    ],
    ids=str,
)
def test_input_reaches_a_task_that_takes_it(
    start: dict[str, Any], target: str | None, *, accepted: bool
) -> None:
    house = after_start(
        "ask",
        calls("TaskInput", task_id=TASK, input="ada\n"),
        calls("TaskOutput", task_id=TASK),
        **start,
    )
    fed, seen = later_results(house)
    assert (fed["accepted_input"], fed["input_target"]) == (accepted, target)
    assert fed["bytes_written"] == (4 if accepted else 0)
    assert fed["task"]["task_id"] == TASK
    assert ("ada" in seen["task"]["output_preview"]) is accepted


def test_input_to_a_task_that_has_ended_is_not_accepted() -> None:
    house = after_start(
        "ask",
        calls("TaskStop", task_id=TASK),
        calls("TaskOutput", task_id=TASK, block=True),
        calls("TaskInput", task_id=TASK, input="too late"),
        accepts_input=True,
    )
    fed = later_results(house)[-1]
    assert (fed["accepted_input"], fed["summary_text"]) == (False, "the task has ended")


def test_too_much_input_at_once_is_refused() -> None:
    text = "x" * (COMMAND_INPUT_BYTES_MAX + 1)
    house = after_start("ask", calls("TaskInput", task_id=TASK, input=text), accepts_input=True)
    told = receipts(house)[-1]
    assert (told["ok"], told["field"]) == (False, "input")
    assert house.shell.started[0].fed == b""


@pytest.mark.requirement("task-tools:stop-terminates-then-forces")
def test_a_stop_cancels_the_task_and_its_end_comes_back_once() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(60_000)
        assert tasks(house)[0].status is TaskStatus.CANCELLED
        assert len(await task_results(house)) == 1
        assert house.shell.running == []

    script = [
        rule("stopped on request", says("good")),
        rule(
            "begin",
            calls("ExecCommand", cmd="server"),
            calls("TaskStop", task_id=TASK),
            says("stopped"),
        ),
    ]
    house = run_house(story, script=script, setup=shell_setup())
    [told] = later_results(house)
    assert (told["stop_requested"], told["force_stop_requested"]) == (True, False)
    assert told["task"]["status"] == "cancelling"
    assert house.shell.started[0].exit is not None
    assert house.shell.started[0].exit.signal == 15


@pytest.mark.requirement("task-tools:stop-terminates-then-forces")
def test_a_second_stop_does_not_wait_for_the_grace() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(10_000 + COMMAND_STOP_GRACE_MS // 2)
        assert tasks(house)[0].status is TaskStatus.CANCELLED

    script = [
        rule("stopped on request", says("good")),
        rule(
            "begin",
            calls("ExecCommand", cmd="stubborn"),
            calls("TaskStop", task_id=TASK),
            calls("TaskStop", task_id=TASK),
            says("stopped"),
        ),
    ]
    house = run_house(story, script=script, setup=shell_setup())
    first, second = later_results(house)
    assert (first["force_stop_requested"], second["force_stop_requested"]) == (False, True)


@pytest.mark.requirement("task-tools:stop-terminates-then-forces")
def test_one_stop_is_enough_for_a_command_that_will_not_listen() -> None:
    house = after_start("stubborn", calls("TaskStop", task_id=TASK))
    assert house.shell.running == []
    assert tasks(house)[0].status is TaskStatus.CANCELLED


def test_stopping_what_has_ended_asks_for_nothing() -> None:
    house = after_start(
        "make",
        calls("TaskOutput", task_id=TASK, block=True, timeout_ms=500_000),
        calls("TaskStop", task_id=TASK),
    )
    told = later_results(house)[-1]
    assert (told["stop_requested"], told["task"]["status"]) == (False, "completed")


@pytest.mark.requirement("turn-complete:waiting-for-output-is-turn-local")
def test_waiting_for_output_leaves_nothing_that_waits_behind() -> None:
    look = calls("TaskOutput", task_id=TASK, block=True, timeout_ms=2_000)
    waited, plain = after_start("server", look), after_start("server")
    assert later_results(waited)[0]["retrieval_status"] == "timeout"
    left, usual = (
        [(wait.kind, wait.state, wait.source_id, wait.work_item_id) for wait in kept_waits(house)]
        for house in (waited, plain)
    )
    assert left == usual
