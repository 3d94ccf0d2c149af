"""A run summed up from its log and its last brief."""

from typing import Final

import msgspec
import pytest

from holon.decide.failure_artifact import failure_of
from holon.model.agent_status import AgentStatus
from holon.model.brief import BriefKind, BriefRecord
from holon.model.closure import ClosureOutcome, WaitingReason
from holon.model.event import (
    AgentStateChanged,
    AssistantRoundRecorded,
    ClosureDecided,
    Event,
    MessageProcessingStarted,
    ProviderDeferred,
    ProviderRoundCompleted,
    RuntimeErrorRecorded,
    ToolExecuted,
    TurnEnded,
)
from holon.model.ids import AgentId, BriefId, MessageId, TurnId
from holon.model.instant import EPOCH
from holon.model.provider_attempt import AttemptTimeline, TokenUsage
from holon.model.provider_errors import ProviderTimeoutError
from holon.model.turn import StopReason, TerminalKind
from holon.projections.run_result import FinalStatus, run_result

MAIN, TURN = AgentId("main"), TurnId("turn_1")
USAGE: Final = TokenUsage(input_tokens=200, output_tokens=30, cache_read_tokens=150)
TIMELINE: Final = AttemptTimeline(requested_model_ref="scripted/a", winning_model_ref="scripted/a")
FAILURE: Final = failure_of(ProviderTimeoutError("no answer in time"))
TOLD: Final[tuple[Event, ...]] = (
    MessageProcessingStarted(message_id=MessageId("msg_1"), generation=1),
    ProviderRoundCompleted(
        turn_id=TURN,
        round=1,
        token_usage=USAGE,
        context_build_ms=0,
        provider_round_ms=5,
        provider_started_at=EPOCH,
        provider_completed_at=EPOCH,
        timeline=TIMELINE,
    ),
    AssistantRoundRecorded(
        turn_id=TURN,
        round=1,
        stop_reason=StopReason.END_TURN,
        tool_call_count=1,
        usage=USAGE,
        preview="hi",
    ),
    ToolExecuted(effect_id="e", turn_id=TURN, tool_name="Look", duration_ms=1),
    TurnEnded(
        turn_id=TURN,
        turn_index=1,
        terminal=TerminalKind.COMPLETED,
        duration_ms=9,
        usage=USAGE,
    ),
    ClosureDecided(outcome=ClosureOutcome.COMPLETED),
    AgentStateChanged(status=AgentStatus.ASLEEP, reason="tired"),
)


def a_brief(kind: BriefKind = BriefKind.RESULT, text: str = "done") -> BriefRecord:
    failure = FAILURE if kind is BriefKind.FAILURE else None
    return BriefRecord(
        id=BriefId("brief_1"),
        agent_id=MAIN,
        kind=kind,
        created_at=EPOCH,
        text=text,
        failure=failure,
    )


@pytest.mark.requirement("provider-plane:run-shows-token-usage")
@pytest.mark.requirement("provider-plane:run-shows-attempts")
def test_a_run_says_what_it_cost_and_how_the_model_was_asked() -> None:
    result = run_result(MAIN, TOLD, a_brief())
    assert (result.final_status, result.final_text) == (FinalStatus.COMPLETED, "done")
    assert (result.message_count, result.model_rounds, result.tool_calls) == (1, 1, 1)
    assert result.token_usage == USAGE
    assert result.token_usage.total_tokens == 230
    assert (result.input_tokens, result.output_tokens) == (200, 30)
    assert result.provider_cache_usage.hit_rate == 0.75
    assert result.provider_attempt_timeline == (TIMELINE,)
    assert result.sleep_reason == "tired"


@pytest.mark.requirement("provider-plane:run-shows-token-usage")
def test_without_any_token_data_the_usage_is_zero_and_still_there() -> None:
    result = run_result(MAIN, (), None)
    assert result.final_text == ""
    shown = msgspec.to_builtins(result)["token_usage"]
    assert (shown["input_tokens"], shown["output_tokens"], shown["total_tokens"]) == (0, 0, 0)


@pytest.mark.requirement("provider-plane:run-shows-the-failure")
def test_a_failed_run_carries_the_artifact_and_the_attempts_that_led_to_it() -> None:
    told = (
        RuntimeErrorRecorded(failure=FAILURE, turn_id=TURN, timeline=TIMELINE),
        ClosureDecided(outcome=ClosureOutcome.FAILED),
    )
    result = run_result(MAIN, told, a_brief(BriefKind.FAILURE, "no answer in time"))
    assert result.final_status is FinalStatus.FAILED
    assert result.failure_artifact == FAILURE
    assert result.provider_attempt_timeline == (TIMELINE,)


def test_a_failure_stays_one_when_work_remains() -> None:
    told = (ClosureDecided(outcome=ClosureOutcome.WAITING),)
    result = run_result(MAIN, told, a_brief(BriefKind.FAILURE))
    assert result.final_status is FinalStatus.FAILED
    quiet = run_result(MAIN, (ClosureDecided(outcome=ClosureOutcome.FAILED),), None)
    assert quiet.final_status is FinalStatus.FAILED


def test_a_run_that_was_put_off_waits_and_says_what_for() -> None:
    told = (
        ProviderDeferred(failure=FAILURE, turn_id=TURN, until=EPOCH, timeline=TIMELINE),
        ClosureDecided(outcome=ClosureOutcome.WAITING, waiting_reason=WaitingReason.AWAITING_TIMER),
    )
    result = run_result(MAIN, told, a_brief(BriefKind.ACK))
    assert result.final_status is FinalStatus.WAITING
    assert result.waiting_reason is WaitingReason.AWAITING_TIMER
    assert result.provider_attempt_timeline == (TIMELINE,)
