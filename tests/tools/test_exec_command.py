"""ExecCommand: where it runs, what the model reads, and what is refused."""

from typing import Any

import anyio
import pytest

from holon.model.errors import RefusalCode, RefusedError
from holon.model.limits import COMMAND_TEXT_BYTES_MAX
from holon.model.tasks import TaskQuota, TaskStatus
from holon.runtime.tasks.commands import CommandRequest
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.shellwork import COMMANDS, receipts, results, shell_setup, tasks
from tests.support.builders import MAIN, an_identity
from tests.support.scripted_shell import CommandScript

AGENT_HOME = "/home/agents/main"


def exec_once(setup: Setup | None = None, *, rest_ms: int = 30_000, **arguments: Any) -> House:
    """One call of ExecCommand, with what came of it."""

    async def story(house: House) -> None:
        house.places.directories.add(f"{AGENT_HOME}/src")
        await house.prompt("begin")
        await house.rest(rest_ms)

    script = [rule("begin", calls("ExecCommand", **arguments), says("done"))]
    return run_house(story, script=script, setup=setup or shell_setup())


def refusal(house: House) -> dict[str, Any]:
    """The one refusal the model got; nothing was started."""
    [told] = receipts(house)
    assert told["ok"] is False
    assert house.shell.started == []
    return told


@pytest.mark.requirement("command-tools:completed-envelope")
def test_a_command_that_ends_in_time_is_completed_and_leaves_no_files() -> None:
    house = exec_once(cmd="quick")
    [result] = results(house)
    assert result == {
        "disposition": "completed",
        "exit_status": 0,
        "stdout_preview": "quick as can be\n",
        "stderr_preview": "",
        "truncated": False,
        "artifacts": [],
    }
    assert tasks(house) == []
    assert house.shell.kept == []


def test_an_exit_status_other_than_zero_is_a_result_and_no_error() -> None:
    commands = {"false": CommandScript(exit_status=1, stderr=b"no\n")}
    [told] = receipts(exec_once(shell_setup(commands=commands), cmd="false"))
    assert told["ok"] is True
    assert (told["result"]["exit_status"], told["result"]["stderr_preview"]) == (1, "no\n")


@pytest.mark.requirement("command-tools:output-is-bounded")
def test_long_output_keeps_its_ends_and_its_file() -> None:
    data = b"begin\n" + b"x" * 1_000_000 + b"\nend\n"
    commands = {"chatty": CommandScript(stdout=data, stderr=b"short\n")}
    house = exec_once(shell_setup(commands=commands), cmd="chatty")
    [result] = results(house)
    assert result["truncated"] is True
    assert result["stdout_preview"].startswith("begin\n")
    assert result["stdout_preview"].endswith("\nend\n")
    assert len(result["stdout_preview"]) <= 32_000 + 100
    assert result["stderr_preview"] == "short\n"
    assert result["artifacts"] == [{"path": f"/runs/{house.shell.started[0].run_id}/stdout"}]
    assert (result["stdout_artifact"], "stderr_artifact" in result) == (0, False)
    assert house.shell.kept == [house.shell.started[0].run_id]


@pytest.mark.requirement("command-tools:output-is-bounded")
def test_the_budget_is_capped_however_much_is_asked_for() -> None:
    commands = {"chatty": CommandScript(stdout=b"x" * 1_000_000)}
    house = exec_once(shell_setup(commands=commands), cmd="chatty", max_output_tokens=10_000_000)
    assert 200_000 < len(results(house)[0]["stdout_preview"]) <= 256_000 + 100


@pytest.mark.requirement("command-tools:output-is-bounded")
@pytest.mark.parametrize("after_ms", [0, 3_600_000], ids=["completed", "promoted"])
def test_output_that_json_makes_larger_is_cut_before_its_file_is_dropped(after_ms: int) -> None:
    data = b"begin\n" + b"\0" * 250_000 + b"\nend\n"
    commands = {"zeros": CommandScript(after_ms=after_ms, stdout=data)}
    house = exec_once(shell_setup(commands=commands), cmd="zeros", max_output_tokens=64_000)
    [result] = results(house)
    shown = result["initial_output_preview" if after_ms else "stdout_preview"]
    assert (shown.startswith("begin\n"), shown.endswith("\nend\n")) == (True, True)
    assert result["initial_output_truncated" if after_ms else "truncated"] is True
    assert house.shell.kept == [house.shell.started[0].run_id]


