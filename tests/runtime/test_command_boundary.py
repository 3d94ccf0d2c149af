"""What goes wrong around one command is noted, and ends neither the host nor a later one."""

import errno
import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import NoReturn

import pytest

from holon.model.errors import StoreFullError
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import HOUR_MS, RETENTION_INTERVAL_MS
from holon.model.tasks import CommandExit, EndedRun, TaskStatus
from holon.ports.tasks import RunningCommand
from holon.runtime.tasks.supervisor import os_errors_noted
from tests.runtime.cast import calls, prompt_for, rule, says
from tests.runtime.house import House, run_house
from tests.runtime.notes import Notes
from tests.runtime.real_life import life
from tests.runtime.shellwork import shell_setup, task_results, tasks
from tests.runtime.test_real_commands import result_of, says_nothing, told
from tests.support.scripted_shell import ScriptedProcess, ScriptedShell

BUILD = [rule("build", calls("ExecCommand", cmd="make"), says("it runs on"))]
NOTED = "command_out_of_reach"


def fails(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


async def fails_to_wait(_: ScriptedProcess) -> CommandExit:
    fails()


@pytest.mark.requirement("commands:own-files-harm-nobody")
@pytest.mark.parametrize("how", ["mkdir", "mkfifo"])
async def test_a_command_that_spoils_its_output_ends_no_host(tmp_path: Path, how: str) -> None:
    cmd = f'{how} "$HOLON_RUN/stdout"; exit 3'
    script = rule("begin", calls("ExecCommand", cmd=cmd, yield_time_ms=0), says("ok"))
    async with life(tmp_path, script) as host:
        await host.admit(prompt_for("begin"))
        found = (await told(host))["result"]
        task_id = found.get("task_handle", {}).get("task_id")
        if task_id is not None:
            assert (await result_of(host, task_id)).exit_status == 3
    async with life(tmp_path, says_nothing()) as host:
        assert await host.reads.tasks.open_tasks() == []


def test_a_task_whose_output_cannot_be_looked_at_ends_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = Notes()

    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(20_000)
        monkeypatch.setattr(ScriptedProcess, "output", fails)
        await house.rest(120_000)
        [ended] = tasks(house)
        assert (ended.status, ended.exit_status) == (TaskStatus.COMPLETED, 0)
        assert len(await task_results(house)) == 1

    house = run_house(story, script=BUILD, setup=shell_setup(journal=notes))
    assert house.deaths == []
    [line] = notes.of(NOTED)
    assert line.about["task_id"] == tasks(house)[0].id


@pytest.mark.parametrize("also_stop", [False, True])
def test_a_task_that_cannot_be_waited_for_has_an_end_nobody_saw(
    monkeypatch: pytest.MonkeyPatch, also_stop: bool
) -> None:
    notes = Notes()

    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(20_000)
        monkeypatch.setattr(ScriptedProcess, "wait", fails_to_wait)
        if also_stop:
            monkeypatch.setattr(ScriptedProcess, "stop", fails)
        await house.restart()
        await house.rest(1_000)
        assert tasks(house)[0].status is TaskStatus.INTERRUPTED
        assert len(await task_results(house)) == 1
        assert bool(house.shell.running) is also_stop

    run_house(story, script=BUILD, setup=shell_setup(journal=notes))
    assert len(notes.of(NOTED)) == 1 + also_stop


def test_a_command_that_cannot_be_attached_to_is_interrupted_and_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest, attempts = ScriptedShell.attach, 0

    async def fails_once(shell: ScriptedShell, run_id: str) -> RunningCommand | None:
        nonlocal attempts
        attempts += 1
        return fails() if attempts == 1 else await honest(shell, run_id)

    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(20_000)
        monkeypatch.setattr(ScriptedShell, "attach", fails_once)
        await house.restart()
        await house.rest(1_000)
        assert tasks(house)[0].status is TaskStatus.INTERRUPTED
        assert house.shell.running == [], "no process without a row"

    run_house(story, script=BUILD, setup=shell_setup())


def test_a_start_that_cannot_look_for_strays_goes_on_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = Notes()

    async def unreadable(_shell: ScriptedShell) -> list[str]:
        return fails()

    async def story(house: House) -> None:
        monkeypatch.setattr(ScriptedShell, "unended_runs", unreadable)
        await house.restart()
        await house.prompt("build")
        await house.rest(120_000)
        assert tasks(house)[0].status is TaskStatus.COMPLETED

    run_house(story, script=BUILD, setup=shell_setup(journal=notes))
    assert len(notes.of(NOTED)) == 1


def test_retention_without_a_handle_leaves_the_files_for_the_next_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = Notes()
    policy = RetentionPolicy(age_ms=HOUR_MS, events_count_min=5, turns_count_min=1)
    honest = ScriptedShell.ended_runs
    is_scarce = True

    async def scarce(shell: ScriptedShell) -> Sequence[EndedRun]:
        return fails() if is_scarce else await honest(shell)

    async def story(house: House) -> None:
        nonlocal is_scarce
        monkeypatch.setattr(ScriptedShell, "ended_runs", scarce)
        await house.prompt("build")
        await house.rest(2 * HOUR_MS)
        assert house.shell.kept != []
        before = len(notes.of(NOTED))
        assert before > 0
        is_scarce = False
        await house.rest(RETENTION_INTERVAL_MS)
        assert house.shell.kept == []
        assert len(notes.of(NOTED)) == before

    house = run_house(story, script=BUILD, setup=shell_setup(journal=notes, retention=policy))
    assert house.deaths == []


def test_an_error_of_the_store_is_not_held_back() -> None:
    notes = Notes()
    with pytest.raises(StoreFullError), os_errors_noted(notes, "nothing was done"):
        raise StoreFullError("full")
    assert notes.lines == []


def test_a_bug_is_not_held_back() -> None:
    with pytest.raises(TypeError), os_errors_noted(Notes(), "nothing was done"):
        raise TypeError


@pytest.mark.parametrize("times", [1, 99], ids=["once", "always"])
def test_a_bug_in_looking_for_a_command_leaves_its_task_to_the_next_start(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    honest, looks = ScriptedShell.attach, count()

    async def attach(shell: ScriptedShell, run_id: str) -> RunningCommand | None:
        if next(looks) < times:
            raise KeyError("a bug in attaching")
        return await honest(shell, run_id)

    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(20_000)
        monkeypatch.setattr(ScriptedShell, "attach", attach)
        await house.restart()
        await house.rest(1_000)
        assert [task.status for task in tasks(house)] == [TaskStatus.RUNNING]
        assert len(house.shell.running) == 1, "nobody ended it as a stray"
        monkeypatch.undo()
        await house.restart()
        await house.rest(HOUR_MS)
        assert [task.status for task in tasks(house)] == [TaskStatus.COMPLETED]

    run_house(story, script=BUILD, setup=shell_setup(bugs=frozenset({"task_crashed"})))


def test_a_bug_about_a_stray_command_ends_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(house: House) -> None:
        async def astray(_: ScriptedShell) -> Sequence[str]:
            return ["run_nobody_knows", "run_nor_this"]

        async def attach(_: ScriptedShell, run_id: str) -> NoReturn:
            raise KeyError(run_id)

        monkeypatch.setattr(ScriptedShell, "unended_runs", astray)
        monkeypatch.setattr(ScriptedShell, "attach", attach)
        await house.restart()
        await house.prompt("hello")
        await house.rest(1_000)
        assert len(await house.briefs()) == 1

    run_house(story, setup=shell_setup(bugs=frozenset({"recovery_crashed"})))
