"""Views of an agent's workspaces and execution place.

Owns:  the view of attached workspaces, of the active one, and of the agent's occupancy of it; the
       execution block of agent surfaces, which AgentGet and the tools share.
Rule 1: an active entry is always present: an agent in no workspace is at home.
Rule 2: a boundary that is not enforced is called `not_enforced`; every line is always present, so
        that nothing has to be assumed.
"""

from holon.model.record import Record
from holon.model.values import AgentId, Instant, WorkspaceId
from holon.model.workspaces import (
    AccessMode,
    ActiveWorkspace,
    ExecutionPolicy,
    ExecutionProfile,
    ProjectionKind,
    WorkspaceBindings,
    WorkspaceEntry,
    WorkspaceOccupancy,
)
from holon.projections.agents.list import WorkspaceView, workspace_view


class AttachedWorkspaceView(Record, frozen=True, kw_only=True):
    """A workspace an agent may use."""

    workspace_id: WorkspaceId
    workspace_anchor: str
    created_at: Instant
    updated_at: Instant
    repo_name: str | None = None


class OccupancyView(Record, frozen=True, kw_only=True):
    """Which agent occupies an execution root, since when, and how."""

    occupancy_id: str
    execution_root_id: str
    workspace_id: WorkspaceId
    holder_agent_id: AgentId
    access_mode: AccessMode
    acquired_at: Instant
    released_at: Instant | None = None


class WorkspaceStateView(Record, frozen=True, kw_only=True):
    """An agent's active and attached workspaces."""

    attached_workspaces: tuple[AttachedWorkspaceView, ...]
    active_workspace_entry: WorkspaceView | None = None
    active_workspace_occupancy: OccupancyView | None = None


def workspace_state_view(
    bindings: WorkspaceBindings, place: ActiveWorkspace | None
) -> WorkspaceStateView:
    """Return the view of an agent's workspaces; `place` is the active one."""
    return WorkspaceStateView(
        attached_workspaces=attached_views(bindings),
        active_workspace_entry=None if place is None else workspace_view(place),
        active_workspace_occupancy=occupancy_view(bindings),
    )


def attached_views(bindings: WorkspaceBindings) -> tuple[AttachedWorkspaceView, ...]:
    """Return the workspaces an agent may use."""
    return tuple(_entry_view(each) for each in bindings.attached)


def occupancy_view(bindings: WorkspaceBindings) -> OccupancyView | None:
    """Return the agent's occupancy of its execution root, if any."""
    return None if bindings.occupancy is None else _occupancy(bindings.occupancy)


def _entry_view(entry: WorkspaceEntry) -> AttachedWorkspaceView:
    return AttachedWorkspaceView(
        workspace_id=entry.workspace_id,
        workspace_anchor=entry.workspace_anchor,
        created_at=entry.created_at,
        updated_at=entry.updated_at,
        repo_name=entry.repo_name,
    )


def _occupancy(occupancy: WorkspaceOccupancy) -> OccupancyView:
    return OccupancyView(
        occupancy_id=occupancy.occupancy_id,
        execution_root_id=occupancy.execution_root_id,
        workspace_id=occupancy.workspace_id,
        holder_agent_id=occupancy.holder_agent_id,
        access_mode=occupancy.access_mode,
        acquired_at=occupancy.acquired_at,
        released_at=occupancy.released_at,
    )


class ExecutionView(Record, frozen=True, kw_only=True):
    """Where commands run, and which boundaries are enforced."""

    profile: ExecutionProfile
    policy: ExecutionPolicy
    workspace_id: WorkspaceId | None = None
    workspace_anchor: str | None = None
    execution_root: str | None = None
    cwd: str | None = None
    execution_root_id: str | None = None
    projection_kind: ProjectionKind | None = None
    access_mode: AccessMode | None = None


def execution_view(
    profile: ExecutionProfile, policy: ExecutionPolicy, *, place: ActiveWorkspace | None = None
) -> ExecutionView:
    """Return the execution block; `place` is where the agent's commands run, if known."""
    return ExecutionView(
        profile=profile,
        policy=policy,
        workspace_id=None if place is None else place.workspace_id,
        workspace_anchor=None if place is None else place.workspace_anchor,
        execution_root=None if place is None else place.execution_root,
        cwd=None if place is None else place.cwd,
        execution_root_id=None if place is None else place.execution_root_id,
        projection_kind=None if place is None else place.projection_kind,
        access_mode=None if place is None else place.access_mode,
    )
