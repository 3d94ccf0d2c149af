"""What each change leaves in the log, and that the log read forwards gives the rows back."""

from datetime import datetime
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holon.decide.events.audit import audited, events_of
from holon.decide.events.log_fold import NO_FOCUS, SELF, TURN_OPEN, Subject, fold, is_end, moves_of
from holon.decide.events.turn_audit import OwnedTurn, owned_turn
from holon.decide.memory.documents import marks_of
from holon.model.agents import AgentStatus
from holon.model.commits import (
    AdvanceTask,
    CancelTimer,
    Change,
    ClaimMessage,
    Commit,
    FinishToolCall,
    FireTimer,
    FocusWorkItem,
    MoveWait,
    PutWorkItem,
    QueueMessage,
    ResumeTurn,
    SetAgentStatus,
    SettleMessage,
    SettleTurn,
)
from holon.model.errors import ForbiddenTransitionError
from holon.model.events.event import (
    AssistantRoundRecorded,
    ClosureDecided,
    Event,
    InterjectionAdmitted,
    MessageProcessed,
    TaskStatusUpdated,
)
from holon.model.limits import EVENT_TEXT_CHARS_MAX
from holon.model.providers.attempts import TokenUsage
from holon.model.queue import MessageState
from holon.model.record import Record
from holon.model.tasks import TaskStatus
from holon.model.turns.tools import ToolCallState
from holon.model.turns.turn import (
    ClosureOutcome,
    SafePoint,
    TerminalKind,
    ToolReceipt,
    TurnTerminal,
)
from holon.model.values import (
    EPOCH,
    AgentId,
    CallId,
    MessageId,
    TaskId,
    TimerId,
    TurnId,
    WaitId,
    WorkItemId,
    later,
)
from holon.model.wake import TimerFired, WaitMoved, WaitState
from holon.model.work import WorkItemState, WorkItemWritten
from holon.wire.codec import decode, encode
from tests.support.builders import a_work_item
from tests.wire.record_strategies import records_of

MAIN = AgentId("main")
MESSAGE = MessageId("msg_1")
TURN = TurnId("turn_1")
CHANGES: tuple[type[Record], ...] = get_args(Change)
T1: datetime = later(EPOCH, by_ms=1)

# What each change tells, by event kind. A change that is not here tells nothing.
TELLS = {
    "CreateAgent": {"agent_created"},
    "SetAgentStatus": {"agent_state_changed"},
    "FocusWorkItem": {"work_item_picked", "work_item_focus_released"},
    "SetModelOverride": {"agent_model_override_changed"},
    "ArchiveAgent": {"agent_archived"},
    "QueueMessage": {"message_admitted", "system_tick_emitted"},
    "ClaimMessage": {"message_processing_started"},
    "DeferMessage": {"message_deferred"},
    "SettleMessage": {
        "message_processed",
        "message_processing_aborted",
        "message_dropped",
        "operator_interjection_admitted",
    },
    "OpenTurn": {"turn_started"},
    "ResumeTurn": {"recovery_turn_started"},
    "AppendTranscript": {
        "assistant_round_recorded",
        "provider_round_completed",
        "max_output_tokens_recovery",
        "turn_local_compaction_applied",
        "turn_local_checkpoint_requested",
        "turn_local_checkpoint_resume_requested",
        "work_item_stale_reminder_injected",
    },
    "StartToolCall": {"tool_started"},
    "FinishToolCall": {"tool_executed", "tool_execution_failed"},
    "SettleTurn": {"turn_terminal"},
    "RecordClosure": {"closure_decided"},
    "AppendBrief": {"brief_created"},
    "PutWorkItem": {"work_item_written"},
    "AppendDeliverySummary": {"work_item_completion_report_promoted"},
    "CreateTask": {"task_created"},
    "AdvanceTask": {"task_status_updated"},
    "CreateTimer": {"timer_created"},
    "FireTimer": {"timer_fired"},
    "RescheduleTimer": {"timer_rescheduled"},
    "CancelTimer": {"timer_cancelled"},
    "ParkWakeHint": {"wake_hint_coalesced"},
    "TakeWakeHints": {"wake_hint_triggered"},
    "CreateTrigger": {"external_trigger_created"},
    "MoveTrigger": {"external_trigger_rotated", "external_trigger_revoked"},
    "DeliverTrigger": {"callback_delivered"},
    "AttachWorkspace": {"workspace_attached"},
    "EnterWorkspace": {"workspace_entered"},
    "ExitWorkspace": {"workspace_exited"},
    "DetachWorkspace": {"workspace_detached"},
    "ActivateSkill": {"skill_activated"},
    "OpenWait": {"wait_opened"},
    "MoveWait": {"wait_moved"},
    "UpdateTurnRate": {"self_starts_ended"},
    "RememberContext": {"history_compacted"},
    "NoteInstructionChange": {"instruction_source_changed"},
    "HoldMessage": {"message_held"},
    "PauseTurns": {"budget_used_up"},
    "UnpauseTurns": {"budget_freed"},
    "RememberWork": {"working_memory_updated"},
    "ArchiveEpisode": {"episode_memory_finalized"},
}
SILENT = {"MarkSeen", "ReleaseDeferred", "RememberActivation", "RestoreSkills", "ReviewHolds"}
MAY_BE_SILENT = {"AppendTranscript", "UpdateTurnRate", "RememberWork"}


