"""Commands that do not want to end, and those that want too much: real ones, kept small."""

import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from holon.adapters.exec import local_shell
from holon.adapters.exec import supervisor as supervision
from holon.adapters.exec.fork_server import READY_COUNT_MAX
from holon.adapters.exec.local_shell import LocalShell
from holon.adapters.exec.process_table import living, marked_with, runs_for_an_agent
from holon.adapters.exec.run_folder import RunFolder, marker_of
from holon.adapters.system.clock import SystemClock
from holon.model.tasks import CommandExit, CommandLimits, CommandSpec, StopCause
from holon.ports.tasks import CommandSpawnError
from tests.adapters.exec.processes import becomes, gone, line_of

pytestmark = pytest.mark.long

REQUESTS_BEYOND_A_SOCKET = 300


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[LocalShell]:
    made = LocalShell(tmp_path / "runs", os.environ, SystemClock())
    yield made
    for folder in (tmp_path / "runs").glob("*"):
        await made.forget(folder.name)
        assert not marked_with(marker_of(str(folder)))
    made.close()
    assert not [facts for facts in living() if facts.parent == os.getpid()]


def spec(
    cmd: str, *, run_id: str = "run_1", accepts_input: bool = False, **limits: int
) -> CommandSpec:
    return CommandSpec(
        run_id=run_id,
        cmd=cmd,
        workdir="/",
        accepts_input=accepts_input,
        limits=CommandLimits(**limits),
    )


@pytest.mark.requirement("commands:whole-tree-ends")
async def test_s64_a_command_that_ignores_the_polite_signal_is_ended_after_a_grace(
    shell: LocalShell,
) -> None:
    command = await shell.start(spec("trap '' TERM HUP INT; echo $$; while :; do sleep 600; done"))
    pid = int(await line_of(command))
    with anyio.fail_after(10):
        await command.stop()
    assert gone(pid)
    assert await command.wait() == CommandExit(
        exit_status=137, signal=signal.SIGKILL, stopped=StopCause.REQUESTED
    )


async def test_force_gives_no_grace_also_after_a_polite_request(shell: LocalShell) -> None:
    command = await shell.start(spec("trap '' TERM; echo $$; while :; do sleep 600; done"))
    pid = int(await line_of(command))
    async with anyio.create_task_group() as group:
        group.start_soon(command.stop)
        group.start_soon(lambda: command.stop(force=True))
    assert gone(pid)


@pytest.mark.requirement("commands:whole-tree-ends")
@pytest.mark.parametrize(
    "leave",
    [
        "setsid nohup sleep 600 >/dev/null 2>&1 & echo $!",
        "env -i setsid sleep 600 >/dev/null 2>&1 & echo $!",
        "(setsid sh -c 'setsid sleep 600 >/dev/null 2>&1 & echo $!') | cat",
    ],
)
@pytest.mark.parametrize("then", ["sleep 600", "exit 3"])
async def test_s64_a_daemon_that_left_the_session_is_ended_too(
    shell: LocalShell, leave: str, then: str
) -> None:
    command = await shell.start(spec(f"{leave}; {then}"))
    daemon = int(await line_of(command))
    if then == "exit 3":
        assert await command.wait() == CommandExit(exit_status=3)
    assert not gone(daemon)
    with anyio.fail_after(10):
        await command.stop()
    assert gone(daemon)
    end = await command.wait()
    assert end.stopped is (None if then == "exit 3" else StopCause.REQUESTED)


async def test_what_was_left_running_is_ended_before_a_run_is_forgotten(shell: LocalShell) -> None:
    command = await shell.start(spec("setsid sleep 600 & echo $!"))
    await command.wait()
    daemon = int(await line_of(command))
    assert not gone(daemon)
    await shell.forget("run_1")
    assert gone(daemon)


