"""A host with a real shell: processes of this machine, over the lives of several hosts."""

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from anyio.abc import Process

from holon.model.events.event import Event, MessageAdmitted, ToolExecuted, ToolExecutionFailed
from holon.model.tasks import TaskRecord, TaskStatus
from holon.model.values import TaskId
from holon.runtime.host import Host
from tests.runtime.cast import calls, prompt_for, rule, says
from tests.runtime.real_life import PATIENCE_S, life
from tests.support.builders import MAIN
from tests.support.scripted_provider import ScriptedRule

pytestmark = pytest.mark.long


def says_nothing() -> ScriptedRule:
    """A model that takes note."""
    return rule("", says("noted"))


async def first(host: Host, such: Callable[[Event], bool]) -> Event:
    """Return the first such event, now or when it comes."""
    async with aclosing(host.events.follow(MAIN, after=0)) as events:
        async for audit in events:
            if such(audit.event):
                return audit.event
    raise AssertionError("the log came to an end")


async def told(host: Host) -> dict[str, Any]:
    """What the model was told about its first call."""
    event = await first(host, lambda e: isinstance(e, ToolExecuted | ToolExecutionFailed))
    assert isinstance(event, ToolExecuted | ToolExecutionFailed)
    log = await host.reads.turns.turn_log(event.turn_id)
    receipt = log.calls[0].receipt if log else None
    assert receipt is not None
    found: dict[str, Any] = msgspec.json.decode(receipt.content)
    return found


async def result_of(host: Host, task_id: str) -> TaskRecord:
    """Return the task once its end was reported."""
    await first(host, lambda e: isinstance(e, MessageAdmitted) and e.task_id == task_id)
    task = await host.reads.tasks.task(TaskId(task_id))
    assert task is not None
    return task


