"""Where the time of a turn went, by the agent's events."""

from datetime import datetime

import pytest

from holon.decide.turns.failures import failure_of
from holon.model.events.event import (
    AuditEvent,
    Event,
    MessageAdmitted,
    MessageProcessingStarted,
    ProviderRoundCompleted,
    RuntimeErrorRecorded,
    ToolExecuted,
    TurnContextBuilt,
    TurnEnded,
    TurnStarted,
)
from holon.model.providers.attempts import (
    AttemptOutcome,
    AttemptTimeline,
    ProviderAttempt,
    TokenUsage,
)
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    MessageKind,
    OperatorOrigin,
    Priority,
    TrustLevel,
)
from holon.model.turns.turn import TerminalKind
from holon.model.values import MessageId, TurnId
from holon.projections.turns.latency import TurnLatency, latency_report
from tests.support.builders import MAIN, moment


class Log:
    """The events of one agent, in the order they are told."""

    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    def tell(self, event: Event, *, at: datetime) -> None:
        number = len(self.events) + 1
        told = AuditEvent(
            log_seq=number, agent_id=MAIN, event_seq=number, created_at=at, event=event
        )
        self.events.append(told)

    def begin(self, n: int = 1, *, taken_up_ms: int = 100) -> None:
        """Admit a message at 0 and begin a turn."""
        message_id, taken_up = MessageId(f"msg_{n}"), moment(taken_up_ms)
        self.tell(
            MessageAdmitted(
                message_id=message_id,
                message_kind=MessageKind.OPERATOR_PROMPT,
                origin=OperatorOrigin(),
                trust=TrustLevel.TRUSTED_OPERATOR,
                authority_class=AuthorityClass.OPERATOR_INSTRUCTION,
                priority=Priority.NORMAL,
                delivery_surface=DeliverySurface.CLI_PROMPT,
                admission_context=AdmissionContext.LOCAL_PROCESS,
            ),
            at=moment(0),
        )
        self.tell(MessageProcessingStarted(message_id=message_id, generation=1), at=taken_up)
        started = TurnStarted(turn_id=TurnId(f"turn_{n}"), turn_index=n, message_id=message_id)
        self.tell(started, at=taken_up)

    def work(self, n: int = 1) -> None:
        """20 ms for the prompt, a round of 30 and 300 ms, a tool of 200 ms."""
        turn_id = TurnId(f"turn_{n}")
        self.tell(TurnContextBuilt(turn_id=turn_id, context_build_ms=20), at=moment(500))
        spoke = ProviderRoundCompleted(
            turn_id=turn_id,
            round=1,
            token_usage=TokenUsage(),
            context_build_ms=30,
            provider_round_ms=300,
            provider_started_at=moment(200),
            provider_completed_at=moment(500),
        )
        self.tell(spoke, at=moment(500))
        ran = ToolExecuted(effect_id="e", turn_id=turn_id, tool_name="Exec", duration_ms=200)
        self.tell(ran, at=moment(800))

    def end(self, n: int = 1, *, duration_ms: int = 900) -> None:
        ended = TurnEnded(
            turn_id=TurnId(f"turn_{n}"),
            turn_index=n,
            terminal=TerminalKind.COMPLETED,
            duration_ms=duration_ms,
            usage=TokenUsage(),
        )
        self.tell(ended, at=moment(1_000))


def parts_of(turn: TurnLatency) -> int:
    measured = turn.queue_wait_ms + turn.context_build_ms + turn.provider_ms + turn.tools_ms
    return measured + turn.cleanup_ms


@pytest.mark.requirement("console:latency-comes-from-durable-timings")
def test_a_turn_is_taken_apart_into_what_was_measured_and_the_parts_add_up() -> None:
    log = Log()
    log.begin()
    log.work()
    log.end()
    [turn] = latency_report(log.events, limit=10).turns
    assert (turn.queue_wait_ms, turn.context_build_ms) == (100, 50)
    assert (turn.provider_ms, turn.tools_ms, turn.cleanup_ms) == (300, 200, 350)
    assert turn.total_ms == parts_of(turn) == 1_000
    assert (turn.model_rounds, turn.tool_calls, turn.provider_attempts) == (1, 1, 1)


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


def test_attempts_that_failed_the_turn_are_time_of_the_provider() -> None:
    log = Log()
    log.begin()
    tries = AttemptTimeline(attempts=(an_attempt(200, 400), an_attempt(600, 900)))
    lost = RuntimeErrorRecorded(
        failure=failure_of(KeyError()), turn_id=TurnId("turn_1"), timeline=tries
    )
    log.tell(lost, at=moment(900))
    log.end()
    [turn] = latency_report(log.events, limit=10).turns
    assert (turn.provider_ms, turn.cleanup_ms, turn.provider_attempts) == (700, 200, 2)


def test_a_clock_that_was_set_back_makes_no_negative_time_and_the_parts_still_add_up() -> None:
    log = Log()
    log.begin(taken_up_ms=-500)
    log.work()
    log.end(duration_ms=10)
    [turn] = latency_report(log.events, limit=10).turns
    assert (turn.queue_wait_ms, turn.cleanup_ms) == (0, 0)
    assert turn.total_ms == parts_of(turn) == 550


def test_a_turn_is_left_out_while_it_is_open_and_when_its_beginning_is_not_among_the_events() -> (
    None
):
    log = Log()
    log.begin(1)
    log.end(1)
    log.begin(2)
    assert latency_report(log.events[3:], limit=10).turns == ()
    assert [turn.turn_index for turn in latency_report(log.events, limit=10).turns] == [1]


def test_a_report_spreads_each_part_over_the_newest_turns() -> None:
    log = Log()
    for n in range(1, 31):
        log.begin(n, taken_up_ms=0)
        log.end(n, duration_ms=1_000 * n)
    report = latency_report(log.events, limit=20)
    assert [turn.turn_index for turn in report.turns[:2]] == [30, 29]
    total = report.parts["total"]
    assert (total.median_ms, total.p95_ms, total.max_ms) == (20_000, 29_000, 30_000)
