"""Background tasks: records, states, and what a restart needs to know.

Owns:  the task record, its kinds and statuses, command and recovery specs.
Rule 1: statuses move forward only, and the first terminal status wins (decide/task_lifecycle).
Rule 2: the record is the authority on terminal state; a late message never downgrades it.
"""

from enum import StrEnum
from typing import TypeAlias

from holon.model.brief import FailureArtifact
from holon.model.ids import AgentId, MessageId, TaskId, WorkItemId
from holon.model.instant import Instant
from holon.model.json_value import JsonValue, require_json
from holon.model.limits import TASKS_LIVE_COUNT_DEFAULT, TASKS_LIVE_PER_AGENT_COUNT_DEFAULT
from holon.model.provenance import TrustLevel
from holon.model.record import Record


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