async def test_s64_what_was_left_running_keeps_to_the_limits(shell: LocalShell) -> None:
    command = await shell.start(spec("yes & echo $! >&2", output_bytes=500_000))
    end = await command.wait()
    [_, err] = command.output(head_bytes=99, tail_bytes=0)
    await becomes(lambda: gone(int(err.head)))
    assert command.output(head_bytes=0, tail_bytes=0)[0].total_bytes == 500_000
    assert end.exit_status in (0, 128 + signal.SIGTERM)


@pytest.mark.requirement("commands:limits-end-a-command")
@pytest.mark.parametrize(
    "bomb",
    [
        # Each forks a bounded number of processes, far beyond what it is allowed to.
        "i=0; while [ $i -lt 120 ]; do sleep 600 & i=$((i+1)); done; wait",
        "i=0; while [ $i -lt 120 ]; do setsid sleep 600 & i=$((i+1)); done; wait",
        "f() { [ $1 -gt 0 ] && { f $(($1-1)) & f $(($1-1)) & }; sleep 600; }; f 6",
    ],
)
async def test_s64_a_command_that_starts_too_many_processes_is_ended(
    shell: LocalShell, tmp_path: Path, bomb: str
) -> None:
    command = await shell.start(spec(bomb, processes_count=20))
    end = await command.wait()
    assert end == CommandExit(exit_status=137, signal=9, stopped=StopCause.PROCESSES)
    await becomes(lambda: not marked_with(marker_of(str(tmp_path / "runs" / "run_1"))))


async def test_a_command_may_start_as_many_processes_as_it_is_allowed(shell: LocalShell) -> None:
    cmd = "i=0; while [ $i -lt 30 ]; do sleep 0.3 & i=$((i+1)); done; wait; echo fine"
    command = await shell.start(spec(cmd, processes_count=40))
    assert await command.wait() == CommandExit(exit_status=0)
    assert await line_of(command) == b"fine"


async def test_a_command_leaves_no_core_behind(shell: LocalShell) -> None:
    command = await shell.start(spec("ulimit -c; ulimit -H -c"))
    await command.wait()
    assert command.output(head_bytes=99, tail_bytes=0)[0].head == b"0\n0\n"


async def test_a_command_starts_with_no_signal_ignored(shell: LocalShell) -> None:
    command = await shell.start(spec("grep -E 'Sig(Blk|Ign)' /proc/self/status"))
    await command.wait()
    lines = command.output(head_bytes=999, tail_bytes=0)[0].head.decode().splitlines()
    # Two that belong to the C library are ignored in whatever it spawns; nobody can send them.
    own = 1 << (32 - 1) | 1 << (33 - 1)
    assert [int(line.split()[1], 16) & ~own for line in lines] == [0, 0]


async def test_a_command_holds_nothing_of_ours_open(shell: LocalShell) -> None:
    os.dup2(0, 77, inheritable=True)
    try:
        command = await shell.start(spec("ls /proc/$$/fd"))
    finally:
        os.close(77)
    await command.wait()
    assert command.output(head_bytes=999, tail_bytes=0)[0].head.split() == [b"0", b"1", b"2"]


async def test_a_killed_supervisor_loses_its_command_but_leaves_none_of_it(
    shell: LocalShell, tmp_path: Path
) -> None:
    command = await shell.start(spec("setsid sleep 600 & echo $!; sleep 600"))
    daemon = int(await line_of(command))
    looking_after = RunFolder(tmp_path / "runs" / "run_1").read().supervisor
    assert looking_after is not None
    os.kill(looking_after.pid, signal.SIGKILL)
    assert await command.wait() == CommandExit(exit_status=None)
    await becomes(
        lambda: gone(daemon) and not marked_with(marker_of(str(tmp_path / "runs" / "run_1")))
    )


