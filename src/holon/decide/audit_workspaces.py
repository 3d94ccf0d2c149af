"""What the audit log says about where an agent works.

Owns:  the events of changes to workspaces. The rules are those of decide/audit.
"""

from typing import assert_never

from holon.model.event import Event
from holon.model.ids import AgentId
from holon.model.workspace_change import (
    AttachWorkspace,
    DetachWorkspace,
    EnterWorkspace,
    ExitWorkspace,
    WorkspaceChange,
)
from holon.model.workspace_event import (
    WorkspaceAttached,
    WorkspaceDetached,
    WorkspaceEntered,
    WorkspaceExited,
)


def workspace_event(change: WorkspaceChange) -> tuple[AgentId, Event]:
    """Return the one event a change leaves, and the agent whose log it goes to."""
    match change:
        case AttachWorkspace(agent_id=agent_id, entry=entry):
            return agent_id, WorkspaceAttached(
                workspace_id=entry.workspace_id, workspace_anchor=entry.workspace_anchor
            )
        case EnterWorkspace(agent_id=agent_id, place=place):
            return agent_id, WorkspaceEntered(
                workspace_id=place.workspace_id,
                execution_root_id=place.execution_root_id,
                execution_root=place.execution_root,
                cwd=place.cwd,
                projection_kind=place.projection_kind,
                access_mode=place.access_mode,
                occupancy_id=change.occupancy_id,
            )
        case ExitWorkspace(agent_id=agent_id, workspace_id=workspace_id):
            return agent_id, WorkspaceExited(workspace_id=workspace_id)
        case DetachWorkspace(agent_id=agent_id, workspace_id=workspace_id):
            return agent_id, WorkspaceDetached(workspace_id=workspace_id)
        case _:
            assert_never(change)
