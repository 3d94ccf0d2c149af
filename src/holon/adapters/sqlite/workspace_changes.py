"""Writing changes to where agents work.

Owns:  the rows of `workspaces`, `attached_workspaces`, `active_workspaces` and
       `workspace_occupancies`.
Rule 1: a change that was decided on rows that have moved since meets a constraint, and the whole
        commit is decided anew.
"""

from typing import Final, assert_never

from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Statements
from holon.model.instant import to_micros
from holon.model.workspace_change import (
    AttachWorkspace,
    DetachWorkspace,
    EnterWorkspace,
    ExitWorkspace,
    WorkspaceChange,
)

_NOT_ACTIVE: Final = "active_workspaces_row_missing"
_NOT_HELD: Final = "workspace_occupancies_row_missing"
_NOT_ATTACHED: Final = "attached_workspaces_row_missing"


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
