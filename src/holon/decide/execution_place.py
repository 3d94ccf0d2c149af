"""Where an agent's commands and patches happen.

Owns:  the choice between the workspace an agent is in, the root its host was given, and its home.
Rule 1: there is always exactly one place. An agent that chose none is at home, or in the root its
        host gives every agent instead.
Rule 2: the workspace an agent is in comes before the root of its host, unless that root was named
        for this very run.
"""

from holon.model.ids import AgentId
from holon.model.record import Record
from holon.model.workspace import (
    AGENT_HOME,
    WORKSPACE_ROOT,
    AccessMode,
    ActiveWorkspace,
    ProjectionKind,
)


class HostRoots(Record, frozen=True, kw_only=True):
    """What a host says about places: where homes are, and a root for all, if there is one."""

    home: str
    workspace_root: str | None = None
    workspace_cwd: str | None = None
    overrides: bool = False  # the root was asked for explicitly: it comes before any workspace


def agent_home_of(home: str, agent_id: AgentId) -> str:
    """Return the directory that is an agent's own."""
    below = f"{home.rstrip('/')}/" if home else ""
    return f"{below}agents/{agent_id}"


def place_of(agent_id: AgentId, bound: ActiveWorkspace | None, roots: HostRoots) -> ActiveWorkspace:
    """Return where an agent works; `bound` is the workspace it is in, if it is in one."""
    root = roots.workspace_root
    if bound is not None and not (roots.overrides and root is not None):
        return bound
    if root is not None:
        return ActiveWorkspace(
            workspace_id=WORKSPACE_ROOT,
            workspace_anchor=root,
            execution_root_id=f"{ProjectionKind.CANONICAL_ROOT}:{WORKSPACE_ROOT}",
            execution_root=root,
            projection_kind=ProjectionKind.CANONICAL_ROOT,
            access_mode=AccessMode.SHARED_READ,
            cwd=roots.workspace_cwd or root,
        )
    own = agent_home_of(roots.home, agent_id)
    return ActiveWorkspace(
        workspace_id=AGENT_HOME,
        workspace_anchor=own,
        execution_root_id=f"{ProjectionKind.CANONICAL_ROOT}:{AGENT_HOME}:{agent_id}",
        execution_root=own,
        projection_kind=ProjectionKind.CANONICAL_ROOT,
        access_mode=AccessMode.EXCLUSIVE_WRITE,
        cwd=own,
    )
