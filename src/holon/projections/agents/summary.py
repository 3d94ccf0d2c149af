"""Agent summary: what /status answers and /state begins with.

Owns:  the agent summary, whole and bounded; with it the execution history (averages over an agent's
       life) and the token usage that status surfaces show.
Rule 1: history and usage are descriptive: no rule reads them. They come from persisted totals,
        never from a window of the transcript, so they outlive what retention deletes.
Rule 2: a summary is made from one read of the rows; its parts agree.
Rule 3: names are those AgentGet uses: counts, waits, tasks and work items are called the same
        everywhere.
Rule 4: `closure` says what has come of the agent's work, `agent.status` what its loop does. Both
        reflect the current rows; an agent that has never run has no closure.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from holon.decide.tasks.commands import is_terminal
from holon.decide.text.bounded import bounded
from holon.model.agents import AgentState, AgentStatus, AgentTotals
from holon.model.events.briefs import BriefRecord, FailureArtifact, FailureCategory
from holon.model.events.reads import AgentCounts, AgentSurface
from holon.model.guidance import InstructionMetadata, LoadedGuidance, TaintedInstructions
from holon.model.limits import AGENT_ROWS_SHOWN_COUNT_MAX
from holon.model.memory.records import MemoryFigures
from holon.model.providers.attempts import TokenUsage
from holon.model.record import Record, no_entries
from holon.model.text_size import one_line
from holon.model.turns.tools import ToolLatency
from holon.model.turns.turn import (
    Closure,
    ClosureOutcome,
    Continuable,
    Continuation,
    Failed,
    Reentry,
    RuntimePosture,
    TerminalKind,
    TriggerKind,
    TurnTerminal,
    WaitingReason,
    WorkSignal,
    outcome_of,
    waiting_reason_of,
)
from holon.model.values import AgentId, BriefId, Instant, TaskId, TurnId, WorkItemId, WorkspaceId
from holon.model.wake import ExternalTrigger, TriggerStatus
from holon.model.workspaces import ActiveWorkspace, ExecutionPolicy, ExecutionProfile
from holon.projections.agents.list import (
    AgentModelState,
    IdentityView,
    LifecycleView,
    RuntimeModels,
    SchedulingPosture,
    WorkspaceView,
    agent_model_state,
    identity_view,
    lifecycle_view,
    scheduling_posture,
    workspace_view,
)
from holon.projections.budgets import PaceView
from holon.projections.guidance import SkillsSummary
from holon.projections.runtime_status import FailurePhase
from holon.projections.wake import HintView, TriggerView, hint_view, trigger_view
from holon.projections.work import WaitView, wait_view
from holon.projections.workspaces import (
    AttachedWorkspaceView,
    ExecutionView,
    OccupancyView,
    attached_views,
    execution_view,
    occupancy_view,
)

TRIAL_TOOLS_HINT: Final = (
    "the model is a trial model without acting tools; choose another one, or allow them with"
    " `holon config set model.allow_trial_tools true` and a restart"
)


class ExecutionHistory(Record, frozen=True, kw_only=True):
    """Averages over an agent's life; each is absent while its count is zero."""

    turn_count: int
    tool_call_count: int
    rounds_per_turn: float | None = None
    input_tokens_per_round: float | None = None
    output_tokens_per_round: float | None = None
    ms_per_tool_call: float | None = None


def execution_history(totals: AgentTotals, latencies: Sequence[ToolLatency]) -> ExecutionHistory:
    """Return an agent's averages."""
    turns, rounds = totals.turn_index, totals.model_round_count
    calls = sum(each.call_count for each in latencies)
    return ExecutionHistory(
        turn_count=turns,
        tool_call_count=calls,
        rounds_per_turn=_mean(rounds, turns),
        input_tokens_per_round=_mean(totals.input_tokens, rounds),
        output_tokens_per_round=_mean(totals.output_tokens, rounds),
        ms_per_tool_call=_mean(sum(each.total_ms for each in latencies), calls),
    )


