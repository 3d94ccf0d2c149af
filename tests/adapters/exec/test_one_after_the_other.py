"""A supervisor that looks after one command after the other, and never mistakes them."""

import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from holon.adapters.exec.end_now import end_now
from holon.adapters.exec.fork_server import READY_COUNT_MAX
from holon.adapters.exec.local_command import LocalCommand
from holon.adapters.exec.local_shell import LocalShell
from holon.adapters.exec.process_table import ProcessIdentity, living
from holon.adapters.exec.run_folder import RunFolder
from holon.adapters.system.clock import SystemClock
from holon.model.tasks import CommandExit, CommandLimits, CommandSpec
from tests.adapters.exec.processes import becomes, gone, line_of

STAYING = "echo up; sleep 600"
ATTEMPTS_COUNT_MAX = 50  # for one supervisor to get two commands in a row


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
async def shell(root: Path) -> AsyncIterator[LocalShell]:
    made = LocalShell(root, os.environ, SystemClock())
    yield made
    for folder in root.glob("*"):
        await made.forget(folder.name)
    made.close()
    assert not [facts for facts in living() if facts.parent == os.getpid()]


async def run(
    shell: LocalShell, run_id: str, cmd: str = "true", *, is_fed: bool = False, tty: bool = False
) -> LocalCommand:
    """Run a command to its good end."""
    asked = CommandSpec(run_id=run_id, cmd=cmd, workdir="/", accepts_input=is_fed, tty=tty)
    command = await shell.start(asked)
    assert await command.wait() == CommandExit(exit_status=0)
    return command


def supervisor_of(root: Path, run_id: str) -> ProcessIdentity:
    found = RunFolder(root / run_id).read().supervisor
    assert found is not None
    return found


def at_hand(shell: LocalShell) -> list[int]:
    """The supervisors the server can give work to, once none of them has any."""
    return [facts.pid for facts in living() if facts.parent == shell.server_pid]


async def run_unawaited(shell: LocalShell, run_id: str) -> LocalCommand:
    """Run a command to its end, which only others are told of."""
    command = await shell.start(CommandSpec(run_id=run_id, cmd="true", workdir="/"))
    found = await shell.attach(run_id)
    assert found is not None
    await found.wait()
    return command


async def two_in_a_row(
    shell: LocalShell, root: Path, run_first: Callable[..., Awaitable[LocalCommand]] = run
) -> tuple[LocalCommand, LocalCommand]:
    """A command that has ended, and one that goes on and has the same supervisor."""
    for number in range(ATTEMPTS_COUNT_MAX):
        first = await run_first(shell, f"first_{number}")
        asked = CommandSpec(run_id=f"second_{number}", cmd=STAYING, workdir="/")
        second = await shell.start(asked)
        if supervisor_of(root, first.run_id) == supervisor_of(root, second.run_id):
            await line_of(second)
            return first, second
        await second.stop(force=True)
    raise AssertionError("no supervisor came back")


async def test_few_supervisors_are_made_for_many_commands(shell: LocalShell, root: Path) -> None:
    for number in range(24):
        await run(shell, f"run_{number}")
    made = Counter(supervisor_of(root, f"run_{number}") for number in range(24))
    assert len(made) <= 12
    await becomes(lambda: len(at_hand(shell)) == READY_COUNT_MAX)


@pytest.mark.requirement("commands:whole-tree-ends")
async def test_ending_a_command_that_has_ended_touches_no_other(
    shell: LocalShell, root: Path
) -> None:
    first, second = await two_in_a_row(shell, root)
    await first.stop(force=True)
    found = await shell.attach(first.run_id)
    assert found is not None
    await found.stop()
    assert not end_now(root, first.run_id)
    await shell.forget(first.run_id)
    assert second.exit is None
    assert end_now(root, second.run_id)
    assert (await second.wait()).signal == signal.SIGKILL


@pytest.mark.requirement("commands:whole-tree-ends")
@pytest.mark.parametrize("run_first", [run, run_unawaited])
async def test_ending_a_command_whose_folder_is_gone_touches_no_other(
    shell: LocalShell, root: Path, run_first: Callable[..., Awaitable[LocalCommand]]
) -> None:
    first, second = await two_in_a_row(shell, root, run_first)
    await shell.forget(first.run_id)
    await first.stop(force=True)
    assert not gone(supervisor_of(root, second.run_id).pid)
    assert second.exit is None
    await second.stop(force=True)


async def test_a_supervisor_whose_run_is_held_takes_on_no_other(
    shell: LocalShell, root: Path, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "gate")
    asked = CommandSpec(run_id="run_1", cmd=f"read x < {tmp_path}/gate", workdir="/")
    command = await shell.start(asked)
    record = RunFolder(root / "run_1").hold()
    assert record is not None
    (tmp_path / "gate").write_bytes(b"go\n")
    assert await command.wait() == CommandExit(exit_status=0)
    await becomes(lambda: gone(supervisor_of(root, "run_1").pid))
    os.close(record)
    assert RunFolder(root / "run_1").hold() is None, "it is over"


async def test_a_supervisor_that_was_asked_to_end_a_command_goes(
    shell: LocalShell, root: Path
) -> None:
    _, second = await two_in_a_row(shell, root)
    await second.stop()
    assert gone(supervisor_of(root, second.run_id).pid)


async def test_limits_of_an_earlier_command_bind_no_later_one(shell: LocalShell) -> None:
    for number, handles_count in enumerate([64, 256, 128, 256]):
        asked = CommandSpec(
            run_id=f"run_{number}",
            cmd="ulimit -H -n",
            workdir="/",
            limits=CommandLimits(handles_count=handles_count),
        )
        command = await shell.start(asked)
        await command.wait()
        assert int(command.output(head_bytes=99, tail_bytes=0)[0].head) == handles_count


async def test_a_signal_to_one_that_stands_by_ends_no_command(shell: LocalShell) -> None:
    await run(shell, "run_1")
    await becomes(lambda: len(at_hand(shell)) == READY_COUNT_MAX)
    for pid in at_hand(shell):
        os.kill(pid, signal.SIGTERM)
    await run(shell, "run_2", "sleep 0.3")


async def test_a_supervisor_keeps_nothing_of_the_commands_before(
    shell: LocalShell, root: Path
) -> None:
    def handles_count(run_id: str) -> int:
        return len(os.listdir(f"/proc/{supervisor_of(root, run_id).pid}/fd"))

    for number in range(12):
        await run(shell, f"run_{number}", "echo a; echo b >&2", is_fed=True)
        await run(shell, f"terminal_{number}", "echo a", is_fed=True, tty=True)
    _, second = await two_in_a_row(shell, root)
    fresh = LocalShell(root, os.environ, SystemClock())
    try:
        alone = await fresh.start(CommandSpec(run_id="alone", cmd=STAYING, workdir="/"))
        await line_of(alone)
        await becomes(lambda: handles_count(second.run_id) == handles_count("alone"))
        await alone.stop(force=True)
    finally:
        fresh.close()
