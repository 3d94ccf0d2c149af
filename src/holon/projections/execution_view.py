"""What the execution backend enforces, said in full.

Owns:  the execution block of agent surfaces.
Rule 1: a boundary that is not held is called `not_enforced`; nothing is left to be assumed, so
        every line is always there.
"""

from holon.model.record import Record
from holon.model.workspace import (
    ActiveWorkspace,
    ExecutionPolicy,
    ExecutionProfile,
    GuaranteeLevel,
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
    execution_root: str | None = None
    cwd: str | None = None


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
        execution_root=None if place is None else place.execution_root,
        cwd=None if place is None else place.cwd,
    )
