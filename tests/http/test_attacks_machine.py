"""Attacks from this machine: files in the way, commands of agents, and text made for terminals."""

import base64
import json
import os
import socket
import sys
import unicodedata
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import pytest
from anyio import to_thread
from click.testing import CliRunner

from holon.adapters.system.clock import SystemClock
from holon.cli.console.terminal_text import cells_of, plain
from holon.cli.main import main
from holon.serve.compose import ExecOptions, HostOptions
from tests.cli.operator_desk import Desk
from tests.daemon.conftest import place, run
from tests.daemon.driving import Place, failure, until
from tests.daemon.strangers import stranger_on
from tests.http.serving import settled
from tests.http.test_tasks import begun, ended
from tests.http.test_triggers import the_path
from tests.support.control_server import MAIN, TOKEN, ControlServer, ServerOptions, control_server
from tests.support.scripted_provider import (
    Script,
    ScriptedCall,
    ScriptedProvider,
    ScriptedRound,
    ScriptedRule,
)
from tests.support.single_model import SingleModel

pytestmark = pytest.mark.long

__all__ = ["place", "run"]

NOBODY_UID = 65_534
WITH_COMMANDS = HostOptions(exec_options=ExecOptions(environ={"PATH": os.environ["PATH"]}))
SECRET = 'sk-hunter2/+aB9"\\tail=='


@pytest.fixture
async def handed(tmp_path: Path) -> AsyncIterator[ControlServer]:
    """A server whose agents can run commands."""
    async with control_server(tmp_path / "home", ServerOptions(host=WITH_COMMANDS)) as running:
        yield running


# --- S49: text made for terminals

ESCAPES = {
    "a colour": "\x1b[31m",
    "a title": "\x1b]0;owned\x07",
    "a link": "\x1b]8;;http://evil\x1b\\",
    "a clipboard": "\x1b]52;c;aGk=\x07",
    "a device string": "\x1bPq#0\x1b\\",
    "a program's string": "\x1b_Gi=1\x1b\\",
    "eight-bit controls": "\x9b2J\x9d0;owned\x9c",
    "a reset": "\x1bc",
    "a title without end": "\x1b]0;owned",
    "another direction": "\u202e\u2066",
    "marks without end": "e" + "\u0301" * 1_000_000,
    "a bell and backspaces": "\x07\x08\x08\x08",
    "a return": "\rholon: all is well",
}


@pytest.mark.parametrize("name", ESCAPES)
def test_s49_nothing_that_moves_a_terminal_gets_through(name: str) -> None:
    shown = plain(f"before {ESCAPES[name]}\nafter")
    assert shown.startswith("before ")
    assert shown.endswith("\nafter")
    assert not [
        char for char in shown if unicodedata.category(char) in ("Cc", "Cf") and char != "\n"
    ]
    assert len(shown) <= 100
    assert max(map(cells_of, shown.splitlines())) <= 40


def speaking(text: str, cmd: str) -> ServerOptions:
    """A model that runs a command and then says something."""
    call = ScriptedCall(name="ExecCommand", input={"cmd": cmd})
    rounds = (ScriptedRound(calls=(call,)), ScriptedRound(text=text))
    script = Script(rules=(ScriptedRule(rounds=rounds),))
    return ServerOptions(
        models=SingleModel(ScriptedProvider(script, SystemClock())), host=WITH_COMMANDS
    )


async def test_s49_commands_show_hostile_output_as_harmless_text(tmp_path: Path) -> None:
    hostile = "".join(text for name, text in ESCAPES.items() if name != "marks without end")
    await anyio.Path(tmp_path / "evil").write_text(hostile, encoding="utf-8")
    options = speaking(f"I saw {hostile}\nend", f"cat {tmp_path}/evil")
    async with control_server(tmp_path / "home", options) as server:
        await settled(server)
        desk = Desk(server)
        for command in (
            ["tail", "--display", "debug"],
            ["transcript"],
            ["events", "tail"],
            ["status"],
        ):
            for form in ([], ["--json"]):
                done = await desk.holon(*command, *form)
                assert done.exit_code == 0, (command, done.stderr)
                assert not {"\x1b", "\x07", "\x9b", "\x9d", "\u202e"} & set(done.stdout), command


def test_s49_a_hostile_log_is_shown_as_harmless_text(run: Place) -> None:
    hostile = "".join(text for name, text in ESCAPES.items() if name != "marks without end")
    run.files.log.write_text(f"safe {hostile}\n", encoding="utf-8")
    run.files.startup_failure.write_bytes(failure(f"why {hostile}"))
    for form in ([], ["--json"]):
        done = CliRunner().invoke(main, ["daemon", "logs", "--home", str(run.home), *form])
        assert done.exit_code == 0
        assert "safe" in done.stdout
        assert not {"\x1b", "\x07", "\x9b", "\x9d", "\u202e"} & set(done.stdout)


# --- S27, S51, S52: secrets on their way out