@pytest.mark.requirement("command-tools:nothing-nameless-runs-on")
@pytest.mark.parametrize("size", [10, 1_000_000], ids=["shown-whole", "cut"])
def test_what_a_command_leaves_running_is_ended_politely_and_told(size: int) -> None:
    commands = {"serve &": CommandScript(stdout=b"x" * size, leaves_running=True)}
    house = exec_once(shell_setup(commands=commands), cmd="serve &")
    [told] = receipts(house)
    assert told["result"]["disposition"] == "completed"
    assert [("ended" in note, "yield_time_ms" in note) for note in told["notes"]] == [(True, True)]
    [process] = house.shell.started
    assert not process.left_running


@pytest.mark.requirement("commands:lost-is-said")
def test_a_command_whose_end_nobody_saw_is_not_told_as_if_it_were_done() -> None:
    commands = {"lost": CommandScript(stdout=b"half\n", is_lost=True)}
    [told] = receipts(exec_once(shell_setup(commands=commands), cmd="lost"))
    assert (told["result"]["exit_status"], told["result"]["stdout_preview"]) == (None, "half\n")
    assert ["its end was not seen" in note for note in told["notes"]] == [True]


def test_bytes_that_are_no_text_are_shown_as_replacement_characters() -> None:
    commands = {"binary": CommandScript(stdout=b"\xff\xfe\x00ok\x80")}
    [result] = results(exec_once(shell_setup(commands=commands), cmd="binary"))
    assert result["stdout_preview"] == "��\0ok�"


@pytest.mark.requirement("command-tools:environment-names-the-agent")
def test_a_command_knows_its_agent_and_runs_in_the_agents_home() -> None:
    house = exec_once(cmd="quick")
    [process] = house.shell.started
    assert process.spec.workdir == AGENT_HOME
    assert process.spec.environment["HOLON_AGENT_ID"] == MAIN
    assert process.spec.environment["HOLON_AGENT_HOME"] == AGENT_HOME
    assert process.spec.run_id == process.spec.environment["HOLON_EFFECT_ID"]
    assert process.spec.login is False
    assert AGENT_HOME in house.places.directories


def test_with_a_workspace_commands_run_there() -> None:
    house = exec_once(shell_setup(workspace_root=f"{AGENT_HOME}/src"), cmd="quick")
    [process] = house.shell.started
    assert process.spec.workdir == f"{AGENT_HOME}/src"
    assert process.spec.environment["HOLON_AGENT_HOME"] == AGENT_HOME


@pytest.mark.requirement("command-tools:workdir-stays-inside-the-root")
@pytest.mark.parametrize("workdir", ["src", "./src", f"{AGENT_HOME}/src", "src/../src", "link"])
def test_a_directory_inside_the_root_is_taken_by_its_real_name(workdir: str) -> None:
    async def story(house: House) -> None:
        house.places.directories |= {f"{AGENT_HOME}/src", "/etc"}
        house.places.links[f"{AGENT_HOME}/link"] = f"{AGENT_HOME}/src"
        await house.prompt("begin")
        await house.rest(30_000)

    script = [rule("begin", calls("ExecCommand", cmd="quick", workdir=workdir), says("done"))]
    house = run_house(story, script=script, setup=shell_setup())
    assert [process.spec.workdir for process in house.shell.started] == [f"{AGENT_HOME}/src"]


@pytest.mark.requirement("command-tools:workdir-stays-inside-the-root")
@pytest.mark.parametrize(
    ("workdir", "kind"),
    [
        ("/etc", "execution_root_violation"),
        ("..", "execution_root_violation"),
        ("../bob", "execution_root_violation"),
        ("../../../etc", "execution_root_violation"),
        ("/nowhere", "execution_root_violation"),
        ("/home/agents/main2", "execution_root_violation"),
        ("way-out", "execution_root_violation"),
        ("gone", "command_spawn_failed"),
        ("s\0rc", "invalid_tool_input"),
    ],
)
def test_s65_a_directory_outside_the_root_or_gone_is_refused_and_nothing_starts(
    workdir: str, kind: str
) -> None:
    async def story(house: House) -> None:
        house.places.directories |= {"/etc", "/home/agents", "/home/agents/main2"}
        house.places.links[f"{AGENT_HOME}/way-out"] = "/etc"
        await house.prompt("begin")
        await house.rest(30_000)

    script = [rule("begin", calls("ExecCommand", cmd="quick", workdir=workdir), says("done"))]
    told = refusal(run_house(story, script=script, setup=shell_setup()))
    assert (told["kind"], told["field"]) == (kind, "workdir")


