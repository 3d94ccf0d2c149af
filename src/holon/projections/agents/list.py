"""Agent list: the short entry of each agent, and its scheduling posture.

Owns:  the scheduling posture every agent surface shows; the entry of /agents/list and the parts of
       it that the summary shows as well.
Rule 1: the posture is derived from rows, first match wins: down, in a turn, input, given up, work,
        waits, blocked, idle.
Rule 2: it names the one most important cause: a turn, an item, a wait or a task.
Rule 3: an entry stays small: no skills, children, waits, triggers, notifications or events, and of
        a workspace only what identifies it.
Rule 4: the entry of a stopped or paused agent says so, and how to resume it.
Rule 5: `waiting_reason` is that of the closure the summary shows, derived from the current rows.
"""

from enum import StrEnum
from typing import Final

from holon.decide.agents.lifecycle import resume_path
from holon.model.agents import (
    AgentIdentity,
    AgentKind,
    AgentStatus,
    IdentityStatus,
    Ownership,
    ProfilePreset,
    TurnRateState,
    Visibility,
)
from holon.model.events.reads import LastExchange, ListedAgent
from holon.model.record import Record
from holon.model.text_size import one_line
from holon.model.turns.turn import Closure, WaitingReason, waiting_reason_of
from holon.model.values import AgentId, Instant, TaskId, TurnId, WaitId, WorkItemId, WorkspaceId
from holon.model.wake import WaitKind, WaitRecord
from holon.model.work import PlanStatus, WorkItemRecord
from holon.model.workspaces import AccessMode, ActiveWorkspace, ProjectionKind


class Posture(StrEnum):
    """The scheduling state of an agent."""

    ARCHIVED = "archived"
    STOPPED = "stopped"
    ACTIVE_TURN = "active_turn"
    HAS_QUEUED_INPUT = "has_queued_input"
    HAS_RUNNABLE_WORK = "has_runnable_work"
    WAITING_FOR_TASK = "waiting_for_task"
    WAITING_FOR_EXTERNAL = "waiting_for_external"
    WAITING_FOR_OPERATOR = "waiting_for_operator"
    BLOCKED = "blocked"
    IDLE = "idle"
    UNKNOWN = "unknown"  # for readers of a newer runtime; never written


class SchedulingPosture(Record, frozen=True, kw_only=True):
    """The posture, its reason and its cause. `run_id` is the open turn."""

    posture: Posture
    reason: str
    work_item_id: WorkItemId | None = None
    waiting_intent_id: WaitId | None = None
    task_id: TaskId | None = None
    run_id: TurnId | None = None


# First match wins. A rest blocks nothing, and a recheck belongs to a blocked item.
_WAITS: Final[tuple[tuple[WaitKind, Posture], ...]] = (
    (WaitKind.TASK, Posture.WAITING_FOR_TASK),
    (WaitKind.OPERATOR, Posture.WAITING_FOR_OPERATOR),
    (WaitKind.EXTERNAL, Posture.WAITING_FOR_EXTERNAL),
    (WaitKind.TIMER, Posture.WAITING_FOR_EXTERNAL),
    (WaitKind.SYSTEM, Posture.WAITING_FOR_EXTERNAL),
)


def scheduling_posture(listed: ListedAgent) -> SchedulingPosture:
    """Return the posture of an agent. First matching rule wins; read top to bottom."""
    agent = listed.agent
    if agent.identity.status is IdentityStatus.ARCHIVED:
        return SchedulingPosture(posture=Posture.ARCHIVED, reason="the agent is archived")
    if agent.posture.status in (AgentStatus.STOPPED, AgentStatus.PAUSED):
        status = agent.posture.status.value
        return SchedulingPosture(posture=Posture.STOPPED, reason=f"the agent is {status}")
    if (turn_id := agent.focus.open_turn_id) is not None:
        return SchedulingPosture(
            posture=Posture.ACTIVE_TURN,
            reason="a turn is open",
            run_id=turn_id,
            work_item_id=agent.focus.current_work_item_id,
        )
    if listed.queued_count:
        reason = f"{listed.queued_count} queued{_held(agent.pace)}"
        return SchedulingPosture(posture=Posture.HAS_QUEUED_INPUT, reason=reason)
    if agent.pace.gave_up:
        reason = "its turns made no progress; it rests until it gets outside input"
        return SchedulingPosture(posture=Posture.IDLE, reason=reason)
    if (item_id := listed.runnable_work_item_id) is not None:
        return SchedulingPosture(
            posture=Posture.HAS_RUNNABLE_WORK,
            reason="a work item is runnable",
            work_item_id=item_id,
        )
    return _waiting(listed.waits) or _stuck(listed.stuck_work_item) or _idle(listed)


