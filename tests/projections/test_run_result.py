"""A run summed up from its log and its last brief."""

from typing import Final

import msgspec
import pytest

from holon.decide.turns.failures import failure_of, run_round_limit
from holon.model.agents import AgentStatus
from holon.model.events.briefs import BriefKind, BriefRecord
from holon.model.events.event import (
    AgentStateChanged,
    AssistantRoundRecorded,
    Event,
    MessageProcessingStarted,
    ProviderDeferred,
    ProviderRoundCompleted,
    RuntimeErrorRecorded,
    ToolExecuted,
    TurnEnded,
)
from holon.model.providers.attempts import AttemptTimeline, ProviderTimeoutError, TokenUsage
from holon.model.turns.transcript import TurnLog
from holon.model.turns.turn import (
    Closure,
    Completed,
    Continuable,
    Failed,
    ReactivationMode,
    StopReason,
    TerminalKind,
    Waiting,
    WaitingReason,
    WorkSignal,
    WorkSignalStatus,
)
from holon.model.values import EPOCH, AgentId, BriefId, MessageId, TurnId, WorkItemId
from holon.projections.turns.run_result import FinalStatus, RunFacts, run_result
from tests.support.builders import a_task, a_terminal, a_turn, a_work_item

MAIN, TURN = AgentId("main"), TurnId("turn_1")
USAGE: Final = TokenUsage(
    input_tokens=200, output_tokens=30, cache_read_tokens=150, cache_creation_tokens=10
)
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


def facts(
    *told: Event, brief: BriefRecord | None = None, closure: Closure | None = None
) -> RunFacts:
    briefs = () if brief is None else (brief,)
    return RunFacts(agent_id=MAIN, events=told, briefs=briefs, closure=closure)


@pytest.mark.requirement("provider-plane:run-shows-token-usage")
@pytest.mark.requirement("provider-plane:run-shows-attempts")
def test_a_run_says_what_it_cost_and_how_the_model_was_asked() -> None:
    result = run_result(facts(*TOLD, brief=a_brief(), closure=Completed()))
    assert (result.final_status, result.final_text) == (FinalStatus.COMPLETED, "done")
    assert (result.message_count, result.model_rounds, result.tool_calls) == (1, 1, 1)
    assert result.token_usage == USAGE
    assert result.token_usage.total_tokens == 230
    assert (result.input_tokens, result.output_tokens) == (200, 30)
    cache = result.provider_cache_usage
    assert (cache.read, cache.creation, cache.cacheable, cache.hit_rate) == (150, 10, 160, 0.75)
    assert result.provider_attempt_timeline == (TIMELINE,)
    assert result.sleep_reason == "tired"
    assert not result.failed


@pytest.mark.requirement("provider-plane:run-shows-token-usage")
def test_without_any_token_data_the_usage_is_zero_and_still_there() -> None:
    result = run_result(facts())
    assert result.final_text == ""
    shown = msgspec.to_builtins(result)["token_usage"]
    assert (shown["input_tokens"], shown["output_tokens"], shown["total_tokens"]) == (0, 0, 0)


@pytest.mark.requirement("provider-plane:run-shows-the-failure")
def test_a_failed_run_carries_the_artifact_and_the_attempts_that_led_to_it() -> None:
    failed = RuntimeErrorRecorded(failure=FAILURE, turn_id=TURN, timeline=TIMELINE)
    brief = a_brief(BriefKind.FAILURE, "no answer in time")
    result = run_result(facts(failed, brief=brief, closure=Failed(summary="no answer in time")))
    assert (result.final_status, result.failed) == (FinalStatus.FAILED, True)
    assert result.failure_artifact == FAILURE
    assert result.provider_attempt_timeline == (TIMELINE,)


def test_a_failure_stays_one_when_work_remains() -> None:
    result = run_result(facts(brief=a_brief(BriefKind.FAILURE), closure=Waiting()))
    assert result.final_status is FinalStatus.FAILED
    quiet = run_result(facts(closure=Failed(summary="gone")))
    assert quiet.final_status is FinalStatus.FAILED


def test_a_run_that_was_put_off_waits_and_says_what_for() -> None:
    deferred = ProviderDeferred(failure=FAILURE, turn_id=TURN, until=EPOCH, timeline=TIMELINE)
    waits = Waiting(waiting_reason=WaitingReason.AWAITING_TIMER)
    result = run_result(facts(deferred, brief=a_brief(BriefKind.ACK), closure=waits))
    assert result.final_status is FinalStatus.WAITING
    assert result.waiting_reason is WaitingReason.AWAITING_TIMER
    assert result.provider_attempt_timeline == (TIMELINE,)