def _mean(total: int, count: int) -> float | None:
    return round(total / count, 2) if count else None


class AgentTokenUsageSummary(Record, frozen=True, kw_only=True):
    """An agent's total token usage, and that of its newest turn with token data."""

    total: TokenUsage
    total_model_rounds: int
    last_turn: TokenUsage | None = None


def token_summary(totals: AgentTotals, last_reported: TokenUsage | None) -> AgentTokenUsageSummary:
    """Return the summary of an agent."""
    return AgentTokenUsageSummary(
        total=TokenUsage(input_tokens=totals.input_tokens, output_tokens=totals.output_tokens),
        total_model_rounds=totals.model_round_count,
        last_turn=last_reported,
    )


class TurnEndView(Record, frozen=True, kw_only=True):
    """How a turn ended."""

    turn_id: TurnId
    turn_index: int
    kind: TerminalKind
    completed_at: Instant
    duration_ms: int
    reason: str | None = None
    last_assistant_message: str | None = None


class ClosureView(Record, frozen=True, kw_only=True):
    """The outcome of the work. Fields that do not apply to it are omitted."""

    outcome: ClosureOutcome
    runtime_posture: RuntimePosture
    waiting_reason: WaitingReason | None = None
    work_signal: WorkSignal | None = None
    summary: str | None = None
    evidence: tuple[str, ...] = msgspec.field(default_factory=no_entries)


class ContinuationView(Record, frozen=True, kw_only=True):
    """How a message was classified when it was processed."""

    model_visible: bool
    continuation_class: str
    prior_closure_outcome: ClosureOutcome
    matched_waiting_reason: bool
    trigger_kind: TriggerKind | None = None
    prior_waiting_reason: WaitingReason | None = None
    evidence: tuple[str, ...] = msgspec.field(default_factory=no_entries)


class FailureView(Record, frozen=True, kw_only=True):
    """The newest failed turn; it stays visible after the turn has ended."""

    occurred_at: Instant
    category: FailureCategory
    kind: str
    summary: str
    brief_id: BriefId
    phase: FailurePhase
    turn_id: TurnId | None = None
    recovery_hint: str | None = None
    failure_artifact: FailureArtifact | None = None


class AgentStateView(Record, frozen=True, kw_only=True):
    """The state of an agent's loop."""

    id: AgentId
    status: AgentStatus
    status_since: Instant
    status_reason: str
    pending: int
    turn_index: int
    total_message_count: int
    total_model_rounds: int
    total_input_tokens: int
    total_output_tokens: int
    compacted_message_count: int  # of turns that are no longer shown in full
    active_task_ids: tuple[TaskId, ...]
    attached_workspaces: tuple[WorkspaceId, ...]
    execution_profile: ExecutionHistory
    tool_latency: tuple[ToolLatency, ...] = msgspec.field(default_factory=no_entries)
    current_run_id: TurnId | None = None
    current_work_item_id: WorkItemId | None = None
    sleeping_until: Instant | None = None
    last_wake_reason: str | None = None
    last_brief_at: Instant | None = None
    model_override: str | None = None
    last_turn_terminal: TurnEndView | None = None
    last_runtime_failure: FailureView | None = None
    last_continuation: ContinuationView | None = None
    context_summary: str | None = None  # the recap of turns no longer shown in full
    pending_wake_hint: HintView | None = None  # the next one to be delivered
    active_workspace_id: WorkspaceId | None = None
    cwd: str | None = None
    working_memory: MemoryFigures = msgspec.field(default_factory=lambda: MemoryFigures())
    tainted_instructions: TaintedInstructions | None = None


