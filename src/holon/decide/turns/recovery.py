"""Recovery: the plan for turns and tasks an earlier process left unfinished.

Owns:  the plan for an open turn, and for every task that has not ended.
Rule 1: a call that started and has no result gets exactly one: interrupted, effect unknown. The
        runtime never runs it again; the model decides after looking.
Rule 2: a turn that was cut off too often is abandoned as poison; its calls are answered all the
        same, so that the transcript stays sendable.
Rule 3: a turn that had the processor when the process ended, TURN_CRASHES_COUNT_MAX starts in a row
        with no progress between them, is set aside: it would end the next process as well. Progress
        is one more transcript entry, or one more call that ended by itself.
Rule 4: a task that can no longer be attached to is interrupted, with a failure that says why; it
        never silently disappears.

Plans hold changes that are ready to commit: `interrupted` are the FinishToolCalls, `advance` is the
task's AdvanceTask, `failure` is what an abandoned turn settles with.
"""

from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

from holon.decide.tasks.commands import is_terminal
from holon.decide.turns.commits import TurnCrashes
from holon.decide.turns.failures import (
    INTERRUPTED_BY_RESTART,
    poison_turn,
    task_failure,
    turn_set_aside,
)
from holon.decide.turns.receipts import error_receipt
from holon.model.commits import AdvanceTask, FinishToolCall
from holon.model.events.briefs import FailureArtifact
from holon.model.limits import TURN_CRASHES_COUNT_MAX, TURN_RESUMES_COUNT_MAX
from holon.model.record import Record
from holon.model.tasks import TaskRecord, TaskStatus
from holon.model.turns.tools import ToolCallRecord, ToolCallState, ToolError
from holon.model.turns.transcript import TurnLog
from holon.model.values import TaskId

INTERRUPTED: Final = ToolError(
    kind="interrupted",
    message="the runtime ended while this call was running; whether it took effect is unknown",
    hint="find out what it did before you do it again",
)

CUT_OFF: Final = ToolError(
    kind="interrupted",
    message="the operator ended the turn while this call was running; whether it took effect is"
    " unknown",
    hint="find out what it did before you do it again",
)


class ResumeTurnPlan(Record, tag=True, frozen=True, kw_only=True):
    """Answer these calls, then resume the turn."""

    interrupted: tuple[FinishToolCall, ...]
    crashes: TurnCrashes = TurnCrashes(count=0, progress=0)


class AbandonTurnPlan(Record, tag=True, frozen=True, kw_only=True):
    """Answer these calls and settle the turn with this failure."""

    reason: str
    failure: FailureArtifact
    interrupted: tuple[FinishToolCall, ...]


class SetAsideTurnPlan(Record, tag=True, frozen=True, kw_only=True):
    """Answer these calls and settle the turn with this failure, looking at nothing it read."""

    failure: FailureArtifact
    interrupted: tuple[FinishToolCall, ...]


TurnPlan: TypeAlias = ResumeTurnPlan | AbandonTurnPlan | SetAsideTurnPlan


class KeepTask(Record, tag=True, frozen=True, kw_only=True):
    """The task still runs and is supervised."""

    task_id: TaskId


class InterruptTask(Record, tag=True, frozen=True, kw_only=True):
    """The task was lost with the process that ran it."""

    advance: AdvanceTask


TaskPlan: TypeAlias = KeepTask | InterruptTask


def plan_turn(log: TurnLog, *, ended_process: bool = False) -> TurnPlan:
    """Decide whether and how an open turn continues.

    `ended_process` is true if it had the processor when the previous process ended.
    """
    interrupted = _answered(log, INTERRUPTED)
    crashes = _crashes_of(log, ended_process=ended_process)
    if crashes.count >= TURN_CRASHES_COUNT_MAX:
        failure = turn_set_aside(crashes.count)
        return SetAsideTurnPlan(failure=failure, interrupted=interrupted)
    if log.turn.resume_count >= TURN_RESUMES_COUNT_MAX:
        failure = poison_turn(log.turn.resume_count)
        return AbandonTurnPlan(reason=failure.summary, failure=failure, interrupted=interrupted)
    return ResumeTurnPlan(interrupted=interrupted, crashes=crashes)


def _crashes_of(log: TurnLog, *, ended_process: bool) -> TurnCrashes:
    before = TurnCrashes(count=log.turn.crash_count, progress=log.turn.crash_progress)
    if not ended_process:
        return before
    receipts = [recorded.receipt for recorded in log.calls if recorded.receipt is not None]
    own_ends = sum(receipt.error_kind != INTERRUPTED.kind for receipt in receipts)
    progress = len(log.entries) + own_ends
    stood_still = before.count > 0 and before.progress == progress
    return TurnCrashes(count=before.count + 1 if stood_still else 1, progress=progress)


def abort_calls(log: TurnLog) -> tuple[FinishToolCall, ...]:
    """Answer the calls of a turn that the operator ends."""
    return _answered(log, CUT_OFF)


def _answered(log: TurnLog, why: ToolError) -> tuple[FinishToolCall, ...]:
    return tuple(
        interrupt_call(recorded.call, why) for recorded in log.calls if recorded.receipt is None
    )


def interrupt_call(call: ToolCallRecord, why: ToolError = INTERRUPTED) -> FinishToolCall:
    """Give a call that was cut off its one result."""
    return FinishToolCall(
        agent_id=call.agent_id,
        turn_id=call.turn_id,
        effect_id=call.effect_id,
        tool_name=call.name,
        state=ToolCallState.INTERRUPTED,
        receipt=error_receipt(call.call_id, call.name, why),
    )


def plan_tasks(tasks: Sequence[TaskRecord], live: Collection[TaskId]) -> tuple[TaskPlan, ...]:
    """Decide on each task that has not ended; `live` ones were attached again."""
    return tuple(
        KeepTask(task_id=task.id) if task.id in live else _interrupt_task(task)
        for task in tasks
        if not is_terminal(task.status)
    )


def _interrupt_task(task: TaskRecord) -> InterruptTask:
    failure = task_failure(
        task.id,
        kind=INTERRUPTED_BY_RESTART,
        summary=f"the runtime restarted while {task.summary or task.kind.value} was running",
    )
    return InterruptTask(
        advance=AdvanceTask(
            agent_id=task.agent_id,
            task_id=task.id,
            status=TaskStatus.INTERRUPTED,
            result_summary=failure.summary,
            failure=failure,
        )
    )