@pytest.mark.requirement("run-once:round-limit")
def test_a_run_without_rounds_left_is_told_from_other_failures() -> None:
    limit = run_round_limit(3)
    brief = msgspec.structs.replace(a_brief(BriefKind.FAILURE), failure=limit)
    result = run_result(facts(brief=brief, closure=Failed(summary=limit.summary)))
    assert (result.final_status, result.failed) == (FinalStatus.MAX_TURNS_EXCEEDED, True)
    assert result.failure_artifact == limit


@pytest.mark.requirement("run-once:one-object")
def test_a_run_that_could_not_begin_is_a_failure_of_the_same_shape() -> None:
    result = run_result(RunFacts(agent_id=None, failure=FAILURE))
    assert (result.final_status, result.agent_id) == (FinalStatus.FAILED, None)
    assert (result.failure_artifact, result.final_text) == (FAILURE, "no answer in time")


@pytest.mark.requirement("run-once:final-text")
@pytest.mark.parametrize(
    ("reports", "texts", "closure", "said"),
    [
        (("the report",), ("chat",), Completed(), "the report"),
        (("first", "second"), ("chat",), Completed(), "second"),
        ((None,), ("chat",), Completed(), "chat"),
        ((), ("first", "last"), Completed(), "last"),
        ((), ("first", "  "), Completed(), "first"),
        ((), (), Completed(), ""),
        (("the report",), ("which?",), Waiting(), "which?"),
    ],
)
def test_a_run_speaks_with_its_report_or_its_last_words(
    reports: tuple[str | None, ...], texts: tuple[str, ...], closure: Closure, said: str
) -> None:
    completed = tuple(
        msgspec.structs.replace(a_work_item(f"work_{i}"), result_summary=report)
        for i, report in enumerate(reports)
    )
    briefs = tuple(a_brief(text=text) for text in texts)
    told = RunFacts(agent_id=MAIN, briefs=briefs, completed=completed, closure=closure)
    assert run_result(told).final_text == said


@pytest.mark.parametrize(
    ("reports", "told", "closure", "texts"),
    [
        ((), ("Paris.", "(nothing new)"), Completed(), ("Paris.", "(nothing new)")),
        ((), ("Paris.", "  "), Completed(), ("Paris.",)),
        (("the report",), ("Paris.",), Completed(), ("Paris.", "the report")),
        (("Paris.",), ("Paris.", "more"), Completed(), ("Paris.", "more")),
        ((), (), Completed(), ()),
    ],
)
def test_a_later_turn_does_not_take_the_place_of_the_answer(
    reports: tuple[str, ...], told: tuple[str, ...], closure: Closure, texts: tuple[str, ...]
) -> None:
    completed = tuple(
        msgspec.structs.replace(a_work_item(f"work_{i}"), result_summary=report)
        for i, report in enumerate(reports)
    )
    briefs = tuple(a_brief(text=text) for text in told)
    result = run_result(
        RunFacts(agent_id=MAIN, briefs=briefs, completed=completed, closure=closure)
    )
    assert result.texts == texts


def test_a_failure_is_not_among_what_was_said() -> None:
    briefs = (a_brief(text="Paris."), a_brief(BriefKind.FAILURE, "no answer in time"))
    result = run_result(RunFacts(agent_id=MAIN, briefs=briefs, closure=Failed(summary="gone")))
    assert (result.texts, result.final_text) == (("Paris.",), "no answer in time")


def test_a_run_that_leaves_work_says_so() -> None:
    signal = WorkSignal(
        work_item_id=WorkItemId("work_1"),
        status=WorkSignalStatus.ACTIVE,
        reactivation_mode=ReactivationMode.CONTINUE_ACTIVE,
    )
    result = run_result(facts(brief=a_brief(), closure=Continuable(work_signal=signal)))
    assert (result.final_status, result.waiting_reason) == (FinalStatus.WAITING, "work_left")


def test_the_models_own_last_words_and_the_tasks_are_kept() -> None:
    turn = a_turn()
    terminal = msgspec.structs.replace(a_terminal(turn), last_assistant_message="as I said")
    log = TurnLog(turn=msgspec.structs.replace(turn, terminal=terminal))
    result = run_result(RunFacts(agent_id=MAIN, turns=(log,), tasks=(a_task(),)))
    assert result.raw_final_text == "as I said"
    [task] = result.tasks
    assert (task["task_id"], task["status"]) == ("task_1", "running")
