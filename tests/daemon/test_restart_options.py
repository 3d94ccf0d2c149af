"""A service keeps the options it was started with, until somebody gives others."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holon.adapters.exec.process_table import identity_of
from tests.daemon.driving import PATIENCE_S, Place

TOKEN = "a-token-of-the-operators-own-choice"


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@contextmanager
def taken_port() -> Iterator[str]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield str(taken.getsockname()[1])


@pytest.mark.requirement("daemon:restart-replaces-the-process")
@pytest.mark.requirement("daemon:start-is-idempotent")
@pytest.mark.requirement("daemon:other-config-fails-closed")
def test_a_restart_without_options_keeps_those_of_the_start(place: Place) -> None:
    port = free_port()
    started = place.told("daemon", "start", "--port", port, "--agent", "builder")
    shown = place.told("daemon", "status")
    assert shown["config_fingerprint_match"] is True
    assert "another configuration" not in shown["message"]
    assert place.told("daemon", "start")["pid"] == started["pid"], "the same service"

    other = place.holon("daemon", "start", "--port", port)
    assert other.returncode == 1
    assert "holon daemon restart --agent main\n" in other.stderr, "what differs, and no more"

    again = place.told("daemon", "restart")
    assert again["pid"] != started["pid"]
    assert again["http_addr"] == started["http_addr"] == f"127.0.0.1:{port}"
    assert place.told("daemon", "status")["config_fingerprint_match"] is True

    changed = place.told("daemon", "restart", "--agent", "main")
    assert changed["http_addr"] == started["http_addr"], "only what was given is other"
    assert place.told("daemon", "start", "--port", port)["pid"] == changed["pid"]


@pytest.mark.requirement("daemon:restart-survives-a-missing-process")
def test_a_restart_after_a_kill_keeps_the_options_too(place: Place) -> None:
    port = free_port()
    with place.serving("--listen", f"127.0.0.1:{port}", port=None) as process:
        process.kill()
        process.wait(timeout=PATIENCE_S)
    assert place.told("daemon", "restart")["http_addr"] == f"127.0.0.1:{port}"


def test_a_changed_setting_is_another_configuration_of_the_same_service(place: Place) -> None:
    started = place.told("daemon", "start", "--port", "0")
    assert place.holon("config", "set", "runtime.log_level", "debug").returncode == 0
    shown = place.told("daemon", "status")
    assert shown["config_fingerprint_match"] is False
    assert shown["message"].endswith("to use this one: holon daemon restart")
    refused = place.holon("daemon", "start")
    assert refused.returncode == 1
    assert "another configuration" in refused.stderr
    assert identity_of(started["pid"]) is not None


@pytest.mark.requirement("daemon:same-access-options")
@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--token", "short"], 2, "16 to 512"),
        (["--token-file", "/nowhere/token"], 2, "there is no token file"),
        (["--access", "lan", "--host", "10.255.255.1", "--token", TOKEN], 1, "has no address"),
        (["--host", "192.168.1.20"], 2, "--access lan"),
    ],
)
def test_a_restart_that_cannot_succeed_leaves_the_old_process_alone(
    place: Place, options: list[str], code: int, says: str
) -> None:
    with place.serving() as process:
        refused = place.holon("daemon", "restart", *options)
        assert (refused.returncode, process.poll()) == (code, None), refused.stderr
        assert says in refused.stderr


def test_a_restart_onto_a_port_of_somebody_else_leaves_the_old_process_alone(place: Place) -> None:
    with place.serving() as process, taken_port() as port:
        refused = place.holon("daemon", "restart", "--port", port)
        assert (refused.returncode, process.poll()) == (1, None)
        assert "Address already in use" in refused.stderr


def test_a_token_is_never_written_down_and_has_to_be_given_again(place: Place) -> None:
    with place.serving("--token", TOKEN) as process:
        assert TOKEN not in place.files.record.read_text(encoding="utf-8")
        assert place.told("daemon", "status")["config_fingerprint_match"] is True
        assert place.told("daemon", "start")["pid"] == process.pid
        refused = place.holon("daemon", "restart")
        assert (refused.returncode, process.poll()) == (2, None)
        assert "not recorded" in refused.stderr
        assert place.told("daemon", "restart", "--token", TOKEN)["ok"]


def test_the_file_a_token_is_in_is_written_down(place: Place) -> None:
    file = place.folder / "token"
    file.write_text(TOKEN, encoding="ascii")
    file.chmod(0o600)
    with place.serving("--token-file", str(file)):
        written = json.loads(place.files.record.read_bytes())["options"]
        assert written["token_file"] == str(file)
        os.truncate(file, 3)
        refused = place.holon("daemon", "restart")
        assert refused.returncode == 2
        assert f"the token in {file} cannot be used" in refused.stderr
        file.write_text(TOKEN, encoding="ascii")
        assert place.told("daemon", "restart")["ok"]
        assert place.told("daemon", "status")["config_fingerprint_match"] is True


@pytest.mark.parametrize("command", [("daemon", "start"), ("serve",)])
def test_a_token_file_nobody_could_use_refuses_the_start_and_says_the_repair(
    run: Place, command: tuple[str, ...]
) -> None:
    run.files.token.write_text("short\n", encoding="ascii")
    run.files.token.chmod(0o600)
    refused = run.holon(*command, "--port", "0")
    assert refused.returncode == 2
    assert f"the token in {run.files.token} cannot be used" in refused.stderr
    assert "remove the file" in refused.stderr


def test_a_token_that_is_too_short_is_refused_before_anything_is_started(place: Place) -> None:
    refused = place.holon("daemon", "start", "--port", "0", "--token", "abc")
    assert refused.returncode == 2
    assert "16 to 512 ASCII characters" in refused.stderr
    assert not place.files.log.exists()


def test_a_token_and_a_file_of_one_contradict_each_other(place: Place) -> None:
    for command in (("daemon", "start"), ("daemon", "restart"), ("serve",)):
        refused = place.holon(*command, "--token", TOKEN, "--token-file", "b")
        assert refused.returncode == 2
        assert "not both" in refused.stderr


@pytest.mark.requirement("daemon:restart-from-defaults")
def test_a_restart_from_the_defaults_forgets_the_options_of_the_start(place: Place) -> None:
    port, other = free_port(), free_port()
    secret = ("--token", TOKEN, "--agent", "builder")
    started = place.told("daemon", "start", "--port", port, *secret)
    refused = place.holon("daemon", "restart")
    assert refused.returncode != 0, "the token was never written down"
    assert place.told("daemon", "status")["pid"] == started["pid"]

    again = place.told("daemon", "restart", "--defaults", "--port", other)
    assert again["pid"] != started["pid"]
    assert again["http_addr"] == f"127.0.0.1:{other}"
    kept = place.told("daemon", "restart")
    assert kept["http_addr"] == again["http_addr"], "what was given with it is kept from then on"
    differs = place.holon("daemon", "start", "--port", other, "--agent", "builder")
    assert "holon daemon restart --agent builder" in differs.stderr, "the agent was a default again"
