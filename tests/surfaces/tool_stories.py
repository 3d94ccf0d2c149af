"""Calls of every tool, in every way that gives its result another shape.

Owns:  `told_results`: what the tools answered, for the comparison with the reference page.
"""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from holon.adapters.files.contained_files import ContainedFiles
from holon.decide.tasks.commands import completed_result
from holon.model.tasks import CommandExit, StopCause
from holon.model.turns.tools import ToolOk
from holon.model.values import AgentId, JsonValue, MessageId, TurnId
from holon.tools.memory import MemoryGet, MemorySearch
from holon.tools.registry import local_registry
from holon.tools.tool import ToolScene
from holon.tools.workspaces.apply_patch import ApplyPatch
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.test_memory_indexer import Shelf
from tests.support.builders import MAIN, an_agent
from tests.support.hosts import tool_ports
from tests.support.scripted_provider import ScriptedCall, ScriptedRound
from tests.support.scripted_shell import CommandScript
from tests.support.sequential_ids import SequentialIds
from tests.tools.work_item_stage import MemoryFiles, perform, receipts, result_of

Told = tuple[str, JsonValue]

ITEM: Final = "work_1"
COMMANDS: Final = {
    "quick": CommandScript(after_ms=50, stdout=b"quick\n"),
    "bad": CommandScript(after_ms=50, exit_status=3, stderr=b"oh\n"),
    "chatty": CommandScript(stdout=b"x" * 100_000, stderr=b"y" * 100_000),
    "fail": CommandScript(after_ms=60_000, stdout=b"boom\n", exit_status=2),
    "slow": CommandScript(after_ms=3_600_000, ignores_terminate=True),
    "ask": CommandScript(after_ms=86_400_000, stdout=b"name? ", echoes=True),
}
ASK: Final[dict[str, Any]] = {
    "cmd": "ask",
    "shell": "/bin/sh",
    "accepts_input": True,
    "tty": True,
    "yield_time_ms": 1_000,
}
BATCH: Final = [
    {"cmd": "quick"},
    {"cmd": "chatty"},
    {"cmd": "slow", "yield_time_ms": 100},
    {"cmd": "quick", "workdir": "/etc"},
]
CHECKLIST: Final = [{"text": "try it"}, {"text": "tell it", "state": "completed"}]
BLOCKED: Final[dict[str, Any]] = {
    "blocked_by": "the night",
    "recheck_after": 60_000,
    "todo_list": CHECKLIST,
}
COMMAND_ROUNDS: Final = (
    calls("ExecCommand", cmd="quick"),
    calls("ExecCommand", cmd="chatty"),
    calls("ExecCommand", **ASK),
    calls("ExecCommand", **ASK),
    calls("TaskList"),
    calls("TaskStatus", task_id="task_1"),
    calls("TaskInput", task_id="task_1", input="me\n"),
    calls("TaskOutput", task_id="task_1"),
    calls("ExecCommand", cmd="fail", yield_time_ms=0),
    calls("TaskOutput", task_id="task_2", block=True, timeout_ms=600_000),
    calls("TaskStatus", task_id="task_2"),
    calls("ExecCommandBatch", items=BATCH),
    calls("ExecCommandBatch", items=[{"cmd": "bad"}, {"cmd": "quick"}], stop_on_error=True),
    calls("UpdateWorkItem", work_item_id=ITEM, **BLOCKED),
)
ITEM_ROUNDS: Final = (
    calls("AgentGet"),
    calls("GetWorkItem", work_item_id=ITEM, include_todo_list=True),
    calls("CreateWorkItem", objective="the next one"),
    calls("PickWorkItem", work_item_id="work_2", reason="it is night"),
    calls("UpdateWorkItem", work_item_id="work_2", blocked_by="the night"),
    calls("Enqueue", text="look around"),
    calls("TaskStop", task_id="task_1"),
    calls("Sleep", duration_ms=7_200_000),
)
LAST_ROUNDS: Final = (
    calls("AgentGet"),
    calls("ListWorkItems", filter="all"),
    calls("GetWorkItem", work_item_id=ITEM),
    calls("CompleteWorkItem", work_item_id="work_2"),
)


def told_results(folder: Path) -> Iterator[Told]:
    """Yield what every tool answered, story after story."""
    yield from _told_in_turns()
    yield from _told_of_a_report()
    yield from _told_of_plans()
    yield from _told_of_patches(folder)
    yield from asyncio.run(_told_of_memory(folder))
    ended = CommandExit(exit_status=None, signal=9, stopped=StopCause.WALL_CLOCK)
    yield "ExecCommand", completed_result(ended, (), bytes_max=1)


