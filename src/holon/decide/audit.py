"""Which events each change leaves in the audit log.

Owns:  the map from a durable change to what the log says about it.
Rule 1: total over Change: a new kind of change does not type-check until it has a case here.
Rule 2: a change that moves an object leaves an event naming the object and its new state, so that
        folding the log gives the rows back (decide/audit_fold, invariant I6).
Rule 3: events point to rows. The only free text they take from a body is a bounded preview.
"""

from typing import TypeAlias, assert_never

from holon.model.closure import Continuable, outcome_of, waiting_reason_of
from holon.model.commit import (
    AdvanceTask,
    AppendBrief,
    AppendDeliverySummary,
    AppendTranscript,
    CancelTimer,
    Change,
    ClaimMessage,
    CreateAgent,
    CreateTask,
    CreateTimer,
    FinishToolCall,
    FireTimer,
    FocusWorkItem,
    MarkSeen,
    MoveWait,
    OpenTurn,
    OpenWait,
    ParkWakeHint,
    PutWorkItem,
    QueueMessage,
    RecordClosure,
    RecordEvent,
    RememberActivation,
    ResumeTurn,
    SetAgentStatus,
    SetModelOverride,
    SettleMessage,
    SettleTurn,
    StartToolCall,
    TakeWakeHints,
)
from holon.model.conversation import text_of, tool_uses_of
from holon.model.errors import ForbiddenTransitionError
from holon.model.event import (
    AgentCreated,
    AgentStateChanged,
    AssistantRoundRecorded,
    BriefCreated,
    ClosureDecided,
    CompletionReportPromoted,
    Event,
    InterjectionAdmitted,
    MaxOutputRecovery,
    MessageAborted,
    MessageAdmitted,
    MessageDropped,
    MessageProcessed,
    MessageProcessingStarted,
    ModelOverrideChanged,
    TaskCreated,
    TaskStatusUpdated,
    ToolExecuted,
    ToolExecutionFailed,
    ToolStarted,
    TurnEnded,
    TurnResumed,
    TurnStarted,
    WorkItemFocusReleased,
    WorkItemPicked,
    WorkItemWritten,
)
from holon.model.ids import AgentId
from holon.model.limits import EVENT_TEXT_CHARS_MAX
from holon.model.message import MessageKind, MessageState
from holon.model.tool import ToolCallState
from holon.model.transcript import AssistantRound, ContinuationPrompt, TranscriptEntry
from holon.model.wake_event import (
    SystemTickEmitted,
    TimerCancelled,
    TimerCreated,
    TimerFired,
    WaitMoved,
    WaitOpened,
    WakeHintParked,
    WakeHintTriggered,
)

Audited: TypeAlias = tuple[tuple[AgentId, Event], ...]

_AgentChange: TypeAlias = (
    CreateAgent
    | SetAgentStatus
    | FocusWorkItem
    | SetModelOverride
    | RecordClosure
    | AppendBrief
    | RecordEvent
)
_MessageChange: TypeAlias = QueueMessage | ClaimMessage | SettleMessage | MarkSeen
_TurnChange: TypeAlias = (
    OpenTurn | ResumeTurn | AppendTranscript | StartToolCall | FinishToolCall | SettleTurn
)
_WorkChange: TypeAlias = (
    PutWorkItem | AppendDeliverySummary | RememberActivation | CreateTask | AdvanceTask
)
_WakeChange: TypeAlias = (
    CreateTimer | FireTimer | CancelTimer | ParkWakeHint | TakeWakeHints | OpenWait | MoveWait
)


def events_of(change: Change) -> Audited:
    """Return the events a change leaves, each with the agent whose log it goes to."""
    match change:
        case QueueMessage() | ClaimMessage() | SettleMessage() | MarkSeen():
            return _message_events(change)
        case (
            CreateAgent()
            | SetAgentStatus()
            | FocusWorkItem()
            | SetModelOverride()
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
            return _turn_events(change)
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
            | CancelTimer()
            | ParkWakeHint()
            | TakeWakeHints()
            | OpenWait()
            | MoveWait()
        ):
            return (_wake_event(change),)
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
        case RecordClosure():
            return change.agent_id, _closure_event(change)
        case AppendBrief(brief=brief):
            return brief.agent_id, BriefCreated(
                brief_id=brief.id,
                brief_kind=brief.kind,
                work_item_id=brief.work_item_id,
                related_message_id=brief.related_message_id,
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
            # No end at all, or an interjection into no turn: a bug of whoever built the commit.
            raise ForbiddenTransitionError(change.state, "settle")
        case _:
            assert_never(change.state)


def _turn_events(change: _TurnChange) -> Audited:
    match change:
        case OpenTurn(turn=turn):
            return _one(
                turn.agent_id,
                TurnStarted(
                    turn_id=turn.turn_id,
                    turn_index=turn.turn_index,
                    message_id=turn.message_id,
                    work_item_id=turn.work_item_id,
                ),
            )
        case ResumeTurn():
            resumed = TurnResumed(turn_id=change.turn_id, resume_count=change.resume_count)
            return _one(change.agent_id, resumed)
        case AppendTranscript(entry=entry):
            return _transcript_events(entry)
        case StartToolCall(call=call):
            started = ToolStarted(
                effect_id=call.effect_id, turn_id=call.turn_id, tool_name=call.name
            )
            return _one(call.agent_id, started)
        case FinishToolCall():
            return _one(change.agent_id, _tool_event(change))
        case SettleTurn():
            return _one(change.agent_id, _ended_event(change))
        case _:
            assert_never(change)


def _transcript_events(entry: TranscriptEntry) -> Audited:
    match entry.data:
        case AssistantRound(round=number, spoke=spoke):
            recorded = AssistantRoundRecorded(
                turn_id=entry.turn_id,
                round=number,
                stop_reason=spoke.stop_reason,
                tool_call_count=len(tool_uses_of(spoke.blocks)),
                usage=spoke.usage,
                preview=text_of(spoke.blocks)[:EVENT_TEXT_CHARS_MAX],
            )
            return _one(entry.agent_id, recorded)
        case ContinuationPrompt():
            return _one(entry.agent_id, MaxOutputRecovery(turn_id=entry.turn_id))
        case _:
            return ()  # the rest is told by the change that comes with it


def _tool_event(change: FinishToolCall) -> Event:
    if change.state is ToolCallState.SUCCEEDED:
        return ToolExecuted(
            effect_id=change.effect_id,
            turn_id=change.turn_id,
            tool_name=change.tool_name,
            duration_ms=change.duration_ms,
        )
    return ToolExecutionFailed(
        effect_id=change.effect_id,
        turn_id=change.turn_id,
        tool_name=change.tool_name,
        error_kind=change.receipt.error_kind or change.state,
        interrupted=change.state is ToolCallState.INTERRUPTED,
    )


def _ended_event(change: SettleTurn) -> TurnEnded:
    return TurnEnded(
        turn_id=change.turn_id,
        turn_index=change.terminal.turn_index,
        terminal=change.terminal.kind,
        duration_ms=change.terminal.duration_ms,
        usage=change.usage,
        reason=change.terminal.reason,
    )


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
            return ()  # the tick that goes with it is the event
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
