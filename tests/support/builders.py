"""Builders of small valid records, for tests that care about one field.

Owns:  a default for every required field. Each builder takes the fields to change as keywords.
Rule 1: nothing is random and no clock is read: the same call gives the same record.
"""

from datetime import datetime
from typing import Final, TypedDict, Unpack

from holon.model.agents import (
    AgentIdentity,
    AgentKind,
    AgentStatus,
    Ownership,
    ProfilePreset,
    Visibility,
)
from holon.model.commits import Change, Commit, CreateAgent, Expect, QueueMessage
from holon.model.events.briefs import BriefKind, BriefRecord
from holon.model.guidance import (
    ActivationSource,
    ActivationState,
    InstructionSourceChanged,
    LoadReason,
    SkillActivation,
)
from holon.model.limits import DAY_MS
from holon.model.providers.attempts import TokenUsage
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    MessageBody,
    MessageEnvelope,
    MessageKind,
    OperatorOrigin,
    Origin,
    Priority,
    SystemOrigin,
    TextBody,
    TimerOrigin,
    TrustLevel,
)
from holon.model.tasks import TaskKind, TaskRecord, TaskStatus
from holon.model.turns.conversation import TextBlock
from holon.model.turns.tools import ToolCallRecord, ToolCallState, effect_id_of
from holon.model.turns.transcript import AssistantRound, TranscriptData, TranscriptEntry
from holon.model.turns.turn import (
    ModelAnswered,
    StopReason,
    TerminalKind,
    ToolReceipt,
    TurnRecord,
    TurnTerminal,
)
from holon.model.values import (
    EPOCH,
    AgentId,
    BriefId,
    CallId,
    MessageId,
    TaskId,
    TimerId,
    TriggerId,
    TurnId,
    WaitId,
    WorkItemId,
    later,
)
from holon.model.wake import (
    Every,
    ExternalTrigger,
    OneShot,
    TimerRecord,
    TriggerDeliveryMode,
    TriggerStatus,
    WaitKind,
    WaitRecord,
    WakeHint,
)
from holon.model.work import ActivationMemory, PlanStatus, WorkItemRecord, WorkItemState

MAIN: Final = AgentId("main")
START: Final = later(EPOCH, by_ms=20_000 * DAY_MS)  # any fixed moment will do


def moment(ms: int = 0) -> datetime:
    """Return the moment `ms` milliseconds after the tests' fixed start."""
    return later(START, by_ms=ms)


def an_identity(agent_id: str = MAIN) -> AgentIdentity:
    """A named, public agent that answers for itself."""
    return AgentIdentity(
        agent_id=AgentId(agent_id),
        kind=AgentKind.NAMED,
        visibility=Visibility.PUBLIC,
        ownership=Ownership.SELF_OWNED,
        profile_preset=ProfilePreset.PUBLIC_NAMED,
        created_at=START,
    )


def an_agent(agent_id: str = MAIN, *, status: AgentStatus = AgentStatus.ASLEEP) -> CreateAgent:
    """The change that brings an agent into being."""
    return CreateAgent(identity=an_identity(agent_id), status=status)


class MessageFields(TypedDict, total=False):
    """What may be asked of `a_message`."""

    agent_id: AgentId
    created_at: datetime
    kind: MessageKind
    origin: Origin
    trust: TrustLevel
    authority_class: AuthorityClass
    priority: Priority
    body: MessageBody
    delivery_surface: DeliverySurface
    admission_context: AdmissionContext
    work_item_id: WorkItemId
    task_id: TaskId
    wait_id: WaitId
    correlation_id: str


def a_message(message_id: str = "msg_1", **fields: Unpack[MessageFields]) -> MessageEnvelope:
    """An operator's prompt through the control plane."""
    return MessageEnvelope(
        id=MessageId(message_id),
        agent_id=fields.get("agent_id", MAIN),
        created_at=fields.get("created_at", START),
        kind=fields.get("kind", MessageKind.OPERATOR_PROMPT),
        origin=fields.get("origin", OperatorOrigin()),
        trust=fields.get("trust", TrustLevel.TRUSTED_OPERATOR),
        authority_class=fields.get("authority_class", AuthorityClass.OPERATOR_INSTRUCTION),
        priority=fields.get("priority", Priority.NORMAL),
        body=fields.get("body", TextBody(text="hello")),
        delivery_surface=fields.get("delivery_surface", DeliverySurface.HTTP_CONTROL_PROMPT),
        admission_context=fields.get("admission_context", AdmissionContext.CONTROL_AUTHENTICATED),
        work_item_id=fields.get("work_item_id"),
        task_id=fields.get("task_id"),
        wait_id=fields.get("wait_id"),
        correlation_id=fields.get("correlation_id"),
    )