def _told(house: House) -> Iterator[Told]:
    for receipt in receipts(house):
        assert receipt["ok"], receipt
        yield receipt["tool_name"], receipt["result"]


def _told_in_turns() -> Iterator[Told]:
    """A day with commands, tasks and a blocked item."""

    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="deploy it")
        await house.host.work.focus(item.id)
        await house.rest(300_000)
        await house.host.control.set_model(MAIN, "scripted/other")
        await house.prompt("good night")
        await house.rest(60_000)
        await house.prompt("good morning")
        await house.rest(60_000)

    script = (
        rule("good night", *ITEM_ROUNDS, says("resting")),
        rule("good morning", *LAST_ROUNDS, says("done")),
        rule("Continue the current", *COMMAND_ROUNDS, says("it runs")),
        rule("", says("noted")),
    )
    setup = Setup(
        tools=local_registry(), commands=COMMANDS, trigger_base_url="http://127.0.0.1:7878"
    )
    yield from _told(run_house(story, script=script, setup=setup))


def _told_of_a_report() -> Iterator[Told]:
    """An item that is completed with a report, and read afterwards."""

    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="deploy it")
        await house.host.work.focus(item.id)
        await house.rest(1_000)
        await house.prompt("and now")
        await house.rest(1_000)

    done = ScriptedCall(name="CompleteWorkItem", input={"work_item_id": ITEM})
    script = (
        rule("and now", calls("GetWorkItem", work_item_id=ITEM), calls("Sleep")),
        rule("deploy it", ScriptedRound(text="All deployed.", calls=(done,)), says("bye")),
    )
    yield from _told(run_house(story, script=script, setup=Setup(tools=local_registry())))


def _told_of_plans() -> Iterator[Told]:
    """An item whose plan is a file."""
    found: list[Told] = []

    async def story(house: House) -> None:
        arguments = {"objective": "plan it", "plan": "# first\n", "todo_list": CHECKLIST}
        made = await perform(house, "CreateWorkItem", arguments, files=MemoryFiles())
        found.append(("CreateWorkItem", result_of(made)))

    run_house(story, script=())
    yield from found


def _told_of_patches(folder: Path) -> Iterator[Told]:
    """A damaged patch over a changed, a moved and a new file."""
    (folder / "f").write_text("one\ntwo\n", encoding="utf-8")
    (folder / "old").write_text("x\n", encoding="utf-8")
    patch = (
        "diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1,7 +1,7 @@\n one\n-two\n+2\n"
        "diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n"
    )
    scene = ToolScene(
        agent_id=AgentId("main"),
        turn_id=TurnId("turn_1"),
        message_id=MessageId("msg_1"),
        effect_id="turn_1.1.1",
        now=datetime(2030, 1, 1, tzinfo=UTC),
        agent_home=str(folder),
        execution_root=str(folder),
        cwd=str(folder),
    )
    no_reads: Any = None  # the tool reads files, and nothing of the store
    ports = tool_ports(reads=no_reads, ids=SequentialIds(), files=ContainedFiles())
    done = asyncio.run(ApplyPatch().run({"patch": patch}, scene, ports))
    assert isinstance(done.outcome, ToolOk), done.outcome
    yield "ApplyPatch", done.outcome.result


async def _told_of_memory(folder: Path) -> list[Told]:
    """A note and a result of a workspace, found and read again."""
    shelf = Shelf(folder / "home")
    await shelf.make(an_agent())
    await shelf.brief("brief_1", "a windmill at work", workspace_id="ws_mill")
    shelf.write("self.md", "I look after the windmill")
    scene = ToolScene(
        agent_id=MAIN,
        turn_id=TurnId("turn_1"),
        message_id=MessageId("msg_1"),
        effect_id="turn_1.1.1",
        now=datetime(2030, 1, 1, tzinfo=UTC),
    )
    ports = tool_ports(reads=shelf.store.reads, ids=SequentialIds(), recall=shelf.memory)
    told: list[Told] = []
    for tool, arguments in (
        (MemorySearch(), {"query": "windmill", "include_all_workspaces": True}),
        (MemoryGet(), {"source_ref": "brief:brief_1"}),
        (MemoryGet(), {"source_ref": "agent_memory:self"}),
    ):
        done = (await tool.run(arguments, scene, ports)).outcome
        assert isinstance(done, ToolOk), done
        told.append((tool.spec.name, done.result))
    await shelf.indexes.close()
    await shelf.store.close()
    return told
