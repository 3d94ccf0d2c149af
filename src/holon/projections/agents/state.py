"""Agent state snapshot: one agent, whole, with the event cursor to continue from.

Owns:  the answer of /state. A client reads it once and then follows the agent's events.
Rule 1: `agent` is the very summary /status gives, so that one request recovers what a replay
        missed.
Rule 2: everything is read at one moment; `event_cursor` is the newest event it includes.
Rule 3: it contains no trigger's token or address.
"""

from holon.model.events.reads import AgentSurface
from holon.model.limits import LABEL_CHARS_MAX
from holon.model.record import Record
from holon.model.tasks import TaskKind, TaskRecord, TaskStatus
from holon.model.text_size import one_line
from holon.model.values import AgentId, Instant, TaskId, TurnId, WorkItemId
from holon.projections.agents.summary import (
    AgentSummary,
    SummaryContext,
    TurnEndView,
    agent_summary,
    last_turn_of,
)
from holon.projections.wake import (
    HintView,
    TimerView,
    TriggerView,
    hint_view,
    timer_view,
    trigger_view,
)
from holon.projections.work import WaitView, WorkItemView, wait_view, work_item_view
from holon.projections.workspaces import ExecutionView, WorkspaceStateView, workspace_state_view


class SessionView(Record, frozen=True, kw_only=True):
    """The agent's current run, its queue length and its last turn."""

    pending_count: int
    current_run_id: TurnId | None = None
    last_turn: TurnEndView | None = None


class TaskSlimView(Record, frozen=True, kw_only=True):
    """A task without its command and output, which are read per task."""

    task_id: TaskId
    agent_id: AgentId
    kind: TaskKind
    status: TaskStatus
    created_at: Instant
    updated_at: Instant
    summary: str | None = None
    work_item_id: WorkItemId | None = None
    result_summary: str | None = None
    exit_status: int | None = None


class AgentStateSnapshot(Record, frozen=True, kw_only=True):
    """The initial state of one agent, for a client that then follows its events."""

    agent: AgentSummary
    session: SessionView
    tasks: tuple[TaskSlimView, ...]
    timers: tuple[TimerView, ...]
    work_items: tuple[WorkItemView, ...]
    waiting_intents: tuple[WaitView, ...]
    wake_hints: tuple[HintView, ...]
    external_triggers: tuple[TriggerView, ...]
    workspace: WorkspaceStateView
    execution: ExecutionView
    event_cursor: int


def agent_state_snapshot(surface: AgentSurface, context: SummaryContext) -> AgentStateSnapshot:
    """Return the state snapshot of an agent."""
    summary = agent_summary(surface, context)
    agent = surface.listed.agent
    focus = agent.focus.current_work_item_id
    return AgentStateSnapshot(
        agent=summary,
        session=SessionView(
            pending_count=surface.listed.queued_count,
            current_run_id=agent.focus.open_turn_id,
            last_turn=last_turn_of(agent),
        ),
        tasks=tuple(task_slim_view(task) for task in surface.tasks),
        timers=tuple(timer_view(timer) for timer in surface.timers),
        work_items=tuple(work_item_view(item, focus=focus) for item in surface.work_items),
        waiting_intents=tuple(wait_view(wait) for wait in surface.waits),
        wake_hints=tuple(hint_view(hint) for hint in surface.hints),
        external_triggers=tuple(
            trigger_view(trigger, base_url=context.trigger_base_url) for trigger in context.triggers
        ),
        workspace=workspace_state_view(surface.workspaces, context.workspace),
        execution=summary.execution,
        event_cursor=surface.last_event_seq,
    )


def task_slim_view(task: TaskRecord) -> TaskSlimView:
    """Return the short view of a task."""
    result = task.result_summary
    return TaskSlimView(
        task_id=task.id,
        agent_id=task.agent_id,
        kind=task.kind,
        status=task.status,
        created_at=task.created_at,
        updated_at=task.updated_at,
        summary=None if task.summary is None else one_line(task.summary),
        work_item_id=task.work_item_id,
        # The first line of a result says how it ended; what follows is output.
        result_summary=None
        if result is None
        else one_line(result.split("\n", 1)[0], chars_max=LABEL_CHARS_MAX),
        exit_status=task.exit_status,
    )
