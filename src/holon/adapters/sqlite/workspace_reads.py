"""Reading where agents work.

Owns:  the workspaces' part of the reads.
"""

from collections.abc import Sequence

from holon.adapters.sqlite.number_columns import number
from holon.adapters.sqlite.read_session import ReadSession, at_most
from holon.adapters.sqlite.statements import Row
from holon.model.ids import AgentId, WorkspaceId
from holon.model.instant import from_micros
from holon.model.limits import SURFACE_PAGE_COUNT_MAX
from holon.model.workspace import (
    AccessMode,
    ActiveWorkspace,
    ProjectionKind,
    WorkspaceBindings,
    WorkspaceEntry,
    WorkspaceOccupancy,
)


class WorkspaceLooks(ReadSession):
    """What is read of one agent inside a transaction somebody else holds."""

    def _active_workspace(self, agent_id: AgentId) -> ActiveWorkspace | None:
        found = self._one("active_workspace", (agent_id,))
        return None if found is None else _active(found)

    def _bindings(self, agent_id: AgentId) -> WorkspaceBindings:
        held = self._one("occupancy_of", (agent_id,))
        return WorkspaceBindings(
            attached=tuple(
                workspace_entry(row) for row in self._all("attached_workspaces", (agent_id,))
            ),
            active=self._active_workspace(agent_id),
            occupancy=None if held is None else _occupancy(held),
        )


class SqliteWorkspaceReads(WorkspaceLooks):
    """The workspaces' part of the port."""

    async def active_workspace(self, agent_id: AgentId) -> ActiveWorkspace | None:
        """The workspace an agent is in; nothing when it is at home."""
        return self._active_workspace(agent_id)

    async def workspace_bindings(self, agent_id: AgentId) -> WorkspaceBindings:
        """The workspaces of an agent, and how it is in one of them."""
        with self._moment():
            return self._bindings(agent_id)

    async def root_occupants(
        self, execution_root_id: str, *, limit: int
    ) -> Sequence[WorkspaceOccupancy]:
        """Who is under an execution root now."""
        wanted = at_most(limit, SURFACE_PAGE_COUNT_MAX)
        found = self._all("root_occupants", (execution_root_id, wanted))
        return [_occupancy(row) for row in found]


def workspace_entry(row: Row) -> WorkspaceEntry:
    """Return the workspace a row tells of."""
    workspace_id, anchor, repo_name, created_at, updated_at = row
    return WorkspaceEntry(
        workspace_id=WorkspaceId(str(workspace_id)),
        workspace_anchor=str(anchor),
        repo_name=None if repo_name is None else str(repo_name),
        created_at=from_micros(number(created_at)),
        updated_at=from_micros(number(updated_at)),
    )


def _active(row: Row) -> ActiveWorkspace:
    workspace_id, anchor, root_id, root, kind, mode, cwd, occupancy_id = (str(v) for v in row)
    return ActiveWorkspace(
        workspace_id=WorkspaceId(workspace_id),
        workspace_anchor=anchor,
        execution_root_id=root_id,
        execution_root=root,
        projection_kind=ProjectionKind(kind),
        access_mode=AccessMode(mode),
        cwd=cwd,
        occupancy_id=occupancy_id,
    )


def _occupancy(row: Row) -> WorkspaceOccupancy:
    occupancy_id, root_id, workspace_id, holder, mode, acquired_at, released_at = row
    return WorkspaceOccupancy(
        occupancy_id=str(occupancy_id),
        execution_root_id=str(root_id),
        workspace_id=WorkspaceId(str(workspace_id)),
        holder_agent_id=AgentId(str(holder)),
        access_mode=AccessMode(str(mode)),
        acquired_at=from_micros(number(acquired_at)),
        released_at=from_micros(released_at) if isinstance(released_at, int) else None,
    )
