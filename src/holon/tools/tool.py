"""What a tool is to the runtime: a spec, and a way to carry out one call.

Owns:  the tool protocol, what a tool may touch, and what it hands back.
Rule 1: a tool returns a value (ToolOk or ToolRefused); raising means it has a bug.
Rule 2: durable changes are returned, not made: they are committed together with the call's result.
Rule 3: a tool that only plans changes says so (`only_plans`); it may be run again when the rows it
        saw have moved on. A tool with an effect outside the database is never run twice.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec

from holon.decide.bounded_text import OutputBudget
from holon.model.commit import Change
from holon.model.expectation import Expect
from holon.model.ids import AgentId, MessageId, TurnId, WorkItemId
from holon.model.json_value import JsonValue
from holon.model.record import Record
from holon.model.task import TaskQuota
from holon.model.tool import ToolError, ToolOutcome, ToolRefused, ToolSpec
from holon.model.workspace import ActiveWorkspace
from holon.ports.clock import Clock
from holon.ports.files import Files
from holon.ports.id_source import IdSource
from holon.ports.memory_index import MemoryRecall
from holon.ports.places import Places
from holon.ports.redactor import Redactor
from holon.ports.shell import Shell
from holon.ports.store_reads import StoreReads
from holon.ports.task_control import TaskControl

if TYPE_CHECKING:
    from holon.projections.agent_summary import AgentSummary

SummaryLook: TypeAlias = "Callable[[AgentId], Awaitable[AgentSummary | None]]"


class ToolScene(Record, frozen=True, kw_only=True):
    """Where a call happens. Paths are absolute; `cwd` lies inside `execution_root`."""

    agent_id: AgentId
    turn_id: TurnId
    message_id: MessageId
    effect_id: str
    now: datetime
    work_item_id: WorkItemId | None = None
    agent_home: str = ""
    execution_root: str = ""
    cwd: str = ""
    workspace: ActiveWorkspace | None = None  # the one these paths are of


class ToolExecution(Record, frozen=True, kw_only=True):
    """What came of a call, and the changes that make it true."""

    outcome: ToolOutcome
    changes: tuple[Change, ...] = ()
    expects: tuple[Expect, ...] = ()


class ToolPorts(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool may touch."""

    reads: StoreReads
    ids: IdSource
    clock: Clock
    shell: Shell
    files: Files
    places: Places
    tasks: TaskControl
    recall: MemoryRecall
    redactor: Redactor
    output_budget: OutputBudget
    task_quota: TaskQuota
    summary_of: "SummaryLook"  # the one summary of an agent


class Tool(Protocol):
    """One tool of the catalog."""

    @property
    def spec(self) -> ToolSpec:
        """How the tool is offered to a model."""
        ...

    @property
    def only_plans(self) -> bool:
        """Whether running it again is harmless."""
        ...

    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Carry out one call."""
        ...


def refuse(
    kind: str, message: str, *, hint: str | None = None, field: str | None = None
) -> ToolExecution:
    """Return a refusal the model can learn from."""
    return ToolExecution(
        outcome=ToolRefused(error=ToolError(kind=kind, message=message, hint=hint, field=field))
    )
