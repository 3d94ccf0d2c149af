"""Background commands managed by an operator, over a real server and with real processes."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from holon.adapters.exec.local_shell import LocalShell
from holon.adapters.system.clock import SystemClock
from holon.decide.queue.idempotency import keyed_id
from holon.model.tasks import CommandSpec
from holon.model.values import IdPrefix
from holon.serve.compose import COMMANDS_FOLDER, ExecOptions, HostOptions
from tests.http.serving import PATIENCE_S
from tests.support.control_server import MAIN, ControlServer, ServerOptions, control_server

CONTROL = f"/control/agents/{MAIN}/tasks"
READ = f"/agents/{MAIN}/tasks"
ENVIRON = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
async def handed(tmp_path: Path) -> AsyncIterator[ControlServer]:
    """A server whose agents can run commands."""
    options = ServerOptions(host=HostOptions(exec_options=ExecOptions(environ=ENVIRON)))
    async with control_server(tmp_path / "home", options) as running:
        yield running


async def begun(server: ControlServer, cmd: str, **asked: Any) -> str:
    answer = await server.operator.post(CONTROL, {"summary": "a task", "cmd": cmd, **asked})
    assert answer.status == 200, answer.body
    task_id: str = answer.json()["task"]["task_id"]
    return task_id


async def ended(server: ControlServer, task_id: str) -> dict[str, Any]:
    with anyio.fail_after(PATIENCE_S):
        async for _ in server.host.events.follow(MAIN, after=0):
            told: dict[str, Any] = (await server.operator.get(f"{READ}/{task_id}")).json()
            if told["status"] not in ("queued", "running", "cancelling"):
                return told
    raise AssertionError("the feed ended")


async def test_a_command_runs_for_an_agent_and_its_output_is_read(handed: ControlServer) -> None:
    task_id = await begun(handed, "echo out; echo $HOLON_AGENT_ID; exit 3")
    told = await ended(handed, task_id)
    assert (told["kind"], told["status"], told["summary"]) == ("command_task", "failed", "a task")
    assert told["command"]["exit_status"] == 3
    assert told["command"]["promoted_from_exec_command"] is False
    output = (await handed.operator.get(f"{READ}/{task_id}/output")).json()
    assert output["retrieval_status"] == "success"
    assert output["task"]["output_preview"].split() == ["out", "main"]
    listed = (await handed.operator.get(READ)).json()["tasks"]
    assert [each["task_id"] for each in listed] == [task_id]


@pytest.mark.requirement("http:task-input-answers-like-the-tool")
async def test_a_task_is_fed_and_stopped(handed: ControlServer) -> None:
    task_id = await begun(handed, "read line; echo got $line; sleep 600", accepts_input=True)
    fed = await handed.operator.post(f"{CONTROL}/{task_id}/input", {"input": "hi\n"})
    assert (fed.json()["accepted_input"], fed.json()["bytes_written"]) == (True, 3)
    by_tool = {"task", "accepted_input", "input_target", "bytes_written", "summary_text"}
    assert by_tool <= set(fed.json())
    assert fed.json()["input_target"] == "stdin"
    shown = (await handed.operator.get(f"{READ}/{task_id}")).json()
    assert fed.json()["task"].keys() == shown.keys(), "its values move with what the command prints"
    assert fed.json()["task"]["task_id"] == shown["task_id"] == task_id
    stopped = (await handed.operator.post(f"{CONTROL}/{task_id}/stop")).json()
    assert (stopped["stop_requested"], stopped["force_stop_requested"]) == (True, False)
    assert (await ended(handed, task_id))["status"] == "cancelled"
    late = await handed.operator.post(f"{CONTROL}/{task_id}/input", {"input": "hi\n"})
    assert (late.status, late.json()["accepted_input"]) == (200, False)
    again = (await handed.operator.post(f"{CONTROL}/{task_id}/stop")).json()
    assert again["stop_requested"] is False


async def test_a_stopped_agents_task_ends_with_it(handed: ControlServer) -> None:
    task_id = await begun(handed, "sleep 600")
    await handed.operator.post(f"/control/agents/{MAIN}/stop")
    assert (await ended(handed, task_id))["status"] == "interrupted"
    refused = await handed.operator.post(CONTROL, {"summary": "s", "cmd": "true"})
    assert (refused.status, refused.json()["code"]) == (409, "agent_stopped")


BAD: dict[str, dict[str, Any]] = {
    "no command": {"summary": "s"},
    "an empty command": {"summary": "s", "cmd": ""},
    "a blank command": {"summary": "s", "cmd": "  "},
    "no summary": {"cmd": "true"},
    "a place outside": {"summary": "s", "cmd": "true", "workdir": "../.."},
    "a place that is not there": {"summary": "s", "cmd": "true", "workdir": "nowhere"},
    "a shell that is not there": {"summary": "s", "cmd": "true", "shell": "/no/shell"},
    "more environment": {"summary": "s", "cmd": "true", "environment": {"A": "b"}},
}


@pytest.mark.parametrize("name", BAD)
async def test_a_command_that_cannot_run_leaves_no_task(handed: ControlServer, name: str) -> None:
    answer = await handed.operator.post(CONTROL, BAD[name])
    assert answer.status == 400, answer.body
    assert (await handed.operator.get(READ)).json()["tasks"] == []


async def test_a_host_without_hands_says_so(server: ControlServer) -> None:
    answer = await server.operator.post(CONTROL, {"summary": "s", "cmd": "true"})
    assert (answer.status, answer.json()["code"]) == (400, "command_refused")


async def test_a_key_whose_first_attempt_was_cut_off_before_its_row_is_not_run_again(
    handed: ControlServer, tmp_path: Path
) -> None:
    seen, task_id = tmp_path / "seen", keyed_id(IdPrefix.TASK, MAIN, "once")
    asked = {"summary": "s", "cmd": f"echo x >> {seen}"}
    shell = LocalShell(handed.home / COMMANDS_FOLDER, ENVIRON, SystemClock())
    spec = CommandSpec(run_id=task_id, cmd=str(asked["cmd"]), workdir=str(tmp_path))
    await (await shell.start(spec)).wait()  # and then its host was killed
    shell.close()
    answer = await handed.operator.post(CONTROL, asked, headers=[(b"idempotency-key", b"once")])
    assert answer.json()["task"]["task_id"] == task_id
    assert (await ended(handed, task_id))["status"] == "completed"
    assert seen.read_text(encoding="utf-8") == "x\n"


async def test_a_key_runs_a_command_once_however_often_it_is_sent(
    handed: ControlServer, tmp_path: Path
) -> None:
    key = (b"idempotency-key", b"once")
    seen = tmp_path / "seen"
    asked = {"summary": "s", "cmd": f"echo x >> {seen}"}
    answers: list[str] = []

    async def send() -> None:
        answer = await handed.operator.post(CONTROL, asked, headers=[key])
        answers.append(answer.json()["task"]["task_id"])

    async with anyio.create_task_group() as sending:
        for _ in range(4):
            sending.start_soon(send)
    await ended(handed, answers[0])
    await send()
    assert len(answers) == 5
    assert len(set(answers)) == 1
    assert await anyio.Path(seen).read_text() == "x\n"
    other = await handed.operator.post(CONTROL, {"summary": "s", "cmd": "true"}, headers=[key])
    assert (other.status, other.json()["code"]) == (409, "idempotency_conflict")
