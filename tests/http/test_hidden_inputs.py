"""What a model asks of its tools is shown without the secrets it may hold, wherever it is shown."""

import os
from pathlib import Path
from typing import Any, Final

import pytest

from holon.adapters.system.clock import SystemClock
from holon.model.events.event import MessageAdmitted
from holon.model.limits import EVENT_PAGE_COUNT_MAX
from holon.serve.compose import ExecOptions, Hooks, HostOptions
from tests.cli.operator_desk import Desk
from tests.http.serving import settled
from tests.http.test_default_trigger import end_task
from tests.runtime.cast import calls, rule, says
from tests.runtime.notes import Notes
from tests.support.control_server import MAIN, ControlServer, ServerOptions, control_server
from tests.support.database_oracle import whole_home
from tests.support.scripted_provider import Script, ScriptedProvider
from tests.support.single_model import SingleModel

SECRET: Final = "sk-hunter2-AbCdEfGhIjKlMnOp"
ORIGINALS: Final = {"tool_calls", "transcript", "tasks"}  # what a resumed call goes on with
PAGES: Final = (
    "status", "state", "transcript", "events?limit=500", "briefs", "work-items", "tasks", "timers",
    "memory/search?query=watch", "memory/search?query=echo", "search?query=watch",
)  # fmt: skip
COMMANDS: Final = (
    ["tail", "--display", "debug"],
    ["transcript"],
    ["events", "tail"],
    ["task", "list"],
    ["work-item", "list"],
    ["status"],
)
SCRIPT: Final = Script(
    rules=(
        rule("again", says("as before")),
        rule(
            "go",
            calls("ExecCommand", cmd=f"echo first {SECRET}"),
            calls(
                "ExecCommand", cmd=f"read line; echo {SECRET}", yield_time_ms=1, accepts_input=True
            ),
            calls("ExecCommandBatch", items=[{"cmd": f"echo {SECRET}"}]),
            calls("CreateWorkItem", objective=f"watch {SECRET}"),
            calls("Enqueue", text=f"again {SECRET}"),
            calls("MemorySearch", query=f"watch {SECRET}"),
            calls("ApplyPatch", patch=f"--- a/{SECRET}\n+++ b/{SECRET}\n"),
            calls("NoSuchTool", what=SECRET),
            says("done"),
        ),
    )
)


async def streamed(server: ControlServer, *, count: int) -> str:
    async with server.operator.stream(f"/agents/{MAIN}/events/stream?after_seq=0") as stream:
        return "\n".join([repr((await stream.event()).json()) for _ in range(count)])


async def shown_by(server: ControlServer) -> dict[str, str]:
    """Everything about the agent that is shown to anyone, by where it is shown."""
    paths = [f"/agents/{MAIN}/{page}" for page in PAGES]
    tasks: list[dict[str, Any]] = (await server.operator.get(f"/agents/{MAIN}/tasks")).json()[
        "tasks"
    ]
    for path in (f"/agents/{MAIN}/tasks/{task['task_id']}" for task in tasks):
        paths += [path, f"{path}/output"]
    items = (await server.operator.get(f"/agents/{MAIN}/work-items")).json()
    paths += [f"/agents/{MAIN}/work-items/{each['id']}" for each in items["work_items"]]
    log = await server.host.reads.events.log_after(0, limit=EVENT_PAGE_COUNT_MAX)
    admitted = [audit.event for audit in log if isinstance(audit.event, MessageAdmitted)]
    paths += [f"/agents/{MAIN}/messages/{event.message_id}" for event in admitted]
    answers = {path: await server.operator.get(path) for path in paths}
    shown = {path: answer.body.decode() for path, answer in answers.items() if answer.status == 200}
    prompt = await server.operator.post(f"/control/agents/{MAIN}/debug-prompt")
    _, newest = await server.host.reads.events.event_bounds(MAIN)
    shown |= {"prompt": prompt.body.decode(), "stream": await streamed(server, count=newest)}
    desk = Desk(server)
    for command in COMMANDS:
        for form in ([], ["--json"]):
            done = await desk.holon(*command, *form)
            assert done.exit_code == 0, (command, done.stderr)
            shown[" ".join(("holon", *command, *form))] = done.stdout
    return shown


@pytest.mark.requirement("hostile-text:tool-inputs-are-shown-without-secrets")
@pytest.mark.requirement("hostile-text:planned-records-hold-no-secret")
async def test_a_secret_in_the_input_of_a_call_is_shown_nowhere(tmp_path: Path) -> None:
    notes = Notes()
    options = HostOptions(
        exec_options=ExecOptions(environ={"PATH": os.environ["PATH"]}), hooks=Hooks(journal=notes)
    )
    models = SingleModel(ScriptedProvider(SCRIPT, SystemClock()))
    given = ServerOptions(models=models, host=options)
    async with control_server(tmp_path / "home", given) as server:
        assert server.registry.learn("provider key", SECRET)
        await settled(server, "go")
        shown = await shown_by(server)
        (task,) = await server.host.reads.tasks.open_tasks()
        await end_task(server, task.id)
        ended = await shown_by(server)
        shown |= {f"{where}, when the task had ended": text for where, text in ended.items()}
        shown["journal"] = repr(notes.lines)
        for table, rows in whole_home(server.home).items():
            if table not in ORIGINALS:
                shown[f"table {table}"] = repr(rows)
        for file in (server.home / "agents").rglob("*"):
            if file.is_file() and not file.is_symlink():
                shown[str(file.relative_to(server.home))] = file.read_text(errors="replace")
        assert [where for where, text in shown.items() if SECRET in text] == []
        assert "echo first" in shown[f"/agents/{MAIN}/transcript"]
        assert "watch" in shown[f"/agents/{MAIN}/work-items"]
