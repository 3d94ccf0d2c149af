"""After a restart every unfinished call and task gets exactly one honest ending."""

import itertools

import msgspec
import pytest

from holon.decide.turns.commits import TurnCrashes
from holon.decide.turns.failures import ABORTED_KINDS, INTERRUPTED_BY_RESTART
from holon.decide.turns.recovery import (
    AbandonTurnPlan,
    InterruptTask,
    KeepTask,
    ResumeTurnPlan,
    SetAsideTurnPlan,
    abort_calls,
    plan_tasks,
    plan_turn,
)
from holon.model.events.briefs import FailureCategory
from holon.model.limits import TURN_CRASHES_COUNT_MAX, TURN_RESUMES_COUNT_MAX
from holon.model.tasks import TaskKind, TaskRecord, TaskStatus
from holon.model.turns.tools import ToolCallRecord, ToolCallState
from holon.model.turns.transcript import RecordedCall, TurnLog
from holon.model.values import CallId, TaskId
from tests.decide.sample_rows import AGENT_ID, NOW
from tests.decide.turn_rows import TURN, ok

ENDED = (
    TaskStatus.COMPLETED,
    TaskStatus.FAILED,
    TaskStatus.CANCELLED,
    TaskStatus.INTERRUPTED,
)


def call_at(round_number: int, position: int, *, done: bool) -> RecordedCall:
    call_id = CallId(f"r{round_number}c{position}")
    call = ToolCallRecord(
        effect_id=f"turn_1.{round_number}.{position}",
        call_id=call_id,
        agent_id=AGENT_ID,
        turn_id=TURN.turn_id,
        round=round_number,
        position=position,
        name="Read",
        input={},
        state=ToolCallState.SUCCEEDED if done else ToolCallState.STARTED,
        started_at=NOW,
    )
    return RecordedCall(call=call, receipt=ok(call_id=call_id) if done else None)


def log_with(*calls: RecordedCall, resume_count: int = 0) -> TurnLog:
    turn = msgspec.structs.replace(TURN, resume_count=resume_count)
    return TurnLog(turn=turn, calls=calls)