class AgentSummary(Record, frozen=True, kw_only=True):
    """The bounded summary of an agent."""

    identity: IdentityView
    agent: AgentStateView
    scheduling_posture: SchedulingPosture
    lifecycle: LifecycleView
    model: AgentModelState
    token_usage: AgentTokenUsageSummary
    execution: ExecutionView
    counts: AgentCounts
    active_task_count: int
    active_wait_conditions: tuple[WaitView, ...]
    active_external_triggers: tuple[TriggerView, ...]
    recent_brief_count: int
    recent_event_count: int
    closure: ClosureView | None = None
    attached_workspaces: tuple[AttachedWorkspaceView, ...] = msgspec.field(
        default_factory=no_entries
    )
    active_workspace_entry: WorkspaceView | None = None
    active_workspace_occupancy: OccupancyView | None = None
    pace: PaceView | None = None
    # The source of each file, without its text.
    loaded_agents_md: tuple[InstructionMetadata, ...] = msgspec.field(default_factory=no_entries)
    agents_md_problems: tuple[str, ...] = ()  # files that exist but are not used, with reasons
    skills: SkillsSummary = SkillsSummary()
    withheld_tools: tuple[str, ...]  # from a trial model
    withheld_tools_hint: str | None = None


class SummaryContext(Record, frozen=True, kw_only=True):
    """The inputs of a summary that are not in the agent's own rows."""

    models: RuntimeModels
    closure: Closure | None = None
    workspace: ActiveWorkspace | None = None
    profile: ExecutionProfile = ExecutionProfile()
    policy: ExecutionPolicy = ExecutionPolicy()
    withheld_tools: tuple[str, ...] = ()
    triggers: tuple[ExternalTrigger, ...] = ()
    trigger_base_url: str | None = None
    latencies: tuple[ToolLatency, ...] = ()
    pace: PaceView | None = None
    guidance: LoadedGuidance = LoadedGuidance()
    skills: SkillsSummary = SkillsSummary()


def agent_summary(surface: AgentSurface, context: SummaryContext) -> AgentSummary:
    """Return the summary of an agent."""
    listed, counts, agent = surface.listed, surface.counts, surface.listed.agent
    place = context.workspace
    return AgentSummary(
        identity=identity_view(agent.identity),
        agent=_agent_view(surface, context),
        scheduling_posture=scheduling_posture(listed),
        lifecycle=lifecycle_view(agent.identity, agent.posture.status),
        model=agent_model_state(
            agent.model.override_model, context.models, last=surface.last_exchange
        ),
        token_usage=token_summary(agent.totals, surface.last_usage),
        execution=execution_view(context.profile, context.policy, place=place),
        counts=counts,
        active_task_count=counts.tasks,
        active_wait_conditions=tuple(
            wait_view(wait) for wait in surface.waits[:AGENT_ROWS_SHOWN_COUNT_MAX]
        ),
        active_external_triggers=tuple(
            trigger_view(trigger, base_url=context.trigger_base_url)
            for trigger in context.triggers[:AGENT_ROWS_SHOWN_COUNT_MAX]
            if trigger.status is TriggerStatus.ACTIVE
        ),
        recent_brief_count=counts.briefs,
        recent_event_count=counts.events,
        closure=None if context.closure is None else closure_view(context.closure),
        attached_workspaces=attached_views(surface.workspaces),
        active_workspace_entry=None if place is None else workspace_view(place),
        active_workspace_occupancy=occupancy_view(surface.workspaces),
        pace=context.pace,
        loaded_agents_md=tuple(each.metadata for each in context.guidance.files),
        agents_md_problems=tuple(one_line(each) for each in context.guidance.problems),
        skills=context.skills,
        withheld_tools=context.withheld_tools,
        withheld_tools_hint=TRIAL_TOOLS_HINT if context.withheld_tools else None,
    )


def closure_view(closure: Closure) -> ClosureView:
    """Return the view of a closure, with bounded texts."""
    return ClosureView(
        outcome=outcome_of(closure),
        runtime_posture=closure.runtime_posture,
        waiting_reason=waiting_reason_of(closure),
        work_signal=closure.work_signal if isinstance(closure, Continuable) else None,
        summary=one_line(closure.summary) if isinstance(closure, Failed) else None,
        evidence=tuple(one_line(line) for line in closure.evidence[:AGENT_ROWS_SHOWN_COUNT_MAX]),
    )


