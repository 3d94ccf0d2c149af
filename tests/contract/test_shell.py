"""What every shell promises, asked of each implementation with real processes."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import anyio
import pytest

from holon.adapters.exec.local_shell import LocalShell
from holon.adapters.system.clock import SystemClock
from holon.model.tasks import CommandExit, CommandLimits, CommandSpec, OutputStream, StopCause
from holon.ports.tasks import CommandSpawnError, Shell
from tests.adapters.exec.processes import gone, line_of

Make = Callable[[Path, Mapping[str, str]], LocalShell]
SHELLS: list[Make] = [lambda root, environ: LocalShell(root, environ, SystemClock())]
SECRETS = {
    "OPENAI_API_KEY": "sk-1",
    "ANTHROPIC_AUTH_TOKEN": "t-1",
    "AWS_SECRET_ACCESS_KEY": "a-1",
    "GITHUB_TOKEN": "g-1",
    "SSH_AUTH_SOCK": "/nowhere",
    "HOLON_SECRET": "h-1",
}


@pytest.fixture(params=SHELLS, ids=["local"])
async def shell(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shell]:
    made: LocalShell = request.param(tmp_path / "runs", {**os.environ, **SECRETS, "LC_TIME": "C"})
    yield made
    for folder in (tmp_path / "runs").glob("*"):
        await made.forget(folder.name)
    made.close()


def spec(cmd: str, **changes: object) -> CommandSpec:
    return CommandSpec(**{"run_id": "run_1", "cmd": cmd, "workdir": "/", **changes})  # type: ignore[arg-type]


async def ran(on: Shell, /, cmd: str, **changes: object) -> tuple[CommandExit, bytes, bytes]:
    command = await on.start(spec(cmd, **changes))
    end = await command.wait()
    spans = command.output(head_bytes=1_000_000, tail_bytes=0)
    return end, spans[0].head, spans[-1].head


def kept(stream: str, bytes_count: int) -> str:
    """Shell text that goes on once so much of a stream of the command is on disk."""
    size = f'"$(cat "$HOLON_RUN/{stream}" 2>/dev/null | wc -c)"'
    return f"until [ {size} -ge {bytes_count} ]; do sleep 0.01; done"


@pytest.mark.parametrize(
    ("cmd", "status", "number"),
    [
        ("true", 0, None),
        ("exit 7", 7, None),
        ("kill -9 $$", 137, 9),
        ("no-such-program", 127, None),
    ],
)
async def test_the_end_of_a_command_is_known(
    shell: Shell, cmd: str, status: int, number: int | None
) -> None:
    end, _, _ = await ran(shell, cmd)
    assert end == CommandExit(exit_status=status, signal=number)


@pytest.mark.requirement("commands:output-on-disk")
async def test_the_two_streams_are_kept_apart_byte_for_byte(shell: Shell) -> None:
    end, out, err = await ran(shell, r"printf 'a\377\000b'; printf 'c\200' >&2")
    assert (end.exit_status, out, err) == (0, b"a\xff\x00b", b"c\x80")


@pytest.mark.requirement("tool-shapes:output-artifact-is-the-combined-one")
async def test_one_file_holds_both_streams_in_the_order_they_came(shell: Shell) -> None:
    # What comes at once from two pipes has no order.
    parts = ("printf a", kept("stdout", 1), "printf B >&2", kept("stderr", 1), "printf c")
    command = await shell.start(spec("; ".join((*parts, kept("stdout", 2), "printf D >&2"))))
    await command.wait()
    assert command.combined_path is not None
    assert Path(command.combined_path).read_bytes() == b"aBcD"
    [out, err] = command.output(head_bytes=9, tail_bytes=0)
    assert (out.head, err.head) == (b"ac", b"BD")


@pytest.mark.requirement("tool-shapes:output-artifact-is-the-combined-one")
@pytest.mark.parametrize(
    ("cmd", "name"), [("printf a", "stdout"), ("printf a >&2", "stderr"), ("true", None)]
)
async def test_where_one_stream_says_all_its_file_is_the_combined_one(
    shell: Shell, cmd: str, name: str | None
) -> None:
    command = await shell.start(spec(cmd))
    await command.wait()
    found = command.combined_path
    assert (None if found is None else Path(found).name) == name
    assert not list(Path(command.output(head_bytes=0, tail_bytes=0)[0].path).parent.glob("comb*"))


@pytest.mark.requirement("tool-shapes:output-artifact-is-the-combined-one")
async def test_a_stream_that_has_ended_comes_first_in_the_combined_file(shell: Shell) -> None:
    cmd = f"seq 1 50000; exec >&-; {kept('stdout', 288_894)}; printf end >&2"
    command = await shell.start(spec(cmd))
    await command.wait()
    assert command.combined_path is not None
    told = Path(command.combined_path).read_bytes()
    assert (told[:4], told[-9:]) == (b"1\n2\n", b"50000\nend")
    assert len(told) == 288_894 + 3


@pytest.mark.requirement("tool-shapes:output-artifact-is-the-combined-one")
async def test_both_streams_together_are_as_bounded_as_each(shell: Shell) -> None:
    limits = CommandLimits(output_bytes=1_000)
    cmd = f"printf x >&2; {kept('stderr', 1)}; yes"
    command = await shell.start(spec(cmd, limits=limits))
    end = await command.wait()
    assert end.stopped is StopCause.OUTPUT_SIZE
    assert command.combined_path is not None
    assert Path(command.combined_path).stat().st_size == 1_001


@pytest.mark.requirement("tool-shapes:output-artifact-is-the-combined-one")
async def test_without_room_for_the_combined_file_the_streams_are_kept(shell: Shell) -> None:
    in_the_way = 'mkdir "$HOLON_RUN/combined"'
    cmd = f"printf a; {kept('stdout', 1)}; {in_the_way}; printf b >&2"
    command = await shell.start(spec(cmd))
    end = await command.wait()
    [out, err] = command.output(head_bytes=9, tail_bytes=0)
    assert (end.exit_status, end.stopped, out.head, err.head) == (0, None, b"a", b"b")
    assert command.combined_path is None
    Path(out.path).with_name("combined").rmdir()


async def test_output_can_be_looked_at_by_its_ends(shell: Shell) -> None:
    command = await shell.start(spec("seq 1 100000"))
    await command.wait()
    [out, err] = command.output(head_bytes=4, tail_bytes=7)
    assert (out.stream, out.head, out.tail, out.total_bytes) == (
        OutputStream.STDOUT,
        b"1\n2\n",
        b"100000\n",
        588_895,
    )
    assert Path(out.path).stat().st_size == out.total_bytes
    assert (err.stream, err.head, err.tail, err.total_bytes) == (OutputStream.STDERR, b"", b"", 0)


@pytest.mark.parametrize(
    ("head", "tail", "expected"),
    [
        (9, 9, (b"abcdef", b"")),
        (4, 9, (b"abcd", b"ef")),
        (0, 2, (b"", b"ef")),
        (2, 0, (b"ab", b"")),
    ],
)
async def test_head_and_tail_never_overlap(
    shell: Shell, head: int, tail: int, expected: tuple[bytes, bytes]
) -> None:
    command = await shell.start(spec("printf abcdef"))
    await command.wait()
    [out, _] = command.output(head_bytes=head, tail_bytes=tail)
    assert (out.head, out.tail) == expected


async def test_a_command_leads_a_session_and_a_group_of_its_own(shell: Shell) -> None:
    _, out, _ = await ran(shell, "echo $$; cut -d' ' -f5,6 /proc/$$/stat")
    pid, group_and_session = out.decode().splitlines()
    assert group_and_session.split() == [pid, pid]
    assert int(pid) != os.getpgrp()


async def test_a_command_without_input_reads_nothing(shell: Shell) -> None:
    end, out, _ = await ran(shell, "cat; echo done")
    assert (end.exit_status, out) == (0, b"done\n")


@pytest.mark.requirement("commands:environment-is-an-allow-list")
async def test_no_key_reaches_a_command(shell: Shell) -> None:
    added = {"HOLON_AGENT_ID": "main", "HOLON_AGENT_HOME": "/somewhere"}
    _, out, _ = await ran(shell, "env", environment=added)
    seen = dict(line.split("=", 1) for line in out.decode().splitlines())
    assert not SECRETS.keys() & seen.keys()
    assert seen.items() >= {**added, "HOLON_RUNTIME": "1", "LC_TIME": "C"}.items()
    _, out, _ = await ran(shell, "cat /proc/$PPID/environ", run_id="run_2")
    assert b"PATH=" in out
    assert not any(secret.encode() in out for secret in SECRETS)


@pytest.mark.requirement("commands:login-only-when-asked")
@pytest.mark.parametrize(("login", "expected"), [(False, b"plain\n"), (True, b"login\n")])
async def test_a_login_shell_is_used_only_when_asked(
    shell: Shell, login: bool, expected: bytes
) -> None:
    question = "shopt -q login_shell && echo login || echo plain"
    _, out, _ = await ran(shell, question, shell="bash", login=login)
    assert out == expected


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"shell": "no-such-shell"}, "no shell 'no-such-shell'"),
        ({"shell": "./sh"}, "no shell './sh'"),
        ({"shell": "/etc/passwd"}, "no shell '/etc/passwd'"),
        ({"workdir": "/no/such/place"}, "/no/such/place cannot be used: No such file"),
        ({"workdir": "/etc/passwd"}, "/etc/passwd cannot be used: Not a directory"),
        ({"cmd": "echo \0"}, "could not be started"),
        ({"cmd": "echo \ud800"}, "could not be started"),
        ({"cmd": ": " + 300_000 * "x"}, "could not be started: Argument list too long"),
        ({"environment": {"A=B": "c"}}, "could not be started"),
        ({"run_id": "../escape"}, "cannot be the id of a run"),
        ({"run_id": ""}, "cannot be the id of a run"),
    ],
)
async def test_s65_what_cannot_be_started_says_why_and_leaves_nothing(
    shell: Shell, changes: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(CommandSpawnError) as caught:
        await shell.start(spec(**{"cmd": "true", **changes}))  # type: ignore[arg-type]
    assert said in caught.value.message
    assert not list(tmp_path.glob("runs/[!.]*"))
    assert await shell.attach("run_1") is None


async def test_s65_a_deleted_working_directory_is_refused(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone").rmdir()
    with pytest.raises(CommandSpawnError):
        await shell.start(spec("true", workdir=str(tmp_path / "gone")))


async def test_a_run_id_names_one_command_for_good(shell: Shell, tmp_path: Path) -> None:
    cmd = f"echo once >> {tmp_path}/count"
    await ran(shell, cmd)
    with pytest.raises(CommandSpawnError, match="already started"):
        await shell.start(spec(cmd))
    assert (tmp_path / "count").read_text() == "once\n"


@pytest.mark.requirement("commands:bounded-drain")
async def test_s64_a_grandchild_that_holds_the_output_does_not_hold_the_result(
    shell: Shell,
) -> None:
    command = await shell.start(spec("sleep 600 & echo $!"))
    with anyio.fail_after(60):
        end = await command.wait()
    assert end == CommandExit(exit_status=0)
    sleeper = int(command.output(head_bytes=99, tail_bytes=0)[0].head)
    await command.stop(force=True)
    assert gone(sleeper)


async def test_a_cancelled_wait_leaves_the_command_running(shell: Shell) -> None:
    command = await shell.start(spec("read line; exit $line", accepts_input=True))
    waiter = asyncio.create_task(command.wait())
    await asyncio.sleep(0)
    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    assert command.exit is None
    assert await command.feed(b"5\n") == 2
    for end in await asyncio.gather(command.wait(), command.wait()):
        assert end == CommandExit(exit_status=5) == command.exit
    assert await command.feed(b"more\n") == 0


@pytest.mark.requirement("commands:continuation-is-opt-in")
async def test_a_command_that_accepts_no_input_is_not_fed(shell: Shell) -> None:
    command = await shell.start(spec("sleep 600"))
    assert await command.feed(b"x") == 0
    await command.stop(force=True)


async def test_a_command_that_does_not_read_is_fed_what_fits(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.adapters.exec.local_command.FEED_MS_MAX", 1)
    command = await shell.start(spec("sleep 600", accepts_input=True))
    assert 0 < await command.feed(1_000_000 * b"x") < 1_000_000
    await command.stop(force=True)


@pytest.mark.requirement("commands:terminal-is-one-stream")
async def test_a_terminal_is_one_stream_and_can_be_typed_into(shell: Shell) -> None:
    cmd = "test -t 0 && test -t 1 && stty size; read line; echo got $line >&2; read rest || exit 4"
    command = await shell.start(spec(cmd, tty=True, accepts_input=True, shell="bash"))
    assert await command.feed(b"hello\n\x04") == 7
    assert await command.wait() == CommandExit(exit_status=4)
    [span] = command.output(head_bytes=1_000, tail_bytes=0)
    assert span.stream is OutputStream.COMBINED
    assert b"24 80\r\n" in span.head
    assert b"got hello\r\n" in span.head


async def test_a_terminal_takes_more_than_it_holds_at_once(shell: Shell) -> None:
    cmd = "stty raw -echo; echo go; head -c 200000 | wc -c"
    command = await shell.start(spec(cmd, tty=True, accepts_input=True))
    assert await line_of(command) == b"go"
    assert await command.feed(200_000 * b"x") == 200_000
    await command.wait()
    assert command.output(head_bytes=99, tail_bytes=0)[0].head.split() == [b"go", b"200000"]


@pytest.mark.parametrize("cmd", ["-c 'exit 3'; exit 5", "+x; exit 5", "- ; exit 5"])
async def test_a_command_is_never_taken_for_an_option(shell: Shell, cmd: str) -> None:
    end, _, _ = await ran(shell, cmd)
    assert end.exit_status == 5


@pytest.mark.parametrize("tty", [False, True])
@pytest.mark.parametrize("force", [False, True])
async def test_stop_ends_the_group(shell: Shell, tty: bool, force: bool) -> None:
    command = await shell.start(spec("sleep 600 & echo $!; wait", tty=tty))
    sleeper = int(await line_of(command))
    await command.stop(force=force)
    assert gone(sleeper)
    end = await command.wait()
    assert end.stopped is StopCause.REQUESTED
    assert end.signal in {signal.SIGTERM, signal.SIGKILL, signal.SIGHUP}
    await command.stop()  # once more changes nothing
    assert command.exit == end


@pytest.mark.parametrize(
    ("cmd", "limits", "cause"),
    [
        ("sleep 600", CommandLimits(wall_clock_ms=50), StopCause.WALL_CLOCK),
        ("yes", CommandLimits(output_bytes=100_000), StopCause.OUTPUT_SIZE),
        ("yes >&2", CommandLimits(output_bytes=100_000), StopCause.OUTPUT_SIZE),
    ],
)
@pytest.mark.requirement("commands:limits-end-a-command")
async def test_s64_a_limit_ends_a_command(
    shell: Shell, cmd: str, limits: CommandLimits, cause: StopCause
) -> None:
    command = await shell.start(spec(cmd, limits=limits))
    assert (await command.wait()).stopped is cause
    for span in command.output(head_bytes=1, tail_bytes=1):
        assert span.total_bytes in (0, limits.output_bytes)


@pytest.mark.requirement("commands:limits-end-a-command")
@pytest.mark.parametrize("tty", [False, True])
async def test_s64_what_is_over_the_cap_never_reaches_the_disk(
    shell: Shell, tty: bool, tmp_path: Path
) -> None:
    cap = CommandLimits(output_bytes=10_000)
    command = await shell.start(spec("head -c 300000 /dev/zero", tty=tty, limits=cap))
    await command.wait()
    kept = [path.stat().st_size for path in (tmp_path / "runs" / "run_1").iterdir()]
    assert max(kept) == cap.output_bytes


async def test_exactly_the_cap_is_not_too_much(shell: Shell) -> None:
    end, out, _ = await ran(shell, "printf abcdef", limits=CommandLimits(output_bytes=6))
    assert (end, out) == (CommandExit(exit_status=0), b"abcdef")


async def test_what_may_still_run_is_known_by_its_id(shell: Shell) -> None:
    assert await shell.unended_runs() == []
    command = await shell.start(spec("sleep 60"))
    assert await shell.unended_runs() == ["run_1"]
    await command.stop(force=True)
    assert await shell.unended_runs() == []


async def test_a_run_that_left_somebody_behind_is_not_over(shell: Shell) -> None:
    command = await shell.start(spec("setsid sleep 60 >/dev/null 2>&1 &"))
    assert await command.wait() == CommandExit(exit_status=0)
    assert await shell.unended_runs() == ["run_1"]
    await command.stop(force=True)
    assert await shell.unended_runs() == []


@pytest.mark.requirement("command-tools:nothing-nameless-runs-on")
async def test_what_is_left_running_is_told_and_is_asked_politely_to_end(
    shell: Shell, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    begun = tmp_path / "begun"
    waits = f"trap 'echo bye >{said}; exit' TERM; echo >{begun}; while :; do sleep 1; done"
    command = await shell.start(spec(f'sh -c "{waits}" & until test -e {begun}; do :; done'))
    assert not command.left_running
    assert await command.wait() == CommandExit(exit_status=0)
    assert command.left_running
    await command.stop()
    assert not command.left_running
    assert said.read_text() == "bye\n"


@pytest.mark.parametrize("cmd", ["true", "echo x | cat", "sleep 0 & wait"])
async def test_a_command_that_took_all_along_left_nothing_running(shell: Shell, cmd: str) -> None:
    command = await shell.start(spec(cmd))
    await command.wait()
    assert not command.left_running


async def test_a_forgotten_run_is_unknown(shell: Shell, tmp_path: Path) -> None:
    await ran(shell, "true")
    found = await shell.attach("run_1")
    assert found is not None
    assert await found.wait() == CommandExit(exit_status=0)
    await shell.forget("run_1")
    await shell.forget("run_1")
    assert await shell.attach("run_1") is None
    assert not list(tmp_path.glob("runs/[!.]*"))


async def test_where_a_command_writes_is_known_before_it_starts(shell: Shell) -> None:
    asked = spec("echo hi; echo ho >&2")
    paths = shell.output_paths(asked)
    assert await shell.attach("run_1") is None, "asking starts nothing"
    command = await shell.start(asked)
    await command.wait()
    assert [span.path for span in command.output(head_bytes=0, tail_bytes=0)] == list(paths)
    with pytest.raises(CommandSpawnError):
        shell.output_paths(spec("true", run_id="run_2", shell="/no/shell"))
