"""Where the time of a turn went."""

import msgspec
import pytest

from holon.decide.failure_artifact import failure_of
from holon.model.provider_attempt import AttemptOutcome, AttemptTimeline, ProviderAttempt
from holon.model.tool import ToolCallState
from holon.model.transcript import IncomingMessage, RecordedCall, RuntimeFailure, TurnLog
from holon.model.turn import RoundTiming, TurnRecord
from holon.projections.latency import latency_report, turn_latency
from holon.testing.builders import (
    a_message,
    a_receipt,
    a_round,
    a_terminal,
    a_tool_call,
    a_turn,
    an_entry,
    moment,
)


def a_settled_turn(*, index: int = 1, completed_ms: int = 1_000) -> TurnRecord:
    turn = msgspec.structs.replace(a_turn(f"turn_{index}", index=index), opened_at=moment(100))
    terminal = a_terminal(turn, completed_at=moment(completed_ms))
    return msgspec.structs.replace(turn, terminal=terminal)


def a_log(turn: TurnRecord) -> TurnLog:
    """Arrived at 0, opened at 100, a round until 500, a tool until 800."""
    timing = RoundTiming(
        context_build_ms=50,
        provider_round_ms=300,
        started_at=moment(200),
        completed_at=moment(500),
    )
    call = msgspec.structs.replace(
        a_tool_call(turn),
        state=ToolCallState.SUCCEEDED,
        started_at=moment(600),
        finished_at=moment(800),
    )
    return TurnLog(
        turn=turn,
        entries=(
            an_entry(turn, position=0, data=IncomingMessage(message=a_message())),
            an_entry(turn, position=1, data=msgspec.structs.replace(a_round(), timing=timing)),
        ),
        calls=(RecordedCall(call=call, receipt=a_receipt(call)),),
    )


@pytest.mark.requirement("console:latency-comes-from-durable-timings")
def test_a_turn_is_taken_apart_into_what_was_measured() -> None:
    latency = turn_latency(a_log(a_settled_turn()))
    assert latency is not None
    assert latency.total_ms == 1_000
    assert latency.queue_wait_ms == 100
    assert latency.context_build_ms == 50
    assert latency.provider_ms == 300
    assert latency.tools_ms == 200
    assert latency.cleanup_ms == 200
    assert latency.other_ms == 150
    assert (latency.model_rounds, latency.tool_calls, latency.provider_attempts) == (1, 1, 1)


def test_calls_that_begin_together_are_counted_one_after_the_other() -> None:
    log = a_log(a_settled_turn())
    [first] = log.calls
    later = msgspec.structs.replace(first.call, position=1, finished_at=moment(900))
    both = (first, RecordedCall(call=later, receipt=first.receipt))
    latency = turn_latency(msgspec.structs.replace(log, calls=both))
    assert latency is not None
    assert (latency.tools_ms, latency.cleanup_ms) == (300, 100)


def test_attempts_that_failed_the_turn_are_time_of_the_provider() -> None:
    turn = a_settled_turn()
    tries = [an_attempt(200, 400), an_attempt(600, 900)]
    lost = RuntimeFailure(
        failure=failure_of(KeyError()), timeline=AttemptTimeline(attempts=tuple(tries))
    )
    latency = turn_latency(TurnLog(turn=turn, entries=(an_entry(turn, position=0, data=lost),)))
    assert latency is not None
    assert (latency.provider_ms, latency.cleanup_ms, latency.provider_attempts) == (700, 100, 2)


def an_attempt(start_ms: int, end_ms: int) -> ProviderAttempt:
    return ProviderAttempt(
        provider="lab",
        model_ref="lab/one",
        attempt=1,
        max_attempts=3,
        started_at=moment(start_ms),
        completed_at=moment(end_ms),
        outcome=AttemptOutcome.RETRYING,
    )


def test_a_clock_that_was_set_back_makes_no_negative_time() -> None:
    latency = turn_latency(a_log(a_settled_turn(completed_ms=-500)))
    assert latency is not None
    assert (latency.total_ms, latency.cleanup_ms, latency.other_ms) == (0, 0, 0)


def test_an_open_turn_is_left_out() -> None:
    report = latency_report([TurnLog(turn=a_turn())])
    assert (report.turn_count, report.turns, report.parts) == (0, (), {})


def test_a_report_spreads_each_part_over_all_turns() -> None:
    logs = [a_log(a_settled_turn(index=n, completed_ms=1_000 * n)) for n in range(1, 21)]
    total = latency_report(logs).parts["total"]
    assert (total.median_ms, total.p95_ms, total.max_ms) == (10_000, 19_000, 20_000)
