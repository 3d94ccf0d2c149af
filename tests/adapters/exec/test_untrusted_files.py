"""A command that makes something odd of the files in its own folder harms nobody but itself."""

import errno
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from holon.adapters.exec import run_folder
from holon.adapters.exec.local_shell import LocalShell
from holon.adapters.exec.run_folder import RunFolder
from holon.adapters.system.clock import SystemClock
from holon.model.limits import COMMAND_TEXT_BYTES_MAX, MIB
from holon.model.tasks import CommandExit, CommandLimits, CommandSpec

PATIENCE_S = 30
# What a command may make of a file of its own. Nothing of it may be waited for, followed or raised.
ODD = [
    "mkdir {}",
    "mkfifo {}",
    "ln -s /etc/passwd {}",
    "ln -s {} {}",
    "ln -s /dev/zero {}",
]
LIES = [
    b"[" * 1_000_000,
    b'{"asked": 7, "supervisor": [], "ended": "yes"}',
    b'{"ended": {"exit_status": "no", "signal": {}, "stopped": []}}',
    b'{"ended": {"exit_status": 1e400, "signal": null, "stopped": "never"}}',
    b'{"ended": {"exit_status": 99999999999999999999, "signal": null}}',
    b'{"supervisor": {"pid": 99999999999999999999999, "start_ticks": 1, "boot_id": ""}}',
    b'{"supervisor": {"pid": Infinity, "start_ticks": 1, "boot_id": ""}}',
    b"\n" * 1_000_000,
]


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[LocalShell]:
    made = LocalShell(tmp_path / "runs", os.environ, SystemClock())
    with anyio.fail_after(PATIENCE_S):
        yield made
    for folder in (tmp_path / "runs").glob("[!.]*"):
        await made.forget(folder.name)
    made.close()
    assert list((tmp_path / "runs").iterdir()) == []


def spec(cmd: str, *, accepts_input: bool = False) -> CommandSpec:
    return CommandSpec(
        run_id="run_1",
        cmd=cmd,
        workdir="/",
        accepts_input=accepts_input,
        limits=CommandLimits(),
    )


def made_odd(how: str, name: str) -> str:
    path = f'"$HOLON_RUN/{name}"'
    return f"rm -f {path}; {how.replace('{}', path)}"


@pytest.mark.requirement("commands:own-files-harm-nobody")
@pytest.mark.parametrize("how", ODD)
async def test_s34_an_output_that_is_no_plain_file_is_an_empty_one(
    shell: LocalShell, how: str
) -> None:
    command = await shell.start(spec(made_odd(how, "stdout") + "; echo told >&2; exit 3"))
    assert await command.wait() == CommandExit(exit_status=3)
    for found in (command, await shell.attach("run_1")):
        assert found is not None
        out, err = found.output(head_bytes=99, tail_bytes=99)
        assert (out.head, out.tail, out.total_bytes) == (b"", b"", 0)
        assert err.head == b"told\n"


async def test_s34_of_a_huge_output_only_the_ends_are_read(shell: LocalShell) -> None:
    command = await shell.start(spec('echo first; truncate -s 30G "$HOLON_RUN/stderr"'))
    await command.wait()
    _, err = command.output(head_bytes=10, tail_bytes=10)
    assert (len(err.head), len(err.tail), err.total_bytes) == (10, 10, 30 * 2**30)


@pytest.mark.requirement("commands:own-files-harm-nobody")
@pytest.mark.parametrize("how", [*ODD, "truncate -s 30G {}", "true {}"])
async def test_s34_a_command_that_spoils_its_record_is_lost_and_nothing_else(
    shell: LocalShell, how: str
) -> None:
    command = await shell.start(spec(made_odd(how, "run.jsonl")))
    assert (await command.wait()).exit_status in (None, 0)
    found = await shell.attach("run_1")
    assert found is not None
    await found.wait()
    await found.stop()
    assert await shell.unended_runs() == []
    [left] = await shell.ended_runs()
    assert left.ended_at <= SystemClock().now()


