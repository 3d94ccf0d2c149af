"""The audit of a commit: the events and memory marks of every change.

Owns:  the map from a durable change to its audit events, and the audited commit a store takes.
       Events of turns are in decide/events/turn_audit; marks for memory search in
       decide/memory/documents.
Rule 1: the map is total over Change: a new kind of change does not type-check until it has a case.
Rule 2: a change that moves an object leaves an event naming the object and its new state, so that
        folding the log gives the rows back (decide/events/log_fold, invariant I6).
Rule 3: events point to rows. The only free text they take from a body is a bounded preview.
"""

from typing import TypeAlias, assert_never

from holon.decide.events.log_fold import skill_events
from holon.decide.events.turn_audit import Audited, owned_turn, turn_events
from holon.decide.memory.documents import marks_of, turn_of
from holon.model.agents import AgentArchived, ModelOverrideChanged
from holon.model.budgets import (
    BudgetFreed,
    BudgetUsedUp,
    HoldMessage,
    MessageHeld,
    PauseTurns,
    ReviewHolds,
    SelfStartsEnded,
    UnpauseTurns,
    UpdateTurnRate,
)
from holon.model.commits import (
    AdvanceTask,
    AppendBrief,
    AppendDeliverySummary,
    AppendTranscript,
    ArchiveAgent,
    AuditedChange,
    AuditedCommit,
    CancelTimer,
    Change,
    ClaimMessage,
    Commit,
    CreateAgent,
    CreateTask,
    CreateTimer,
    CreateTrigger,
    DeferMessage,
    DeliverTrigger,
    FinishToolCall,
    FireTimer,
    FocusWorkItem,
    LoggedEvent,
    MarkSeen,
    MoveTrigger,
    MoveWait,
    OpenTurn,
    OpenWait,
    ParkWakeHint,
    PutWorkItem,
    QueueMessage,
    RecordClosure,
    RecordEvent,
    ReleaseDeferred,
    RememberActivation,
    RescheduleTimer,
    ResumeTurn,
    SetAgentStatus,
    SetModelOverride,
    SettleMessage,
    SettleTurn,
    StartToolCall,
    TakeWakeHints,
)
from holon.model.errors import ForbiddenTransitionError
from holon.model.events.event import (
    AgentCreated,
    AgentStateChanged,
    BriefCreated,
    ClosureDecided,
    Event,
    InterjectionAdmitted,
    MessageAborted,
    MessageAdmitted,
    MessageDeferred,
    MessageDropped,
    MessageProcessed,
    MessageProcessingStarted,
    TaskCreated,
    TaskStatusUpdated,
)
from holon.model.guidance import ActivateSkill, NoteInstructionChange, RestoreSkills, SkillChange
from holon.model.memory.records import (
    ArchiveEpisode,
    EpisodeFinalized,
    MemoryChange,
    RememberWork,
    WorkingMemoryUpdated,
)
from holon.model.queue import MessageKind, MessageState
from holon.model.turns.compaction import HistoryCompacted, RememberContext
from holon.model.turns.turn import Continuable, outcome_of, waiting_reason_of
from holon.model.values import AgentId
from holon.model.wake import (
    CallbackDelivered,
    ExternalTriggerCreated,
    ExternalTriggerRevoked,
    ExternalTriggerRotated,
    SystemTickEmitted,
    TimerCancelled,
    TimerCreated,
    TimerFired,
    TimerRescheduled,
    TriggerDeliveryMode,
    TriggerStatus,
    WaitMoved,
    WaitOpened,
    WakeHintParked,
    WakeHintTriggered,
)
from holon.model.work import (
    CompletionReportPromoted,
    WorkItemFocusReleased,
    WorkItemPicked,
    WorkItemWritten,
)
from holon.model.workspaces import (
    AttachWorkspace,
    DetachWorkspace,
    EnterWorkspace,
    ExitWorkspace,
    WorkspaceAttached,
    WorkspaceChange,
    WorkspaceDetached,
    WorkspaceEntered,
    WorkspaceExited,
)