def _held(pace: TurnRateState) -> str:
    if pace.budget_until is None:
        return ""
    return f"; the budget is exhausted until {pace.budget_until.isoformat()}"


def _waiting(waits: tuple[WaitRecord, ...]) -> SchedulingPosture | None:
    for kind, posture in _WAITS:
        wait = next((each for each in waits if each.kind is kind), None)
        if wait is not None:
            is_task = kind is WaitKind.TASK and wait.source_id is not None
            return SchedulingPosture(
                posture=posture,
                reason=one_line(wait.waiting_for),
                work_item_id=wait.work_item_id,
                waiting_intent_id=wait.id,
                task_id=TaskId(wait.source_id or "") if is_task else None,
            )
    return None


def _stuck(item: WorkItemRecord | None) -> SchedulingPosture | None:
    if item is None:
        return None
    if item.plan_status is PlanStatus.NEEDS_INPUT:
        return SchedulingPosture(
            posture=Posture.WAITING_FOR_OPERATOR,
            reason="the plan of a work item needs input",
            work_item_id=item.id,
        )
    return SchedulingPosture(
        posture=Posture.BLOCKED,
        reason=one_line(item.blocked_by or "a work item may not run"),
        work_item_id=item.id,
    )


def _idle(listed: ListedAgent) -> SchedulingPosture:
    posture = listed.agent.posture
    until = posture.sleeping_until
    reason = "nothing to do" if until is None else f"resting until {until.isoformat()}"
    return SchedulingPosture(posture=Posture.IDLE, reason=reason)


class IdentityView(Record, frozen=True, kw_only=True):
    """An agent's identity, with every field."""

    agent_id: AgentId
    kind: AgentKind
    visibility: Visibility
    ownership: Ownership
    profile_preset: ProfilePreset
    status: IdentityStatus
    created_at: Instant
    parent_agent_id: AgentId | None = None
    lineage_parent_agent_id: AgentId | None = None


class LifecycleView(Record, frozen=True, kw_only=True):
    """What an agent accepts in its current posture, and how to resume it."""

    resume_required: bool
    accepts_external_messages: bool
    wake_requires_resume: bool
    operator_hint: str | None = None
    resume_cli_hint: str | None = None
    resume_control_path: str | None = None


class ModelSource(StrEnum):
    """Where an agent's model comes from."""

    RUNTIME_DEFAULT = "runtime_default"
    AGENT_OVERRIDE = "agent_override"


class RuntimeModels(Record, frozen=True, kw_only=True):
    """The runtime's default model, and its fallbacks."""

    default: str
    fallbacks: tuple[str, ...] = ()


class AgentModelState(Record, frozen=True, kw_only=True):
    """An agent's model, its source, and the model that answered last."""

    source: ModelSource
    runtime_default_model: str
    effective_model: str
    effective_fallback_models: tuple[str, ...]
    fallback_active: bool  # the newest round was answered by a fallback
    override_model: str | None = None
    requested_model: str | None = None  # by the newest round
    # The last one called for it; differs from the requested one after a fallback.
    active_model: str | None = None


class WorkspaceView(Record, frozen=True, kw_only=True):
    """Where an agent works, as shown in lists."""

    workspace_id: WorkspaceId
    workspace_anchor: str
    execution_root_id: str
    execution_root: str
    projection_kind: ProjectionKind
    access_mode: AccessMode
    cwd: str


class AgentListEntry(Record, frozen=True, kw_only=True):
    """The list entry of one agent."""

    identity: IdentityView
    status: AgentStatus
    scheduling_posture: SchedulingPosture
    lifecycle: LifecycleView
    pending: int
    model: AgentModelState
    current_run_id: TurnId | None = None
    waiting_reason: WaitingReason | None = None
    active_workspace_entry: WorkspaceView | None = None