def a_tick(message_id: str = "msg_1", **fields: Unpack[MessageFields]) -> MessageEnvelope:
    """A tick by the runtime itself."""
    asked = MessageFields(
        kind=MessageKind.SYSTEM_TICK,
        origin=SystemOrigin(subsystem="test"),
        trust=TrustLevel.TRUSTED_SYSTEM,
        authority_class=AuthorityClass.RUNTIME_INSTRUCTION,
        delivery_surface=DeliverySurface.RUNTIME_SYSTEM,
        admission_context=AdmissionContext.RUNTIME_OWNED,
    )
    asked.update(fields)
    return a_message(message_id, **asked)


def a_timer_tick(message_id: str, timer_id: str) -> MessageEnvelope:
    """A tick of a timer."""
    return a_tick(
        message_id,
        kind=MessageKind.TIMER_TICK,
        origin=TimerOrigin(timer_id=TimerId(timer_id)),
        delivery_surface=DeliverySurface.TIMER_SCHEDULER,
    )


def a_commit(
    commit_id: str,
    *changes: Change,
    expects: tuple[Expect, ...] = (),
    at: datetime = START,
) -> Commit:
    """A commit of these changes."""
    return Commit(commit_id=commit_id, at=at, changes=changes, expects=expects)


def an_admission(message: MessageEnvelope, *, key: str | None = None, digest: str = "d") -> Commit:
    """The commit that queues a message."""
    queued = QueueMessage(
        message=message, idempotency_key=key, body_digest=None if key is None else digest
    )
    return a_commit(f"admit:{message.id}", queued, at=message.created_at)


def a_turn(turn_id: str = "turn_1", *, message_id: str = "msg_1", index: int = 1) -> TurnRecord:
    """An open turn."""
    return TurnRecord(
        turn_id=TurnId(turn_id),
        agent_id=MAIN,
        turn_index=index,
        message_id=MessageId(message_id),
        opened_at=START,
    )


def a_skill_activation(turn: TurnRecord, *, folder: str = "/skills/roofs") -> SkillActivation:
    """A skill that a turn has read."""
    return SkillActivation(
        agent_id=turn.agent_id,
        skill_name=folder.rpartition("/")[2],
        path=f"{folder}/SKILL.md",
        entrypoint_path=f"{folder}/SKILL.md",
        load_reason=LoadReason.READ_SKILL_MD,
        source=ActivationSource.IMPLICIT_FROM_CATALOG,
        state=ActivationState.TURN_ACTIVE,
        activated_at=START,
        turn_id=turn.turn_id,
        turn_index=turn.turn_index,
    )


def a_source_change(
    turn: TurnRecord, *, path: str = "AGENTS.md", tainted: bool = True
) -> InstructionSourceChanged:
    """A file the agent lives by was written in a turn, by default one with words from outside."""
    worth = AuthorityClass.EXTERNAL_EVIDENCE if tainted else AuthorityClass.OPERATOR_INSTRUCTION
    return InstructionSourceChanged(
        path=path,
        old_sha256=None,
        new_sha256="0" * 64,
        turn_id=turn.turn_id,
        authority_class=worth,
        tainted=tainted,
    )


def a_terminal(turn: TurnRecord, *, completed_at: datetime = START) -> TurnTerminal:
    """The good end of a turn."""
    return TurnTerminal(
        turn_id=turn.turn_id,
        turn_index=turn.turn_index,
        kind=TerminalKind.COMPLETED,
        completed_at=completed_at,
        duration_ms=5,
        last_assistant_message="done",
    )


def a_round(number: int = 1, *, text: str = "done") -> AssistantRound:
    """A model round that only says something."""
    return AssistantRound(
        round=number,
        spoke=ModelAnswered(
            blocks=(TextBlock(text=text),),
            stop_reason=StopReason.END_TURN,
            usage=TokenUsage(input_tokens=10, output_tokens=3),
        ),
    )


def an_entry(turn: TurnRecord, *, position: int, data: TranscriptData) -> TranscriptEntry:
    """One entry of a turn's transcript."""
    return TranscriptEntry(
        agent_id=turn.agent_id,
        turn_id=turn.turn_id,
        position=position,
        created_at=START,
        data=data,
    )


def a_tool_call(turn: TurnRecord, *, round_number: int = 1, position: int = 0) -> ToolCallRecord:
    """A call that is about to run."""
    return ToolCallRecord(
        effect_id=effect_id_of(turn.turn_id, round_number=round_number, position=position),
        call_id=CallId(f"call_{position}"),
        agent_id=turn.agent_id,
        turn_id=turn.turn_id,
        round=round_number,
        position=position,
        name="Enqueue",
        input={"text": "later"},
        state=ToolCallState.STARTED,
        started_at=START,
    )


