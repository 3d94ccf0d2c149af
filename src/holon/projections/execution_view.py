"""What the execution backend enforces, said in full.

Owns:  the execution block of agent surfaces: the same shape as AgentGet and the tools show.
Rule 1: a boundary that is not held is called `not_enforced`; nothing is left to be assumed, so
        every line is always there.
"""

from holon.model.ids import WorkspaceId
from holon.model.record import Record
from holon.model.workspace import (
    AccessMode,
    ActiveWorkspace,
    ExecutionPolicy,
    ExecutionProfile,
    ProjectionKind,
)


class ExecutionView(Record, frozen=True, kw_only=True):
    """Where commands run and what that does not protect from."""

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
    """Return the execution block; `place` is where the agent's commands run, if it is anywhere."""
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
