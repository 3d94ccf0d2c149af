"""Background tasks and commands: records, states, and what a restart needs to know.

Owns:  the task record, its kinds and statuses, command and recovery specs; the command types shared
       by the shell port, the tools and the tasks.
Rule 1: statuses move forward only, and the first terminal status wins (decide/tasks/commands).
Rule 2: the record is the authority on terminal state; a late message never downgrades it.
Rule 3: a command is identified by a run id that exists before the process does; everything it
        leaves on disk is found by that id alone.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

from holon.model.events.briefs import FailureArtifact
from holon.model.limits import (
    COMMAND_FILE_BYTES_MAX,
    COMMAND_HANDLES_COUNT_MAX,
    COMMAND_OUTPUT_BYTES_MAX,
    COMMAND_PROCESSES_COUNT_MAX,
    COMMAND_WALL_CLOCK_MS_MAX,
    TASKS_LIVE_COUNT_DEFAULT,
    TASKS_LIVE_PER_AGENT_COUNT_DEFAULT,
)
from holon.model.queue import TrustLevel
from holon.model.record import Record
from holon.model.values import (
    AgentId,
    Instant,
    JsonValue,
    MessageId,
    TaskId,
    WorkItemId,
    require_json,
)


class TaskKind(StrEnum):
    """What kind of work runs in the background. The last two are read, never written."""

    COMMAND_TASK = "command_task"
    CHILD_AGENT_TASK = "child_agent_task"
    SLEEP_JOB = "sleep_job"
    SUBAGENT_TASK = "subagent_task"
    WORKTREE_SUBAGENT_TASK = "worktree_subagent_task"


class TaskStatus(StrEnum):
    """Where a task stands."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


class WorkspaceMode(StrEnum):
    """Whether a child works in its parent's tree or in one of its own."""

    INHERIT = "inherit"
    WORKTREE = "worktree"


class CommandTaskSpec(Record, frozen=True, kw_only=True):
    """How a managed command is started."""

    cmd: str
    workdir: str | None = None
    shell: str | None = None
    login: bool = False
    tty: bool = False
    yield_time_ms: int = 10_000
    max_output_tokens: int | None = None
    accepts_input: bool = False
    terminal_reentry: bool = True


class ChildAgentRecovery(
    Record, tag_field="kind", tag="child_agent_task", frozen=True, kw_only=True
):
    """Supervise the same child again."""

    summary: str
    prompt: str
    trust: TrustLevel
    workspace_mode: WorkspaceMode = WorkspaceMode.INHERIT


class CommandRecovery(Record, tag_field="kind", tag="command_task", frozen=True, kw_only=True):
    """Attach to the same process again, if it still runs."""

    summary: str
    spec: CommandTaskSpec
    trust: TrustLevel
    promoted_from_exec_command: bool = False


class SubagentRecovery(Record, tag_field="kind", tag="subagent_task", frozen=True, kw_only=True):
    """An older child record: read, never written."""

    summary: str
    prompt: str
    trust: TrustLevel


class WorktreeSubagentRecovery(
    Record, tag_field="kind", tag="worktree_subagent_task", frozen=True, kw_only=True
):
    """An older worktree child record: read, never written."""

    summary: str
    prompt: str
    trust: TrustLevel


TaskRecovery: TypeAlias = (
    ChildAgentRecovery | CommandRecovery | SubagentRecovery | WorktreeSubagentRecovery
)


class TaskQuota(Record, frozen=True, kw_only=True):
    """How many command tasks may run at one time."""

    per_agent_count_max: int = TASKS_LIVE_PER_AGENT_COUNT_DEFAULT
    count_max: int = TASKS_LIVE_COUNT_DEFAULT


class TaskRecord(Record, frozen=True, kw_only=True):
    """One background task."""

    id: TaskId
    agent_id: AgentId
    kind: TaskKind
    status: TaskStatus
    created_at: Instant
    updated_at: Instant
    parent_message_id: MessageId | None = None
    work_item_id: WorkItemId | None = None
    summary: str | None = None
    detail: JsonValue = None
    recovery: TaskRecovery | None = None
    result_summary: str | None = None
    exit_status: int | None = None
    failure: FailureArtifact | None = None

    def __post_init__(self) -> None:
        require_json(self.detail)


class CommandLimits(Record, frozen=True, kw_only=True):
    """What a command may use before it is ended."""

    wall_clock_ms: int = COMMAND_WALL_CLOCK_MS_MAX
    output_bytes: int = COMMAND_OUTPUT_BYTES_MAX
    processes_count: int = COMMAND_PROCESSES_COUNT_MAX
    file_bytes: int = COMMAND_FILE_BYTES_MAX
    handles_count: int = COMMAND_HANDLES_COUNT_MAX


class CommandSpec(Record, frozen=True, kw_only=True):
    """Everything needed to start a command. `workdir` is absolute and has been checked."""

    run_id: str
    cmd: str
    workdir: str
    shell: str | None = None
    login: bool = False
    tty: bool = False
    accepts_input: bool = False
    environment: Mapping[str, str] = {}  # added to the allow-list: HOLON_AGENT_ID and the like
    limits: CommandLimits = CommandLimits()


class StopCause(StrEnum):
    """Why the runtime ended a command, when it did."""

    REQUESTED = "requested"
    WALL_CLOCK = "wall_clock"
    OUTPUT_SIZE = "output_size"
    PROCESSES = "processes"
    OUTPUT_LOST = "output_lost"  # it could not be written: the disk is full, or will not have it


class CommandExit(Record, frozen=True, kw_only=True):
    """How a command ended. Without a status its end was not observed: it is lost."""

    exit_status: int | None
    signal: int | None = None
    stopped: StopCause | None = None


class OutputStream(StrEnum):
    """Where output came from. A terminal has one combined stream."""

    STDOUT = "stdout"
    STDERR = "stderr"
    COMBINED = "combined"


class OutputSpan(Record, frozen=True, kw_only=True):
    """A bounded excerpt of an output file: its beginning, its end, and its total size."""

    stream: OutputStream
    path: str
    head: bytes
    tail: bytes  # empty when the head is the whole output
    total_bytes: int


class EndedRun(Record, frozen=True, kw_only=True):
    """What an ended command still has on disk."""

    run_id: str
    ended_at: Instant
    size_bytes: int
