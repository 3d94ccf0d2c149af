"""A database with a bit of everything in it, made through the real store; and ways to damage it.

Owns:  the story the checker's tests are told, and the planting of faults by raw SQL.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import apsw

from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.sqlite.store import open_store
from holon.decide.events.audit import audited
from holon.decide.workspaces import attach_target_of
from holon.model.agents import (
    AgentIdentity,
    AgentKind,
    AgentStatus,
    Ownership,
    ProfilePreset,
    Visibility,
)
from holon.model.commits import (
    AdvanceTask,
    AppendBrief,
    AppendTranscript,
    Applied,
    Change,
    ClaimMessage,
    Commit,
    CreateAgent,
    CreateTask,
    CreateTimer,
    FinishToolCall,
    FocusWorkItem,
    MoveWait,
    OpenTurn,
    OpenWait,
    ParkWakeHint,
    PutWorkItem,
    QueueMessage,
    RecordClosure,
    SetAgentStatus,
    SettleMessage,
    SettleTurn,
    StartToolCall,
)
from holon.model.events.briefs import BriefKind, BriefRecord
from holon.model.guidance import ActivateSkill
from holon.model.providers.attempts import TokenUsage
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    MessageEnvelope,
    MessageKind,
    MessageState,
    OperatorOrigin,
    Origin,
    Priority,
    SystemOrigin,
    TextBody,
    TimerOrigin,
    TrustLevel,
    WebhookOrigin,
)
from holon.model.tasks import TaskKind, TaskRecord, TaskStatus
from holon.model.turns.conversation import TextBlock, ToolUseBlock
from holon.model.turns.tools import ToolCallRecord, ToolCallState, effect_id_of
from holon.model.turns.transcript import (
    AssistantRound,
    IncomingMessage,
    TranscriptData,
    TranscriptEntry,
)
from holon.model.turns.turn import (
    Completed,
    ModelAnswered,
    StopReason,
    TerminalKind,
    ToolReceipt,
    TurnRecord,
    TurnTerminal,
)
from holon.model.values import (
    AgentId,
    BriefId,
    CallId,
    MessageId,
    TaskId,
    TimerId,
    TurnId,
    WaitId,
    WorkItemId,
    later,
)
from holon.model.wake import Every, TimerRecord, WaitKind, WaitRecord, WaitState, WakeHint
from holon.model.work import WorkItemRecord
from holon.model.workspaces import (
    AttachWorkspace,
    EnterWorkspace,
    ResolvedDirectory,
    WorkspaceBindings,
)
from tests.support.builders import a_skill_activation, a_turn
from tests.support.manual_clock import DAWN

PLACE: Final = attach_target_of(ResolvedDirectory(path="/srv/site"), WorkspaceBindings(), now=DAWN)
MAIN: Final = AgentId("main")
OTHER: Final = AgentId("other")
BOUND: Final = (
    AttachWorkspace(agent_id=OTHER, entry=PLACE.entry),
    EnterWorkspace(agent_id=OTHER, place=PLACE.place, occupancy_id="occ_1"),
)
WORK: Final = WorkItemId("work_1")
RUNTIME: Final = (
    AuthorityClass.RUNTIME_INSTRUCTION,
    TrustLevel.TRUSTED_SYSTEM,
    AdmissionContext.RUNTIME_OWNED,
    DeliverySurface.RUNTIME_SYSTEM,
)
OPERATOR: Final = (
    AuthorityClass.OPERATOR_INSTRUCTION,
    TrustLevel.TRUSTED_OPERATOR,
    AdmissionContext.CONTROL_AUTHENTICATED,
    DeliverySurface.HTTP_CONTROL_PROMPT,
)
STRANGER: Final = (
    AuthorityClass.EXTERNAL_EVIDENCE,
    TrustLevel.UNTRUSTED_EXTERNAL,
    AdmissionContext.PUBLIC_UNAUTHENTICATED,
    DeliverySurface.HTTP_WEBHOOK,
)
ORIGINS: Final[dict[MessageKind, tuple[Origin, Any]]] = {
    MessageKind.OPERATOR_PROMPT: (OperatorOrigin(), OPERATOR),
    MessageKind.WEBHOOK_EVENT: (WebhookOrigin(source="forge"), STRANGER),
    MessageKind.SYSTEM_TICK: (SystemOrigin(subsystem="wake_hint"), RUNTIME),
    MessageKind.TIMER_TICK: (TimerOrigin(timer_id=TimerId("timer_1")), RUNTIME),
}


def message(name: str, kind: MessageKind, *, wait_id: WaitId | None = None) -> MessageEnvelope:
    origin, (authority, trust, admission, surface) = ORIGINS[kind]
    return MessageEnvelope(
        id=MessageId(name),
        agent_id=MAIN,
        created_at=DAWN,
        kind=kind,
        origin=origin,
        trust=trust,
        authority_class=authority,
        priority=Priority.NORMAL,
        body=TextBody(text=f"this is {name}"),
        delivery_surface=surface,
        admission_context=admission,
        wait_id=wait_id,
    )


def queue(
    name: str, kind: MessageKind, *, tick_key: str | None = None, wait_id: WaitId | None = None
) -> QueueMessage:
    return QueueMessage(message=message(name, kind, wait_id=wait_id), tick_key=tick_key)


class Turn:
    """The changes of one turn, in the order a lane makes them."""

    def __init__(self, number: int, answers: str) -> None:
        self.id = TurnId(f"turn_{number}")
        self.number = number
        self.message_id = MessageId(answers)
        self.position = 0

    def open(self) -> tuple[Change, ...]:
        envelope = message(self.message_id, MessageKind.OPERATOR_PROMPT)
        record = TurnRecord(
            turn_id=self.id,
            agent_id=MAIN,
            turn_index=self.number,
            message_id=self.message_id,
            opened_at=DAWN,
        )
        return (
            ClaimMessage(
                agent_id=MAIN, message_id=self.message_id, generation=self.number, passed_over=0
            ),
            SetAgentStatus(agent_id=MAIN, status=AgentStatus.AWAKE_RUNNING, reason="turn"),
            OpenTurn(turn=record),
            self._append(IncomingMessage(message=envelope)),
        )

    def ask(self, *tools: str) -> tuple[Change, ...]:
        uses = tuple(
            ToolUseBlock(call_id=CallId(f"{self.id}-{name}"), name=name, input={}) for name in tools
        )
        spoke = ModelAnswered(
            blocks=(TextBlock(text="on it"), *uses),
            stop_reason=StopReason.TOOL_USE,
            usage=TokenUsage(input_tokens=3),
        )
        started = (
            StartToolCall(
                call=ToolCallRecord(
                    effect_id=effect_id_of(self.id, round_number=1, position=place),
                    call_id=use.call_id,
                    agent_id=MAIN,
                    turn_id=self.id,
                    round=1,
                    position=place,
                    name=use.name,
                    input=use.input,
                    state=ToolCallState.STARTED,
                    started_at=DAWN,
                )
            )
            for place, use in enumerate(uses)
        )
        return (self._append(AssistantRound(round=1, spoke=spoke)), *started)

    def answer(self, place: int, tool: str) -> tuple[Change, ...]:
        receipt = ToolReceipt(call_id=CallId(f"{self.id}-{tool}"), name=tool, content="{}")
        return (
            FinishToolCall(
                agent_id=MAIN,
                turn_id=self.id,
                effect_id=effect_id_of(self.id, round_number=1, position=place),
                tool_name=tool,
                state=ToolCallState.SUCCEEDED,
                receipt=receipt,
            ),
        )

    def use_skill(self) -> ActivateSkill:
        turn = a_turn(self.id, message_id=self.message_id, index=self.number)
        return ActivateSkill(activation=a_skill_activation(turn, folder="/s"))

    def settle(self) -> tuple[Change, ...]:
        spoke = ModelAnswered(
            blocks=(TextBlock(text="done"),), stop_reason=StopReason.END_TURN, usage=TokenUsage()
        )
        terminal = TurnTerminal(
            turn_id=self.id,
            turn_index=self.number,
            kind=TerminalKind.COMPLETED,
            completed_at=DAWN,
            duration_ms=5,
        )
        brief = BriefRecord(
            id=BriefId(f"brief_{self.number}"),
            agent_id=MAIN,
            kind=BriefKind.RESULT,
            created_at=DAWN,
            text="done",
            turn_id=self.id,
        )
        return (
            self._append(AssistantRound(round=2, spoke=spoke)),
            SettleTurn(
                agent_id=MAIN,
                turn_id=self.id,
                terminal=terminal,
                usage=TokenUsage(),
                round_count=2,
            ),
            SettleMessage(
                agent_id=MAIN,
                message_id=self.message_id,
                state=MessageState.PROCESSED,
                reason="turn_completed",
            ),
            AppendBrief(brief=brief),
            RecordClosure(agent_id=MAIN, closure=Completed()),
            SetAgentStatus(agent_id=MAIN, status=AgentStatus.AWAKE_IDLE, reason="settled"),
        )

    def _append(self, data: TranscriptData) -> AppendTranscript:
        entry = TranscriptEntry(
            agent_id=MAIN, turn_id=self.id, position=self.position, created_at=DAWN, data=data
        )
        self.position += 1
        return AppendTranscript(entry=entry)


def _agent(agent_id: AgentId) -> CreateAgent:
    identity = AgentIdentity(
        agent_id=agent_id,
        kind=AgentKind.NAMED,
        visibility=Visibility.PUBLIC,
        ownership=Ownership.SELF_OWNED,
        profile_preset=ProfilePreset.PUBLIC_NAMED,
        created_at=DAWN,
    )
    return CreateAgent(identity=identity, status=AgentStatus.ASLEEP)


def _wait(
    name: str,
    kind: WaitKind,
    *,
    source: str | None = None,
    deadline: datetime | None = None,
    item: WorkItemId | None = None,
) -> OpenWait:
    return OpenWait(
        wait=WaitRecord(
            id=WaitId(name),
            agent_id=MAIN,
            kind=kind,
            waiting_for="something",
            created_at=DAWN,
            deadline_at=deadline,
            source_id=source,
            work_item_id=item,
        )
    )


def _task(name: str) -> CreateTask:
    return CreateTask(
        task=TaskRecord(
            id=TaskId(name),
            agent_id=MAIN,
            kind=TaskKind.SLEEP_JOB,
            status=TaskStatus.RUNNING,
            created_at=DAWN,
            updated_at=DAWN,
        )
    )


def story() -> Iterator[tuple[str, tuple[Change, ...]]]:
    """Yield the commits: two agents, a settled turn, one cut off in mid-call, all kinds of wait."""
    done, cut = Turn(1, "msg_1"), Turn(2, "msg_2")
    item = WorkItemRecord(id=WORK, agent_id=MAIN, objective="o", created_at=DAWN, updated_at=DAWN)
    timer = TimerRecord(
        id=TimerId("timer_1"),
        agent_id=MAIN,
        created_at=DAWN,
        anchor_at=DAWN,
        schedule=Every(interval_ms=60_000),
        next_fire_at=later(DAWN, by_ms=60_000),
    )
    hint = WakeHint(agent_id=OTHER, source_key="s", reason="r", created_at=DAWN, updated_at=DAWN)
    yield "control:1", (_agent(MAIN), _agent(OTHER), ParkWakeHint(hint=hint))
    yield "control:3", BOUND
    yield "control:2", (PutWorkItem(item=item), FocusWorkItem(agent_id=MAIN, work_item_id=WORK))
    for name in ("msg_1", "msg_2"):
        yield f"admit:{name}", (queue(name, MessageKind.OPERATOR_PROMPT),)
    yield "admit:msg_hook", (queue("msg_hook", MessageKind.WEBHOOK_EVENT),)
    yield "claim:msg_1:1", done.open()
    yield "round:turn_1:1", done.ask("Enqueue", "Sleep")
    yield "tool:turn_1.1.0:done", (*done.answer(0, "Enqueue"), done.use_skill())
    yield "tool:turn_1.1.1:done", done.answer(1, "Sleep")
    yield "settle:msg_1", done.settle()
    yield "task:1", (_task("task_run"), _task("task_end"), CreateTimer(timer=timer))
    soon = later(DAWN, by_ms=3_600_000)
    yield (
        "waits",
        (
            _wait("wait_operator", WaitKind.OPERATOR),
            _wait("wait_task", WaitKind.TASK, source="task_run"),
            _wait("wait_timer", WaitKind.TIMER, source="timer_1"),
            _wait("wait_trigger", WaitKind.EXTERNAL, source="trig_1", deadline=soon),
            _wait("wait_recheck", WaitKind.RECHECK, deadline=soon, item=WORK),
            _wait("wait_rest", WaitKind.REST, deadline=soon),
            _wait("wait_told", WaitKind.TASK, source="task_end"),
        ),
    )
    yield (
        "task:task_end:completed",
        (
            AdvanceTask(agent_id=MAIN, task_id=TaskId("task_end"), status=TaskStatus.COMPLETED),
            MoveWait(
                agent_id=MAIN,
                wait_id=WaitId("wait_told"),
                state=WaitState.TRIGGERED,
                by="task_end",
            ),
            queue("msg_told", MessageKind.SYSTEM_TICK, wait_id=WaitId("wait_told")),
        ),
    )
    yield "fire:timer_1:1", (queue("msg_timer", MessageKind.TIMER_TICK, tick_key="timer"),)
    yield "tick:msg_tick", (queue("msg_tick", MessageKind.SYSTEM_TICK, tick_key="wake_hint"),)
    yield "claim:msg_2:2", cut.open()
    yield "round:turn_2:1", cut.ask("Sleep")


async def write_story(home: Path) -> Path:
    """Tell the story to a real store under `home` and return the database."""
    store = open_store(home)
    try:
        for commit_id, changes in story():
            outcome = await store.apply(
                audited(Commit(commit_id=commit_id, at=DAWN, changes=changes))
            )
            assert outcome == Applied(), (commit_id, outcome)
    finally:
        await store.close()
    return database_path(home)


@contextmanager
def vandal(path: Path) -> Iterator[apsw.Connection]:
    """Yield a connection that may break every rule the schema would keep."""
    connection = apsw.Connection(str(path))
    connection.pragma("synchronous", "off")
    connection.pragma("foreign_keys", False)
    connection.pragma("ignore_check_constraints", True)
    guards = connection.execute(
        """select type, name from sqlite_schema where sql is not null
           and type in ('trigger', 'index') and name <> 'messages_id' -- foreign keys need it"""
    ).fetchall()
    for kind, name in guards:
        connection.execute(f"drop {kind} {name}")
    try:
        yield connection
    finally:
        connection.close()


TWO_FAULTS: Final = (
    "delete from events where json_extract(event, '$.kind') = 'brief_created'",
    "update tasks set record = '{}' where task_id = 'task_run'",
)


def plant(path: Path, *statements: str) -> None:
    """Run statements no store would."""
    with vandal(path) as connection:
        for statement in statements:
            connection.execute(statement)


def tell(agent_id: str, event: str) -> str:
    """Return the SQL that appends an event to an agent's log without leaving a gap."""
    return f"""
        update event_heads set last_seq = last_seq + 1 where agent_id = '{agent_id}';
        insert into events (agent_id, event_seq, created_at, event)
        select agent_id, last_seq, 0, '{event}' from event_heads where agent_id = '{agent_id}';
    """
