"""From a command in the foreground to what the model reads, or to a task.

Owns:  what makes two commands the same, the record of a promoted command, and the result of each
       disposition.
Rule 1: two commands are the same when text, directory, shell, login and terminal are the same; the
        digest of these is the key, the command's text is only for reading.
Rule 2: `disposition` says which fields there are; those of one outcome never mix with another's.
Rule 3: files are named only when something was left out of the preview.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime

import msgspec

from holon.decide.bounded_text import previews_of, transcript_of
from holon.model.command import CommandExit, CommandSpec, OutputSpan, OutputStream
from holon.model.command_limits import COMMAND_BATCH_ITEMS_COUNT_MAX
from holon.model.ids import AgentId, MessageId, TaskId, WorkItemId
from holon.model.json_value import JsonValue
from holon.model.limits import EVENT_TEXT_CHARS_MAX
from holon.model.provenance import TrustLevel
from holon.model.record import Record
from holon.model.task import (
    CommandRecovery,
    CommandTaskSpec,
    TaskKind,
    TaskRecord,
    TaskStatus,
)
from holon.model.text_size import one_line


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
    found = task.detail.get("run_id") if isinstance(task.detail, dict) else None
    return found if isinstance(found, str) else None


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
    found = task.detail.get("output_paths") if isinstance(task.detail, dict) else None
    return tuple(str(path) for path in found) if isinstance(found, list) else ()


def running_twin(running: Sequence[TaskRecord], command: CommandSpec) -> TaskRecord | None:
    """Return the running task that does what the command would do."""
    if not running:
        return None
    wanted = command_digest(command)
    for task in running:
        spec = spec_of(task)
        is_staying = task.status is not TaskStatus.CANCELLING  # one that is on its way out does not
        if is_staying and spec is not None and command_digest(spec) == wanted:
            return task
    return None


def promoted_task(facts: PromotionFacts) -> TaskRecord:
    """Return the record of a command that goes on in the background."""
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
    shown = {span.stream: preview for span, preview in zip(spans, previews, strict=True)}
    artifacts: list[JsonValue] = []
    indices: dict[str, JsonValue] = {}
    for span in spans:
        if shown[span.stream].truncated:
            name = "stderr" if span.stream is OutputStream.STDERR else "stdout"
            indices[f"{name}_artifact"] = len(artifacts)
            artifacts.append({"path": span.path})
    out = shown.get(OutputStream.STDOUT) or shown.get(OutputStream.COMBINED)
    err = shown.get(OutputStream.STDERR)
    told: dict[str, JsonValue] = {
        "disposition": "completed",
        "exit_status": ended.exit_status,
        "stdout_preview": out.text if out else "",
        "stderr_preview": err.text if err else "",
        "truncated": bool(artifacts),
        "artifacts": artifacts,
        **indices,
    }
    if ended.signal is not None:
        told["signal"] = ended.signal
    if ended.stopped is not None:
        told["stopped"] = ended.stopped.value
    return told


def promoted_result(
    task: TaskRecord, spans: Sequence[OutputSpan], *, bytes_max: int
) -> dict[str, JsonValue]:
    """Return what the model reads about a command that goes on as a task."""
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