@pytest.mark.requirement("commands:own-files-harm-nobody")
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie[:40].decode())
async def test_a_record_is_believed_only_where_it_has_the_right_form(
    shell: LocalShell, lie: bytes, tmp_path: Path
) -> None:
    folder = RunFolder(tmp_path / "runs" / "run_1")
    os.makedirs(folder.path)
    Path(folder.path, "run.jsonl").write_bytes(lie)
    found = await shell.attach("run_1")
    assert found is not None
    assert await found.wait() == CommandExit(exit_status=None)
    assert len(await shell.ended_runs()) == 1
    assert len(folder._lines()) <= run_folder.RECORD_LINES_COUNT_MAX + 1


async def test_a_time_that_a_command_gave_its_record_is_not_taken_for_the_future(
    shell: LocalShell,
) -> None:
    command = await shell.start(spec("exit 0"))
    await command.wait()
    [path] = [Path(each.path).parent for each in command.output(head_bytes=0, tail_bytes=0)[:1]]
    os.utime(path / "run.jsonl", (2**40, 2**40))
    [left] = await shell.ended_runs()
    assert left.ended_at <= SystemClock().now()


async def test_s34_what_stands_where_the_input_was_is_never_written_to(
    shell: LocalShell, tmp_path: Path
) -> None:
    kept, gate = tmp_path / "kept", tmp_path / "gate"
    kept.write_text("mine")
    os.mkfifo(gate)
    cmd = f'rm "$HOLON_RUN/input"; ln -s {kept} "$HOLON_RUN/input"; echo done > {gate}; sleep 600'
    command = await shell.start(spec(cmd, accepts_input=True))
    await anyio.to_thread.run_sync(gate.read_text)
    assert await command.feed(b"words") == 0
    await command.stop(force=True)
    assert kept.read_text() == "mine"


async def test_folders_that_a_command_left_in_its_own_are_removed_with_it(
    shell: LocalShell, tmp_path: Path
) -> None:
    command = await shell.start(spec('mkdir -p "$HOLON_RUN/a/b/c"; echo x > "$HOLON_RUN/a/b/c/d"'))
    await command.wait()
    await shell.forget("run_1")
    shell.close()
    assert list((tmp_path / "runs").iterdir()) == []


async def test_a_folder_that_was_made_a_link_takes_nothing_along(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "run_1").symlink_to(precious)
    shell = LocalShell(tmp_path / "runs", os.environ, SystemClock())
    await shell.forget("run_1")
    shell.close()
    assert (precious / "file").read_text() == "mine"
    assert list((tmp_path / "runs").iterdir()) == []


async def test_the_end_of_a_command_is_not_lost_while_there_are_no_handles(
    shell: LocalShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = await shell.start(spec("exit 4"))
    honest, looks = os.open, 0

    def scarce(path: str, flags: int, mode: int = 0o777) -> int:
        nonlocal looks
        if str(path).endswith("run.jsonl"):
            looks += 1
            if looks < 4:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return honest(path, flags, mode)

    monkeypatch.setattr(os, "open", scarce)
    assert await command.wait() == CommandExit(exit_status=4)
    assert looks > 4


def test_what_a_command_adds_to_its_record_costs_only_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path / "run_1")
    folder.make({"cmd": "x"}, takes_input=False)
    with open(folder.record, "a", encoding="ascii") as record:
        record.write('{"asked": {' + ",".join(f'"{n}": 0' for n in range(9_999)) + "}}\n")
        record.write('{"ended": "' + "x" * 9_999 + '"}\n' + '{"a": 0}\n{}\n')
    read: list[bytes] = []
    honest = json.loads

    def watched(line: bytes) -> object:
        read.append(line)
        return honest(line)

    monkeypatch.setattr(json, "loads", watched)
    assert folder.read().command == {"cmd": "x"}
    assert len(read) == 1


def test_of_a_record_that_a_command_made_huge_no_more_is_read_than_ours_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path / "run_1")
    asked = {"cmd": "\x01" * COMMAND_TEXT_BYTES_MAX}
    folder.make(asked, takes_input=False)
    os.truncate(folder.record, 64 * MIB)
    read: list[int] = []
    honest = os.read

    def watched(handle: int, count: int) -> bytes:
        read.append(count)
        return honest(handle, count)

    monkeypatch.setattr(os, "read", watched)
    assert folder.read().command == asked
    assert sum(read) <= 2 * MIB
