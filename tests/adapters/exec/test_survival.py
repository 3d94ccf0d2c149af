"""Commands that outlive the runtime: a real one is killed, and the next one finds them."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from holon.adapters.exec.local_command import LocalCommand
from holon.adapters.exec.local_shell import LocalShell
from holon.adapters.exec.process_table import (
    ProcessIdentity,
    boot_id,
    identity_of,
    is_living,
    living,
    marked_with,
    open_living,
)
from holon.adapters.exec.run_folder import NO_PROCESS, RunFolder, marker_of
from holon.adapters.system.clock import SystemClock
from holon.model.tasks import CommandExit, CommandSpec, OutputStream, StopCause
from tests.adapters.exec.processes import becomes, gone, line_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
async def shell(root: Path) -> AsyncIterator[LocalShell]:
    """The next life of the runtime; it also sees that nothing survives the test."""
    made = LocalShell(root, os.environ, SystemClock())
    yield made
    for folder in root.glob("*"):
        await made.forget(folder.name)
        assert not marked_with(marker_of(str(folder)))
    made.close()
    assert not [facts for facts in living() if facts.parent == os.getpid()]


def killed_after_starting(root: Path, *commands: str, count: int | None = None) -> int:
    """Have a runtime start commands, kill it after all or some, and return its fork server."""
    program = [sys.executable, "-m", "tests.adapters.exec.starter", str(root), *commands]
    # A session of its own, as a terminal or a service gives it: the kill takes all that is in it.
    runtime = subprocess.Popen(program, stdout=subprocess.PIPE, start_new_session=True)
    with runtime:
        assert runtime.stdout is not None
        wanted = len([each for each in commands if "=" in each]) + 1 if count is None else count
        lines = [runtime.stdout.readline() for _ in range(wanted)]
        os.killpg(runtime.pid, signal.SIGKILL)
    return int(lines[-1]) if count is None else 0


async def found(shell: LocalShell, run_id: str) -> LocalCommand:
    command = await shell.attach(run_id)
    assert command is not None
    return command


@pytest.mark.requirement("commands:found-after-restart")
async def test_a_running_command_is_found_fed_and_its_result_arrives(
    root: Path, shell: LocalShell
) -> None:
    killed_after_starting(root, "run_1=echo before; read line; echo $line; exit 6")
    command = await found(shell, "run_1")
    assert command.exit is None
    assert await command.feed(b"after\n") == 6
    assert await command.wait() == CommandExit(exit_status=6)
    [out, _] = command.output(head_bytes=99, tail_bytes=0)
    assert out.head == b"before\nafter\n"


@pytest.mark.requirement("commands:found-after-restart")
async def test_a_command_that_ended_while_nobody_looked_has_its_status(
    root: Path, shell: LocalShell, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "gate")
    killed_after_starting(root, f"run_1=cat {tmp_path}/gate; echo late; exit 3")
    (tmp_path / "gate").write_bytes(b"go\n")
    facts = RunFolder(root / "run_1").read()
    await becomes(lambda: not is_living(facts.supervisor))
    command = await found(shell, "run_1")
    assert command.exit == CommandExit(exit_status=3) == await command.wait()
    assert command.output(head_bytes=99, tail_bytes=0)[0].head == b"go\nlate\n"


@pytest.mark.requirement("commands:terminal-survives")
async def test_a_terminal_lives_on_and_is_typed_into_by_the_next_runtime(
    root: Path, shell: LocalShell
) -> None:
    killed_after_starting(root, "tty", "run_1=echo hello; read line; echo got $line; tty; exit 9")
    command = await found(shell, "run_1")
    await line_of(command)
    assert await command.feed(b"word\n") == 5
    assert await command.wait() == CommandExit(exit_status=9)
    [span] = command.output(head_bytes=999, tail_bytes=0)
    assert span.stream is OutputStream.COMBINED
    assert b"got word\r\n" in span.head
    assert b"/dev/pts/" in span.head


async def test_a_found_command_is_stopped_with_all_it_started(
    root: Path, shell: LocalShell
) -> None:
    killed_after_starting(root, "run_1=setsid sleep 600 & echo $!; trap '' TERM; sleep 600")
    command = await found(shell, "run_1")
    daemon = int(await line_of(command))
    await command.stop(force=True)
    assert gone(daemon)
    assert (await command.wait()).stopped is StopCause.REQUESTED


async def test_the_fork_server_goes_with_its_runtime(root: Path, shell: LocalShell) -> None:
    server = killed_after_starting(root, "run_1=true", "run_2=sleep 600")
    await becomes(lambda: gone(server))
    assert (await found(shell, "run_2")).exit is None


@pytest.mark.parametrize("count", range(6))
async def test_killed_at_any_time_a_command_runs_at_most_once_and_its_end_is_said(
    root: Path, shell: LocalShell, tmp_path: Path, count: int
) -> None:
    seen = tmp_path / "seen"
    commands = [f"run_{number}=echo {number} >> {seen}; exit {number}" for number in range(6)]
    killed_after_starting(root, *commands, count=count)
    ends = {
        folder.name: await (await found(shell, folder.name)).wait() for folder in root.glob("*")
    }
    ran = seen.read_text().split() if seen.exists() else []
    assert len(ran) == len(set(ran))
    for run_id, end in ends.items():
        number = run_id.removeprefix("run_")
        assert end.exit_status in (int(number), None)
        assert end.exit_status is None or number in ran
    assert all(ends[f"run_{number}"].exit_status == number for number in range(count))


@pytest.mark.requirement("commands:lost-is-said")
async def test_a_command_whose_supervisor_is_gone_is_lost_and_nothing_of_it_runs_on(
    root: Path, shell: LocalShell
) -> None:
    killed_after_starting(root, "run_1=setsid sleep 600 & echo $!; sleep 600")
    identity = RunFolder(root / "run_1").read().supervisor
    assert identity is not None
    os.kill(identity.pid, signal.SIGKILL)
    await becomes(lambda: gone(identity.pid))
    command = await found(shell, "run_1")
    assert command.exit == CommandExit(exit_status=None) == await command.wait()
    await becomes(lambda: not marked_with(marker_of(str(root / "run_1"))))


@pytest.mark.requirement("commands:lost-is-said")
async def test_a_number_that_was_given_to_another_process_is_not_mistaken(
    root: Path, shell: LocalShell
) -> None:
    bystander = subprocess.Popen(["sleep", "600"])
    try:
        living_now = identity_of(bystander.pid)
        assert living_now is not None
        root.mkdir()
        strangers = [
            living_now._replace(start_ticks=living_now.start_ticks - 1),
            living_now._replace(boot_id="another boot"),
        ]
        for number, stranger in enumerate(strangers):
            assert open_living(stranger) is None
            folder = RunFolder(root / f"run_{number}")
            folder.make({"tty": False}, takes_input=False)
            folder.claim(stranger)
            folder.started(stranger)
            command = await found(shell, f"run_{number}")
            assert command.exit == CommandExit(exit_status=None)
            await command.stop(force=True)
            await shell.forget(f"run_{number}")
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


async def test_a_run_reported_as_lost_cannot_be_started_by_a_late_supervisor(
    root: Path, shell: LocalShell
) -> None:
    root.mkdir()
    folder = RunFolder(root / "run_1")
    folder.make({"tty": False}, takes_input=False)
    command = await found(shell, "run_1")
    assert command.exit == CommandExit(exit_status=None)
    assert not folder.claim(ProcessIdentity(pid=1, start_ticks=2, boot_id=boot_id()))
    assert folder.read().supervisor == NO_PROCESS


@pytest.mark.parametrize("record", [b"", b'{"asked": {"tty"', b"\xff\n[]\nnull\n"])
async def test_a_record_that_cannot_be_read_is_a_lost_command(
    root: Path, shell: LocalShell, record: bytes
) -> None:
    (root / "run_1").mkdir(parents=True)
    (root / "run_1" / "run.jsonl").write_bytes(record)
    command = await found(shell, "run_1")
    assert command.exit == CommandExit(exit_status=None)
    assert [span.total_bytes for span in command.output(head_bytes=9, tail_bytes=9)] == [0, 0]


async def test_a_line_cut_short_does_not_spoil_the_next(root: Path) -> None:
    root.mkdir()
    folder = RunFolder(root / "run_1")
    folder.make({"tty": True}, takes_input=False)
    with open(root / "run_1" / "run.jsonl", "ab") as file:
        file.write(b'{"supervisor": {"pid"')
    folder.ended(exit_status=4, signal_number=None, stopped=None, is_alone=True)
    facts = folder.read()
    assert facts.command == {"tty": True}
    assert facts.supervisor is None
    assert facts.ended == {"exit_status": 4, "signal": None, "stopped": None, "alone": True}


async def test_nothing_is_known_of_a_command_that_never_was(shell: LocalShell) -> None:
    for run_id in ("run_1", "", "../x", "a/b", "x" * 1_000):
        assert await shell.attach(run_id) is None
        await shell.forget(run_id)


async def test_a_start_that_is_cancelled_is_not_left_half_done(
    root: Path, shell: LocalShell
) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await shell.start(CommandSpec(run_id="run_1", cmd="exit 2", workdir="/"))
    command = await found(shell, "run_1")
    assert await command.wait() == CommandExit(exit_status=2)


async def test_the_files_of_a_run_are_private(root: Path, shell: LocalShell) -> None:
    command = await shell.start(
        CommandSpec(run_id="run_1", cmd="echo x; umask", workdir="/", accepts_input=True)
    )
    await command.wait()
    assert (root / "run_1").stat().st_mode & 0o777 == 0o700
    for path in (root / "run_1").iterdir():
        assert path.stat().st_mode & 0o077 == 0


async def test_a_command_makes_files_as_its_operator_would(tmp_path: Path) -> None:
    shell = LocalShell(tmp_path / "runs", os.environ, SystemClock(), umask=0o002)
    spec = CommandSpec(run_id="run_1", cmd="touch made", workdir=str(tmp_path))
    with anyio.fail_after(20):
        await (await shell.start(spec)).wait()
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o664
    await shell.forget("run_1")
    shell.close()