def continuation_view(continuation: Continuation) -> ContinuationView:
    """Return the view of a continuation, whether or not it started a turn."""
    visible = continuation if isinstance(continuation, Reentry) else None
    return ContinuationView(
        model_visible=visible is not None,
        continuation_class="liveness_only" if visible is None else visible.continuation_class,
        prior_closure_outcome=continuation.prior_outcome,
        matched_waiting_reason=visible is not None and visible.matched_waiting_reason,
        trigger_kind=continuation.trigger_kind,
        prior_waiting_reason=continuation.prior_waiting_reason,
        evidence=continuation.evidence,
    )


def last_turn_of(agent: AgentState) -> TurnEndView | None:
    """Return the end of the agent's newest settled turn, if any."""
    return None if agent.last_terminal is None else turn_end_view(agent.last_terminal)


def turn_end_view(terminal: TurnTerminal) -> TurnEndView:
    """Return the view of a turn's end, with bounded texts."""
    message = terminal.last_assistant_message
    return TurnEndView(
        turn_id=terminal.turn_id,
        turn_index=terminal.turn_index,
        kind=terminal.kind,
        completed_at=terminal.completed_at,
        duration_ms=terminal.duration_ms,
        reason=None if terminal.reason is None else one_line(terminal.reason),
        last_assistant_message=one_line(message) if message else None,
    )


def failure_view(brief: BriefRecord) -> FailureView:
    """Return the view of the failure a brief reports."""
    failure = brief.failure
    hint = None if failure is None else failure.recovery_hint
    return FailureView(
        occurred_at=brief.created_at,
        category=FailureCategory.UNKNOWN if failure is None else failure.category,
        kind="unknown" if failure is None else failure.kind,
        summary=one_line(brief.text if failure is None else failure.summary),
        brief_id=brief.id,
        phase=FailurePhase.RUNTIME_TURN,
        turn_id=brief.turn_id,
        recovery_hint=None if hint is None else one_line(hint),
        failure_artifact=failure,
    )


def _agent_view(surface: AgentSurface, context: SummaryContext) -> AgentStateView:
    agent, place, latencies = surface.listed.agent, context.workspace, context.latencies
    posture, totals, wake = agent.posture, agent.totals, agent.posture.last_wake_reason
    failed, resolved = surface.last_failure, surface.last_continuation
    return AgentStateView(
        id=agent.identity.agent_id,
        status=posture.status,
        status_since=posture.since,
        status_reason=one_line(posture.reason),
        pending=surface.listed.queued_count,
        turn_index=totals.turn_index,
        total_message_count=totals.message_count,
        total_model_rounds=totals.model_round_count,
        total_input_tokens=totals.input_tokens,
        total_output_tokens=totals.output_tokens,
        execution_profile=execution_history(totals, latencies),
        tool_latency=latencies,
        current_run_id=agent.focus.open_turn_id,
        current_work_item_id=agent.focus.current_work_item_id,
        sleeping_until=posture.sleeping_until,
        last_wake_reason=None if wake is None else one_line(wake),
        last_brief_at=agent.last_brief_at,
        model_override=agent.model.override_model,
        last_turn_terminal=last_turn_of(agent),
        last_runtime_failure=None if failed is None else failure_view(failed),
        last_continuation=None if resolved is None else continuation_view(resolved),
        compacted_message_count=surface.let_go_turn_count,
        context_summary=bounded("\n".join(surface.recap)).text if surface.recap else None,
        active_task_ids=tuple(each.id for each in surface.tasks if not is_terminal(each.status)),
        attached_workspaces=tuple(each.workspace_id for each in surface.workspaces.attached),
        active_workspace_id=None if place is None else place.workspace_id,
        cwd=None if place is None else place.cwd,
        pending_wake_hint=hint_view(surface.hints[0]) if surface.hints else None,
        working_memory=surface.memory,
        tainted_instructions=surface.tainted,
    )
