"""Execution places: the directory an agent works in.

Owns:  resolving an agent's home and its current execution root, which every command, patch and task
       begins with, and the execution profile of this host.
"""

from holon.decide.workspaces import HostRoots, agent_home_of, place_of
from holon.model.values import AgentId
from holon.model.workspaces import ActiveWorkspace, ExecutionProfile
from holon.ports.reads import StoreReads
from holon.ports.tasks import Shell
from holon.ports.unavailable import NoShell


class AgentPlaces:
    """The directories of one host's agents."""

    def __init__(self, reads: StoreReads, roots: HostRoots) -> None:
        self._reads = reads
        self._roots = roots

    @property
    def home(self) -> str:
        """The host's home directory, which contains the homes of all agents."""
        return self._roots.home

    def home_of(self, agent_id: AgentId) -> str:
        """Return an agent's home directory."""
        return agent_home_of(self._roots.home, agent_id)

    def place_of(self, agent_id: AgentId, bound: ActiveWorkspace | None) -> ActiveWorkspace:
        """Return the execution place of an agent in this workspace, or at home."""
        return place_of(agent_id, bound, self._roots)

    async def current(self, agent_id: AgentId) -> ActiveWorkspace:
        """Return the current execution place of an agent's commands and patches."""
        return self.place_of(agent_id, await self._reads.workspaces.active_workspace(agent_id))


def profile_of(shell: Shell) -> ExecutionProfile:
    """Return what a host with this shell can do for its agents."""
    runs_commands = not isinstance(shell, NoShell)
    return ExecutionProfile(
        process_execution_exposed=runs_commands,
        allow_background_tasks=runs_commands,
        supports_managed_worktrees=False,
    )