TurnRateChange: TypeAlias = UpdateTurnRate | HoldMessage | PauseTurns | UnpauseTurns | ReviewHolds
TriggerChange: TypeAlias = CreateTrigger | MoveTrigger | DeliverTrigger
_AgentChange: TypeAlias = (
    CreateAgent
    | SetAgentStatus
    | FocusWorkItem
    | SetModelOverride
    | ArchiveAgent
    | RecordClosure
    | AppendBrief
    | RecordEvent
)
_MessageChange: TypeAlias = (
    QueueMessage | ClaimMessage | DeferMessage | ReleaseDeferred | SettleMessage | MarkSeen
)
_WorkChange: TypeAlias = (
    PutWorkItem | AppendDeliverySummary | RememberActivation | CreateTask | AdvanceTask
)
_WakeChange: TypeAlias = (
    CreateTimer
    | FireTimer
    | RescheduleTimer
    | CancelTimer
    | ParkWakeHint
    | TakeWakeHints
    | OpenWait
    | MoveWait
)
_SettingChange: TypeAlias = (
    WorkspaceChange | SkillChange | RememberContext | NoteInstructionChange | MemoryChange
)


def memory_events(change: MemoryChange) -> Audited:
    """Return the events of a memory change. Without a new revision it leaves none."""
    match change:
        case RememberWork(agent_id=agent_id, moved=moved):
            if moved is None:
                return ()  # SettleTurn leaves the event
            updated = WorkingMemoryUpdated(
                revision=moved.to_revision,
                reason=moved.reason,
                changed_fields=moved.changed_fields,
            )
            return ((agent_id, updated),)
        case ArchiveEpisode(episode=episode):
            finalized = EpisodeFinalized(
                episode_id=episode.id,
                boundary_reason=episode.boundary_reason,
                start_turn_index=episode.start_turn_index,
                end_turn_index=episode.end_turn_index,
                work_item_id=episode.work_item_id,
            )
            return ((episode.agent_id, finalized),)
        case _:
            assert_never(change)


def turn_rate_events(change: TurnRateChange) -> Audited:
    """Return the events a change of pace leaves. Counting alone leaves none."""
    match change:
        case UpdateTurnRate(agent_id=agent_id, pace=pace):
            if not pace.gave_up:
                return ()  # the change that opens or settles the turn leaves the event
            return ((agent_id, SelfStartsEnded(turn_count=pace.self_started_count)),)
        case HoldMessage():
            held = MessageHeld(message_id=change.message_id, until=change.until)
            return ((change.agent_id, held),)
        case PauseTurns(agent_id=agent_id, hold=hold):
            used_up = BudgetUsedUp(
                scope=hold.scope,
                measure=hold.measure,
                used=hold.used,
                allowed=hold.allowed,
                until=hold.until,
            )
            return ((agent_id, used_up),)
        case UnpauseTurns(agent_id=agent_id):
            return ((agent_id, BudgetFreed()),)
        case ReviewHolds():
            return ()  # the review of each agent leaves the events
        case _:
            assert_never(change)


def trigger_event(change: TriggerChange) -> tuple[AgentId, Event]:
    """Return the one event a change to a trigger leaves, and the agent whose log it goes to."""
    match change:
        case CreateTrigger(trigger=trigger):
            return trigger.target_agent_id, ExternalTriggerCreated(
                external_trigger_id=trigger.external_trigger_id,
                delivery_mode=trigger.delivery_mode,
            )
        case MoveTrigger(status=TriggerStatus.REVOKED):
            revoked = ExternalTriggerRevoked(external_trigger_id=change.external_trigger_id)
            return change.agent_id, revoked
        case MoveTrigger():
            return change.agent_id, ExternalTriggerRotated(
                external_trigger_id=change.external_trigger_id, epoch=change.epoch
            )
        case DeliverTrigger():
            return change.hint.agent_id, _delivered(change)
        case _:
            assert_never(change)


