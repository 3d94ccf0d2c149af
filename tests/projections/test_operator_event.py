"""The presentation every operator surface starts from."""

from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holon.model.agents import ModelOverrideChanged
from holon.model.events.briefs import (
    BriefKind,
    BriefRecord,
    FailureArtifact,
    FailureCategory,
    OperatorVisibility,
)
from holon.model.events.event import (
    AgentStateChanged,
    AssistantRoundRecorded,
    AuditEvent,
    BriefCreated,
    ClosureDecided,
    Event,
    ProviderRoundCompleted,
    RuntimeErrorRecorded,
    ToolExecuted,
    ToolExecutionFailed,
    TurnStarted,
)
from holon.model.limits import SUMMARY_CHARS_MAX, SURFACE_TEXT_CHARS_MAX
from holon.model.providers.attempts import TokenUsage
from holon.model.record import Record
from holon.model.turns.turn import ClosureOutcome, StopReason, WaitingReason
from holon.model.values import BriefId, MessageId, TurnId, WaitId, WorkItemId
from holon.model.wake import WaitKind, WaitOpened
from holon.model.work import WorkItemState, WorkItemWritten
from holon.projections.events.presented import (
    ROWS,
    Category,
    OperatorEvent,
    PresentationContext,
    after,
    kind_of,
    present,
)
from tests.projections.presented import present_all
from tests.support.builders import MAIN, a_brief, moment
from tests.wire.record_strategies import records_of

EVENTS: tuple[type[Record], ...] = get_args(Event)
TURN = TurnId("turn_1")
ITEM = WorkItemId("work_1")
BRIEF = BriefCreated(brief_id=BriefId("brief_1"), brief_kind=BriefKind.RESULT)
ITEM_BRIEF = BriefCreated(
    brief_id=BriefId("brief_1"), brief_kind=BriefKind.RESULT, work_item_id=ITEM
)
ITEM_FAILED = msgspec.structs.replace(ITEM_BRIEF, brief_kind=BriefKind.FAILURE)
ITEM_DONE = WorkItemWritten(work_item_id=ITEM, state=WorkItemState.COMPLETED, revision=2)
ASKS = ClosureDecided(
    outcome=ClosureOutcome.WAITING, waiting_reason=WaitingReason.AWAITING_OPERATOR_INPUT
)
RESTS = ClosureDecided(outcome=ClosureOutcome.COMPLETED)
STARTED = TurnStarted(turn_id=TURN, turn_index=2, message_id=MessageId("msg_2"))


def a_spoken_round(
    *, preview: str = "", names: tuple[str, ...] = (), calls: int = 0
) -> AssistantRoundRecorded:
    return AssistantRoundRecorded(
        turn_id=TURN,
        round=3,
        stop_reason=StopReason.END_TURN,
        tool_call_count=calls or len(names),
        usage=TokenUsage(),
        preview=preview,
        tool_names=names,
    )


def logged(*events: Event, at_ms: int = 0) -> list[AuditEvent]:
    return [
        AuditEvent(
            log_seq=number, agent_id=MAIN, event_seq=number, created_at=moment(at_ms), event=event
        )
        for number, event in enumerate(events, start=1)
    ]


def levels(*events: Event) -> list[OperatorVisibility]:
    return [presented.visibility for presented in present_all(logged(*events))]


@pytest.mark.requirement("console:every-event-kind-is-presented")
def test_every_event_class_has_a_row_and_every_row_an_event_class() -> None:
    assert set(ROWS) == set(EVENTS)


@pytest.mark.requirement("console:presentation-is-bounded")
@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
@settings(max_examples=15)
@given(data=st.data())
def test_whatever_an_event_holds_it_reads_as_one_bounded_line(
    kind: type[Record], data: st.DataObject
) -> None:
    event = data.draw(records_of(kind))
    presented = present(event)  # type: ignore[arg-type]  # drawn from the union's own members
    assert 1 <= len(presented.summary) <= SUMMARY_CHARS_MAX
    assert presented.summary.isprintable()
    assert presented.title
    assert presented.source_event_kind == kind.__struct_config__.tag
    assert presented.body is None or len(presented.body) <= SURFACE_TEXT_CHARS_MAX


@pytest.mark.requirement("console:presentation-has-no-severity")
def test_a_presentation_has_six_parts_and_neither_severity_nor_delivery_hints() -> None:
    assert OperatorEvent.__struct_fields__ == (
        "visibility",
        "category",
        "title",
        "summary",
        "source_event_kind",
        "body",
    )
    assert [category.value for category in Category] == [
        "operator_notification",
        "brief",
        "message",
        "work_item",
        "task",
        "waiting",
        "workspace",
        "runtime",
        "assistant_progress",
        "tool",
        "state_sync",
        "trace",
    ]


@pytest.mark.requirement("console:visibility-is-ordered")
def test_visibility_goes_from_what_needs_the_operator_to_what_needs_nobody() -> None:
    ordered = sorted(OperatorVisibility, key=lambda visibility: visibility.level)
    assert [visibility.value for visibility in ordered] == [
        "action_required",
        "work_done",
        "turn_result",
        "progress",
        "trace",
    ]


