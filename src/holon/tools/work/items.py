"""Work items as the tools read them: lookup, view, checklist arguments and the plan file.

Owns:  argument types for ids and checklists, with the field names models tend to use; the plan
       file: its path, its first content, and the bounded excerpt every view carries; the view all
       work-item tools answer with; finding an item of the calling agent with its waits and plan.
Rule 1: the file is the plan. A missing file is no error: the item has no plan yet.
Rule 2: a file that cannot be read is reported as a problem beside the view; the view itself stands.
Rule 3: the host keeps no file times. An unchanged plan keeps the recorded time; an edited one is
        dated to the moment the edit was detected.
Rule 4: a view is bounded. The todo list is included on request; its counts always are.
Rule 5: readiness is projected from the scheduling state, never decided here.
Rule 6: another agent's item counts as unknown.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final, TypeAlias

import msgspec

from holon.decide.work.items import open_item, unknown_item
from holon.decide.work.projection import readiness_of, scheduling_state
from holon.model.errors import BadIdError, Refusal, RefusalCode
from holon.model.events.reads import WeighedItem
from holon.model.limits import (
    AGENT_ROWS_SHOWN_COUNT_MAX,
    ID_CHARS_MAX,
    OBJECTIVE_CHARS_MAX,
    PLAN_BYTES_MAX,
    PLAN_PREVIEW_CHARS_MAX,
    TODO_ITEMS_COUNT_MAX,
    TODO_TEXT_CHARS_MAX,
)
from holon.model.record import Record
from holon.model.values import JsonValue, WorkItemId, parse_record_id
from holon.model.wake import WaitRecord
from holon.model.work import (
    PlanArtifact,
    SchedulingState,
    TodoItem,
    TodoState,
    WorkItemRecord,
    WorkItemState,
)
from holon.ports.workspaces import FileChange, FileRefusedError, Files, PathEscapeError, StoredFile
from holon.projections.work import todo_counts
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene, refuse

ITEM_ALIASES: Final = (
    ("id", "work_item_id"),
    ("item_id", "work_item_id"),
    ("work_item", "work_item_id"),
)
BODY_ALIASES: Final = (
    ("title", "objective"),
    ("goal", "objective"),
    ("description", "objective"),
    ("todos", "todo_list"),
    ("todo", "todo_list"),
    ("checklist", "todo_list"),
    ("title", "text"),
    ("content", "text"),
    ("task", "text"),
    ("status", "plan_status"),
    ("status", "state"),
)

ItemIdText: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=ID_CHARS_MAX)]
ObjectiveText: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=1, max_length=OBJECTIVE_CHARS_MAX)
]
_MODE = 0o644
_KINDS = {RefusalCode.WORK_ITEM_NOT_FOUND: "unknown_work_item"}


class TodoArgument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a checklist."""

    text: Annotated[
        str,
        msgspec.Meta(
            min_length=1, max_length=TODO_TEXT_CHARS_MAX, description="What is to be done."
        ),
    ]
    state: Annotated[
        TodoState, msgspec.Meta(description="How far it has come; pending when left out.")
    ] = TodoState.PENDING


TodoArguments: TypeAlias = Annotated[
    tuple[TodoArgument, ...], msgspec.Meta(max_length=TODO_ITEMS_COUNT_MAX)
]


def todo_items(listed: tuple[TodoArgument, ...]) -> tuple[TodoItem, ...]:
    """Return a checklist as the record stores it."""
    return tuple(TodoItem(text=todo.text, state=todo.state) for todo in listed)


class PlanLook(Record, frozen=True, kw_only=True):
    """A plan file as read, or the reason why it could not be read."""

    artifact: PlanArtifact | None = None
    problem: str | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """The problem as a note for the model."""
        return () if self.problem is None else (f"the plan could not be read: {self.problem}",)


def plan_path(work_item_id: str) -> str:
    """Return the path of a plan, relative to the agent's home."""
    return f"work-items/{work_item_id}/plan.md"


