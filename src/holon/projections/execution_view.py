"""What the execution backend enforces, said in full.

Owns:  the execution block of agent surfaces.
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
    GuaranteeLevel,
    ProjectionKind,
)


class PolicyView(Record, frozen=True, kw_only=True):
    """How firmly each boundary is held."""

    message_ingress: GuaranteeLevel
    control_plane: GuaranteeLevel
    cwd_rooting: GuaranteeLevel
    process_execution: GuaranteeLevel
    path_confinement: GuaranteeLevel
    write_confinement: GuaranteeLevel
    network_confinement: GuaranteeLevel
    secret_isolation: GuaranteeLevel
    child_process_containment: GuaranteeLevel


class ExecutionView(Record, frozen=True, kw_only=True):
    """Where commands run and what that does not protect from."""

    backend: str
    process_execution_exposed: bool
    allow_background_tasks: bool
    supports_managed_worktrees: bool
    policy: PolicyView
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
        backend=profile.backend,
        process_execution_exposed=profile.process_execution_exposed,
        allow_background_tasks=profile.allow_background_tasks,
        supports_managed_worktrees=profile.supports_managed_worktrees,
        policy=PolicyView(
            message_ingress=policy.message_ingress,
            control_plane=policy.control_plane,
            cwd_rooting=policy.cwd_rooting,
            process_execution=policy.process_execution,
            path_confinement=policy.path_confinement,
            write_confinement=policy.write_confinement,
            network_confinement=policy.network_confinement,
            secret_isolation=policy.secret_isolation,
            child_process_containment=policy.child_process_containment,
        ),
        workspace_id=None if place is None else place.workspace_id,
        workspace_anchor=None if place is None else place.workspace_anchor,
        execution_root=None if place is None else place.execution_root,
        cwd=None if place is None else place.cwd,
        execution_root_id=None if place is None else place.execution_root_id,
        projection_kind=None if place is None else place.projection_kind,
        access_mode=None if place is None else place.access_mode,
    )
