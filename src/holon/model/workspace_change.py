"""The changes to where an agent works.

Owns:  those members of the union `Change` (model/commit) that are about workspaces.
Rule 1: attaching makes a workspace known to an agent; entering makes its root the place where the
        agent's commands and patches happen. An agent is in one workspace at most: it exits one
        before it enters another.
Rule 2: entering takes an occupancy of the root, exiting releases it.
"""

from typing import TypeAlias

from holon.model.ids import AgentId, WorkspaceId
from holon.model.record import Record
from holon.model.workspace import ActiveWorkspace, WorkspaceEntry


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
    """Make an agent forget a workspace it is not in. The host still knows it."""

    agent_id: AgentId
    workspace_id: WorkspaceId


WorkspaceChange: TypeAlias = AttachWorkspace | EnterWorkspace | ExitWorkspace | DetachWorkspace