def kind_of(event: Event) -> str:
    return str(event.__struct_config__.tag)


def endable(change: Any) -> bool:
    if not isinstance(change, SettleMessage):
        return True
    if change.state is MessageState.INTERJECTED:
        return change.turn_id is not None and change.point is not None
    return change.state.is_terminal


@pytest.mark.requirement("audit:every-change-is-told")
@pytest.mark.parametrize("kind", CHANGES, ids=lambda kind: kind.__name__)
@settings(max_examples=12)
@given(data=st.data())
def test_every_change_tells_what_the_table_says(kind: type[Record], data: st.DataObject) -> None:
    change: Any = data.draw(records_of(kind).filter(endable))
    told = [event for _, event in events_of(change)]
    if kind.__name__ in SILENT:
        assert told == []
    elif kind.__name__ == "RecordEvent":
        assert told == [change.event]
    else:
        assert {kind_of(event) for event in told} <= TELLS[kind.__name__]
        assert told or kind.__name__ in MAY_BE_SILENT
    for event in told:
        assert decode(encode(event), Event) == event


@pytest.mark.requirement("audit:every-change-is-told")
def test_the_table_names_every_change() -> None:
    assert TELLS.keys() | SILENT | {"RecordEvent"} == {kind.__name__ for kind in CHANGES}


def settle(state: MessageState, **more: Any) -> SettleMessage:
    return SettleMessage(agent_id=MAIN, message_id=MESSAGE, state=state, reason="r", **more)


@pytest.mark.parametrize(
    "change",
    [
        settle(MessageState.QUEUED),
        settle(MessageState.CLAIMED),
        settle(MessageState.INTERJECTED),
        settle(MessageState.INTERJECTED, turn_id=TURN),
    ],
)
def test_settling_into_no_end_is_a_forbidden_transition(change: SettleMessage) -> None:
    with pytest.raises(ForbiddenTransitionError):
        events_of(change)


def test_an_interjected_message_names_its_turn_and_safe_point() -> None:
    change = settle(MessageState.INTERJECTED, turn_id=TURN, point=SafePoint.BEFORE_TOOL_EXECUTION)
    assert events_of(change) == (
        (
            MAIN,
            InterjectionAdmitted(
                message_id=MESSAGE, turn_id=TURN, point=SafePoint.BEFORE_TOOL_EXECUTION
            ),
        ),
    )


@settings(max_examples=12)
@given(change=records_of(QueueMessage))
def test_a_system_tick_is_admitted_and_emitted_and_nothing_else_is(change: Any) -> None:
    kinds = [kind_of(event) for _, event in events_of(change)]
    ticks = change.message.kind == "system_tick"
    assert kinds == ["message_admitted", *(["system_tick_emitted"] if ticks else [])]


ROUND = """{"entry":{"agent_id":"main","turn_id":"turn_1","position":1,
"created_at":"2026-01-01T00:00:00Z","data":{"kind":"assistant_round","round":3,"spoke":{
"kind":"model_spoke","blocks":[{"type":"thinking","text":"hidden"},{"type":"text","text":"%s"},
{"type":"tool_use","call_id":"c","name":"Sleep","input":{}}],"stop_reason":"tool_use",
"usage":{"input_tokens":5}}}},"type":"AppendTranscript"}"""


@pytest.mark.requirement("audit:events-do-not-copy-bodies")
def test_a_round_leaves_a_bounded_preview_of_its_words_alone() -> None:
    change = decode(ROUND % ("w" * 10_000), Change)
    ((agent_id, event),) = events_of(change)
    assert agent_id == MAIN
    assert isinstance(event, AssistantRoundRecorded)
    assert event.preview == "w" * EVENT_TEXT_CHARS_MAX
    assert (event.round, event.tool_call_count, event.usage.input_tokens) == (3, 1, 5)
    assert event.tool_names == ("Sleep",)


