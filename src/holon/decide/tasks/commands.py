"""Commands and command tasks: promotion, status order, results and failures.

Owns:  the order of task statuses and the handling of task reports; command identity, the record of
       a promoted command and the tool result of each disposition; the terminal status of a command
       task, its result text and failure artifact; the retrieval status of a task's output.
Rule 1: a task moves to a later phase or not at all; phases may be skipped.
Rule 2: every terminal status shares the last phase, so no status follows a terminal one.
Rule 3: a report that comes too late is no error. It is ignored, and the decision says so.
Rule 4: two commands are the same when text, directory, shell, login and terminal are the same; the
        digest of these is the key, the command's text is only for reading.
Rule 5: `disposition` decides which fields a result has; fields of different outcomes never mix.
Rule 6: files are named only when something was left out of the preview.
Rule 7: the requester of the end decides first: a stopped agent interrupts, a stopped task is
        cancelled. Otherwise exit status 0 completes the task and everything else fails it.
Rule 8: an end that was not observed is an interruption, and the result says so.
Rule 9: a result names the command and how it ended, then shows its output within bounds.
Rule 10: the record decides. `success` means a recorded end with something to show for it: output
         files, or a result text. A terminal status alone is not enough.
Rule 11: a read that waited in vain is a `timeout`; one that did not wait is `not_ready`.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from holon.decide.text.bounded import previews_of, transcript_of
from holon.decide.turns.failures import task_failure
from holon.model.commits import AdvanceTask
from holon.model.events.briefs import FailureArtifact
from holon.model.limits import COMMAND_BATCH_ITEMS_COUNT_MAX, EVENT_TEXT_CHARS_MAX
from holon.model.queue import TrustLevel
from holon.model.record import Record
from holon.model.tasks import (
    CommandExit,
    CommandRecovery,
    CommandSpec,
    CommandTaskSpec,
    OutputSpan,
    OutputStream,
    StopCause,
    TaskKind,
    TaskRecord,
    TaskStatus,
)
from holon.model.text_size import one_line
from holon.model.values import AgentId, JsonValue, MessageId, TaskId, WorkItemId

_TERMINAL_PHASE: Final = 3

PHASES: Final[Mapping[TaskStatus, int]] = MappingProxyType(
    {
        TaskStatus.QUEUED: 0,
        TaskStatus.RUNNING: 1,
        TaskStatus.CANCELLING: 2,
        TaskStatus.COMPLETED: _TERMINAL_PHASE,
        TaskStatus.FAILED: _TERMINAL_PHASE,
        TaskStatus.CANCELLED: _TERMINAL_PHASE,
        TaskStatus.INTERRUPTED: _TERMINAL_PHASE,
    }
)
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


class Advance(Record, frozen=True, kw_only=True):
    """Record the new status."""

    status: TaskStatus


class IgnoreLate(Record, frozen=True, kw_only=True):
    """Leave the record as it is: the report is not newer."""

    current: TaskStatus
    proposed: TaskStatus


TaskAdvance: TypeAlias = Advance | IgnoreLate


def phase_of(status: TaskStatus) -> int:
    """Return how far along a status is."""
    return PHASES[status]


def is_terminal(status: TaskStatus) -> bool:
    """Whether a task with this status has ended."""
    return phase_of(status) == _TERMINAL_PHASE


def decide_advance(current: TaskStatus, proposed: TaskStatus) -> TaskAdvance:
    """Decide whether a reported status replaces the recorded one."""
    if phase_of(proposed) > phase_of(current):
        return Advance(status=proposed)
    return IgnoreLate(current=current, proposed=proposed)


class PromotionFacts(Record, frozen=True, kw_only=True):
    """What the record of a promoted command is made of."""

    task_id: TaskId
    agent_id: AgentId
    command: CommandSpec
    shown_cmd: str  # the command without secrets
    trust: TrustLevel
    now: datetime
    yield_time_ms: int
    max_output_tokens: int | None = None
    message_id: MessageId | None = None
    work_item_id: WorkItemId | None = None
    spans: tuple[OutputSpan, ...] = ()


def command_digest(spec: CommandTaskSpec | CommandSpec) -> str:
    """Return the key under which equal commands are equal."""
    identity = (spec.cmd, spec.workdir, spec.shell, spec.login, spec.tty)
    return hashlib.sha256(msgspec.json.encode(identity)).hexdigest()


def spec_of(task: TaskRecord) -> CommandTaskSpec | None:
    """Return how a command task was started; None for other kinds of tasks."""
    return task.recovery.spec if isinstance(task.recovery, CommandRecovery) else None


def run_id_of(task: TaskRecord) -> str | None:
    """Return the id under which the task's command was started."""
    run_id = task.detail.get("run_id") if isinstance(task.detail, dict) else None
    return run_id if isinstance(run_id, str) else None