def _delivered(change: DeliverTrigger) -> CallbackDelivered:
    hint = change.hint
    return CallbackDelivered(
        external_trigger_id=change.external_trigger_id,
        source_key=hint.source_key,
        delivery_mode=hint.delivery_mode or TriggerDeliveryMode.WAKE_HINT,
        disposition=change.disposition,
        descriptor_delivery_mode=hint.descriptor_delivery_mode,
        source=hint.source,
        resource=hint.resource,
        content_type=hint.content_type,
        correlation_id=hint.correlation_id,
        causation_id=hint.causation_id,
    )


def workspace_event(change: WorkspaceChange) -> tuple[AgentId, Event]:
    """Return the one event a change leaves, and the agent whose log it goes to."""
    match change:
        case AttachWorkspace(agent_id=agent_id, entry=entry):
            return agent_id, WorkspaceAttached(
                workspace_id=entry.workspace_id, workspace_anchor=entry.workspace_anchor
            )
        case EnterWorkspace(agent_id=agent_id, place=place):
            return agent_id, WorkspaceEntered(
                workspace_id=place.workspace_id,
                execution_root_id=place.execution_root_id,
                execution_root=place.execution_root,
                cwd=place.cwd,
                projection_kind=place.projection_kind,
                access_mode=place.access_mode,
                occupancy_id=change.occupancy_id,
            )
        case ExitWorkspace(agent_id=agent_id, workspace_id=workspace_id):
            return agent_id, WorkspaceExited(workspace_id=workspace_id)
        case DetachWorkspace(agent_id=agent_id, workspace_id=workspace_id):
            return agent_id, WorkspaceDetached(workspace_id=workspace_id)
        case _:
            assert_never(change)


def audited(commit: Commit) -> AuditedCommit:
    """Return a commit with the events and marks of its changes, as a store takes it.

    Raises ForbiddenTransitionError for a change that cannot be: a bug in the code that made it.
    """
    turn, ended_turn_id = owned_turn(commit.changes), turn_of(commit.changes)
    return AuditedCommit(
        commit=commit,
        changes=tuple(
            AuditedChange(
                change=change,
                events=tuple(
                    LoggedEvent(
                        agent_id=agent_id,
                        event=event,
                        turn_id=None if turn is None else turn.turn_id_for(agent_id, event),
                    )
                    for agent_id, event in events_of(change)
                ),
                marks=marks_of(change, turn_id=ended_turn_id),
            )
            for change in commit.changes
        ),
    )


def events_of(change: Change) -> Audited:
    """Return the events a change leaves, each with the agent whose log it goes to."""
    match change:
        case (
            QueueMessage()
            | ClaimMessage()
            | DeferMessage()
            | ReleaseDeferred()
            | SettleMessage()
            | MarkSeen()
        ):
            return _message_events(change)
        case (
            CreateAgent()
            | SetAgentStatus()
            | FocusWorkItem()
            | SetModelOverride()
            | ArchiveAgent()
            | RecordClosure()
            | AppendBrief()
            | RecordEvent()
        ):
            return (_agent_event(change),)
        case (
            OpenTurn()
            | ResumeTurn()
            | AppendTranscript()
            | StartToolCall()
            | FinishToolCall()
            | SettleTurn()
        ):
            return turn_events(change)
        case (
            PutWorkItem()
            | AppendDeliverySummary()
            | RememberActivation()
            | CreateTask()
            | AdvanceTask()
        ):
            return _work_events(change)
        case (
            CreateTimer()
            | FireTimer()
            | RescheduleTimer()
            | CancelTimer()
            | ParkWakeHint()
            | TakeWakeHints()
            | OpenWait()
            | MoveWait()
        ):
            return (_wake_event(change),)
        case CreateTrigger() | MoveTrigger() | DeliverTrigger():
            return (trigger_event(change),)
        case UpdateTurnRate() | HoldMessage() | PauseTurns() | UnpauseTurns() | ReviewHolds():
            return turn_rate_events(change)
        case _:
            return _setting_events(change)


