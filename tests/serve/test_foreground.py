"""`holon serve` as a process: what it refuses before it runs, and how it goes down."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holon.adapters.sqlite.database.home_lock import database_path
from holon.wire.responses import ReadinessAnswer, ShutdownAnswer
from tests.daemon.conftest import place
from tests.daemon.driving import PATIENCE_S, Place, until

pytestmark = pytest.mark.long

__all__ = ["place"]


def spoilt_home(found: Place) -> None:
    found.home.mkdir(mode=0o700)
    found.home.chmod(0o777)


def spoilt_token(found: Place) -> None:
    found.files.folder.mkdir(mode=0o700, parents=True)
    found.home.chmod(0o700)
    found.files.token.write_text("a-token-that-was-made-elsewhere\n", encoding="ascii")
    found.files.token.chmod(0o644)


def linked_pid(found: Place) -> None:
    found.files.folder.mkdir(mode=0o700, parents=True)
    found.home.chmod(0o700)
    (found.folder / "precious").write_text("kept", encoding="utf-8")
    found.files.pid.symlink_to(found.folder / "precious")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [(spoilt_home, "chmod go-w"), (spoilt_token, "chmod go-rwx"), (linked_pid, "symbolic link")],
)
def test_an_unsafe_home_is_refused_before_anything_is_made(
    place: Place, spoil: Callable[[Place], None], said: str
) -> None:
    spoil(place)
    before = sorted(place.home.rglob("*"))
    done = place.holon("serve", "--port", "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert sorted(place.home.rglob("*")) == before


@contextmanager
def hangups(handling: signal.Handlers) -> Iterator[None]:
    """Start children that ignore a hangup or do not, however these tests were started."""
    before = signal.signal(signal.SIGHUP, handling)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_polite_signal_ends_it_in_good_order(place: Place, number: signal.Signals) -> None:
    with hangups(signal.SIG_DFL), place.serving() as process:
        record = place.files.read_record()
        assert record is not None
        assert record.pid == process.pid == int(place.files.pid.read_text(encoding="ascii"))
        process.send_signal(number)
        assert process.wait(timeout=PATIENCE_S) == 0
    assert not place.files.record.exists()
    assert not place.files.pid.exists()
    assert not place.files.socket.exists()


def test_a_service_under_nohup_outlives_its_terminal(place: Place) -> None:
    with hangups(signal.SIG_IGN), place.serving() as process:
        process.send_signal(signal.SIGHUP)
        assert place.client.get("/control/runtime/readiness", ReadinessAnswer).ok
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_S) == 0


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_a_service_nobody_listens_to_comes_up_and_ends_in_good_order(
    place: Place, arguments: tuple[str, ...]
) -> None:
    taken, given = os.pipe()
    os.close(taken)
    with subprocess.Popen(
        [sys.executable, "-m", "holon", "serve", "--port", "0", *arguments],
        env=place.environ(),
        stdout=given,
        stderr=given,
    ) as process:
        os.close(given)
        until(lambda: place.files.record.exists() or process.poll() is not None)
        assert place.client.get("/control/runtime/readiness", ReadinessAnswer).ok
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_S) == 0
    assert not place.files.record.exists()
    assert not place.files.shutdown_failure.exists()


def test_whoever_asks_for_the_end_is_answered_before_it_comes(place: Place) -> None:
    with place.serving() as process:
        answer = place.client.post("/control/runtime/shutdown", ShutdownAnswer)
        assert answer.ok
        assert process.wait(timeout=PATIENCE_S) == 0


@pytest.mark.parametrize("on_its_port", [False, True])
def test_a_home_that_is_served_already_is_left_as_it_is(place: Place, on_its_port: bool) -> None:
    with place.serving() as process:
        served = place.files.read_record()
        assert served is not None
        assert served.http_addr is not None
        port = served.http_addr.rpartition(":")[2] if on_its_port else "0"
        second = place.holon("serve", "--port", port)
        assert second.returncode == 2
        assert second.stderr.count("in use") == 1, "it is said once"
        assert "holon prompt" in second.stderr
        assert not place.files.startup_failure.exists(), "the one that serves is well"
        record = place.files.read_record()
        assert record is not None
        assert record.pid == process.pid


def test_a_port_of_another_program_is_what_is_in_the_way(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = place.holon("serve", "--port", str(other.getsockname()[1]))
    assert done.returncode == 1
    assert "choose one with --port" in done.stderr
    assert "in use by process" not in done.stderr


@pytest.mark.requirement("database:gone-beside-what-belonged-to-it")
def test_an_emptied_database_is_refused_and_its_log_is_kept(place: Place) -> None:
    with place.serving() as process:
        process.kill()
    path = database_path(place.home)
    os.truncate(path, 0)
    log = path.with_name(f"{path.name}-wal")
    before = log.read_bytes()
    assert before
    done = place.holon("serve", "--port", "0")
    assert done.returncode == 2
    assert log.read_bytes() == before
    assert "is empty, but its write-ahead log" in " ".join(done.stderr.split())
    assert path.read_bytes() == b""


def test_a_failed_start_in_the_foreground_is_remembered_too(place: Place) -> None:
    place.home.mkdir(mode=0o700)
    os.mkdir(place.home / "state", 0o700)
    Path(place.home / "state/runtime.sqlite").write_bytes(b"this is no database " * 500)
    done = place.holon("serve", "--port", "0")
    assert done.returncode == 2
    assert place.told("daemon", "status")["last_failure"]["phase"] == "startup"