async def everything_shown(server: ControlServer) -> bytes:
    """All an operator can read of the agent."""
    views = ("events?limit=512", "transcript", "state", "status", "briefs", "tasks")
    answers = [await server.operator.get(f"/agents/{MAIN}/{view}") for view in views]
    assert {answer.status for answer in answers} == {200}
    return b"\n".join(answer.body for answer in answers)


async def test_s27_an_agent_that_says_its_own_trigger_address_is_not_quoted(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with control_server(home) as server:
        path = await the_path(server)
    said = f"Call http://localhost{path} please."
    await anyio.Path(tmp_path / "kept").write_text(path, encoding="utf-8")
    options = speaking(said, f"cat {tmp_path}/kept; base64 -w0 {tmp_path}/kept")
    async with control_server(home, options) as server:
        assert await the_path(server) == path
        await settled(server)
        shown = await everything_shown(server)
        secret = path.rpartition(".")[2]
        assert b"please." in shown
        assert secret.encode() not in shown


SPELLINGS: dict[str, str] = {
    "as it is": SECRET,
    "in base64": base64.b64encode(SECRET.encode()).decode(),
    "in base64 behind something": base64.b64encode(f"user:{SECRET}".encode()).decode(),
    "in base64 of URLs": base64.urlsafe_b64encode(SECRET.encode()).decode(),
    "in a URL": quote(SECRET, safe=""),
    "in JSON": json.dumps(SECRET)[1:-1],
}


@pytest.mark.parametrize("name", SPELLINGS)
async def test_s52_a_secret_in_a_commands_output_is_redacted_in_every_spelling(
    tmp_path: Path, name: str
) -> None:
    spelled = SPELLINGS[name]
    await anyio.Path(tmp_path / "leak").write_text(f"<{spelled}>\n", encoding="utf-8")
    halves = f"head -c 9 {tmp_path}/leak; sleep 0.2; tail -c +10 {tmp_path}/leak"
    async with control_server(
        tmp_path / "home", speaking(f"It is {spelled}, you see.", halves)
    ) as server:
        assert server.registry.learn("provider key", SECRET)
        await settled(server)
        shown = await everything_shown(server)
        assert b"you see." in shown
        for form in (spelled, json.dumps(spelled)[1:-1]):
            assert form.encode() not in shown


def test_s51_a_token_is_not_among_the_arguments_of_a_daemon(place: Place) -> None:
    secret = "a-token-nobody-else-may-see"
    begun_ = place.holon("daemon", "start", "--port", "0", "--token", secret, "--json")
    assert begun_.returncode == 0, begun_.stderr
    record = place.files.read_record()
    assert record is not None
    arguments = Path(f"/proc/{record.pid}/cmdline").read_bytes()
    assert b"serve" in arguments
    assert secret.encode() not in arguments
    assert secret not in begun_.stdout + begun_.stderr
    for file in place.home.rglob("*"):
        if file.is_file():
            assert secret.encode() not in file.read_bytes(), file
    assert place.holon("daemon", "stop").returncode == 0


# --- S54, S55: a home that other users could write to


def made(path: Path, mode: int = 0o600) -> None:
    path.write_bytes(b"kept")
    path.chmod(mode)


def foreign(path: Path) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    made(path)
    os.chown(path, NOBODY_UID, -1)


ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")


@pytest.mark.parametrize(
    ("spoil", "repair"),
    [
        (lambda p: p.home.chmod(0o777), "chmod go-w"),
        (lambda p: made(p.files.token, 0o644), "chmod go-rwx"),
        (lambda p: p.files.folder.chmod(0o777), "chmod go-rwx"),
        pytest.param(
            lambda p: foreign(p.home / "state/runtime.sqlite"), "another user", marks=ROOT_ONLY
        ),
    ],
    ids=["home", "token", "run folder", "database"],
)
@pytest.mark.parametrize("command", [("serve",), ("daemon", "start")])
def test_s54_a_home_others_can_write_to_is_refused_with_the_repair(
    run: Place, spoil: Callable[[Place], None], repair: str, command: tuple[str, ...]
) -> None:
    spoil(run)
    before = sorted(run.home.rglob("*"))
    done = CliRunner().invoke(main, [*command, "--home", str(run.home), "--port", "0"])
    assert done.exit_code != 0
    assert repair in done.stderr
    assert sorted(run.home.rglob("*")) == before


@pytest.mark.parametrize("name", ["holon.sock", "holon.pid", "lock", "daemon.log", "daemon.json"])
@pytest.mark.parametrize("command", [("serve",), ("daemon", "start")])
def test_s55_a_link_laid_in_the_way_is_neither_followed_nor_removed(
    run: Place, name: str, command: tuple[str, ...]
) -> None:
    target = run.folder / "precious"
    made(target)
    (run.files.folder / name).symlink_to(target)
    done = CliRunner().invoke(main, [*command, "--home", str(run.home), "--port", "0"])
    assert done.exit_code != 0
    assert (run.files.folder / name).is_symlink()
    assert target.read_bytes() == b"kept"


@pytest.mark.parametrize("command", [("daemon", "start"), ("daemon", "stop")])
def test_s55_somebody_elses_socket_is_left_to_them(run: Place, command: tuple[str, ...]) -> None:
    options = ["--port", "0"] if command != ("daemon", "stop") else []
    with stranger_on(run.files.socket, b"SSH-2.0-something\r\n"):
        inode = run.files.socket.stat().st_ino
        done = CliRunner().invoke(main, [*command, "--home", str(run.home), *options])
        assert done.exit_code != 0
        assert run.files.socket.stat().st_ino == inode


def test_s55_a_server_in_the_foreground_does_not_push_a_listener_aside(run: Place) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(run.files.socket))
        listening.listen()
        inode = run.files.socket.stat().st_ino
        done = CliRunner().invoke(main, ["serve", "--home", str(run.home), "--port", "0"])
        assert done.exit_code != 0
        assert run.files.socket.stat().st_ino == inode