@pytest.mark.requirement("console:briefs-say-what-they-are")
@pytest.mark.requirement("work-done:visibility")
@pytest.mark.parametrize(
    ("around", "expected"),
    [
        ([BRIEF, RESTS], OperatorVisibility.TURN_RESULT),
        ([BRIEF, ASKS], OperatorVisibility.ACTION_REQUIRED),
        ([ITEM_DONE, ITEM_BRIEF, RESTS], OperatorVisibility.WORK_DONE),
        ([ITEM_DONE, ITEM_BRIEF, ASKS], OperatorVisibility.WORK_DONE),
        ([ITEM_DONE, ITEM_FAILED, RESTS], OperatorVisibility.TURN_RESULT),
        ([ITEM_BRIEF, RESTS], OperatorVisibility.TURN_RESULT),  # about an item that goes on
        ([ASKS, STARTED, BRIEF, RESTS], OperatorVisibility.TURN_RESULT),  # asked a turn ago
        ([ITEM_DONE, STARTED, ITEM_BRIEF], OperatorVisibility.TURN_RESULT),
        ([BRIEF, STARTED, ASKS], OperatorVisibility.TURN_RESULT),  # the next turn's closure
    ],
)
def test_a_brief_is_an_action_a_completion_or_a_result(
    around: list[Event], expected: OperatorVisibility
) -> None:
    presented = present_all(logged(*around))
    assert [p.visibility for p in presented if p.category is Category.BRIEF] == [expected]


def test_a_question_the_runtime_asks_needs_the_operator() -> None:
    asked = WaitOpened(wait_id=WaitId("wait_1"), wait_kind=WaitKind.OPERATOR)
    assert levels(asked, BRIEF)[-1] is OperatorVisibility.ACTION_REQUIRED


def test_a_closure_of_a_later_moment_says_nothing_about_an_earlier_brief() -> None:
    events = [*logged(BRIEF, at_ms=0), *logged(ASKS, at_ms=1)]
    assert present_all(events)[0].visibility is OperatorVisibility.TURN_RESULT


def test_a_brief_at_hand_gives_its_first_line_and_its_text() -> None:
    brief: BriefRecord = a_brief()
    presented = present(BRIEF, brief=brief)
    assert (presented.summary, presented.body) == (brief.text, brief.text)
    assert present(BRIEF).body is None


@pytest.mark.requirement("console:rounds-tell-text-from-tools")
@pytest.mark.parametrize(
    ("event", "summary"),
    [
        (a_spoken_round(preview="I will look"), "Assistant progress: I will look"),
        (
            a_spoken_round(preview="I look", names=("ExecCommand",)),
            "Assistant progress: I look",
        ),
        (
            a_spoken_round(names=("ExecCommand", "ReadFile")),
            "Model requested tools: ExecCommand, ReadFile",
        ),
        (a_spoken_round(calls=2), "Model requested 2 tools"),
        (a_spoken_round(), "Model round 3 ended without text"),
    ],
)
def test_a_round_says_whether_it_spoke_or_asked_for_tools(
    event: AssistantRoundRecorded, summary: str
) -> None:
    presented = present(event)
    assert presented.summary == summary
    assert presented.visibility is OperatorVisibility.PROGRESS
    assert presented.category is Category.ASSISTANT_PROGRESS


FAILURE = FailureArtifact(
    category=FailureCategory.TRANSPORT, kind="x", summary="no answer", recovery_hint="wait"
)


@pytest.mark.parametrize(
    ("event", "visibility", "category", "summary"),
    [
        (ITEM_DONE, "work_done", "work_item", "Work item work_1 is completed"),
        (RuntimeErrorRecorded(failure=FAILURE), "turn_result", "runtime", "Turn failed: no answer"),
        (
            ToolExecuted(effect_id="e", turn_id=TURN, tool_name="Sleep", duration_ms=4),
            "trace",
            "tool",
            "Sleep took 4 ms",
        ),
        (
            ToolExecutionFailed(
                effect_id="e", turn_id=TURN, tool_name="X", error_kind="k", interrupted=True
            ),
            "trace",
            "tool",
            "X was interrupted; it may have had its effect",
        ),
        (
            ModelOverrideChanged(),
            "trace",
            "runtime",
            "The agent uses the runtime's model again",
        ),
        (ASKS, "trace", "runtime", "The pass ended waiting: awaiting_operator_input"),
        (RESTS, "trace", "runtime", "The pass ended completed"),
        (
            ProviderRoundCompleted(
                turn_id=TURN,
                round=1,
                token_usage=TokenUsage(),
                context_build_ms=1,
                provider_round_ms=20,
                provider_started_at=moment(),
                provider_completed_at=moment(20),
            ),
            "progress",
            "assistant_progress",
            "Provider round 1 took 20 ms",
        ),
    ],
)
def test_events_read_as_agreed(event: Event, visibility: str, category: str, summary: str) -> None:
    presented = present(event)
    assert (presented.visibility.value, presented.category.value) == (visibility, category)
    assert presented.summary == summary
    assert presented.source_event_kind == kind_of(event)


@pytest.mark.requirement("console:state-sync-is-no-conversation")
def test_a_change_of_state_is_a_signal_to_refresh() -> None:
    changed = AgentStateChanged(status="asleep", reason="turn_settled")  # type: ignore[arg-type]
    assert present(changed).category is Category.STATE_SYNC
    assert present(changed).visibility is OperatorVisibility.TRACE


@pytest.mark.requirement("console:activity-belongs-to-its-turn")
def test_what_an_earlier_turn_left_is_forgotten_when_the_next_begins() -> None:
    context = PresentationContext(awaits_operator=True, completed_item_ids=(ITEM,))
    assert after(context, STARTED) == PresentationContext()
