"""The tool interface: a specification, and a way to execute one call.

Owns:  the tool protocol, the ports a tool may use, and what it returns; the receipt the model
       reads, for success and failure alike, within its size limit.
Rule 1: a tool returns a value (ToolOk or ToolRefused); raising means that it has a bug.
Rule 2: durable changes are returned, not made: they are committed together with the call's result.
Rule 3: a tool that only plans changes says so (`only_plans`); it may be run again when the rows it
        read have changed. A tool with an effect outside the database is never run twice.
Rule 4: notes are separate from the result and survive a result that had to be cut.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import msgspec

from holon.decide.text.bounded import OutputBudget
from holon.decide.turns.receipts import error_receipt
from holon.model.commits import Change, Expect
from holon.model.limits import ARGUMENT_NOTES_COUNT_MAX, KIB, TOOL_RESULT_BYTES_MAX
from holon.model.record import Record
from holon.model.tasks import TaskQuota
from holon.model.turns.conversation import ToolUseBlock
from holon.model.turns.tools import ToolError, ToolOk, ToolOutcome, ToolRefused, ToolSpec
from holon.model.turns.turn import ToolReceipt
from holon.model.values import AgentId, JsonValue, MessageId, TurnId, WorkItemId
from holon.model.workspaces import ActiveWorkspace
from holon.ports.clock import Clock, IdSource
from holon.ports.journal import Redactor
from holon.ports.memory import MemoryRecall
from holon.ports.reads import StoreReads
from holon.ports.tasks import Shell, TaskControl
from holon.ports.workspaces import Directories, Files

if TYPE_CHECKING:
    from holon.projections.agents.summary import AgentSummary


SummaryReader: TypeAlias = "Callable[[AgentId], Awaitable[AgentSummary | None]]"
# JSON inside a JSON string at most doubles: its quotes and backslashes are escaped once more.
_PREVIEW_BYTES_MAX: Final = (TOOL_RESULT_BYTES_MAX - 32 * KIB) // 2
_NOTE_CHARS_MAX: Final = 300


class ToolScene(Record, frozen=True, kw_only=True):
    """The context of a call. Paths are absolute; `cwd` lies inside `execution_root`."""

    agent_id: AgentId
    turn_id: TurnId
    message_id: MessageId
    effect_id: str
    now: datetime
    work_item_id: WorkItemId | None = None
    agent_home: str = ""
    execution_root: str = ""
    cwd: str = ""
    workspace: ActiveWorkspace | None = None  # the workspace these paths belong to


class ToolExecution(Record, frozen=True, kw_only=True):
    """The outcome of a call, and the durable changes it implies."""

    outcome: ToolOutcome
    changes: tuple[Change, ...] = ()
    expects: tuple[Expect, ...] = ()


class ToolPorts(msgspec.Struct, frozen=True, kw_only=True):
    """The ports a tool may use."""

    reads: StoreReads
    ids: IdSource
    clock: Clock
    shell: Shell
    files: Files
    places: Directories
    tasks: TaskControl
    recall: MemoryRecall
    redactor: Redactor
    output_budget: OutputBudget
    task_quota: TaskQuota
    summary_of: "SummaryReader"  # the summary that operators see


class Tool(Protocol):
    """One tool of the catalog."""

    @property
    def spec(self) -> ToolSpec:
        """How the tool is offered to a model."""
        ...

    @property
    def only_plans(self) -> bool:
        """Whether the tool has no effect outside its returned changes, so it may be rerun."""
        ...

    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Execute one call."""
        ...


def refuse(
    kind: str, message: str, *, hint: str | None = None, field: str | None = None
) -> ToolExecution:
    """Return a refusal the model can learn from."""
    return ToolExecution(
        outcome=ToolRefused(error=ToolError(kind=kind, message=message, hint=hint, field=field))
    )


def receipt_of(use: ToolUseBlock, outcome: ToolOutcome) -> ToolReceipt:
    """Return the receipt of one call."""
    match outcome:
        case ToolOk():
            return ToolReceipt(
                call_id=use.call_id,
                name=use.name,
                content=_bounded(_envelope(use.name, outcome)),
                ends_turn=outcome.ends_turn,
                sleep_reason=outcome.sleep_reason,
                completes_work_item_id=outcome.completes_work_item_id,
            )
        case ToolRefused(error=error):
            return error_receipt(use.call_id, use.name, error)


def _envelope(name: str, outcome: ToolOk) -> dict[str, JsonValue]:
    envelope: dict[str, JsonValue] = {"ok": True, "tool_name": name, "result": outcome.result}
    if outcome.notes:
        notes = outcome.notes[: 2 * ARGUMENT_NOTES_COUNT_MAX]
        envelope["notes"] = [note[:_NOTE_CHARS_MAX] for note in notes]
    return envelope


def _bounded(envelope: Mapping[str, JsonValue]) -> str:
    encoded = msgspec.json.encode(envelope)
    if len(encoded) <= TOOL_RESULT_BYTES_MAX:
        return encoded.decode()
    head = encoded[:_PREVIEW_BYTES_MAX].decode(errors="ignore")
    cut = {name: part for name, part in envelope.items() if name != "result"}
    return msgspec.json.encode({**cut, "truncated": True, "preview": head}).decode()