async def test_a_supervisor_that_hangs_cannot_keep_its_command_alive(
    shell: LocalShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.adapters.exec.local_command.SUPERVISOR_EXIT_MS", 10)
    command = await shell.start(spec("setsid env -i sleep 600 & echo $!; sleep 600"))
    daemon = int(await line_of(command))
    looking_after = RunFolder(tmp_path / "runs" / "run_1").read().supervisor
    assert looking_after is not None
    os.kill(looking_after.pid, signal.SIGSTOP)
    await command.stop()
    assert await command.wait() == CommandExit(exit_status=None, stopped=StopCause.REQUESTED)
    await becomes(lambda: gone(daemon) and gone(looking_after.pid))


async def test_a_killed_fork_server_is_replaced(shell: LocalShell) -> None:
    first = await shell.start(spec("sleep 600", run_id="run_0"))
    server = shell.server_pid
    assert server is not None
    os.kill(server, signal.SIGKILL)
    # Whoever stood by takes one more; then a new server is needed.
    for number in (1, 2, 3):
        command = await shell.start(spec(f"exit {number}", run_id=f"run_{number}"))
        assert await command.wait() == CommandExit(exit_status=number)
    assert shell.server_pid != server
    assert first.exit is None
    await first.stop(force=True)


def standing_by(shell: LocalShell) -> list[int]:
    return [facts.pid for facts in living() if facts.parent == shell.server_pid]


@pytest.mark.requirement("commands:a-stuck-server-is-left")
async def test_a_server_that_answers_nobody_is_replaced(
    shell: LocalShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await shell.start(spec("true", run_id="run_1"))).wait()
    await becomes(lambda: len(standing_by(shell)) == READY_COUNT_MAX)
    server, stuck = shell.server_pid, standing_by(shell)
    for pid in stuck:
        os.kill(pid, signal.SIGSTOP)
    try:
        with monkeypatch.context() as impatient:
            impatient.setattr(local_shell, "REPLY_S_MAX", 0.1)
            with pytest.raises(CommandSpawnError, match="no supervisor is available"):
                await shell.start(spec("exit 7", run_id="run_2"))
        command = await shell.start(spec("exit 8", run_id="run_3"))
        assert await command.wait() == CommandExit(exit_status=8)
    finally:
        for pid in stuck:
            os.kill(pid, signal.SIGCONT)
    assert shell.server_pid != server
    await becomes(lambda: all(gone(pid) for pid in stuck))


@pytest.mark.requirement("commands:a-stuck-server-is-left")
async def test_requests_that_nobody_takes_hold_up_nobody_else(shell: LocalShell) -> None:
    await (await shell.start(spec("true", run_id="warm"))).wait()
    await becomes(lambda: len(standing_by(shell)) == READY_COUNT_MAX)
    assert shell.server_pid is not None
    stuck, ended = [*standing_by(shell), shell.server_pid], list[CommandExit]()

    async def run(number: int) -> None:
        command = await shell.start(spec("true", run_id=f"run_{number}"))
        ended.append(await command.wait())

    def go_on() -> None:
        for pid in stuck:
            os.kill(pid, signal.SIGCONT)

    for pid in stuck:
        os.kill(pid, signal.SIGSTOP)
    rescue = threading.Timer(20, go_on)  # or a loop that stands still would do so for ever
    rescue.start()
    async with anyio.create_task_group() as group:
        for number in range(REQUESTS_BEYOND_A_SOCKET):
            group.start_soon(run, number)
        await anyio.wait_all_tasks_blocked()
        is_rescued = rescue.finished.is_set()
        rescue.cancel()
        go_on()
    assert not is_rescued
    assert ended == [CommandExit(exit_status=0)] * REQUESTS_BEYOND_A_SOCKET


@pytest.mark.requirement("commands:a-stuck-server-is-left")
async def test_closing_does_not_wait_for_a_server_that_was_stopped(shell: LocalShell) -> None:
    command = await shell.start(spec("sleep 600"))
    server = shell.server_pid
    assert server is not None
    os.kill(server, signal.SIGSTOP)
    try:
        with anyio.fail_after(10):
            await anyio.to_thread.run_sync(shell.close, abandon_on_cancel=True)
    finally:
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGCONT)
    assert gone(server)
    assert command.exit is None
    await command.stop(force=True)