async def look_at_plan(
    item: WorkItemRecord, files: Files, *, agent_home: str, now: datetime
) -> PlanLook:
    """Read the current plan file."""
    try:
        home = files.under(agent_home)
    except FileRefusedError:
        return PlanLook()  # a host without files has no plans
    try:
        stored = await home.read(plan_path(item.id), bytes_max=PLAN_BYTES_MAX)
    except (PathEscapeError, FileRefusedError) as problem:
        return PlanLook(problem=str(problem))
    if stored is None:
        return PlanLook()
    recorded = item.plan_artifact
    return PlanLook(
        artifact=_described(item.id, stored.content, recorded, agent_home=agent_home, now=now)
    )


async def seed_plan(
    work_item_id: str, plan: str, scene: ToolScene, ports: ToolPorts
) -> PlanArtifact | ToolExecution | None:
    """Write the first plan of a new item, if there is one."""
    if not plan.strip():
        return None
    content = plan.encode()
    if len(content) > PLAN_BYTES_MAX:
        return refuse(
            "invalid_tool_input",
            f"the plan is longer than {PLAN_BYTES_MAX} bytes",
            hint="seed a short plan and extend its file afterwards",
            field="plan",
        )
    change = FileChange(path=plan_path(work_item_id), after=StoredFile(content=content, mode=_MODE))
    try:
        await ports.files.under(scene.agent_home).replace_all((change,))
    except (PathEscapeError, FileRefusedError) as problem:
        return refuse(
            "plan_not_written",
            f"the plan could not be written: {problem}",
            hint="create the work item without a plan",
            field="plan",
        )
    return _described(work_item_id, content, None, agent_home=scene.agent_home, now=scene.now)


def plan_view(artifact: PlanArtifact, work_item_id: str, *, chars_max: int) -> JsonValue:
    """Return the view of a plan."""
    preview = artifact.preview[:chars_max]
    return {
        "relative_path": plan_path(work_item_id),
        "path": artifact.path,
        "hash": artifact.hash,
        "bytes": artifact.bytes,
        "updated_at": artifact.updated_at.isoformat(),
        "preview": preview,
        "preview_complete": artifact.preview_complete and preview == artifact.preview,
    }


def _described(
    work_item_id: str,
    content: bytes,
    recorded: PlanArtifact | None,
    *,
    agent_home: str,
    now: datetime,
) -> PlanArtifact:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    text = content.decode(errors="replace")
    unchanged = recorded is not None and recorded.hash == digest
    return PlanArtifact(
        path=f"{agent_home}/{plan_path(work_item_id)}",
        hash=digest,
        bytes=len(content),
        updated_at=recorded.updated_at if unchanged and recorded is not None else now,
        preview=text[:PLAN_PREVIEW_CHARS_MAX],
        preview_complete=len(text) <= PLAN_PREVIEW_CHARS_MAX,
    )


class Seen(Record, frozen=True, kw_only=True):
    """An item with the facts its view is derived from."""

    item: WorkItemRecord
    waits: tuple[WaitRecord, ...] = ()  # its open ones
    focus: WorkItemId | None = None  # what the agent focuses on
    plan: PlanArtifact | None = None

    @property
    def scheduling(self) -> SchedulingState:
        """What the scheduler may do with the item."""
        return scheduling_state(self.item, self.waits)

    @property
    def standing(self) -> str:
        """The item's position in the agent's queue."""
        if self.item.state is WorkItemState.COMPLETED:
            return "completed"
        if self.item.id == self.focus:
            return "current"
        return "blocked" if self.item.blocked_by is not None else "queued"