def _setting_events(change: _SettingChange) -> Audited:
    """Changes to an agent's settings: workspace, skills, memory and history window."""
    match change:
        case AttachWorkspace() | EnterWorkspace() | ExitWorkspace() | DetachWorkspace():
            return (workspace_event(change),)
        case RememberContext(agent_id=agent_id, context=context):
            moved = HistoryCompacted(
                history_from_turn=context.history_from_turn,
                compression_epoch=context.compression_epoch,
            )
            return ((agent_id, moved),)
        case NoteInstructionChange(agent_id=agent_id, event=event):
            return ((agent_id, event),)
        case ActivateSkill() | RestoreSkills():
            return skill_events(change)
        case RememberWork() | ArchiveEpisode():
            return memory_events(change)
        case _:
            assert_never(change)


def _agent_event(change: _AgentChange) -> tuple[AgentId, Event]:
    match change:
        case CreateAgent(identity=identity, status=status):
            return identity.agent_id, AgentCreated(status=status)
        case SetAgentStatus():
            return change.agent_id, AgentStateChanged(
                status=change.status, reason=change.reason, generation=change.new_generation
            )
        case FocusWorkItem(agent_id=agent_id, work_item_id=item_id):
            picked = WorkItemPicked(work_item_id=item_id) if item_id else WorkItemFocusReleased()
            return agent_id, picked
        case SetModelOverride(agent_id=agent_id, model=model):
            return agent_id, ModelOverrideChanged(model=model)
        case ArchiveAgent(agent_id=agent_id, reason=reason):
            return agent_id, AgentArchived(reason=reason)
        case RecordClosure():
            return change.agent_id, _closure_event(change)
        case AppendBrief(brief=brief, visibility=visibility):
            return brief.agent_id, BriefCreated(
                brief_id=brief.id,
                brief_kind=brief.kind,
                work_item_id=brief.work_item_id,
                related_message_id=brief.related_message_id,
                turn_id=brief.turn_id,
                visibility=visibility,
            )
        case RecordEvent(agent_id=agent_id, event=event):
            return agent_id, event
        case _:
            assert_never(change)


def _closure_event(change: RecordClosure) -> ClosureDecided:
    closure = change.closure
    signalled = closure.work_signal.work_item_id if isinstance(closure, Continuable) else None
    return ClosureDecided(
        outcome=outcome_of(closure),
        waiting_reason=waiting_reason_of(closure),
        work_item_id=signalled,
    )


def _message_events(change: _MessageChange) -> Audited:
    match change:
        case QueueMessage():
            return _queued_events(change)
        case ClaimMessage():
            return _one(
                change.agent_id,
                MessageProcessingStarted(
                    message_id=change.message_id, generation=change.generation
                ),
            )
        case SettleMessage():
            return _one(change.agent_id, _settled_event(change))
        case DeferMessage():
            deferred = MessageDeferred(
                message_id=change.message_id, turn_id=change.turn_id, until=change.until
            )
            return _one(change.agent_id, deferred)
        case ReleaseDeferred():
            return ()  # the messages stay queued; the change beside it says why they are released
        case MarkSeen():
            return ()  # what the model is shown is in the transcript; the messages do not move
        case _:
            assert_never(change)


