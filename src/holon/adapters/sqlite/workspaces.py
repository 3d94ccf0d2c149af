"""Workspaces: where agents work.

Owns:  the workspace reads; the rows of `workspaces`, `attached_workspaces`, `active_workspaces` and
       `workspace_occupancies`.
Rule 1: a change that was decided on rows that changed since violates a constraint, and the whole
        commit is decided anew.
"""

from collections.abc import Sequence
from typing import Final, assert_never

from holon.adapters.sqlite.database.statements import (
    ReadSession,
    Row,
    Statements,
    at_most,
    named_queries,
    number,
)
from holon.model.limits import (
    SURFACE_PAGE_COUNT_MAX,
)
from holon.model.values import (
    AgentId,
    WorkspaceId,
    from_micros,
    to_micros,
)
from holon.model.workspaces import (
    AccessMode,
    ActiveWorkspace,
    AttachWorkspace,
    DetachWorkspace,
    EnterWorkspace,
    ExitWorkspace,
    ProjectionKind,
    WorkspaceBindings,
    WorkspaceChange,
    WorkspaceEntry,
    WorkspaceOccupancy,
)

_NOT_ACTIVE: Final = "active_workspaces_row_missing"
_NOT_HELD: Final = "workspace_occupancies_row_missing"
_NOT_ATTACHED: Final = "attached_workspaces_row_missing"


class SqliteWorkspaceReads(ReadSession):
    """Where agents work."""

    async def active_workspace(self, agent_id: AgentId) -> ActiveWorkspace | None:
        """The workspace an agent is in; nothing when it is at home."""
        return self.active(agent_id)

    async def workspace_bindings(self, agent_id: AgentId) -> WorkspaceBindings:
        """The workspaces of an agent, and how it is in one of them."""
        with self._moment():
            return self.bindings(agent_id)

    async def root_occupants(
        self, execution_root_id: str, *, limit: int
    ) -> Sequence[WorkspaceOccupancy]:
        """Who is under an execution root now."""
        wanted = at_most(limit, SURFACE_PAGE_COUNT_MAX)
        found = self._all("root_occupants", (execution_root_id, wanted))
        return [_occupancy(row) for row in found]

    def active(self, agent_id: AgentId) -> ActiveWorkspace | None:
        """The workspace an agent is in; the caller holds the transaction."""
        found = self._one("active_workspace", (agent_id,))
        return None if found is None else _active(found)

    def bindings(self, agent_id: AgentId) -> WorkspaceBindings:
        """The workspaces of an agent; the caller holds the transaction."""
        held = self._one("occupancy_of", (agent_id,))
        return WorkspaceBindings(
            attached=tuple(
                workspace_entry(row) for row in self._all("attached_workspaces", (agent_id,))
            ),
            active=self.active(agent_id),
            occupancy=None if held is None else _occupancy(held),
        )


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


class WorkspaceChanges:
    """Writes what changes about workspaces."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("workspaces")

    def write(self, change: WorkspaceChange, *, at: int) -> None:
        """Write one change; `at` is the moment of its commit."""
        run, one = self._statements.run, self._statements.change_one
        match change:
            case AttachWorkspace(agent_id=agent_id, entry=entry):
                made, moved = to_micros(entry.created_at), to_micros(entry.updated_at)
                known = (entry.workspace_id, entry.workspace_anchor, entry.repo_name, made, moved)
                run(self._sql["know_workspace"], known)
                run(self._sql["attach_workspace"], (agent_id, entry.workspace_id, at))
            case EnterWorkspace():
                self._enter(change, at=at)
            case ExitWorkspace(agent_id=agent_id, workspace_id=workspace_id):
                left = (agent_id, workspace_id)
                one(self._sql["exit_workspace"], left, missing=_NOT_ACTIVE)
                one(self._sql["release"], (agent_id, at), missing=_NOT_HELD)
            case DetachWorkspace(agent_id=agent_id, workspace_id=workspace_id):
                forgotten = (agent_id, workspace_id)
                one(self._sql["detach_workspace"], forgotten, missing=_NOT_ATTACHED)
            case _:
                assert_never(change)

    def _enter(self, change: EnterWorkspace, *, at: int) -> None:
        agent_id, place, held = change.agent_id, change.place, change.occupancy_id
        root_id, workspace_id = place.execution_root_id, place.workspace_id
        run = self._statements.run
        run(self._sql["forget_left"], (agent_id, root_id))
        run(
            self._sql["occupy"],
            (held, root_id, workspace_id, agent_id, place.access_mode.value, at),
        )
        kind, root = place.projection_kind.value, place.execution_root
        run(self._sql["enter_workspace"], (agent_id, workspace_id, held, kind, root, place.cwd))