def fifo(path: Path) -> Path:
    """A pipe with a name, so that test and command wait for each other and nobody sleeps."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    return path


async def said_into(pipe: Path) -> str:
    """What a command wrote into the pipe."""
    return await anyio.to_thread.run_sync(pipe.read_text)


async def test_a_real_command_runs_in_the_agents_home_without_the_hosts_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    cmd = "pwd; echo $HOLON_AGENT_ID; env | grep -c API_KEY; echo oops >&2; exit 3"
    script = rule("begin", calls("ExecCommand", cmd=cmd), says("done"))
    async with life(tmp_path, script) as host:
        await host.admit(prompt_for("begin"))
        result = (await told(host))["result"]
    home = (tmp_path / "agents" / "main").resolve()
    assert result["stdout_preview"] == f"{home}\n{MAIN}\n0\n"
    assert (result["stderr_preview"], result["exit_status"]) == ("oops\n", 3)
    assert list((tmp_path / "runs").iterdir()) == []


async def test_a_real_directory_that_leads_out_is_refused(tmp_path: Path) -> None:
    outside, home = tmp_path / "outside", tmp_path / "agents" / "main"
    outside.mkdir()
    script = rule("begin", calls("ExecCommand", cmd="touch x", workdir="link"), says("done"))
    async with life(tmp_path, script) as host:
        home.mkdir(parents=True, exist_ok=True)
        (home / "link").symlink_to(outside)
        await host.admit(prompt_for("begin"))
        assert (await told(host))["kind"] == "execution_root_violation"
    assert list(outside.iterdir()) == []


@pytest.mark.requirement("task-tools:running-command-is-attached-again")
async def test_a_real_command_goes_on_over_the_end_of_its_host_and_delivers(
    tmp_path: Path,
) -> None:
    gate = fifo(tmp_path / "gate")
    cmd = f"echo started; cat {gate}; echo over"
    script = rule("begin", calls("ExecCommand", cmd=cmd, yield_time_ms=300), says("it runs"))
    async with life(tmp_path, script) as host:
        await host.admit(prompt_for("begin"))
        result = (await told(host))["result"]
    assert result["disposition"] == "promoted_to_task"
    task_id = result["task_handle"]["task_id"]
    async with life(tmp_path, says_nothing()) as host:
        found = await host.reads.tasks.task(TaskId(task_id))
        assert found is not None
        assert found.status is TaskStatus.RUNNING
        await anyio.to_thread.run_sync(gate.write_text, "go\n")
        ended = await result_of(host, task_id)
    assert (ended.status, ended.exit_status) == (TaskStatus.COMPLETED, 0)
    assert "started\ngo\nover" in (ended.result_summary or "")


@pytest.mark.requirement("task-tools:end-during-downtime-is-reported")
async def test_a_real_command_that_ends_between_two_hosts_is_reported_by_the_second(
    tmp_path: Path,
) -> None:
    gate, done = fifo(tmp_path / "gate"), fifo(tmp_path / "done")
    cmd = f"cat {gate}; exec 3>{done}; exit 4"
    script = rule("begin", calls("ExecCommand", cmd=cmd, yield_time_ms=300), says("it runs"))
    async with life(tmp_path, script) as host:
        await host.admit(prompt_for("begin"))
        task_id = (await told(host))["result"]["task_handle"]["task_id"]
    await anyio.to_thread.run_sync(gate.write_text, "go\n")
    await said_into(done)
    async with life(tmp_path, says_nothing()) as host:
        ended = await result_of(host, task_id)
    assert (ended.status, ended.exit_status) == (TaskStatus.FAILED, 4)


@pytest.mark.requirement("command-tools:cut-off-command-is-ended")
async def test_a_real_foreground_command_ends_with_the_host_that_waits_for_it(
    tmp_path: Path,
) -> None:
    up = fifo(tmp_path / "up")
    script = rule("begin", calls("ExecCommand", cmd=f"echo $$ > {up}; exec sleep 900"), says("ok"))
    async with life(tmp_path, script) as host:
        await host.admit(prompt_for("begin"))
        pid = int(await said_into(up))
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@asynccontextmanager
async def doomed_host(home: Path, cmd: str, *, yield_time_ms: int) -> AsyncIterator[Process]:
    """A host in a process of its own that is killed without warning at the end of the block."""
    args = [str(home), cmd, str(yield_time_ms)]
    process = await anyio.open_process([sys.executable, "-m", "tests.runtime.real_life", *args])
    try:
        with anyio.fail_after(PATIENCE_S):
            yield process
    finally:
        process.kill()
        await process.wait()


async def test_a_task_outlives_a_killed_runtime_and_the_next_one_takes_it_up(
    tmp_path: Path,
) -> None:
    one, two = fifo(tmp_path / "one"), fifo(tmp_path / "two")
    cmd = f"echo started; cat {one}; cat {two}; echo over"
    async with doomed_host(tmp_path, cmd, yield_time_ms=0) as process:
        assert process.stdout is not None
        assert await process.stdout.receive() == b"the task is on record\n"
        await anyio.to_thread.run_sync(one.write_text, "one\n")
    async with life(tmp_path, says_nothing()) as host:
        [task] = await host.reads.tasks.open_tasks()
        assert task.status is TaskStatus.RUNNING
        await anyio.to_thread.run_sync(two.write_text, "two\n")
        ended = await result_of(host, task.id)
    assert ended.status is TaskStatus.COMPLETED
    assert "started\none\ntwo\nover" in (ended.result_summary or "")


@pytest.mark.requirement("command-tools:cut-off-command-is-ended")
async def test_a_foreground_command_of_a_killed_runtime_is_ended_by_the_next_one(
    tmp_path: Path,
) -> None:
    up = fifo(tmp_path / "up")
    cmd = f"echo $$ > {up}; exec sleep 900"
    async with doomed_host(tmp_path, cmd, yield_time_ms=600_000):
        pid = int(await said_into(up))
    os.kill(pid, 0)
    async with life(tmp_path, says_nothing()) as host:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert (await told(host))["kind"] == "interrupted"
        assert list(await host.reads.tasks.open_tasks()) == []


@pytest.mark.requirement("task-tools:stop-terminates-then-forces")
async def test_a_real_command_that_ignores_the_polite_signal_is_ended_all_the_same(
    tmp_path: Path,
) -> None:
    up = fifo(tmp_path / "up")
    cmd = f"trap '' TERM; echo $$ > {up}; while :; do sleep 900; done"
    script = rule("begin", calls("ExecCommand", cmd=cmd, yield_time_ms=300), says("it runs"))
    async with life(tmp_path, script) as host:
        await host.admit(prompt_for("begin"))
        pid = int(await said_into(up))
        task_id = (await told(host))["result"]["task_handle"]["task_id"]
        await host.control.stop(MAIN)
        ended = await result_of(host, task_id)
    assert ended.status is TaskStatus.INTERRUPTED
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
