"""Workspace control: an operator attaches, enters, exits and detaches workspaces.

Owns:  workspace bindings as control-plane mutations: commits plus events, never queued messages.
Rule 1: a running command keeps its directory; a command started after the commit runs in the new
        one.
Rule 2: nothing on disk is created, changed or removed. A workspace whose directory is gone can
        still be exited and detached.
"""

from holon.decide.agents.lifecycle import refuse_recipient, refuse_unknown
from holon.decide.workspaces import (
    AlreadyEntered,
    Enter,
    attach_target_of,
    decide_attach,
    decide_detach,
    decide_exit,
    enter_changes,
    refuse_form,
    refuse_private,
    refuse_problem,
)
from holon.model.commits import AgentAdmits, Change, Commit
from holon.model.errors import Refusal, RefusedError
from holon.model.limits import SURFACE_PAGE_COUNT_MAX
from holon.model.values import AgentId, IdPrefix, WorkspaceId, parse_agent_id, parse_record_id
from holon.model.workspaces import (
    ActiveWorkspace,
    DetachWorkspace,
    ExecutionProfile,
    ExitWorkspace,
    PathProblem,
    ResolvedDirectory,
    WorkspaceBindings,
)
from holon.ports.clock import Clock, IdSource
from holon.ports.store import Store
from holon.ports.tasks import Shell
from holon.ports.workspaces import Directories, WorkspaceFinder
from holon.runtime.commits import commit_decided
from holon.runtime.workspaces.place import AgentPlaces, profile_of


class WorkspaceService:
    """Manages the workspaces of one host's agents."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: IdSource,
        shell: Shell,
        places: Directories,
        workspaces: WorkspaceFinder,
        agent_places: AgentPlaces,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._shell = shell
        self._places = places
        self._workspaces = workspaces
        self._agent_places = agent_places

    @property
    def profile(self) -> ExecutionProfile:
        """What this host can do for its agents."""
        return profile_of(self._shell)

    def place_of(self, agent_id: AgentId, bound: ActiveWorkspace | None) -> ActiveWorkspace:
        """Return the execution place of an agent in this workspace, or at home."""
        return self._agent_places.place_of(agent_id, bound)

    async def bindings(self, agent_id: AgentId) -> WorkspaceBindings:
        """Return the workspaces of an agent."""
        return await self._store.reads.workspaces.workspace_bindings(agent_id)

    async def attach(self, agent_id: AgentId, path: str) -> None:
        """Attach the workspace of a directory to an agent, and enter it."""
        await self._require_admits(agent_id)
        directory = await self._workspace_at(path)

        async def decide() -> Commit | Refusal | None:
            await self._require_admits(agent_id)
            reads, now = self._store.reads, self._clock.now()
            bindings = await reads.workspaces.workspace_bindings(agent_id)
            target = attach_target_of(directory, bindings, now=now)
            occupants = await reads.workspaces.root_occupants(
                target.place.execution_root_id, limit=SURFACE_PAGE_COUNT_MAX
            )
            decision = decide_attach(agent_id, bindings, target, occupants=occupants)
            match decision:
                case AlreadyEntered():
                    return None
                case Refusal():
                    return decision
                case Enter():
                    occupancy_id = self._ids.fresh(IdPrefix.OCCUPANCY)
                    return self._commit(
                        agent_id, *enter_changes(agent_id, decision, occupancy_id=occupancy_id)
                    )

        await commit_decided(self._store, decide)

    async def exit(self, agent_id: AgentId) -> None:
        """Leave the active workspace for the agent's home; it stays attached."""

        async def decide() -> Commit | Refusal:
            await self._require_admits(agent_id)
            decision = decide_exit(agent_id, await self.bindings(agent_id))
            if isinstance(decision, Refusal):
                return decision
            left = ExitWorkspace(agent_id=agent_id, workspace_id=decision.workspace_id)
            return self._commit(agent_id, left)

        await commit_decided(self._store, decide)

    async def detach(self, agent_id: AgentId, workspace_id: str) -> None:
        """Detach a workspace the agent is not in."""
        named = WorkspaceId(parse_record_id(workspace_id, what="workspace id"))

        async def decide() -> Commit | Refusal:
            await self._require_admits(agent_id)
            decision = decide_detach(agent_id, await self.bindings(agent_id), named)
            if isinstance(decision, Refusal):
                return decision
            forgotten = DetachWorkspace(agent_id=agent_id, workspace_id=decision.workspace_id)
            return self._commit(agent_id, forgotten)

        await commit_decided(self._store, decide)

    def _commit(self, agent_id: AgentId, *changes: Change) -> Commit:
        return Commit(
            commit_id=f"control:{self._ids.fresh(IdPrefix.REQUEST)}",
            at=self._clock.now(),
            changes=changes,
            expects=(AgentAdmits(agent_id=agent_id),),
        )

    async def _workspace_at(self, path: str) -> ResolvedDirectory:
        refusal = refuse_form(path)
        if refusal is not None:
            raise RefusedError(refusal)
        directory = await self._workspaces.find(path)
        if isinstance(directory, PathProblem):
            raise RefusedError(refuse_problem(path, directory))
        home = await self._places.resolved(self._agent_places.home) or self._agent_places.home
        refusal = refuse_private(directory, home)
        if refusal is not None:
            raise RefusedError(refusal)
        return directory

    async def _require_admits(self, agent_id: AgentId) -> None:
        agent = await self._store.reads.agents.agent(parse_agent_id(agent_id))
        if agent is None:
            raise RefusedError(refuse_unknown(agent_id))
        if (refusal := refuse_recipient(agent)) is not None:
            raise RefusedError(refusal)
