"""Commands that want too much of the machine. Each attack is real, and bounded by its own nature:
what the limits should fail to stop ends by itself before it hurts."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from holon.adapters.exec.local_shell import LocalShell
from holon.adapters.exec.process_table import marked_with
from holon.adapters.exec.run_folder import marker_of
from holon.adapters.system.clock import SystemClock
from holon.model.limits import MIB
from holon.model.tasks import CommandExit, CommandLimits, CommandSpec, StopCause
from tests.adapters.exec.processes import becomes, gone, line_of

pytestmark = pytest.mark.long

ENDED_S_MAX = 10  # after a stop, the whole tree is gone within this


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[LocalShell]:
    made = LocalShell(tmp_path / "runs", os.environ, SystemClock())
    yield made
    for folder in (tmp_path / "runs").glob("*"):
        await made.forget(folder.name)
        assert not marked_with(marker_of(str(folder)))
    made.close()


def spec(cmd: str, *, tty: bool = False, workdir: str = "/", **limits: int) -> CommandSpec:
    return CommandSpec(
        run_id="run_1", cmd=cmd, workdir=workdir, tty=tty, limits=CommandLimits(**limits)
    )


@pytest.mark.requirement("commands:limits-end-a-command")
@pytest.mark.parametrize("tty", [False, True])
@pytest.mark.parametrize(
    "flood",
    [
        "head -c 10G /dev/zero",
        "yes",
        "trap '' TERM HUP PIPE; while :; do head -c 1M /dev/zero; done",
        "for i in 1 2 3 4; do yes $i & done; wait",
    ],
    ids=["10-GB", "yes", "ignores-signals", "many-writers"],
)
async def test_s64_output_without_end_is_cut_at_the_limit(
    shell: LocalShell, flood: str, tty: bool, tmp_path: Path
) -> None:
    command = await shell.start(spec(flood, tty=tty, output_bytes=MIB))
    end = await command.wait()
    assert end.stopped is StopCause.OUTPUT_SIZE
    await becomes(lambda: not marked_with(marker_of(str(tmp_path / "runs" / "run_1"))))
    kept = sum(path.stat().st_size for path in (tmp_path / "runs" / "run_1").iterdir())
    assert MIB <= kept < MIB + 64 * 1024
    spans = command.output(head_bytes=10, tail_bytes=10)
    assert spans[0].total_bytes == MIB


@pytest.mark.requirement("commands:limits-end-a-command")
async def test_s64_a_huge_file_is_refused_by_the_kernel(shell: LocalShell, tmp_path: Path) -> None:
    cmd = "truncate -s 100G huge 2>&1; head -c 3M /dev/zero > large; ls -l large | cut -d' ' -f5"
    command = await shell.start(spec(cmd, workdir=str(tmp_path), file_bytes=MIB))
    assert await command.wait() == CommandExit(exit_status=0)
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir() if path.is_file()}
    assert sizes.get("huge", 0) == 0
    assert sizes["large"] == MIB


@pytest.mark.requirement("commands:limits-end-a-command")
@pytest.mark.parametrize(("limit", "expected"), [("-n", 128), ("-f", MIB // 512), ("-c", 0)])
async def test_s64_a_command_cannot_raise_its_limits(
    shell: LocalShell, limit: str, expected: int
) -> None:
    cmd = f"ulimit {limit}; ulimit -H {limit}"
    command = await shell.start(spec(cmd, handles_count=128, file_bytes=MIB))
    await command.wait()
    said = command.output(head_bytes=99, tail_bytes=0)[0].head.split()
    assert [int(each) for each in said] == [expected, expected]


@pytest.mark.requirement("commands:limits-end-a-command")
async def test_s64_a_million_handles_are_not_to_be_had(shell: LocalShell) -> None:
    cmd = 'i=3; while [ $i -lt 400 ]; do eval "exec $i</dev/null" || exit 7; i=$((i+1)); done'
    command = await shell.start(
        CommandSpec(
            run_id="run_1",
            cmd=cmd,
            workdir="/",
            shell="bash",
            limits=CommandLimits(handles_count=128),
        )
    )
    assert (await command.wait()).exit_status not in (0, None)
    assert b"Too many open files" in command.output(head_bytes=999, tail_bytes=0)[1].head


@pytest.mark.requirement("commands:whole-tree-ends")
@pytest.mark.parametrize(
    ("cmd", "tty"),
    [
        ("trap '' TERM HUP INT QUIT; echo $$; while :; do sleep 600; done", False),
        ("trap '' TERM HUP INT QUIT; echo $$; while :; do sleep 600; done", True),
        ("(trap '' TERM; setsid nohup sh -c 'trap \"\" TERM HUP; sleep 600' & echo $!); cat", True),
        ("stty raw -echo; printf '%s\\n' $$; cat", True),
        ("echo $$; kill -STOP $$; sleep 600", False),
    ],
    ids=["ignores", "ignores-on-terminal", "daemon", "waits-for-keys", "stopped"],
)
async def test_s64_the_whole_tree_is_gone_soon_after_a_stop(
    shell: LocalShell, cmd: str, tty: bool, tmp_path: Path
) -> None:
    command = await shell.start(spec(cmd, tty=tty))
    pid = int(await line_of(command))
    with anyio.fail_after(ENDED_S_MAX):
        await command.stop()
    assert gone(pid)
    assert not marked_with(marker_of(str(tmp_path / "runs" / "run_1")))
    assert (await command.wait()).stopped is StopCause.REQUESTED


@pytest.mark.requirement("commands:limits-end-a-command")
async def test_s64_a_bomb_that_leaves_its_session_each_time_is_ended(
    shell: LocalShell, tmp_path: Path
) -> None:
    # Two of each, six generations deep: 127 processes and no more, whatever the limit does.
    script = tmp_path / "bomb"
    script.write_text(
        '[ "$1" -gt 0 ] && { n=$(($1-1)); setsid sh "$0" $n & setsid sh "$0" $n & }\n'
        "trap '' TERM; sleep 600\n"
    )
    command = await shell.start(spec(f"exec sh {script} 6", processes_count=15))
    assert await command.wait() == CommandExit(
        exit_status=137, signal=signal.SIGKILL, stopped=StopCause.PROCESSES
    )
    await becomes(lambda: not marked_with(marker_of(str(tmp_path / "runs" / "run_1"))))
