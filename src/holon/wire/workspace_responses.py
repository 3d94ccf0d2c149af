"""What the control plane answers about workspaces.

Owns:  the one receipt of attaching, exiting and detaching.
"""

from typing import Literal

from holon.model.ids import AgentId
from holon.model.record import Record
from holon.projections.workspace_view import WorkspaceStateView


class WorkspaceAnswer(Record, frozen=True, kw_only=True):
    """It is so now: where the agent works, by real names, and which workspaces it has."""

    ok: Literal[True]
    agent_id: AgentId
    workspace: WorkspaceStateView