def test_s65_a_root_that_was_deleted_is_refused() -> None:
    told = refusal(exec_once(shell_setup(workspace_root="/gone"), cmd="quick"))
    assert told["kind"] == "command_spawn_failed"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"cmd": ""}, "cmd"),
        ({"cmd": "  \n"}, "cmd"),
        ({"cmd": "a\0b"}, "cmd"),
        ({"cmd": "x" * (COMMAND_TEXT_BYTES_MAX + 1)}, "cmd"),
        ({"cmd": "true", "shell": "/bin/\0sh"}, "shell"),
        ({"cmd": "true", "yield_time_ms": -1}, "yield_time_ms"),
        ({"cmd": "true", "max_output_tokens": 0}, "max_output_tokens"),
        ({"cmd": "true", "duplicate_policy": "never"}, "duplicate_policy"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, Any], field: str) -> None:
    told = refusal(exec_once(**arguments))
    assert (told["kind"], told.get("field")) == ("invalid_tool_input", field)


@pytest.mark.requirement("command-tools:spawn-failure-is-explained")
def test_a_command_that_cannot_be_started_says_why() -> None:
    told = refusal(exec_once(cmd="broken"))
    assert (told["kind"], told["message"]) == ("command_spawn_failed", "no such shell")


def test_a_host_without_a_shell_says_so() -> None:
    told = refusal(exec_once(shell_setup(commands={"x": COMMANDS["broken"]}), cmd="x"))
    assert told["kind"] == "command_spawn_failed"


@pytest.mark.requirement("command-tools:running-duplicates-are-reused")
@pytest.mark.parametrize(
    ("second", "count"),
    [
        ({"cmd": "server"}, 1),
        ({"cmd": "server", "workdir": "."}, 1),
        ({"cmd": "server", "yield_time_ms": 5, "max_output_tokens": 9}, 1),
        ({"cmd": "server", "duplicate_policy": "start_new"}, 2),
        ({"cmd": "server", "tty": True}, 2),
        ({"cmd": "server", "login": True}, 2),
        ({"cmd": "server", "shell": "zsh"}, 2),
        ({"cmd": "server", "workdir": "src"}, 2),
        ({"cmd": "server "}, 2),
    ],
    ids=str,
)
def test_a_command_that_already_runs_is_not_started_again_unless_asked(
    second: dict[str, Any], count: int
) -> None:
    async def story(house: House) -> None:
        house.places.directories.add(f"{AGENT_HOME}/src")
        await house.prompt("begin")
        await house.rest(60_000)

    script = [
        rule(
            "begin",
            calls("ExecCommand", cmd="server"),
            calls("ExecCommand", **second),
            says("done"),
        )
    ]
    commands = {"server": COMMANDS["server"], "server ": COMMANDS["server"]}
    house = run_house(story, script=script, setup=shell_setup(commands=commands))
    assert len(house.shell.started) == count
    first, then = results(house)
    if count == 1:
        assert then["disposition"] == "already_running"
        assert then["task_handle"]["task_id"] == first["task_handle"]["task_id"]
        assert then["command"]["cmd"] == "server"
        assert "exit_status" not in then
    else:
        assert then["disposition"] == "promoted_to_task"


def test_a_command_that_ended_may_be_run_again() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(120_000)
        await house.prompt("begin")
        await house.rest(120_000)
        assert [task.status for task in tasks(house)] == [TaskStatus.COMPLETED] * 2

    script = [
        rule("make: ended", says("built")),
        rule("begin", calls("ExecCommand", cmd="make"), says("it runs")),
    ]
    run_house(story, script=script, setup=shell_setup())


def test_a_command_that_was_stopped_may_be_started_again_at_once() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(60_000)

    script = [
        rule("stopped on request", says("good")),
        rule(
            "begin",
            calls("ExecCommand", cmd="stubborn", yield_time_ms=10),
            calls("TaskStop", task_id="task_1"),
            calls("ExecCommand", cmd="stubborn", yield_time_ms=10),
            says("started anew"),
        ),
    ]
    house = run_house(story, script=script, setup=shell_setup())
    assert results(house)[-1]["disposition"] == "promoted_to_task"
    assert [task.status for task in tasks(house)] == [TaskStatus.CANCELLED, TaskStatus.RUNNING]


