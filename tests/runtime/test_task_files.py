"""What ended commands left on disk goes by policy, and never while somebody needs it."""

import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from holon.adapters.exec.local_shell import LocalShell
from holon.adapters.sqlite.store import open_store
from holon.decide.events.audit import audited
from holon.model.commits import CreateTask
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import DAY_MS, HOUR_MS, MIB
from holon.model.tasks import CommandSpec, TaskStatus
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, run_house
from tests.runtime.shellwork import shell_setup, tasks
from tests.support.builders import a_commit, a_task, an_agent
from tests.support.hosts import a_host
from tests.support.manual_clock import ManualClock
from tests.support.scripted_provider import Script, ScriptedProvider
from tests.support.sequential_ids import SequentialIds
from tests.support.single_model import SingleModel

SHORT = RetentionPolicy(age_ms=HOUR_MS, events_count_min=5, turns_count_min=2, bytes_max=64 * MIB)
BUILD = rule("build", calls("ExecCommand", cmd="make"), says("it runs on"))


@pytest.mark.requirement("task-tools:task-files-are-bounded")
def test_the_files_of_a_task_go_when_its_result_is_old() -> None:
    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(HOUR_MS // 2)
        assert len(house.shell.kept) == 1
        await house.rest(2 * HOUR_MS)
        assert house.shell.kept == []

    run_house(story, script=[BUILD], setup=shell_setup(retention=SHORT))


@pytest.mark.requirement("task-tools:task-files-are-bounded")
def test_the_files_of_a_running_task_stay_however_long_it_runs() -> None:
    async def story(house: House) -> None:
        await house.prompt("serve")
        await house.rest(20 * HOUR_MS)
        assert len(house.shell.kept) == len(house.shell.running) == 1

    script = [rule("serve", calls("ExecCommand", cmd="server"), says("it runs on"))]
    run_house(story, script=script, setup=shell_setup(retention=SHORT))


@pytest.mark.requirement("task-tools:task-files-are-bounded")
def test_the_files_and_the_row_of_a_task_stay_until_its_result_was_read() -> None:
    async def story(house: House) -> None:
        await house.prompt("build")
        await house.rest(20_000)
        await house.prompt("slow")
        await house.rest(5 * HOUR_MS)
        [task] = tasks(house)
        assert task.status is TaskStatus.COMPLETED
        assert not house.model.heard("ended with exit status 0")
        assert len(house.shell.kept) == 1
        await house.rest(20 * HOUR_MS)
        assert house.model.heard("ended with exit status 0")
        assert house.shell.kept == []

    script = [rule("slow", says("done", after_ms=8 * HOUR_MS)), BUILD]
    run_house(story, script=script, setup=shell_setup(retention=SHORT))


class Keeping:
    """Real folders of real commands, a store, and a clock that is told."""

    def __init__(self, home: Path) -> None:
        self.clock = ManualClock()
        self.folders = home / "runs"
        self.shell = LocalShell(self.folders, os.environ, self.clock)
        self.store = open_store(home)
        self.policy = RetentionPolicy(age_ms=DAY_MS, bytes_max=MIB)

    async def ran(self, run_id: str, cmd: str, *, ago_ms: int = 0) -> None:
        """Run a command to its end; it shall have ended so long ago."""
        command = await self.shell.start(CommandSpec(run_id=run_id, cmd=cmd, workdir="/"))
        await command.wait()
        self.shift(run_id, ago_ms=ago_ms)

    def shift(self, run_id: str, *, ago_ms: int) -> None:
        ended_at = self.clock.now() - timedelta(milliseconds=ago_ms)
        os.utime(self.folders / run_id / "run.jsonl", times=2 * (ended_at.timestamp(),))

    async def owned(self, run_id: str, status: TaskStatus) -> None:
        """Let a command be that of a task."""
        task = msgspec.structs.replace(
            a_task(f"task_{run_id}", status=status), detail={"run_id": run_id}
        )
        await self.store.apply(audited(a_commit(f"create:{run_id}", CreateTask(task=task))))

    async def keep(self) -> list[str]:
        """Apply the policy once; return whose folders are still there."""
        host = a_host(
            store=self.store,
            clock=self.clock,
            ids=SequentialIds(),
            models=SingleModel(ScriptedProvider(Script(), self.clock)),
            retention_policy=self.policy,
            shell=self.shell,
        )
        await host.retention.prune_all()
        return sorted(name for name in os.listdir(self.folders) if not name.startswith("."))


@pytest.fixture
async def keeping(tmp_path: Path) -> AsyncIterator[Keeping]:
    made = Keeping(tmp_path)
    await made.store.apply(audited(a_commit("create agent", an_agent(), at=made.clock.now())))
    yield made
    for run_id in os.listdir(made.folders):
        await made.shell.forget(run_id)
    made.shell.close()
    await made.store.close()


@pytest.mark.requirement("task-tools:task-files-are-bounded")
async def test_real_folders_go_by_age_but_not_those_of_open_tasks(keeping: Keeping) -> None:
    await keeping.ran("old", "echo old", ago_ms=3 * DAY_MS)
    await keeping.ran("old_open", "echo found lost or ended", ago_ms=3 * DAY_MS)
    await keeping.ran("young", "echo young", ago_ms=HOUR_MS)
    await keeping.ran("just", "echo just")
    await keeping.owned("old_open", TaskStatus.RUNNING)
    running = await keeping.shell.start(CommandSpec(run_id="run", cmd="sleep 600", workdir="/"))
    keeping.shift("run", ago_ms=9 * DAY_MS)
    assert await keeping.keep() == ["just", "old_open", "run", "young"]
    assert running.exit is None


@pytest.mark.requirement("task-tools:task-files-are-bounded")
async def test_real_folders_go_by_their_bytes_oldest_first(keeping: Keeping) -> None:
    for number in range(4):
        cmd = f"head -c {MIB // 2 - 10_000} /dev/zero"
        await keeping.ran(f"r{number}", cmd, ago_ms=HOUR_MS * (9 - number))
    await keeping.owned("r0", TaskStatus.RUNNING)
    assert await keeping.keep() == ["r0", "r3"]


async def test_what_cannot_be_a_run_is_left_alone(keeping: Keeping) -> None:
    await keeping.ran("old", "true", ago_ms=3 * DAY_MS)
    (keeping.folders / "notes").write_text("mine")
    (keeping.folders / "empty").mkdir()
    assert await keeping.keep() == ["empty", "notes"]
    (keeping.folders / "notes").unlink()
    (keeping.folders / "empty").rmdir()