def batch_run_id(effect_id: str, index: int) -> str:
    """Return the id under which an item of a batch is started."""
    return f"{effect_id}.{index}"


def run_ids_of_call(tool_name: str, effect_id: str) -> tuple[str, ...]:
    """Return every id under which a call may have started a command."""
    match tool_name:
        case "ExecCommand":
            return (effect_id,)
        case "ExecCommandBatch":
            return tuple(batch_run_id(effect_id, i) for i in range(COMMAND_BATCH_ITEMS_COUNT_MAX))
        case _:
            return ()


def output_paths_of(task: TaskRecord) -> tuple[str, ...]:
    """Return the files that hold the task's output."""
    paths = task.detail.get("output_paths") if isinstance(task.detail, dict) else None
    return tuple(str(path) for path in paths) if isinstance(paths, list) else ()


def running_duplicate(running: Sequence[TaskRecord], command: CommandSpec) -> TaskRecord | None:
    """Return the running task that does what the command would do."""
    if not running:
        return None
    wanted = command_digest(command)
    for task in running:
        spec = spec_of(task)
        is_staying = task.status is not TaskStatus.CANCELLING  # a task that is ending does not
        if is_staying and spec is not None and command_digest(spec) == wanted:
            return task
    return None


def promoted_task(facts: PromotionFacts) -> TaskRecord:
    """Return the record of a command that continues in the background."""
    command = facts.command
    summary = one_line(facts.shown_cmd, chars_max=EVENT_TEXT_CHARS_MAX)
    return TaskRecord(
        id=facts.task_id,
        agent_id=facts.agent_id,
        kind=TaskKind.COMMAND_TASK,
        status=TaskStatus.RUNNING,
        created_at=facts.now,
        updated_at=facts.now,
        parent_message_id=facts.message_id,
        work_item_id=facts.work_item_id,
        summary=summary,
        detail={"run_id": command.run_id, "output_paths": [span.path for span in facts.spans]},
        recovery=CommandRecovery(
            summary=summary,
            spec=CommandTaskSpec(
                cmd=command.cmd,
                workdir=command.workdir,
                shell=command.shell,
                login=command.login,
                tty=command.tty,
                yield_time_ms=facts.yield_time_ms,
                max_output_tokens=facts.max_output_tokens,
                accepts_input=command.accepts_input,
            ),
            trust=facts.trust,
            promoted_from_exec_command=True,
        ),
    )


def completed_result(
    ended: CommandExit, spans: Sequence[OutputSpan], *, bytes_max: int
) -> dict[str, JsonValue]:
    """Return what the model reads about a command that ended in the foreground."""
    previews = previews_of(spans, bytes_max=bytes_max)
    by_stream = {span.stream: preview for span, preview in zip(spans, previews, strict=True)}
    artifacts: list[JsonValue] = []
    indices: dict[str, JsonValue] = {}
    for span in spans:
        if by_stream[span.stream].truncated:
            name = "stderr" if span.stream is OutputStream.STDERR else "stdout"
            indices[f"{name}_artifact"] = len(artifacts)
            artifacts.append({"path": span.path})
    out = by_stream.get(OutputStream.STDOUT) or by_stream.get(OutputStream.COMBINED)
    err = by_stream.get(OutputStream.STDERR)
    result: dict[str, JsonValue] = {
        "disposition": "completed",
        "exit_status": ended.exit_status,
        "stdout_preview": out.text if out else "",
        "stderr_preview": err.text if err else "",
        "truncated": bool(artifacts),
        "artifacts": artifacts,
        **indices,
    }
    if ended.signal is not None:
        result["signal"] = ended.signal
    if ended.stopped is not None:
        result["stopped"] = ended.stopped.value
    return result