def test_a_home_that_cannot_be_made_is_told() -> None:
    async def story(house: House) -> None:
        house.places.refusal = "the disk is full"
        await house.prompt("begin")
        await house.rest(30_000)

    script = [rule("begin", calls("ExecCommand", cmd="quick"), says("done"))]
    told = refusal(run_house(story, script=script, setup=shell_setup()))
    assert (told["kind"], told["message"]) == ("directory_refused", "the disk is full")


@pytest.mark.requirement("command-tools:terminal-is-an-explicit-choice")
@pytest.mark.parametrize(
    ("arguments", "tty", "accepts_input"),
    [
        ({}, False, False),
        ({"tty": True}, True, True),
        ({"tty": True, "accepts_input": False}, True, False),
        ({"accepts_input": True}, False, True),
    ],
    ids=str,
)
def test_a_terminal_and_open_input_are_what_the_model_chose(
    arguments: dict[str, Any], *, tty: bool, accepts_input: bool
) -> None:
    house = exec_once(cmd="quick", **arguments)
    [process] = house.shell.started
    assert (process.spec.tty, process.spec.accepts_input) == (tty, accepts_input)


@pytest.mark.requirement("command-tools:the-same-process-is-promoted")
def test_a_terminal_command_is_promoted_like_any_other() -> None:
    house = exec_once(cmd="server", tty=True, yield_time_ms=100)
    [result] = results(house)
    assert result["disposition"] == "promoted_to_task"
    assert result["initial_output_preview"] == "listening\n"
    [task] = tasks(house)
    assert task.recovery is not None
    assert len(house.shell.started) == 1


def test_waiting_is_bounded_however_long_the_model_would_wait() -> None:
    house = exec_once(cmd="server", yield_time_ms=10**12, rest_ms=700_000)
    assert results(house)[0]["disposition"] == "promoted_to_task"


@pytest.mark.requirement("own-commands:tasks-have-a-quota")
def test_one_command_too_many_is_refused_before_it_starts_and_says_what_to_do() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(60_000)

    again: dict[str, Any] = {
        "cmd": "server",
        "duplicate_policy": "start_new",
        "yield_time_ms": 5,
    }
    rounds = [calls("ExecCommand", **again) for _ in range(3)]
    batch = calls("ExecCommandBatch", items=[{"cmd": "quick"}])
    script = [rule("begin", *rounds, batch, says("done"))]
    setup = shell_setup(task_quota=TaskQuota(per_agent_count_max=2))
    house = run_house(story, script=script, setup=setup)
    *_, told, batched = receipts(house)
    assert told["ok"] is False
    assert told["kind"] == "quota_reached"
    assert "runtime.tasks.per_agent_max is 2" in told["message"]
    assert "TaskStop" in told["hint"]
    assert batched["result"]["completed_count"] == 1, "short commands still run"
    assert len(house.shell.started) == 3
    assert len(tasks(house)) == 2


@pytest.mark.requirement("own-commands:tasks-have-a-quota")
def test_the_quota_of_the_home_counts_the_commands_of_all_agents() -> None:
    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity("other"))
        await house.prompt("begin")
        await house.rest(30_000)
        await house.prompt("begin", agent="other")
        await house.rest(30_000)
        with pytest.raises(RefusedError) as caught:
            await house.host.commands.start(MAIN, CommandRequest(cmd="quick"))
        assert caught.value.refusal.code is RefusalCode.QUOTA_REACHED
        assert "runtime.tasks.max is 1" in caught.value.refusal.message

    script = [rule("begin", calls("ExecCommand", cmd="server", yield_time_ms=5), says("done"))]
    setup = shell_setup(task_quota=TaskQuota(count_max=1))
    house = run_house(story, script=script, setup=setup)
    assert receipts(house)[-1]["kind"] == "quota_reached"
    assert len(house.shell.started) == 1


@pytest.mark.requirement("own-commands:tasks-have-a-quota")
@pytest.mark.parametrize("quota", [{"per_agent_count_max": 2}, {"count_max": 2}])
def test_commands_that_are_started_at_the_same_time_are_counted_as_well(
    quota: dict[str, int],
) -> None:
    codes: list[RefusalCode] = []

    async def start(house: House) -> None:
        try:
            await house.host.commands.start(MAIN, CommandRequest(cmd="server"))
        except RefusedError as error:
            codes.append(error.refusal.code)

    async def story(house: House) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(start, house)

    house = run_house(story, script=[], setup=shell_setup(task_quota=TaskQuota(**quota)))
    assert codes == [RefusalCode.QUOTA_REACHED] * 8
    assert len(house.shell.started) == 2
