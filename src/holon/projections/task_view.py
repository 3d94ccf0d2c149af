"""Tasks as operators and models see them.

Owns:  the lifecycle snapshot (status, list), the output snapshot, and the command part of both.
Rule 1: a lifecycle snapshot says where output is stored; it never contains any of it.
Rule 2: a field that does not apply is left out.
"""

from collections.abc import Sequence

import msgspec

from holon.decide.bounded_text import BoundedText
from holon.decide.command_promotion import command_digest, output_paths_of, spec_of
from holon.decide.task_output import RetrievalStatus
from holon.decide.trigger_address import without_addresses
from holon.model.command import OutputStream
from holon.model.json_value import JsonValue
from holon.model.limits import LABEL_CHARS_MAX
from holon.model.task import CommandRecovery, TaskRecord


def status_view(task: TaskRecord) -> dict[str, JsonValue]:
    """Return where a task stands."""
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
    task: TaskRecord, status: RetrievalStatus, shown: BoundedText, paths: Sequence[str]
) -> dict[str, JsonValue]:
    """Return a look at a task's output."""
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
                "output_artifact": _combined_index(paths),
                "result_summary": _headline(task.result_summary),
                "exit_status": task.exit_status,
                "failure_artifact": msgspec.to_builtins(task.failure),
            }
        ),
    }


def input_target_of(task: TaskRecord) -> str | None:
    """Return what input to the task would reach, if it takes any."""
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


def _combined_index(paths: Sequence[str]) -> int | None:
    """Return which file holds all output in its order: a terminal's; pipes have one each."""
    names = [path.rpartition("/")[2] for path in paths]
    return names.index(OutputStream.COMBINED) if OutputStream.COMBINED in names else None


def _headline(text: str | None) -> str | None:
    """The first line of a result says how it ended; what follows is output."""
    return None if text is None else text.split("\n", 1)[0][:LABEL_CHARS_MAX]


def _present(fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: value for name, value in fields.items() if value is not None}