def promoted_result(
    task: TaskRecord, spans: Sequence[OutputSpan], *, bytes_max: int
) -> dict[str, JsonValue]:
    """Return what the model reads about a command that continues as a task."""
    initial = transcript_of(spans, bytes_max=bytes_max)
    return {
        "disposition": "promoted_to_task",
        "task_handle": task_handle(task),
        "initial_output_preview": initial.text,
        "initial_output_truncated": initial.truncated,
        "summary_text": "it still runs, as a task; its result will come to you as a message",
    }


def already_running_result(task: TaskRecord, command: CommandSpec) -> dict[str, JsonValue]:
    """Return what the model reads when the same command already runs."""
    return {
        "disposition": "already_running",
        "task_handle": task_handle(task),
        "command": {
            "cmd": command.cmd,
            "cmd_digest": command_digest(command),
            "workdir": command.workdir,
            "shell": command.shell,
            "login": command.login,
            "tty": command.tty,
        },
        "summary": task.summary,
        "instructions": "look at it with TaskStatus or TaskOutput, end it with TaskStop, "
        "or call again with duplicate_policy=start_new to run it a second time",
    }


def task_handle(task: TaskRecord) -> dict[str, JsonValue]:
    """Return what a model needs to refer to a task."""
    return {"task_id": task.id, "task_kind": task.kind.value, "status": task.status.value}


class EndRequest(StrEnum):
    """What requested the end of the command."""

    NOT_REQUESTED = "not_requested"
    TASK_STOP = "task_stop"
    AGENT_STOP = "agent_stop"


class _Ending(Record, frozen=True, kw_only=True):
    status: TaskStatus
    text: str
    kind: str | None = None


def end_of_task(
    task: TaskRecord, ended: CommandExit, *, asked: EndRequest, output: str
) -> AdvanceTask:
    """Return the terminal step of a command task; `output` is already bounded."""
    ending = _ending_of(ended, asked)
    named = one_line(task.summary or task.kind.value, chars_max=EVENT_TEXT_CHARS_MAX)
    line = f"{named}: {ending.text}"
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


def _ending_of(ended: CommandExit, requested_by: EndRequest) -> _Ending:
    if requested_by is EndRequest.AGENT_STOP:
        return _Ending(
            status=TaskStatus.INTERRUPTED,
            text="interrupted, because its agent was stopped",
            kind=AGENT_STOPPED,
        )
    if requested_by is EndRequest.TASK_STOP:
        return _Ending(
            status=TaskStatus.CANCELLED,
            text=f"stopped on request ({how_it_ended(ended)})",
            kind=TASK_CANCELLED,
        )
    if was_lost(ended):
        return _Ending(status=TaskStatus.INTERRUPTED, text=how_it_ended(ended), kind=COMMAND_LOST)
    if ended.exit_status == 0 and ended.stopped is None:
        return _Ending(status=TaskStatus.COMPLETED, text=how_it_ended(ended))
    return _Ending(status=TaskStatus.FAILED, text=how_it_ended(ended), kind=failure_kind_of(ended))


def not_started(task: TaskRecord, reason: str) -> AdvanceTask:
    """Return the end of a command task whose command could not be started after all."""
    named = one_line(task.summary or task.kind.value, chars_max=EVENT_TEXT_CHARS_MAX)
    line = f"{named}: it could not be started: {reason}"
    return AdvanceTask(
        agent_id=task.agent_id,
        task_id=task.id,
        status=TaskStatus.FAILED,
        result_summary=line,
        failure=task_failure(task.id, kind=COMMAND_NOT_STARTED, summary=line),
    )


def was_lost(ended: CommandExit) -> bool:
    """Whether a command's end was not observed."""
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
    """Return the end of a command as a short phrase."""
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


class RetrievalStatus(StrEnum):
    """How far a read of a task's output got."""

    SUCCESS = "success"
    TIMEOUT = "timeout"
    NOT_READY = "not_ready"


def retrieval_status_of(task: TaskRecord, *, waited: bool) -> RetrievalStatus:
    """Return whether the task's output is final."""
    has_snapshot = task.result_summary is not None or bool(output_paths_of(task))
    if is_terminal(task.status) and has_snapshot:
        return RetrievalStatus.SUCCESS
    return RetrievalStatus.TIMEOUT if waited else RetrievalStatus.NOT_READY
