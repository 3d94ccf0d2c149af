"""What is not ours, in a runtime's place, stays as it is; what is ours is ended for certain."""

import errno
import json
import os
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from holon.adapters.exec.process_table import boot_id, identity_of
from holon.adapters.sqlite.database.home_lock import HomeLock
from holon.adapters.system.detached_process import DetachedProcess, ReadyOutcome
from holon.adapters.system.failure_files import FailureFiles
from holon.adapters.system.run_files import RunFiles, RuntimeRecord, UnsafePathError
from holon.cli.console import exit_codes
from holon.cli.main import main
from holon.client.control_client import ControlError
from holon.config.load_settings import load_settings
from holon.daemon import health, start_stop
from holon.daemon.health import (
    ForeignProcess,
    NotRunning,
    Running,
    RuntimeProbe,
    Unresponsive,
    probe_runtime,
)
from holon.daemon.start_stop import (
    Daemon,
    DaemonError,
    OtherConfigError,
    launch_arguments,
    launch_environment,
    stop,
)
from holon.model.errors import HomeInUseError, HomeUnusableError
from holon.model.values import AgentId
from holon.projections.runtime_status import DaemonState, FailurePhase
from holon.serve.access_plan import AccessMode, AccessRequest, BadAccessError
from holon.serve.effective_config import ServeRequest
from tests.daemon.driving import PATIENCE_S, Place, failure
from tests.daemon.strangers import nearby_runtime, stranger_on

ASKED = ServeRequest(access=AccessRequest(port=0), default_agent=AgentId("main"))


def daemon_of(place: Place, asked: ServeRequest = ASKED) -> Daemon:
    return Daemon(settings=load_settings(place.home, {}), asked=asked, environ=place.environ())


@pytest.mark.requirement("daemon:foreign-socket-fails-closed")
@pytest.mark.requirement("hostile:strangers-are-left-alone")
@pytest.mark.parametrize(
    "says",
    [
        b"",
        b"SSH-2.0-something\r\n",
        b'HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{"ok":true}',
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
    ],
)
def test_a_stranger_on_the_socket_is_left_alone_by_start_and_stop(run: Place, says: bytes) -> None:
    with stranger_on(run.files.socket, says):
        for act in (daemon_of(run).start, daemon_of(run).restart, lambda: stop(run.home)):
            with pytest.raises(DaemonError, match="another program"):
                act()
        assert run.files.socket.is_socket()
        assert isinstance(probe_runtime(run.files), ForeignProcess)


def test_the_runtime_of_another_home_on_our_socket_is_foreign(run: Place) -> None:
    body = json.dumps(
        {"ok": True, "healthy": True, "pid": 1, "home_dir": "/elsewhere", "socket_path": "/x"}
    )
    with nearby_runtime(run.files.socket, body), pytest.raises(DaemonError, match="/elsewhere"):
        daemon_of(run).start()


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_whatever_else_stands_in_the_sockets_place_is_not_removed(run: Place, kind: str) -> None:
    target = run.folder / "precious"
    target.write_text("kept", encoding="utf-8")
    match kind:
        case "file":
            run.files.socket.write_text("kept", encoding="utf-8")
        case "link":
            run.files.socket.symlink_to(target)
        case _:
            run.files.socket.mkdir()
    with pytest.raises(UnsafePathError, match="not a socket"):
        daemon_of(run).start()
    with pytest.raises(DaemonError, match="not a socket"):
        stop(run.home)
    assert os.path.lexists(run.files.socket)
    assert target.read_text(encoding="utf-8") == "kept"


def test_bad_access_options_are_refused_before_anything_is_stopped_or_made(place: Place) -> None:
    open_wide = ServeRequest(
        access=AccessRequest(mode=AccessMode.LAN, host="0.0.0.0"), default_agent=AgentId("main")
    )
    for act in (daemon_of(place, open_wide).start, daemon_of(place, open_wide).restart):
        with pytest.raises(BadAccessError, match="no token"):
            act()
    assert not place.home.exists()


@pytest.mark.requirement("hostile:strangers-are-left-alone")
def test_a_number_that_another_process_got_later_is_stale_and_never_signalled(run: Place) -> None:
    ours = identity_of(os.getpid())
    assert ours is not None
    reused = RuntimeRecord(pid=ours.pid, start_ticks=ours.start_ticks - 1, boot_id=boot_id())
    run.files.write_record(reused)
    found = probe_runtime(run.files)
    assert found == NotRunning((run.files.pid, run.files.record))
    assert stop(run.home).ok, "and we are still here to say so"
    assert probe_runtime(run.files) == NotRunning(())


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid":"x"}', b"\xff" * 70_000])
def test_a_record_nobody_can_read_is_left_behind_by_nobody(run: Place, content: bytes) -> None:
    run.files.record.write_bytes(content)
    assert probe_runtime(run.files) == NotRunning((run.files.record,))
    assert stop(run.home).state is DaemonState.STOPPED