def agent_list_entry(
    listed: ListedAgent,
    models: RuntimeModels,
    *,
    closure: Closure | None = None,
    workspace: ActiveWorkspace | None = None,
) -> AgentListEntry:
    """Return the list entry of an agent."""
    agent = listed.agent
    return AgentListEntry(
        identity=identity_view(agent.identity),
        status=agent.posture.status,
        scheduling_posture=scheduling_posture(listed),
        lifecycle=lifecycle_view(agent.identity, agent.posture.status),
        pending=listed.queued_count,
        model=agent_model_state(agent.model.override_model, models),
        current_run_id=agent.focus.open_turn_id,
        waiting_reason=None if closure is None else waiting_reason_of(closure),
        active_workspace_entry=None if workspace is None else workspace_view(workspace),
    )


def could_wait(listed: ListedAgent) -> bool:
    """Whether an agent has anything that could make it wait; most have not.

    A deferred message is queued, an item that may not run is stuck, every wait is listed.
    """
    is_open = listed.agent.focus.open_turn_id is not None
    is_held = listed.waits or listed.stuck_work_item is not None
    return bool(is_open or listed.queued_count or is_held)


def identity_view(identity: AgentIdentity) -> IdentityView:
    """Return the view of an identity, with every field."""
    return IdentityView(
        agent_id=identity.agent_id,
        kind=identity.kind,
        visibility=identity.visibility,
        ownership=identity.ownership,
        profile_preset=identity.profile_preset,
        status=identity.status,
        created_at=identity.created_at,
        parent_agent_id=identity.parent_agent_id,
        lineage_parent_agent_id=identity.lineage_parent_agent_id,
    )


def lifecycle_view(identity: AgentIdentity, status: AgentStatus) -> LifecycleView:
    """Return what an agent in this posture accepts, and how to resume it if necessary."""
    agent_id = identity.agent_id
    if identity.status is IdentityStatus.ARCHIVED:
        return LifecycleView(
            resume_required=False,
            accepts_external_messages=False,
            wake_requires_resume=False,
            operator_hint=f"{agent_id} is archived: only its history is kept",
        )
    if status not in (AgentStatus.STOPPED, AgentStatus.PAUSED):
        return LifecycleView(
            resume_required=False, accepts_external_messages=True, wake_requires_resume=False
        )
    is_stopped = status is AgentStatus.STOPPED
    effect = "accepts no prompts" if is_stopped else "keeps its messages for later"
    return LifecycleView(
        resume_required=True,
        accepts_external_messages=not is_stopped,
        wake_requires_resume=True,
        operator_hint=f"{agent_id} is {status} and {effect}; a wake has no effect, resume it first",
        resume_cli_hint=f"holon agent resume {agent_id}",
        resume_control_path=resume_path(agent_id),
    )


def agent_model_state(
    override_model: str | None, models: RuntimeModels, *, last: LastExchange | None = None
) -> AgentModelState:
    """Return the view of an agent's model; `last` is its newest exchange."""
    effective = override_model or models.default
    requested, active = (None, None) if last is None else (last.requested_model, last.active_model)
    return AgentModelState(
        source=ModelSource.RUNTIME_DEFAULT
        if override_model is None
        else ModelSource.AGENT_OVERRIDE,
        runtime_default_model=models.default,
        effective_model=effective,
        effective_fallback_models=tuple(each for each in models.fallbacks if each != effective),
        fallback_active=active is not None and active != requested,
        override_model=override_model,
        requested_model=requested,
        active_model=active,
    )


def workspace_view(workspace: ActiveWorkspace) -> WorkspaceView:
    """Return the view of an active workspace."""
    return WorkspaceView(
        workspace_id=workspace.workspace_id,
        workspace_anchor=workspace.workspace_anchor,
        execution_root_id=workspace.execution_root_id,
        execution_root=workspace.execution_root,
        projection_kind=workspace.projection_kind,
        access_mode=workspace.access_mode,
        cwd=workspace.cwd,
    )
