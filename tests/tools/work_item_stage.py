"""What the stories about work-item tools share: the tools, a disk in memory, reading results."""

from collections.abc import Sequence
from typing import Any

import msgspec

from holon.decide.events.audit import audited
from holon.model.commits import Applied, Commit
from holon.model.turns.tools import ToolOk, ToolRefused
from holon.model.values import AgentId, JsonValue, MessageId, TurnId, WorkItemId
from holon.model.work import WorkItemRecord
from holon.ports.unavailable import NoFiles
from holon.ports.workspaces import (
    FileChange,
    FileRefusedError,
    Files,
    PathEscapeError,
    RootedFiles,
    StoredFile,
)
from holon.tools.agents import AgentGet
from holon.tools.queue import Enqueue
from holon.tools.registry import ToolRegistry
from holon.tools.tool import Tool, ToolExecution, ToolScene
from holon.tools.wake import Sleep
from holon.tools.work.change import CompleteWorkItem, CreateWorkItem, PickWorkItem, UpdateWorkItem
from holon.tools.work.read import GetWorkItem, ListWorkItems
from tests.runtime.house import House, Setup
from tests.runtime.records import answer_of, kept_calls
from tests.support.builders import MAIN
from tests.support.hosts import tool_ports

WORK_TOOLS: tuple[Tool, ...] = (
    AgentGet(),
    CreateWorkItem(),
    PickWorkItem(),
    GetWorkItem(),
    ListWorkItems(),
    UpdateWorkItem(),
    CompleteWorkItem(),
)
HOME = "/home/agents/main"


def with_work_tools() -> Setup:
    """A house whose agents handle their own work items."""
    return Setup(tools=ToolRegistry((Sleep(), Enqueue(), *WORK_TOOLS)))


class MemoryFiles:
    """A disk that forgets. Everything under any root is one table of paths."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.escapes = False

    def under(self, root: str) -> RootedFiles:
        """Files under a root."""
        return _Rooted(self, root)


class _Rooted:
    def __init__(self, disk: MemoryFiles, root: str) -> None:
        self._disk, self._root = disk, root

    async def read(self, path: str, *, bytes_max: int) -> StoredFile | None:
        content = self._disk.contents.get(self._at(path))
        if content is not None and len(content) > bytes_max:
            raise FileRefusedError(f"{path} is too large")
        return None if content is None else StoredFile(content=content, mode=0o644)

    async def replace_all(self, changes: Sequence[FileChange]) -> None:
        for change in changes:
            assert change.after is not None
            self._disk.contents[self._at(change.path)] = change.after.content

    def _at(self, path: str) -> str:
        if self._disk.escapes:
            raise PathEscapeError(f"{path} leads out of the root")
        return f"{self._root}/{path}"


async def perform(
    house: House,
    name: str,
    arguments: JsonValue,
    *,
    agent: str = MAIN,
    files: Files | None = None,
    home: str = HOME,
) -> ToolExecution:
    """Run a tool outside any turn and commit what it plans."""
    tool = next(tool for tool in WORK_TOOLS if tool.spec.name == name)
    scene = ToolScene(
        agent_id=AgentId(agent),
        turn_id=TurnId("turn_none"),
        message_id=MessageId("msg_none"),
        effect_id="turn_none.1.0",
        now=house.clock.now(),
        agent_home=home,
    )
    ports = tool_ports(
        reads=house.store.reads,
        ids=house.ids,
        files=files or NoFiles(),
        summary_of=house.host.inspection.summary,
    )
    execution = await tool.run(arguments, scene, ports)
    if execution.changes:
        number = answer_of(house.store.reads.events.last_log_seq())
        commit = Commit(
            commit_id=f"tool:test:{number}",
            at=house.clock.now(),
            changes=execution.changes,
            expects=execution.expects,
        )
        assert await house.store.apply(audited(commit)) == Applied()
    return execution


def result_of(execution: ToolExecution) -> Any:
    """The result of a call that worked."""
    assert isinstance(execution.outcome, ToolOk), execution.outcome
    return execution.outcome.result


def notes_of(execution: ToolExecution) -> str:
    """The notes of a call that worked, as one text."""
    assert isinstance(execution.outcome, ToolOk), execution.outcome
    return "\n".join(execution.outcome.notes)


def refusal_of(execution: ToolExecution) -> tuple[str, str | None]:
    """What a refused call was refused for: the kind and the field. It always has a hint."""
    assert isinstance(execution.outcome, ToolRefused), execution.outcome
    assert execution.outcome.error.hint
    assert execution.changes == ()
    return execution.outcome.error.kind, execution.outcome.error.field


async def item_in(house: House, work_item_id: str) -> WorkItemRecord:
    """An item as it stands."""
    item = await house.store.reads.work.work_item(WorkItemId(work_item_id))
    assert item is not None
    return item


def receipts(house: House) -> list[Any]:
    """What the model was told by its calls, in order."""
    found = [recorded.receipt for recorded in kept_calls(house)]
    return [msgspec.json.decode(receipt.content) for receipt in found if receipt is not None]