@pytest.mark.requirement("daemon:nearby-versions-are-understood")
@pytest.mark.parametrize(
    ("activity", "tasks"),
    [
        ({"state": "waiting", "sleeping_agent_count": 3}, 0),
        ({"state": "dreaming"}, None),
        (None, None),
    ],
)
def test_a_runtime_that_says_less_or_more_than_we_know_is_shown_and_stopped(
    run: Place, activity: dict[str, object] | None, tasks: int | None
) -> None:
    body = json.dumps(
        {
            "ok": True,
            "healthy": True,
            "pid": 4711,
            "home_dir": str(run.home),
            "socket_path": str(run.files.socket),
            "activity": activity,
            "invented_later": {"deep": [1]},
        }
    )
    with nearby_runtime(run.files.socket, body) as process:
        shown = health.status_of(run.files, fingerprint="f")
        assert (shown.ok, shown.config_fingerprint_match) == (True, None)
        assert (shown.activity.active_task_count if shown.activity else None) == tasks
        assert stop(run.home).ok
        assert process.wait(timeout=PATIENCE_S) == 0


def test_a_runtime_that_declines_to_end_for_us_is_not_killed_for_it(run: Place) -> None:
    body = json.dumps(
        {
            "ok": True,
            "healthy": True,
            "pid": 1,
            "home_dir": str(run.home),
            "socket_path": str(run.files.socket),
        }
    )
    with nearby_runtime(run.files.socket, body, shutdown_status="403 Forbidden") as process:
        with pytest.raises(ControlError) as declined:
            stop(run.home)
        assert declined.value.status == 403
        assert process.poll() is None
        assert isinstance(probe_runtime(run.files), Running)


@pytest.mark.requirement("daemon:stop-falls-back-to-ending-the-process")
def test_a_runtime_that_does_not_listen_is_ended_by_force_and_that_is_remembered(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "DAEMON_PROBE_MS_MAX", 200)
    monkeypatch.setattr(start_stop, "DAEMON_SIGNAL_MS_MAX", 200)
    with place.serving() as process:
        process.send_signal(signal.SIGSTOP)
        silent = health.status_of(place.files, fingerprint=None)
        assert (silent.ok, silent.state, silent.pid) == (False, DaemonState.RUNNING, process.pid)
        with pytest.raises(DaemonError, match="does not respond"):
            daemon_of(place).start()
        ended = stop(place.home)
        assert process.wait(timeout=PATIENCE_S) == -signal.SIGKILL
    assert "was killed" in ended.message
    assert ended.last_failure is not None
    assert ended.last_failure.phase is FailurePhase.SHUTDOWN
    assert stop(place.home).last_failure is None, "a stop that goes well forgets it"


def test_a_start_that_never_becomes_ready_is_ended_and_remembered(place: Place) -> None:
    daemon = daemon_of(place)
    hurried = Daemon(
        settings=daemon.settings, asked=daemon.asked, environ=daemon.environ, ready_ms_max=1
    )
    with pytest.raises(DaemonError, match="not ready") as failed:
        hurried.start()
    assert failed.value.hint is not None
    assert "holon daemon logs" in failed.value.hint
    assert isinstance(probe_runtime(place.files), NotRunning)
    assert FailureFiles(place.files).of(FailurePhase.STARTUP) is not None