def a_receipt(call: ToolCallRecord, *, content: str = "ok") -> ToolReceipt:
    """What came back from a call."""
    return ToolReceipt(call_id=call.call_id, name=call.name, content=content)


def a_brief(brief_id: str = "brief_1", *, turn_id: str | None = None) -> BriefRecord:
    """A result the operator reads."""
    return BriefRecord(
        id=BriefId(brief_id),
        agent_id=MAIN,
        kind=BriefKind.RESULT,
        created_at=START,
        text="done",
        turn_id=None if turn_id is None else TurnId(turn_id),
    )


class WorkItemFields(TypedDict, total=False):
    """What may be asked of `a_work_item`."""

    agent_id: AgentId
    created_at: datetime
    updated_at: datetime
    revision: int
    state: WorkItemState
    plan_status: PlanStatus
    blocked_by: str
    recheck_at: datetime
    recheck_consumed_at: datetime


def a_work_item(work_item_id: str = "work_1", **fields: Unpack[WorkItemFields]) -> WorkItemRecord:
    """An open item that may run."""
    return WorkItemRecord(
        id=WorkItemId(work_item_id),
        agent_id=fields.get("agent_id", MAIN),
        objective="tidy up",
        created_at=fields.get("created_at", START),
        updated_at=fields.get("updated_at", START),
        revision=fields.get("revision", 1),
        state=fields.get("state", WorkItemState.OPEN),
        plan_status=fields.get("plan_status", PlanStatus.READY),
        blocked_by=fields.get("blocked_by"),
        recheck_at=fields.get("recheck_at"),
        recheck_consumed_at=fields.get("recheck_consumed_at"),
    )


def an_activation(
    work_item_id: str = "work_1", *, not_before: datetime = START, revision_seen: int = 1
) -> ActivationMemory:
    """An item that was offered once."""
    return ActivationMemory(
        agent_id=MAIN,
        work_item_id=WorkItemId(work_item_id),
        revision_seen=revision_seen,
        no_progress_count=1,
        last_at=START,
        not_before=not_before,
    )


def a_task(task_id: str = "task_1", *, status: TaskStatus = TaskStatus.RUNNING) -> TaskRecord:
    """A command in the background."""
    return TaskRecord(
        id=TaskId(task_id),
        agent_id=MAIN,
        kind=TaskKind.COMMAND_TASK,
        status=status,
        created_at=START,
        updated_at=START,
    )


def a_timer(
    timer_id: str = "timer_1",
    *,
    agent_id: AgentId = MAIN,
    next_fire_at: datetime = START,
    interval_ms: int | None = None,
) -> TimerRecord:
    """An active timer, one-shot unless it is given an interval."""
    return TimerRecord(
        id=TimerId(timer_id),
        agent_id=agent_id,
        created_at=START,
        anchor_at=next_fire_at,
        schedule=OneShot() if interval_ms is None else Every(interval_ms=interval_ms),
        next_fire_at=next_fire_at,
    )


def a_hint(source_key: str = "github", *, revision: int = 1, body: str = "changed") -> WakeHint:
    """A parked signal."""
    return WakeHint(
        agent_id=MAIN,
        source_key=source_key,
        reason="something changed",
        created_at=START,
        updated_at=START,
        revision=revision,
        body=body,
    )


def a_trigger() -> ExternalTrigger:
    """An address outsiders may use."""
    return ExternalTrigger(
        external_trigger_id=TriggerId("trig_1"),
        target_agent_id=MAIN,
        delivery_mode=TriggerDeliveryMode.WAKE_HINT,
        status=TriggerStatus.ACTIVE,
        created_at=START,
    )


class WaitFields(TypedDict, total=False):
    """What may be asked of `a_wait`."""

    agent_id: AgentId
    kind: WaitKind
    deadline_at: datetime | None
    work_item_id: WorkItemId
    source_id: str | None


def a_wait(wait_id: str = "wait_1", **fields: Unpack[WaitFields]) -> WaitRecord:
    """An active wait for a task, with a deadline a day away."""
    return WaitRecord(
        id=WaitId(wait_id),
        agent_id=fields.get("agent_id", MAIN),
        kind=fields.get("kind", WaitKind.TASK),
        waiting_for="a result",
        created_at=START,
        deadline_at=fields.get("deadline_at", moment(DAY_MS)),
        work_item_id=fields.get("work_item_id"),
        source_id=fields.get("source_id", "task_1"),
    )
