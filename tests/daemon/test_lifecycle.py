"""A runtime in the background, from its first start to its end, with real processes."""

import json
import os
import re
import resource
import select
import signal
import socket
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holon.adapters.exec.process_table import identity_of
from tests.daemon.driving import PATIENCE_S, Place, until


@pytest.mark.requirement("daemon:same-runtime-in-the-background")
@pytest.mark.requirement("daemon:start-is-idempotent")
@pytest.mark.requirement("daemon:other-config-fails-closed")
@pytest.mark.requirement("daemon:restart-replaces-the-process")
@pytest.mark.requirement("daemon:status-shows-enough")
@pytest.mark.requirement("daemon:same-access-options")
def test_the_life_of_a_daemon(place: Place) -> None:
    started = place.told("daemon", "start", "--port", "0")
    assert (started["ok"], started["state"]) == (True, "running")
    pid = started["pid"]
    command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    assert b"serve" in command
    assert os.getsid(pid) == pid, "it has a session of its own"
    assert os.readlink(f"/proc/{pid}/fd/0") == os.devnull
    limits = Path(f"/proc/{pid}/limits").read_text(encoding="ascii")
    (files,) = [line for line in limits.splitlines() if line.startswith("Max open files")]
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert int(files.split()[3]) >= min(8_192, hard)
    assert "Umask:\t0077" in Path(f"/proc/{pid}/status").read_text(encoding="ascii")

    shown = place.told("daemon", "status", "--port", "0")
    assert shown["pid"] == pid
    assert shown["home_dir"] == str(place.home)
    assert shown["socket_path"] == str(place.files.socket)
    assert shown["http_addr"].startswith("127.0.0.1:")
    assert shown["control_connectivity"] == "connected"
    assert shown["config_fingerprint_match"] is True
    assert set(shown["activity"]) == {
        "state",
        "active_agent_count",
        "active_task_count",
        "processing_agent_count",
        "waiting_agent_count",
    }
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in place.files.folder.iterdir()}
    assert set(modes.values()) == {0o600}, modes

    again = place.told("daemon", "start", "--port", "0")
    assert (again["ok"], again["pid"]) == (True, pid), "the same effective configuration"

    other = place.holon("daemon", "start", "--port", "0", "--agent", "somebody-else")
    assert other.returncode == 1
    assert "holon daemon restart" in other.stderr
    assert place.told("daemon", "status")["pid"] == pid, "it was left alone"

    replaced = place.told("daemon", "restart", "--port", "0", "--agent", "somebody-else")
    assert replaced["ok"]
    assert replaced["pid"] != pid
    assert identity_of(pid) is None

    stopped = place.told("daemon", "stop")
    assert (stopped["ok"], stopped["state"]) == (True, "stopped")
    assert identity_of(replaced["pid"]) is None
    left = {path.name for path in place.files.folder.iterdir()}
    assert left == {"daemon.log", "lock", "token", "turn"}
    lines = [json.loads(line) for line in place.told("daemon", "logs")["lines"]]
    life = ["starting", "recovered", "ready", "draining", "ended"]
    assert [line["event"] for line in lines] == 2 * life, "two processes, and nothing but JSON"
    assert {line["pid"] for line in lines} == {pid, replaced["pid"]}
    token = place.files.token.read_text(encoding="ascii").strip()
    assert token not in place.files.log.read_text(encoding="utf-8")
    asked = place.holon("daemon", "status")
    assert asked.returncode == 1
    assert "holon daemon start" in asked.stdout


