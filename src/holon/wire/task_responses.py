"""A task over HTTP: where it stands, what it has written, and what it was given.

Owns:  the shapes of all three. What is in them is decided in projections/task_view, for models too.
"""

from typing import Literal

from holon.decide.task_output import RetrievalStatus
from holon.model.brief import FailureArtifact
from holon.model.ids import MessageId, TaskId, WorkItemId
from holon.model.instant import Instant
from holon.model.record import Record
from holon.model.task import TaskKind, TaskStatus


class TaskCommandView(Record, frozen=True, kw_only=True):
    """How a command task was started, and how its command ended."""

    cmd: str
    cmd_digest: str
    login: bool
    tty: bool
    terminal_reentry: bool
    promoted_from_exec_command: bool
    accepts_input: bool
    cmd_preview: str | None = None
    workdir: str | None = None
    shell: str | None = None
    output_path: str | None = None
    result_summary: str | None = None
    exit_status: int | None = None
    input_target: str | None = None


class TaskStatusView(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Where a task stands; where its output is kept, but none of it."""

    task_id: TaskId
    kind: TaskKind
    status: TaskStatus
    created_at: Instant
    updated_at: Instant
    wait_policy: str
    summary: str | None = None
    parent_message_id: MessageId | None = None
    work_item_id: WorkItemId | None = None
    command: TaskCommandView | None = None


class TaskInputAnswer(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What TaskInput answers: how much the task took. One that takes no input is no error."""

    ok: Literal[True]
    task_id: TaskId
    task: TaskStatusView
    accepted_input: bool
    input_target: str | None
    bytes_written: int
    summary_text: str


class TaskArtifact(Record, frozen=True, kw_only=True):
    """A file that holds output."""

    path: str


class TaskOutputSnapshot(Record, frozen=True, kw_only=True):
    """A task and a bounded look at what it has written."""

    task_id: TaskId
    kind: TaskKind
    status: TaskStatus
    output_preview: str
    output_truncated: bool
    artifacts: tuple[TaskArtifact, ...]
    summary: str | None = None
    output_artifact: int | None = None
    result_summary: str | None = None
    exit_status: int | None = None
    failure_artifact: FailureArtifact | None = None


class TaskOutputAnswer(Record, frozen=True, kw_only=True):
    """A look at a task's output, and whether that is all there will be."""

    retrieval_status: RetrievalStatus
    task: TaskOutputSnapshot
