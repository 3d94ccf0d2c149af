"""How the end of a command becomes the end of its task.

Owns:  the terminal status of a command task, its result in words, and its failure artifact.
Rule 1: who asked for the end decides first: a stopped agent interrupts, a stopped task is
        cancelled. Otherwise exit status 0 completes the task and everything else fails it.
Rule 2: an end nobody saw is an interruption, and says so.
Rule 3: a result names the command and how it ended, then shows its output within bounds.
"""

from enum import StrEnum
from typing import Final

from holon.decide.failure_artifact import task_failure
from holon.model.brief import FailureArtifact
from holon.model.command import CommandExit, StopCause
from holon.model.commit import AdvanceTask
from holon.model.limits import EVENT_TEXT_CHARS_MAX
from holon.model.record import Record
from holon.model.task import TaskRecord, TaskStatus
from holon.model.text_size import one_line

COMMAND_FAILED: Final = "command_failed"
COMMAND_NOT_STARTED: Final = "command_not_started"
COMMAND_LOST: Final = "command_lost"
COMMAND_TIMED_OUT: Final = "command_timed_out"
COMMAND_OUTPUT_TOO_LARGE: Final = "command_output_too_large"
COMMAND_TOO_MANY_PROCESSES: Final = "command_too_many_processes"
COMMAND_OUTPUT_LOST: Final = "command_output_lost"
LEFTOVERS_ENDED: Final = "what it left running in the background was ended with it"
TASK_CANCELLED: Final = "task_cancelled"
AGENT_STOPPED: Final = "task_interrupted_on_agent_stop"


class EndAsked(StrEnum):
    """Who wanted the command to end, if anyone did."""

    NOBODY = "nobody"
    TASK_STOP = "task_stop"
    AGENT_STOP = "agent_stop"


class _Ending(Record, frozen=True, kw_only=True):
    status: TaskStatus
    told: str
    kind: str | None = None


def end_of_task(
    task: TaskRecord, ended: CommandExit, *, asked: EndAsked, output: str
) -> AdvanceTask:
    """Return the terminal step of a command task; `output` is already bounded."""
    ending = _ending_of(ended, asked)
    named = one_line(task.summary or task.kind.value, chars_max=EVENT_TEXT_CHARS_MAX)
    line = f"{named}: {ending.told}"
    return AdvanceTask(
        agent_id=task.agent_id,
        task_id=task.id,
        status=ending.status,
        result_summary=f"{line}\n\n{output}" if output else line,
        exit_status=ended.exit_status,
        failure=_failure(task, ending, line, ended),
    )


def _failure(
    task: TaskRecord, ending: _Ending, line: str, ended: CommandExit
) -> FailureArtifact | None:
    if ending.kind is None:
        return None
    return task_failure(task.id, kind=ending.kind, summary=line, exit_status=ended.exit_status)


def _ending_of(ended: CommandExit, asked: EndAsked) -> _Ending:
    if asked is EndAsked.AGENT_STOP:
        return _Ending(
            status=TaskStatus.INTERRUPTED,
            told="interrupted, because its agent was stopped",
            kind=AGENT_STOPPED,
        )
    if asked is EndAsked.TASK_STOP:
        return _Ending(
            status=TaskStatus.CANCELLED,
            told=f"stopped on request ({how_it_ended(ended)})",
            kind=TASK_CANCELLED,
        )
    if was_lost(ended):
        return _Ending(status=TaskStatus.INTERRUPTED, told=how_it_ended(ended), kind=COMMAND_LOST)
    if ended.exit_status == 0 and ended.stopped is None:
        return _Ending(status=TaskStatus.COMPLETED, told=how_it_ended(ended))
    return _Ending(status=TaskStatus.FAILED, told=how_it_ended(ended), kind=failure_kind_of(ended))


def not_started(task: TaskRecord, why: str) -> AdvanceTask:
    """Return the end of a command task whose command could not be started after all."""
    named = one_line(task.summary or task.kind.value, chars_max=EVENT_TEXT_CHARS_MAX)
    line = f"{named}: it could not be started: {why}"
    return AdvanceTask(
        agent_id=task.agent_id,
        task_id=task.id,
        status=TaskStatus.FAILED,
        result_summary=line,
        failure=task_failure(task.id, kind=COMMAND_NOT_STARTED, summary=line),
    )


def was_lost(ended: CommandExit) -> bool:
    """Whether nobody saw how a command ended."""
    return ended.exit_status is None and ended.signal is None and ended.stopped is None


def failure_kind_of(ended: CommandExit) -> str:
    """Return the kind under which an unsuccessful end is known."""
    match ended.stopped:
        case StopCause.WALL_CLOCK:
            return COMMAND_TIMED_OUT
        case StopCause.OUTPUT_SIZE:
            return COMMAND_OUTPUT_TOO_LARGE
        case StopCause.PROCESSES:
            return COMMAND_TOO_MANY_PROCESSES
        case StopCause.OUTPUT_LOST:
            return COMMAND_OUTPUT_LOST
        case StopCause.REQUESTED | None:
            return COMMAND_FAILED


def how_it_ended(ended: CommandExit) -> str:
    """Return the end of a command in a few words."""
    match ended.stopped:
        case StopCause.WALL_CLOCK:
            return "ended by the runtime: it ran longer than a command may"
        case StopCause.OUTPUT_SIZE:
            return "ended by the runtime: it wrote more than a command may"
        case StopCause.PROCESSES:
            return "ended by the runtime: it started more processes than a command may"
        case StopCause.OUTPUT_LOST:
            return "ended by the runtime: its output could not be kept, the disk may be full"
        case StopCause.REQUESTED | None:
            pass
    if ended.signal is not None:
        return f"ended by signal {ended.signal}"
    if ended.exit_status is None:
        return "its end was not seen and its exit status is unknown"
    return f"ended with exit status {ended.exit_status}"