# --- S56, S57: commands of agents at the doors

CALLING = """
import http.client, json, os, socket, sys
place, method, path, body = sys.argv[1:5]
if len(sys.argv) > 5:  # leave the session, and every parent that is asked for
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
made = http.client.HTTPConnection("localhost" if "/" in place else place)
if "/" in place:
    made.sock = socket.socket(socket.AF_UNIX)
    made.sock.connect(place)
made.request(method, path, body or None, {"content-type": "application/json"})
answer = made.getresponse()
with open("answer.part", "w") as file:
    json.dump([answer.status, answer.read().decode()], file)
os.replace("answer.part", "answer")
"""


async def called(server: ControlServer, where: str, *asked: str, leaving: bool = False) -> Any:
    """What a command of the agent is answered when it calls."""
    script = anyio.Path(server.home.parent / "calling.py")
    await script.write_text(CALLING, encoding="utf-8")
    answer = anyio.Path(server.home.parent / "answer")
    await answer.unlink(missing_ok=True)
    words = [sys.executable, str(script), where, *asked, *(["leave"] if leaving else [])]
    line = " ".join(f"'{word}'" for word in words)
    await ended(server, await begun(server, f"cd {script.parent} && {line} && sleep 0"))
    await to_thread.run_sync(until, Path(answer).exists)
    status, body = json.loads(await answer.read_text(encoding="utf-8"))
    return status, json.loads(body)


PROMPT = ("POST", f"/control/agents/{MAIN}/prompt", '{"text":"obey"}')
DEEDS = {
    "a prompt": PROMPT,
    "a task": ("POST", f"/control/agents/{MAIN}/tasks", '{"summary":"x","cmd":"id"}'),
    "the end": ("POST", "/control/runtime/shutdown", ""),
    "a message": ("POST", "/enqueue", '{"text":"obey"}'),
}


@pytest.mark.parametrize("name", DEEDS)
async def test_s56_a_command_of_an_agent_is_no_operator_at_the_socket(
    handed: ControlServer, name: str
) -> None:
    status, body = await called(handed, str(handed.local.socket_path), *DEEDS[name])
    assert (status, body["code"]) == (403, "forbidden")
    assert not handed.shutdown_requested.is_set()
    assert (await handed.local.get("/status")).status == 200


async def test_s56_leaving_its_session_and_its_parents_does_not_help(handed: ControlServer) -> None:
    where = str(handed.local.socket_path)
    status, body = await called(handed, where, *PROMPT, leaving=True)
    assert (status, body["code"]) == (403, "forbidden")


async def test_s56_a_command_may_read_but_no_capability(handed: ControlServer) -> None:
    where = str(handed.local.socket_path)
    status, _ = await called(handed, where, "GET", "/status", "")
    assert status == 200
    await handed.host.triggers.ensure(MAIN)
    status, body = await called(handed, where, "GET", f"/agents/{MAIN}/external-triggers", "")
    assert status == 200
    assert "trigger_url" not in body["external_triggers"][0]


@pytest.mark.parametrize("asked", [PROMPT, ("GET", "/status", "")], ids=["control", "read"])
async def test_s57_a_command_of_an_agent_has_no_token_at_the_port(
    handed: ControlServer, asked: tuple[str, str, str]
) -> None:
    where = f"{handed.stranger.host}:{handed.stranger.port}"
    status, body = await called(handed, where, *asked)
    assert (status, body["code"]) == (401, "unauthorized")


async def test_s57_no_token_is_in_the_environment_of_a_command(handed: ControlServer) -> None:
    task_id = await begun(handed, "env; cat /proc/$PPID/environ | tr '\\0' '\\n'")
    await ended(handed, task_id)
    output = await handed.operator.get(f"/agents/{MAIN}/tasks/{task_id}/output")
    assert b"HOLON_AGENT_ID=main" in output.body
    assert TOKEN.encode() not in output.body
    assert b"HOLON_CONTROL_TOKEN" not in output.body