@pytest.mark.requirement("daemon:same-runtime-in-the-background")
def test_what_the_caller_has_open_is_not_kept_open_by_the_daemon(place: Place) -> None:
    taken, given = os.pipe()
    try:
        started = subprocess.run(
            [sys.executable, "-m", "holon", "daemon", "start", "--port", "0"],
            env=place.environ(),
            pass_fds=(given,),
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert started.returncode == 0, started.stderr
        os.close(given)
        assert select.select([taken], [], [], 0)[0], "nobody else can write into it any more"
        assert os.read(taken, 1) == b""
    finally:
        os.close(taken)


@pytest.mark.requirement("daemon:stale-files-are-recoverable")
@pytest.mark.requirement("hostile:left-behind-is-cleaned")
@pytest.mark.requirement("daemon:restart-survives-a-missing-process")
def test_a_killed_runtime_leaves_files_that_the_next_start_cleans_up(place: Place) -> None:
    with place.serving() as process:
        process.kill()
        process.wait(timeout=PATIENCE_S)
    stale = place.told("daemon", "status")
    assert (stale["ok"], stale["state"], stale.get("pid")) == (False, "stale", None)
    assert {Path(path).name for path in stale["stale_files"]} == {
        "holon.sock",
        "holon.pid",
        "daemon.json",
    }
    restarted = place.told("daemon", "restart", "--port", "0")
    assert restarted["ok"]
    assert restarted["pid"] != process.pid


def test_a_stop_cleans_up_after_a_killed_runtime(place: Place) -> None:
    with place.serving() as process:
        process.kill()
        process.wait(timeout=PATIENCE_S)
    stopped = place.told("daemon", "stop")
    assert (stopped["ok"], stopped["state"]) == (True, "stopped")
    assert not place.files.socket.exists()
    assert place.told("daemon", "stop")["message"] == "no runtime was running"


def test_two_starts_at_once_are_one_runtime(place: Place) -> None:
    with ThreadPoolExecutor() as pool:
        both = [pool.submit(place.told, "daemon", "start", "--port", "0") for _ in range(2)]
        one, other = (each.result() for each in both)
    assert (one["ok"], other["ok"]) == (True, True)
    assert one["pid"] == other["pid"]


@pytest.mark.requirement("daemon:failures-are-kept-and-cleared")
@pytest.mark.requirement("daemon:errors-point-to-logs")
@pytest.mark.requirement("daemon:logs-show-where-to-look")
def test_a_port_that_is_taken_fails_the_start_and_is_remembered_until_one_succeeds(
    place: Place,
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        failed = place.holon("daemon", "start", "--port", port)
    assert failed.returncode == 1
    assert "cannot listen on" in failed.stderr
    assert "holon daemon logs" in failed.stderr
    known = place.told("daemon", "status")["last_failure"]
    assert known["phase"] == "startup"
    assert "cannot listen on" in known["summary"]
    assert known["detail_hint"] == "holon daemon logs"
    assert known["occurred_at"]
    logs = place.told("daemon", "logs")
    assert logs["log_path"] == str(place.files.log)
    assert logs["metadata_path"] == str(place.files.record)
    assert logs["last_failure_path"] == str(place.files.startup_failure)
    assert logs["startup_failure"]["summary"] == known["summary"]
    assert any("cannot listen on" in line for line in logs["lines"])

    assert "last_failure" not in place.told("daemon", "start", "--port", "0")
    assert not place.files.startup_failure.exists()


@pytest.mark.requirement("daemon:stop-drains-and-stops-no-agent")
@pytest.mark.requirement("daemon:shutdown-is-no-agent-stop")
def test_a_stop_in_the_middle_of_a_turn_stops_no_agent_and_loses_nothing(
    place: Place,
) -> None:
    os.mkfifo(place.folder / "gate")
    with place.serving("--workspace-root", str(place.folder)) as process:
        _post(place, "/control/agents/main/prompt", {"text": "hold the line"})
        until((place.folder / "here").exists)
        busy = place.told("daemon", "status")["activity"]
        assert (busy["state"], busy["processing_agent_count"]) == ("processing", 1)
        stopped = place.holon("daemon", "stop")
        assert stopped.returncode == 0, stopped.stderr
        assert process.wait(timeout=PATIENCE_S) == 0
    os.close(os.open(place.folder / "gate", os.O_RDWR | os.O_NONBLOCK))
    checked = place.holon("debug", "check", "--json")
    assert json.loads(checked.stdout)["clean"] is True
    with place.serving("--workspace-root", str(place.folder)):
        _post(place, "/control/agents/main/prompt", {"text": "still there?"})


def test_a_second_signal_ends_at_once(place: Place) -> None:
    os.mkfifo(place.folder / "gate")
    with place.serving("--workspace-root", str(place.folder)) as process:
        _post(place, "/control/agents/main/prompt", {"text": "hold the line"})
        until((place.folder / "here").exists)
        process.send_signal(signal.SIGTERM)
        until(
            lambda: not place.files.socket.exists()
        )  # it has begun to end, and waits for the turn
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_S) == 128 + signal.SIGTERM
    assert place.told("daemon", "status")["state"] == "stale"


def _post(place: Place, path: str, body: dict[str, str]) -> None:
    assert place.client.post(path, dict, body)["ok"] is True


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.requirement("daemon:status-shows-enough")
@pytest.mark.requirement("daemon:start-is-idempotent")
@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
def test_an_address_with_colons_is_told_as_a_url_needs_it(place: Place) -> None:
    token = "a-token-of-the-operators"
    asked = ("daemon", "start", "--host", "::1", "--port", "0", "--token", token)
    started = place.told(*asked)
    assert started["http_addr"].startswith("[::1]:")
    assert place.told(*asked)["pid"] == started["pid"], "its token is tried at that address"
    connect = f"http://{started['http_addr']}"
    asked_there = place.holon("agent", "list", "--connect", connect, "--token", token)
    assert asked_there.returncode == 0, asked_there.stderr


@pytest.mark.requirement("console:a-failure-is-told-when-the-service-is-down")
@pytest.mark.requirement("console:an-archived-run-can-be-read")
def test_the_failure_of_a_past_run_is_told_while_no_service_runs_and_its_advice_works(
    place: Place,
) -> None:
    assert place.holon("run", "fail").returncode == 1
    down = place.told("daemon", "status")
    assert (down["state"], down["last_failure"]["phase"]) == ("stopped", "runtime_turn")
    assert down["last_failure_path"] == place.told("daemon", "logs")["last_failure_path"]
    named = re.search(r"holon (transcript --agent \S+)`", down["last_failure"]["detail_hint"])
    assert named is not None
    with place.serving():
        read = place.holon(*named[1].split())
        assert read.returncode == 0, read.stderr
        assert "fail" in read.stdout
        listed = place.holon("agent", "list")
        assert named[1].split()[-1] not in listed.stdout