@pytest.mark.requirement("recovery:unfinished-call-gets-one-result")
@pytest.mark.parametrize("done", list(itertools.product((False, True), repeat=4)))
@pytest.mark.parametrize("resume_count", [0, TURN_RESUMES_COUNT_MAX])
def test_every_unfinished_call_gets_exactly_one_interrupted_result(
    done: tuple[bool, ...], resume_count: int
) -> None:
    calls = [call_at(1 + n // 2, n % 2, done=each) for n, each in enumerate(done)]
    plan = plan_turn(log_with(*calls, resume_count=resume_count))
    finished = [each.effect_id for each in plan.interrupted]
    assert finished == [each.call.effect_id for each in calls if each.receipt is None]
    assert len(set(finished)) == len(finished)
    for each in plan.interrupted:
        assert each.state is ToolCallState.INTERRUPTED
        assert (each.agent_id, each.turn_id, each.tool_name) == (AGENT_ID, TURN.turn_id, "Read")
        assert each.receipt.error_kind == "interrupted"
        assert each.receipt.is_error


@pytest.mark.requirement("recovery:interrupted-effect-is-unknown")
def test_an_interrupted_result_says_that_the_effect_is_unknown() -> None:
    (cut_off,) = plan_turn(log_with(call_at(1, 0, done=False))).interrupted
    told = msgspec.json.decode(cut_off.receipt.content)
    assert "unknown" in told["message"]
    assert "before you do it again" in told["hint"]
    assert told["retryable"] is False
    assert cut_off.receipt.call_id == "r1c0"


@pytest.mark.requirement("recovery:poison-turn-is-given-up")
@pytest.mark.parametrize("resume_count", range(TURN_RESUMES_COUNT_MAX + 2))
def test_a_turn_is_resumed_a_bounded_number_of_times(resume_count: int) -> None:
    plan = plan_turn(log_with(resume_count=resume_count))
    if resume_count < TURN_RESUMES_COUNT_MAX:
        assert plan == ResumeTurnPlan(interrupted=())
    else:
        assert isinstance(plan, AbandonTurnPlan)
        assert plan.failure.kind in ABORTED_KINDS
        assert plan.reason == plan.failure.summary
        assert str(resume_count) in plan.reason


def crashed(log: TurnLog, *, count: int, progress: int) -> TurnLog:
    turn = msgspec.structs.replace(log.turn, crash_count=count, crash_progress=progress)
    return msgspec.structs.replace(log, turn=turn)


@pytest.mark.requirement("hostile-text:a-turn-that-ends-the-process-twice-is-set-aside")
def test_a_turn_the_process_ended_in_again_at_the_same_place_is_set_aside() -> None:
    log = log_with(call_at(1, 0, done=True), call_at(1, 1, done=False))
    first = plan_turn(log, ended_process=True)
    assert first == ResumeTurnPlan(
        interrupted=first.interrupted, crashes=TurnCrashes(count=1, progress=1)
    )
    again = plan_turn(crashed(log, count=1, progress=1), ended_process=True)
    assert isinstance(again, SetAsideTurnPlan)
    assert again.failure.kind in ABORTED_KINDS
    assert str(TURN_CRASHES_COUNT_MAX) in again.failure.summary
    assert [each.effect_id for each in again.interrupted] == ["turn_1.1.1"]


@pytest.mark.requirement("hostile-text:a-turn-that-goes-forward-is-not-set-aside")
def test_a_turn_that_got_further_between_two_crashes_goes_on() -> None:
    further = log_with(call_at(1, 0, done=True), call_at(1, 1, done=True))
    plan = plan_turn(crashed(further, count=1, progress=1), ended_process=True)
    assert plan == ResumeTurnPlan(interrupted=(), crashes=TurnCrashes(count=1, progress=2))


@pytest.mark.requirement("hostile-text:a-turn-that-goes-forward-is-not-set-aside")
def test_a_call_that_was_cut_off_is_no_progress() -> None:
    answered = call_at(1, 0, done=True)
    assert answered.receipt is not None
    receipt = msgspec.structs.replace(answered.receipt, error_kind="interrupted", is_error=True)
    cut = log_with(msgspec.structs.replace(answered, receipt=receipt))
    plan = plan_turn(crashed(cut, count=1, progress=0), ended_process=True)
    assert isinstance(plan, SetAsideTurnPlan)


@pytest.mark.requirement("hostile-text:a-turn-that-goes-forward-is-not-set-aside")
def test_a_turn_that_only_waited_when_the_process_ended_is_not_blamed() -> None:
    log = crashed(log_with(), count=1, progress=0)
    plan = plan_turn(log)
    assert plan == ResumeTurnPlan(interrupted=(), crashes=TurnCrashes(count=1, progress=0))


def task_in(
    status: TaskStatus, name: str = "task_1", summary: str | None = "a build"
) -> TaskRecord:
    return TaskRecord(
        id=TaskId(name),
        agent_id=AGENT_ID,
        kind=TaskKind.COMMAND_TASK,
        status=status,
        created_at=NOW,
        updated_at=NOW,
        summary=summary,
    )


@pytest.mark.requirement("recovery:lost-task-is-ended")
@pytest.mark.requirement("recovery:attached-task-goes-on")
@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("status", TaskStatus)
def test_each_task_that_has_not_ended_is_kept_or_interrupted(
    status: TaskStatus, live: bool
) -> None:
    plans = plan_tasks([task_in(status)], {TaskId("task_1")} if live else set())
    if status in ENDED:
        assert plans == ()
    elif live:
        assert plans == (KeepTask(task_id=TaskId("task_1")),)
    else:
        (plan,) = plans
        assert isinstance(plan, InterruptTask)
        assert plan.advance.status is TaskStatus.INTERRUPTED


@pytest.mark.requirement("recovery:lost-task-says-why")
@pytest.mark.parametrize("summary", ["a build", None])
def test_a_lost_task_carries_a_failure_that_says_why(summary: str | None) -> None:
    (plan,) = plan_tasks([task_in(TaskStatus.RUNNING, summary=summary)], ())
    assert isinstance(plan, InterruptTask)
    failure = plan.advance.failure
    assert failure is not None
    assert failure.category is FailureCategory.TASK
    assert failure.kind == INTERRUPTED_BY_RESTART
    assert failure.task_id == plan.advance.task_id == "task_1"
    assert (summary or "command_task") in failure.summary
    assert plan.advance.result_summary == failure.summary


def test_tasks_are_planned_one_by_one_in_their_order() -> None:
    tasks = [
        task_in(TaskStatus.RUNNING, "task_1"),
        task_in(TaskStatus.COMPLETED, "task_2"),
        task_in(TaskStatus.QUEUED, "task_3"),
    ]
    plans = plan_tasks(tasks, [TaskId("task_3")])
    assert [type(plan) for plan in plans] == [InterruptTask, KeepTask]


def test_a_call_the_operator_cut_off_is_told_apart_from_one_the_runtime_left() -> None:
    log = log_with(call_at(1, 0, done=True), call_at(1, 1, done=False))
    [cut_off] = abort_calls(log)
    [left] = plan_turn(log).interrupted
    assert cut_off.state is left.state is ToolCallState.INTERRUPTED
    assert "the operator ended the turn" in str(cut_off.receipt)
    assert "the runtime ended" in str(left.receipt)