@pytest.mark.requirement("audit:events-do-not-copy-bodies")
@settings(max_examples=12)
@given(change=records_of(QueueMessage))
def test_an_admitted_message_keeps_its_body_to_itself(change: Any) -> None:
    marked = msgspec.structs.replace(
        change.message, metadata="the metadata", source_refs={"note": "the metadata"}
    )
    for _, event in events_of(msgspec.structs.replace(change, message=marked)):
        assert b"the metadata" not in encode(event)
        assert not hasattr(event, "body")


RECEIPT = ToolReceipt(call_id=CallId("c"), name="Sleep", content="{}", error_kind="boom")


@pytest.mark.parametrize("state", [s for s in ToolCallState if s is not ToolCallState.STARTED])
def test_a_finished_call_tells_its_state(state: ToolCallState) -> None:
    change = FinishToolCall(
        agent_id=MAIN,
        turn_id=TURN,
        effect_id="turn_1.1.0",
        tool_name="Sleep",
        state=state,
        receipt=RECEIPT,
    )
    folded = fold(event for _, event in events_of(change))
    assert folded.states == {(Subject.TOOL_CALL, "turn_1.1.0"): state}


MOVES: list[tuple[Change, Subject, str, str]] = [
    (
        SetAgentStatus(agent_id=MAIN, status=AgentStatus.PAUSED, reason="r"),
        Subject.AGENT,
        SELF,
        "paused",
    ),
    (FocusWorkItem(agent_id=MAIN, work_item_id=None), Subject.FOCUS, SELF, NO_FOCUS),
    (
        FocusWorkItem(agent_id=MAIN, work_item_id=WorkItemId("work_1")),
        Subject.FOCUS,
        SELF,
        "work_1",
    ),
    (
        ClaimMessage(agent_id=MAIN, message_id=MESSAGE, generation=1, passed_over=0),
        Subject.MESSAGE,
        MESSAGE,
        "claimed",
    ),
    (settle(MessageState.PROCESSED), Subject.MESSAGE, MESSAGE, "processed"),
    (settle(MessageState.ABORTED), Subject.MESSAGE, MESSAGE, "aborted"),
    (settle(MessageState.DROPPED), Subject.MESSAGE, MESSAGE, "dropped"),
    (
        ResumeTurn(agent_id=MAIN, turn_id=TURN, message_id=MESSAGE, generation=2, resume_count=1),
        Subject.TURN,
        TURN,
        TURN_OPEN,
    ),
    (
        AdvanceTask(agent_id=MAIN, task_id=TaskId("task_1"), status=TaskStatus.FAILED),
        Subject.TASK,
        "task_1",
        "failed",
    ),
    (
        FireTimer(agent_id=MAIN, timer_id=TimerId("timer_1"), slot=EPOCH, next_fire_at=T1),
        Subject.TIMER,
        "timer_1",
        "active",
    ),
    (
        FireTimer(agent_id=MAIN, timer_id=TimerId("timer_1"), slot=EPOCH, next_fire_at=None),
        Subject.TIMER,
        "timer_1",
        "completed",
    ),
    (
        CancelTimer(agent_id=MAIN, timer_id=TimerId("timer_1")),
        Subject.TIMER,
        "timer_1",
        "cancelled",
    ),
    (
        MoveWait(agent_id=MAIN, wait_id=WaitId("wait_1"), state=WaitState.TRIGGERED, by="b"),
        Subject.WAIT,
        "wait_1",
        "triggered",
    ),
]


@pytest.mark.requirement("audit:folding-gives-the-rows")
@pytest.mark.parametrize(("change", "subject", "id_", "state"), MOVES)
def test_folding_a_change_gives_the_state_it_writes(
    change: Change, subject: Subject, id_: str, state: str
) -> None:
    folded = fold(event for _, event in events_of(change))
    assert folded.states == {(subject, id_): state}
    assert folded.late == ()


@pytest.mark.requirement("audit:folding-gives-the-rows")
@settings(max_examples=12)
@given(data=st.data())
@pytest.mark.parametrize("name", ["CreateAgent", "OpenTurn", "SettleTurn", "PutWorkItem"])
def test_folding_records_gives_their_state(name: str, data: st.DataObject) -> None:
    kind = next(kind for kind in CHANGES if kind.__name__ == name)
    change: Any = data.draw(records_of(kind))
    states = set(fold(event for _, event in events_of(change)).states.values())
    match name:
        case "CreateAgent":
            assert states == {change.status}
        case "OpenTurn":
            assert states == {TURN_OPEN}
        case "SettleTurn":
            assert states == {change.terminal.kind}
        case _:
            assert states == {change.item.state, str(change.item.revision)}