async def test_a_server_without_anyone_standing_by_is_given_one(shell: LocalShell) -> None:
    await (await shell.start(spec("true", run_id="run_1"))).wait()
    await becomes(lambda: len(standing_by(shell)) == READY_COUNT_MAX)
    for pid in standing_by(shell):
        os.kill(pid, signal.SIGKILL)
    command = await shell.start(spec("exit 8", run_id="run_2"))
    assert await command.wait() == CommandExit(exit_status=8)


async def test_short_commands_leak_no_handles(shell: LocalShell) -> None:
    count = int(os.environ.get("HOLON_DRILL_COMMANDS", "60"))
    await (await shell.start(spec("true", run_id="warm"))).wait()

    def handles_count() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = handles_count()
    for number in range(count):
        command = await shell.start(spec("true", run_id=f"run_{number}"))
        assert await command.wait() == CommandExit(exit_status=0)
        await shell.forget(f"run_{number}")
    await becomes(lambda: handles_count() == before)  # the thread that removes may have one still


async def test_many_commands_at_once_each_get_their_own_end(shell: LocalShell) -> None:
    ends: dict[int, int | None] = {}

    async def run(number: int) -> None:
        command = await shell.start(spec(f"exit {number}", run_id=f"run_{number}"))
        ends[number] = (await command.wait()).exit_status

    async with anyio.create_task_group() as group:
        for number in range(24):
            group.start_soon(run, number)
    assert ends == {number: number for number in range(24)}


def test_the_supervisor_names_causes_as_the_runtime_does() -> None:
    source = Path(supervision.__file__).read_text(encoding="utf-8")
    for cause in StopCause:
        assert f'self._stop("{cause.value}"' in source


@pytest.mark.requirement("commands:whole-tree-ends")
@pytest.mark.parametrize(
    "spoil", ['exec 9<"$HOLON_RUN/run.jsonl"; flock -x 9', 'rm -rf "$HOLON_RUN"']
)
async def test_s64_a_command_that_spoils_its_folder_is_ended_all_the_same(
    shell: LocalShell, spoil: str, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    os.mkfifo(told)
    hidden = f"env -i setsid /bin/sh -c 'echo $$ >{told}; exec sleep 600'"
    command = await shell.start(spec(f"{spoil}; {hidden}"))
    pid = int(await anyio.to_thread.run_sync(told.read_text, "ascii"))
    await command.stop()
    await becomes(lambda: gone(pid))


async def test_s56_what_a_command_leaves_that_killed_its_supervisor_is_still_an_agents(
    shell: LocalShell, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    os.mkfifo(told)
    hidden = f"env -i setsid /bin/sh -c 'echo $$ >{told}; exec sleep 600' &"
    command = await shell.start(spec(f"{hidden} read line; kill -9 $PPID", accepts_input=True))
    pid = int(await anyio.to_thread.run_sync(told.read_text, "ascii"))
    assert runs_for_an_agent(pid)
    await command.feed(b"go\n")
    await command.wait()
    try:
        assert runs_for_an_agent(pid)
    finally:
        os.kill(pid, signal.SIGKILL)
    await becomes(lambda: gone(pid))


async def test_a_command_that_ran_is_lost_and_not_refused_when_its_supervisor_is_gone_at_once(
    shell: LocalShell, tmp_path: Path
) -> None:
    for number in range(12):
        ran = tmp_path / f"ran-{number}"
        killing = f"touch {ran}; kill -9 $PPID; kill -9 $$"
        command = await shell.start(spec(killing, run_id=f"run_{number}"))
        assert await command.wait() == CommandExit(exit_status=None)
        assert ran.exists()


async def test_a_command_that_has_begun_is_lost_and_not_refused_when_nobody_says_so(
    shell: LocalShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = LocalShell._ask

    async def unheard(asking: LocalShell, folder: RunFolder) -> tuple[bytes | None, int]:
        answer, pipe = await honest(asking, folder)
        assert answer, "it runs"
        return b"", pipe

    monkeypatch.setattr(LocalShell, "_ask", unheard)
    command = await shell.start(spec("sleep 600"))
    assert await command.wait() == CommandExit(exit_status=None)