def _queued_events(change: QueueMessage) -> Audited:
    message = change.message
    admitted = MessageAdmitted(
        message_id=message.id,
        message_kind=message.kind,
        origin=message.origin,
        trust=message.trust,
        authority_class=message.authority_class,
        priority=message.priority,
        delivery_surface=message.delivery_surface,
        admission_context=message.admission_context,
        task_id=message.task_id,
        correlation_id=message.correlation_id,
        causation_id=message.causation_id,
    )
    if message.kind is not MessageKind.SYSTEM_TICK:
        return _one(message.agent_id, admitted)
    emitted = SystemTickEmitted(
        message_id=message.id,
        tick_key=change.tick_key or message.id,  # an unkeyed tick coalesces with nothing
        work_item_id=message.work_item_id,
    )
    return (message.agent_id, admitted), (message.agent_id, emitted)


def _settled_event(change: SettleMessage) -> Event:
    match change.state:
        case MessageState.PROCESSED:
            return MessageProcessed(message_id=change.message_id, reason=change.reason)
        case MessageState.ABORTED:
            return MessageAborted(message_id=change.message_id, reason=change.reason)
        case MessageState.DROPPED:
            return MessageDropped(message_id=change.message_id, reason=change.reason)
        case MessageState.INTERJECTED if change.turn_id is not None and change.point is not None:
            return InterjectionAdmitted(
                message_id=change.message_id, turn_id=change.turn_id, point=change.point
            )
        case MessageState.INTERJECTED | MessageState.QUEUED | MessageState.CLAIMED:
            # No end, or an interjection outside a turn, is a bug of the code that built the commit.
            raise ForbiddenTransitionError(change.state, "settle")
        case _:
            assert_never(change.state)


def _work_events(change: _WorkChange) -> Audited:
    match change:
        case PutWorkItem(item=item):
            written = WorkItemWritten(
                work_item_id=item.id, state=item.state, revision=item.revision
            )
            return _one(item.agent_id, written)
        case AppendDeliverySummary(summary=summary):
            promoted = CompletionReportPromoted(work_item_id=summary.work_item_id)
            return _one(summary.agent_id, promoted)
        case RememberActivation():
            return ()  # the tick in the same commit leaves the event
        case CreateTask(task=task):
            created = TaskCreated(task_id=task.id, task_kind=task.kind, status=task.status)
            return _one(task.agent_id, created)
        case AdvanceTask():
            moved = TaskStatusUpdated(task_id=change.task_id, status=change.status)
            return _one(change.agent_id, moved)
        case _:
            assert_never(change)


def _wake_event(change: _WakeChange) -> tuple[AgentId, Event]:
    match change:
        case CreateTimer(timer=timer):
            first = timer.next_fire_at or timer.anchor_at
            return timer.agent_id, TimerCreated(timer_id=timer.id, next_fire_at=first)
        case FireTimer():
            return change.agent_id, TimerFired(
                timer_id=change.timer_id,
                slot=change.slot,
                next_fire_at=change.next_fire_at,
                late_by_ms=change.late_by_ms,
            )
        case RescheduleTimer():
            return change.agent_id, TimerRescheduled(
                timer_id=change.timer_id, slot=change.slot, next_fire_at=change.next_fire_at
            )
        case CancelTimer():
            return change.agent_id, TimerCancelled(timer_id=change.timer_id)
        case ParkWakeHint(hint=hint):
            parked = WakeHintParked(source_key=hint.source_key, revision=hint.revision)
            return hint.agent_id, parked
        case TakeWakeHints():
            return change.agent_id, WakeHintTriggered(source_keys=change.source_keys)
        case OpenWait(wait=wait):
            return wait.agent_id, WaitOpened(
                wait_id=wait.id,
                wait_kind=wait.kind,
                deadline_at=wait.deadline_at,
                work_item_id=wait.work_item_id,
                source_id=wait.source_id,
            )
        case MoveWait():
            moved = WaitMoved(wait_id=change.wait_id, state=change.state, by=change.by)
            return change.agent_id, moved
        case _:
            assert_never(change)


def _one(agent_id: AgentId, event: Event) -> Audited:
    return ((agent_id, event),)