ITEM = WorkItemId("work_1")
ENDED: list[tuple[list[Event], int]] = [
    ([MessageProcessed(message_id=MESSAGE, reason="a")] * 2, 1),
    (
        [
            TaskStatusUpdated(task_id=TaskId("t"), status=TaskStatus.COMPLETED),
            TaskStatusUpdated(task_id=TaskId("t"), status=TaskStatus.FAILED),
        ],
        1,
    ),
    (
        [
            WaitMoved(wait_id=WaitId("w"), state=WaitState.TRIGGERED, by="b"),
            WaitMoved(wait_id=WaitId("w"), state=WaitState.RESOLVED, by="b"),
        ],
        0,
    ),
    ([TimerFired(timer_id=TimerId("t"), slot=EPOCH)] * 2, 1),
    (
        [
            WorkItemWritten(work_item_id=ITEM, state=WorkItemState.COMPLETED, revision=2),
            WorkItemWritten(work_item_id=ITEM, state=WorkItemState.COMPLETED, revision=3),
        ],
        0,
    ),
    (
        [
            WorkItemWritten(work_item_id=ITEM, state=WorkItemState.COMPLETED, revision=2),
            WorkItemWritten(work_item_id=ITEM, state=WorkItemState.OPEN, revision=3),
        ],
        1,
    ),
]


@pytest.mark.requirement("audit:ends-are-final")
@pytest.mark.parametrize(("events", "late_count"), ENDED)
def test_a_move_after_the_end_is_late(events: list[Event], late_count: int) -> None:
    folded = fold(events)
    assert len(folded.late) == late_count
    assert all(late.at == 1 and is_end(late.move.subject, late.ended_as) for late in folded.late)


@settings(max_examples=12)
@given(data=st.data())
@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
def test_every_event_folds(kind: type[Record], data: st.DataObject) -> None:
    event: Any = data.draw(records_of(kind))
    assert len({(move.subject, move.id) for move in moves_of(event)}) == len(moves_of(event))


SETTLED = SettleTurn(
    agent_id=MAIN,
    turn_id=TURN,
    terminal=TurnTerminal(
        turn_id=TURN, turn_index=1, kind=TerminalKind.COMPLETED, completed_at=T1, duration_ms=1
    ),
    usage=TokenUsage(),
    round_count=1,
)
CLOSED = ClosureDecided(outcome=ClosureOutcome.COMPLETED)


@pytest.mark.requirement("events:provenance-of-the-turn")
def test_a_commit_that_moves_one_turn_is_the_doing_of_that_turn() -> None:
    owned = owned_turn((settle(MessageState.PROCESSED), SETTLED))
    assert owned == OwnedTurn(MAIN, TURN)
    assert owned.turn_id_for(MAIN, CLOSED) == TURN
    assert owned.turn_id_for(AgentId("other"), CLOSED) is None
    (_, ended), *_ = events_of(SETTLED)
    assert owned.turn_id_for(MAIN, ended) is None  # it names its turn itself


@pytest.mark.requirement("events:provenance-of-the-turn")
def test_a_commit_that_moves_no_turn_or_several_says_nothing_of_its_events() -> None:
    another = msgspec.structs.replace(SETTLED, turn_id=TurnId("turn_2"))
    assert owned_turn((settle(MessageState.PROCESSED),)) is None
    assert owned_turn((SETTLED, another)) is None


def a_commit_of(*changes: Change) -> Commit:
    return Commit(commit_id="c", at=T1, changes=changes)


def test_an_audited_commit_has_the_events_of_each_change_in_its_order() -> None:
    commit = a_commit_of(settle(MessageState.PROCESSED), SETTLED)
    found = audited(commit)
    assert found.commit is commit
    assert tuple(each.change for each in found.changes) == commit.changes
    for each in found.changes:
        told = tuple((logged.agent_id, logged.event) for logged in each.events)
        assert told == events_of(each.change)


def test_what_one_turn_does_is_noted_with_that_turn_unless_the_event_names_it() -> None:
    (message, turn) = audited(a_commit_of(settle(MessageState.PROCESSED), SETTLED)).changes
    assert [logged.turn_id for logged in message.events] == [TURN]
    assert [logged.turn_id for logged in turn.events] == [None]
    (alone,) = audited(a_commit_of(settle(MessageState.PROCESSED))).changes
    assert [logged.turn_id for logged in alone.events] == [None]


def test_a_record_written_with_the_end_of_a_turn_is_marked_with_that_turn() -> None:
    written = PutWorkItem(item=a_work_item())
    (with_turn, _) = audited(a_commit_of(written, SETTLED)).changes
    (alone,) = audited(a_commit_of(written)).changes
    assert with_turn.marks == marks_of(written, turn_id=TURN) != alone.marks
    assert alone.marks == marks_of(written, turn_id=None)


def test_a_change_that_cannot_be_is_found_before_any_store_sees_it() -> None:
    with pytest.raises(ForbiddenTransitionError):
        audited(a_commit_of(settle(MessageState.QUEUED)))
