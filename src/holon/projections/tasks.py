"""Task views, for operators and models.

Owns:  the lifecycle snapshot (status, list), the output snapshot, and the command part of both.
Rule 1: a lifecycle snapshot says where output is stored; it never contains any of it.
Rule 2: a field that does not apply is omitted.
"""

from collections.abc import Sequence

import msgspec

from holon.decide.tasks.commands import RetrievalStatus, command_digest, output_paths_of, spec_of
from holon.decide.text.bounded import BoundedText
from holon.decide.wake.triggers import without_addresses
from holon.model.limits import LABEL_CHARS_MAX
from holon.model.record import Record
from holon.model.tasks import CommandRecovery, TaskRecord
from holon.model.values import JsonValue


class OutputExcerpt(Record, frozen=True, kw_only=True):
    """An excerpt of a task's output, and the file with all of it, if there is one."""

    shown: BoundedText
    combined_path: str | None = None


def status_view(task: TaskRecord) -> dict[str, JsonValue]:
    """Return the lifecycle snapshot of a task."""
    return _present(
        {
            "task_id": task.id,
            "kind": task.kind.value,
            "status": task.status.value,
            "summary": task.summary,
            "created_at": task.created_at.isoformat(),
            "updated_at": task.updated_at.isoformat(),
            "wait_policy": "background",
            "parent_message_id": task.parent_message_id,
            "work_item_id": task.work_item_id,
            "command": _command_view(task),
        }
    )


def list_view(
    tasks: Sequence[TaskRecord], ended: Sequence[TaskRecord], *, task_count: int
) -> dict[str, JsonValue]:
    """Return an agent's tasks, each as its lifecycle snapshot; `task_count` of them run."""
    return {
        "tasks": [status_view(task) for task in tasks],
        "task_count": task_count,
        "recently_ended": [status_view(task) for task in ended],
    }


def output_view(
    task: TaskRecord, status: RetrievalStatus, look: OutputExcerpt
) -> dict[str, JsonValue]:
    """Return the output snapshot of a task."""
    shown, paths = look.shown, [*output_paths_of(task)]
    if look.combined_path is not None and look.combined_path not in paths:
        paths.append(look.combined_path)
    return {
        "retrieval_status": status.value,
        "task": _present(
            {
                "task_id": task.id,
                "kind": task.kind.value,
                "status": task.status.value,
                "summary": task.summary,
                "output_preview": shown.text,
                "output_truncated": shown.truncated,
                "artifacts": [{"path": path} for path in paths],
                "output_artifact": _index_of(look.combined_path, paths),
                "result_summary": _headline(task.result_summary),
                "exit_status": task.exit_status,
                "failure_artifact": msgspec.to_builtins(task.failure),
            }
        ),
    }


def input_target_of(task: TaskRecord) -> str | None:
    """Return the destination of input to the task, if it accepts any."""
    spec = spec_of(task)
    if spec is None or not spec.accepts_input:
        return None
    return "tty" if spec.tty else "stdin"


def _command_view(task: TaskRecord) -> JsonValue:
    spec = spec_of(task)
    if spec is None or not isinstance(task.recovery, CommandRecovery):
        return None
    paths = output_paths_of(task)
    return _present(
        {
            "cmd": without_addresses(spec.cmd),
            "cmd_digest": command_digest(spec),
            "cmd_preview": task.summary,
            "workdir": spec.workdir,
            "shell": spec.shell,
            "login": spec.login,
            "tty": spec.tty,
            "output_path": paths[0] if paths else None,
            "result_summary": _headline(task.result_summary),
            "exit_status": task.exit_status,
            "terminal_reentry": spec.terminal_reentry,
            "promoted_from_exec_command": task.recovery.promoted_from_exec_command,
            "accepts_input": spec.accepts_input,
            "input_target": input_target_of(task),
        }
    )


def _index_of(path: str | None, paths: Sequence[str]) -> int | None:
    return None if path is None else paths.index(path)


def _headline(text: str | None) -> str | None:
    """The first line of a result says how it ended; what follows is output."""
    return None if text is None else text.split("\n", 1)[0][:LABEL_CHARS_MAX]


def _present(fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: value for name, value in fields.items() if value is not None}