def test_a_start_that_is_interrupted_leaves_nothing_running(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    def interrupted(process: DetachedProcess, *, ms_max: int) -> ReadyOutcome:
        started.append(process.pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(DetachedProcess, "wait_ready", interrupted)
    done = CliRunner().invoke(main, ["daemon", "start", "--port", "0"], env=place.environ())
    assert done.exit_code == exit_codes.INTERRUPTED
    assert done.stderr == "holon: interrupted; nothing was started\n"
    assert [identity_of(pid) for pid in started] == [None]


def find_busy(monkeypatch: pytest.MonkeyPatch, *, looks_count: int) -> list[int]:
    """Let one that is ready be silent for so many looks; returns whom they were at."""
    seen: list[int] = []

    def look(files: RunFiles) -> RuntimeProbe:
        found = probe_runtime(files)
        if not isinstance(found, Running) or len(seen) >= looks_count:
            return found
        assert found.process is not None
        seen.append(found.process.pid)
        return Unresponsive(found.process)

    monkeypatch.setattr(start_stop, "probe_runtime", look)
    return seen


def test_a_runtime_that_is_busy_right_after_its_start_is_looked_at_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = find_busy(monkeypatch, looks_count=2)
    started = daemon_of(place).start()
    assert seen == [started.pid] * 2
    assert started.message == f"started as process {started.pid}"
    assert "in good order" in stop(place.home).message
    os.waitpid(seen[0], 0)


def test_a_runtime_that_is_ready_and_never_answers_is_ended(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = find_busy(monkeypatch, looks_count=9)
    with pytest.raises(DaemonError, match="it started but does not respond"):
        daemon_of(place).start()
    assert len(set(seen)) == 1
    assert identity_of(seen[0]) is None
    assert isinstance(probe_runtime(place.files), NotRunning)


def test_a_token_is_part_of_what_must_be_the_same(place: Place) -> None:
    token = "the-token-it-was-started-with"
    with place.serving("--token", token):
        settings = load_settings(place.home, place.environ())

        def asking(said: str | None) -> Daemon:
            access = AccessRequest(port=0, has_own_token=said is not None)
            asked = ServeRequest(access=access, token=said, default_agent=AgentId("main"))
            return Daemon(settings=settings, asked=asked, environ={})

        assert asking(token).start().message.startswith("already running")
        for other in ("a-token-that-is-another-one", None):
            with pytest.raises(OtherConfigError):
                asking(other).start()


def test_a_token_travels_in_the_environment_and_never_among_the_arguments() -> None:
    secret = "a-token-nobody-else-may-read"
    asked = ServeRequest(
        access=AccessRequest(port=0, has_own_token=True),
        token=secret,
        default_agent=AgentId("main"),
    )
    assert not [word for word in launch_arguments(Path("/h"), asked) if secret in word]
    assert launch_environment({}, asked) == {"HOLON_CONTROL_TOKEN": secret}
    assert launch_environment({"HOLON_CONTROL_TOKEN": "old", "A": "b"}, ASKED) == {"A": "b"}


def test_the_newest_failure_is_the_one_that_is_told(run: Place) -> None:
    files: RunFiles = run.files
    files.startup_failure.write_bytes(failure("older"))
    files.shutdown_failure.write_bytes(failure("newer", "2026-02-01T00:00:00Z", "shutdown"))
    shown = health.status_of(files, fingerprint=None)
    assert shown.last_failure is not None
    assert shown.last_failure.summary == "newer"
    files.shutdown_failure.write_bytes(b"not even JSON")
    shown = health.status_of(files, fingerprint=None)
    assert shown.last_failure is not None
    assert shown.last_failure.summary == "older"


def test_a_log_that_cannot_be_written_is_told_in_a_sentence(
    run: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(start_stop, "open_log", refuse)
    with pytest.raises(HomeUnusableError, match=r"daemon\.log cannot be used: Read-only"):
        daemon_of(run).start()


def disk(*, blocks: int, files: int, files_free: int) -> os.statvfs_result:
    return os.statvfs_result(
        (4096, 4096, 99, blocks, blocks, files, files_free, files_free, 0, 255)
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (disk(blocks=3, files=9, files_free=9), "startup, and the disk of .*/h is full"),
        (disk(blocks=9_999, files=9, files_free=0), "startup, and the disk of .*/h is full"),
        (disk(blocks=9_999, files=0, files_free=0), "startup$"),
        (disk(blocks=9_999, files=9, files_free=9), "startup$"),
    ],
)
def test_a_start_that_failed_on_a_full_disk_says_so(
    run: Place, monkeypatch: pytest.MonkeyPatch, found: os.statvfs_result, said: str
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _path: found)
    monkeypatch.setattr(start_stop, "launch_arguments", lambda *_: ["/bin/false"])
    with pytest.raises(DaemonError, match=f"it ended during {said}"):
        daemon_of(run).start()


def test_a_home_that_a_run_holds_is_said_to_be_in_use(run: Place) -> None:
    lock = HomeLock(run.home)
    try:
        for act in (daemon_of(run).start, daemon_of(run).restart):
            with pytest.raises(HomeInUseError, match=f"in use by process {os.getpid()}"):
                act()
    finally:
        lock.release()
    assert not run.files.log.exists(), "nothing was started"
