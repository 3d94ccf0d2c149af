"""Workspaces: bindings, execution roots, worktrees and execution policy.

Owns:  workspace entries, the active binding, occupancy, worktree sessions, execution policy; the
       members of the union `Change` (model/commits) and the audit events about workspaces.
Rule 1: the anchor is the project's stable identity; a worktree changes the execution root only.
Rule 2: policy states what is enforced and what is not; it never claims a sandbox that does not
        exist.
Rule 3: an agent that chose no workspace is in AGENT_HOME, which has no row and can be neither left
        nor detached. WORKSPACE_ROOT replaces it where a host gives all its agents one root.
Rule 4: attaching makes a workspace known to an agent; entering makes its root the place where the
        agent's commands and patches run. An agent is in one workspace at most: it exits one before
        it enters another.
Rule 5: entering takes an occupancy of the root, exiting releases it.
"""

from enum import StrEnum
from typing import Final, TypeAlias

from holon.model.record import Record
from holon.model.values import AgentId, Instant, WorkspaceId

AGENT_HOME: Final = WorkspaceId("agent_home")
WORKSPACE_ROOT: Final = WorkspaceId("workspace_root")


class ProjectionKind(StrEnum):
    """How a workspace is projected onto disk."""

    CANONICAL_ROOT = "canonical_root"
    GIT_WORKTREE_ROOT = "git_worktree_root"


class AccessMode(StrEnum):
    """Whether an execution root is shared."""

    SHARED_READ = "shared_read"
    EXCLUSIVE_WRITE = "exclusive_write"


class GuaranteeLevel(StrEnum):
    """How firmly a boundary is held."""

    HARD_ENFORCED = "hard_enforced"
    RUNTIME_SHAPED = "runtime_shaped"
    NOT_ENFORCED = "not_enforced"


class WorkspaceEntry(Record, frozen=True, kw_only=True):
    """A project the host knows."""

    workspace_id: WorkspaceId
    workspace_anchor: str
    created_at: Instant
    updated_at: Instant
    workspace_alias: str | None = None
    repo_name: str | None = None
    owner_agent_id: AgentId | None = None


class ActiveWorkspace(Record, frozen=True, kw_only=True):
    """The workspace an agent is in, and the root its tools run under."""

    workspace_id: WorkspaceId
    workspace_anchor: str
    execution_root_id: str
    execution_root: str
    projection_kind: ProjectionKind
    access_mode: AccessMode
    cwd: str
    occupancy_id: str | None = None


class WorkspaceOccupancy(Record, frozen=True, kw_only=True):
    """Who holds an execution root, and how."""

    occupancy_id: str
    execution_root_id: str
    workspace_id: WorkspaceId
    holder_agent_id: AgentId
    access_mode: AccessMode
    acquired_at: Instant
    released_at: Instant | None = None


class WorkspaceBindings(Record, frozen=True, kw_only=True):
    """The durable state of where one agent works. Without an active one it is at home."""

    attached: tuple[WorkspaceEntry, ...] = ()  # oldest attachment first
    active: ActiveWorkspace | None = None
    occupancy: WorkspaceOccupancy | None = None  # of the active one


class ResolvedDirectory(Record, frozen=True, kw_only=True):
    """A directory that exists, by its real name, and the repository it lies in."""

    path: str
    repository_root: str | None = None  # the top of the working tree around it
    main_root: str | None = None  # of the repository, when that tree is one of its other worktrees


class PathProblem(StrEnum):
    """Why a path is no place to work in."""

    MALFORMED = "malformed"
    MISSING = "missing"
    NOT_A_DIRECTORY = "not_a_directory"
    UNREADABLE = "unreadable"


class WorktreeSession(Record, frozen=True, kw_only=True):
    """A managed worktree an agent entered."""

    original_cwd: str
    original_branch: str
    worktree_path: str
    worktree_branch: str


class ExecutionProfile(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What the execution backend offers. Every field is always written."""

    backend: str = "host_local"
    process_execution_exposed: bool = True
    allow_background_tasks: bool = True
    supports_managed_worktrees: bool = True


class ExecutionPolicy(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Which boundaries hold under the current backend, and how firmly. All are always written."""

    message_ingress: GuaranteeLevel = GuaranteeLevel.HARD_ENFORCED
    control_plane: GuaranteeLevel = GuaranteeLevel.HARD_ENFORCED
    cwd_rooting: GuaranteeLevel = GuaranteeLevel.HARD_ENFORCED
    process_execution: GuaranteeLevel = GuaranteeLevel.RUNTIME_SHAPED
    path_confinement: GuaranteeLevel = GuaranteeLevel.NOT_ENFORCED
    write_confinement: GuaranteeLevel = GuaranteeLevel.NOT_ENFORCED
    network_confinement: GuaranteeLevel = GuaranteeLevel.NOT_ENFORCED
    secret_isolation: GuaranteeLevel = GuaranteeLevel.NOT_ENFORCED
    child_process_containment: GuaranteeLevel = GuaranteeLevel.NOT_ENFORCED


class ExecutionSnapshot(Record, frozen=True, kw_only=True):
    """Where and under which policy a tool runs."""

    profile: ExecutionProfile
    policy: ExecutionPolicy
    workspace_id: WorkspaceId
    workspace_anchor: str
    execution_root: str
    cwd: str
    execution_root_id: str | None = None
    projection_kind: ProjectionKind | None = None


class AttachWorkspace(Record, tag=True, frozen=True, kw_only=True):
    """Make a workspace known to the host, and to one agent that does not know it yet."""

    agent_id: AgentId
    entry: WorkspaceEntry


class EnterWorkspace(Record, tag=True, frozen=True, kw_only=True):
    """Make an attached workspace the active one of an agent that is at home."""

    agent_id: AgentId
    place: ActiveWorkspace
    occupancy_id: str


class ExitWorkspace(Record, tag=True, frozen=True, kw_only=True):
    """Bring an agent home from this workspace."""

    agent_id: AgentId
    workspace_id: WorkspaceId


class DetachWorkspace(Record, tag=True, frozen=True, kw_only=True):
    """Detach a workspace from an agent that is not in it. The host still knows it."""

    agent_id: AgentId
    workspace_id: WorkspaceId


WorkspaceChange: TypeAlias = AttachWorkspace | EnterWorkspace | ExitWorkspace | DetachWorkspace


class WorkspaceAttached(
    Record, tag_field="kind", tag="workspace_attached", frozen=True, kw_only=True
):
    """The agent may use a workspace."""

    workspace_id: WorkspaceId
    workspace_anchor: str


class WorkspaceEntered(
    Record, tag_field="kind", tag="workspace_entered", frozen=True, kw_only=True
):
    """The agent's commands and patches happen under this root from now on."""

    workspace_id: WorkspaceId
    execution_root_id: str
    execution_root: str
    cwd: str
    projection_kind: ProjectionKind
    access_mode: AccessMode
    occupancy_id: str


class WorkspaceExited(Record, tag_field="kind", tag="workspace_exited", frozen=True, kw_only=True):
    """The agent works at home again."""

    workspace_id: WorkspaceId


class WorkspaceDetached(
    Record, tag_field="kind", tag="workspace_detached", frozen=True, kw_only=True
):
    """The agent no longer knows a workspace; its directory was not touched."""

    workspace_id: WorkspaceId


WorkspaceEvent: TypeAlias = (
    WorkspaceAttached | WorkspaceEntered | WorkspaceExited | WorkspaceDetached
)