def work_item_view(
    seen: Seen, *, include_todo_list: bool, preview_chars_max: int = PLAN_PREVIEW_CHARS_MAX
) -> dict[str, JsonValue]:
    """Return the view of an item, without fields that do not apply."""
    item, state = seen.item, seen.scheduling
    plan = seen.plan
    view: dict[str, JsonValue] = {
        "id": item.id,
        "objective": item.objective,
        "state": item.state.value,
        "revision": item.revision,
        "focus": seen.standing,
        "is_current": seen.standing == "current",
        "is_runnable": state is SchedulingState.RUNNABLE,
        "readiness": readiness_of(state).value,
        "scheduling_state": state.value,
        "plan_status": item.plan_status.value,
        "plan_artifact": plan and plan_view(plan, item.id, chars_max=preview_chars_max),
        "todo_counts": todo_counts(item),
        "todo_list": _todo_list(item) if include_todo_list else None,
        "blocked_by": item.blocked_by,
        "recheck_at": _moment(item.recheck_at),
        "recheck_consumed_at": _moment(item.recheck_consumed_at),
        "active_wait_conditions": wait_views(seen.waits) or None,
        "completion_report": _report(item),
        "created_at": _moment(item.created_at),
        "updated_at": _moment(item.updated_at),
    }
    return {name: part for name, part in view.items() if part is not None}


def wait_views(waits: Sequence[WaitRecord]) -> list[JsonValue]:
    """Return the views of open waits."""
    return [
        {
            "id": wait.id,
            "kind": wait.kind.value,
            "state": wait.state.value,
            "waiting_for": wait.waiting_for,
            "deadline_at": _moment(wait.deadline_at),
        }
        for wait in waits[:AGENT_ROWS_SHOWN_COUNT_MAX]
    ]


def _todo_list(item: WorkItemRecord) -> JsonValue:
    return [{"text": todo.text, "state": todo.state.value} for todo in item.todo_list]


def _report(item: WorkItemRecord) -> JsonValue:
    """The promoted report; None for an item that was completed without one."""
    if item.state is not WorkItemState.COMPLETED or item.result_summary is None:
        return None
    return {"text": item.result_summary, "source": "same_round_text"}


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def refused(refusal: Refusal) -> ToolExecution:
    """Return a refusal of the core as a tool result."""
    kind = _KINDS.get(refusal.code, refusal.code.value)
    return refuse(kind, refusal.message, hint=refusal.hint, field=refusal.field)


async def own_item(
    work_item_id: str, scene: ToolScene, ports: ToolPorts
) -> WorkItemRecord | ToolExecution:
    """Return the agent's item with this id in any state, or a refusal."""
    try:
        wanted = WorkItemId(parse_record_id(work_item_id, what="work item id"))
    except BadIdError as bad:
        return refuse("invalid_tool_input", str(bad), hint=bad.hint, field="work_item_id")
    item = await ports.reads.work.work_item(wanted)
    if item is None or item.agent_id != scene.agent_id:
        return refused(unknown_item(wanted))
    return item


async def own_open_item(
    work_item_id: str, scene: ToolScene, ports: ToolPorts
) -> WorkItemRecord | ToolExecution:
    """Return the agent's open item with this id, or a refusal."""
    item = await own_item(work_item_id, scene, ports)
    if isinstance(item, ToolExecution):
        return item
    opened = open_item(item, item.id)
    return refused(opened) if isinstance(opened, Refusal) else opened


async def focus_of(scene: ToolScene, ports: ToolPorts) -> WorkItemId | None:
    """Return the agent's current item."""
    agent = await ports.reads.agents.agent(scene.agent_id)
    return None if agent is None else agent.focus.current_work_item_id


async def weighed(work_item_id: WorkItemId, ports: ToolPorts) -> WeighedItem | None:
    """Return an item with its open waits."""
    item = await ports.reads.work.work_item(work_item_id)
    if item is None:
        return None
    return WeighedItem(item=item, waits=tuple(await ports.reads.wake.item_waits(item.id)))


async def seen_now(
    item: WorkItemRecord, waits: Sequence[WaitRecord], scene: ToolScene, ports: ToolPorts
) -> tuple[Seen, tuple[str, ...]]:
    """Return an item with its current plan and focus, and notes on what could not be read."""
    look = await look_at_plan(item, ports.files, agent_home=scene.agent_home, now=scene.now)
    focus = await focus_of(scene, ports)
    seen = Seen(item=item, waits=tuple(waits), focus=focus, plan=look.artifact)
    return seen, look.notes
