"""Who may start a turn, and when the runtime stops starting them by itself."""

from datetime import timedelta

import msgspec
import pytest

from holon.decide.budgets.no_progress import (
    DelayStart,
    Start,
    StopSelfStarts,
    SuppressStart,
    decide_start,
    is_self_started,
    made_any_progress,
    turn_rate_after,
)
from holon.model.agents import TurnRateState
from holon.model.limits import (
    SELF_STARTED_APART_MS,
    SELF_STARTED_COUNT_MAX,
    SELF_STARTED_FREE_COUNT_MAX,
    SELF_STARTED_HOLD_MS_MIN,
)
from holon.model.queue import JsonBody, MessageEnvelope, MessageKind, SystemOrigin, TextBody
from holon.model.turns.transcript import RecordedCall
from tests.decide.sample_rows import NOW
from tests.support.builders import a_message, a_receipt, a_timer_tick, a_tool_call, a_turn

FREE, MOST = SELF_STARTED_FREE_COUNT_MAX, SELF_STARTED_COUNT_MAX


def tick(subsystem: str, text: str = "go on") -> MessageEnvelope:
    return msgspec.structs.replace(
        a_message("msg_1"),
        kind=MessageKind.SYSTEM_TICK,
        origin=SystemOrigin(subsystem=subsystem),
        body=TextBody(text=text),
    )


def counted(count: int, *, ago_ms: int = 0) -> TurnRateState:
    at = NOW - timedelta(milliseconds=ago_ms)
    return TurnRateState(self_started_count=count, self_started_at=at)


@pytest.mark.parametrize(
    ("message", "is_own"),
    [
        pytest.param(a_message("msg_1"), False, id="a prompt"),
        pytest.param(tick("work_queue"), True, id="an offer of work"),
        pytest.param(tick("recheck"), True, id="a reminder of blockers"),
        pytest.param(tick("wait_deadline"), True, id="a wait that ran out"),
        pytest.param(tick("recovery"), False, id="news of a restart"),
        pytest.param(tick("wake_hint", ""), True, id="a hint that says nothing"),
        pytest.param(
            msgspec.structs.replace(tick("wake_hint"), body=JsonBody(value={"wake_hints": [1]})),
            False,
            id="a hint that brings something",
        ),
        pytest.param(a_timer_tick("msg_1", "timer_1"), True, id="a timer"),
        pytest.param(
            msgspec.structs.replace(tick("x"), kind=MessageKind.INTERNAL_FOLLOWUP),
            True,
            id="a follow-up",
        ),
        pytest.param(
            msgspec.structs.replace(a_message("msg_1"), kind=MessageKind.TASK_RESULT),
            False,
            id="a finished task",
        ),
    ],
)
def test_what_counts_as_started_by_the_runtime(message: MessageEnvelope, is_own: bool) -> None:
    assert is_self_started(message) is is_own


@pytest.mark.parametrize("pace", [TurnRateState(), counted(5), counted(MOST)])
def test_the_outside_always_starts_a_turn_and_the_count_anew(pace: TurnRateState) -> None:
    held = msgspec.structs.replace(pace, budget_until=NOW, gave_up=True)
    assert decide_start(held, self_started=False, now=NOW) == Start(
        pace=TurnRateState(budget_until=NOW)
    )


@pytest.mark.parametrize("count", range(FREE))
def test_the_first_few_start_at_once_and_are_counted(count: int) -> None:
    decision = decide_start(counted(count), self_started=True, now=NOW)
    assert decision == Start(pace=counted(count + 1))


@pytest.mark.parametrize("count", range(FREE, MOST))
def test_each_next_one_waits_twice_as_long(count: int) -> None:
    hold_ms = SELF_STARTED_HOLD_MS_MIN << (count - FREE)
    until = NOW + timedelta(milliseconds=hold_ms)
    assert decide_start(counted(count), self_started=True, now=NOW) == DelayStart(until=until)
    waited = decide_start(counted(count, ago_ms=hold_ms), self_started=True, now=NOW)
    assert waited == Start(pace=counted(count + 1))


def test_after_the_last_one_the_runtime_gives_up_once_and_is_silent() -> None:
    decision = decide_start(counted(MOST), self_started=True, now=NOW)
    assert isinstance(decision, StopSelfStarts)
    assert decision.pace.gave_up
    assert decide_start(decision.pace, self_started=True, now=NOW) == SuppressStart()


@pytest.mark.parametrize("count", [FREE, MOST])
def test_turns_far_apart_and_a_clock_set_back_are_no_reason_to_wait(count: int) -> None:
    apart = decide_start(counted(count, ago_ms=SELF_STARTED_APART_MS), self_started=True, now=NOW)
    assert apart == Start(pace=counted(1))
    early = decide_start(counted(FREE, ago_ms=-1_000_000), self_started=True, now=NOW)
    assert early == Start(pace=counted(FREE + 1))


def test_a_hold_is_measured_from_the_end_of_the_last_turn() -> None:
    began = counted(3, ago_ms=60_000)
    assert turn_rate_after(began, self_started=True, moved=False, now=NOW) == counted(3)
    assert turn_rate_after(began, self_started=True, moved=True, now=NOW) == TurnRateState()
    assert turn_rate_after(began, self_started=False, moved=False, now=NOW) == TurnRateState()


@pytest.mark.parametrize(
    ("name", "is_error", "moved"),
    [
        ("ApplyPatch", False, True),
        ("ApplyPatch", True, False),
        ("Enqueue", False, False),
        ("UpdateWorkItem", False, False),
        ("AgentGet", False, False),
    ],
)
def test_only_a_call_that_changed_something_gets_somewhere(
    name: str, is_error: bool, moved: bool
) -> None:
    call = msgspec.structs.replace(a_tool_call(a_turn()), name=name)
    receipt = msgspec.structs.replace(a_receipt(call), is_error=is_error)
    calls = (RecordedCall(call=call, receipt=receipt),)
    mutating = frozenset({"ApplyPatch", "Enqueue", "UpdateWorkItem"})
    assert made_any_progress((), calls, mutating=mutating) is moved
    unanswered = (RecordedCall(call=call, receipt=None),)
    assert not made_any_progress((), unanswered, mutating=mutating)
