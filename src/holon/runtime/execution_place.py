"""Where an agent of this host works right now.

Owns:  the look at the agent's rows that every command, patch and task begins with, and what this
       host can do for its agents there.
"""

from holon.decide.execution_place import HostRoots, place_of
from holon.model.ids import AgentId
from holon.model.workspace import ActiveWorkspace, ExecutionProfile
from holon.ports.shell import Shell
from holon.ports.unavailable import NoShell
from holon.runtime.services import Services


def roots_of(services: Services) -> HostRoots:
    """Return what this host says about places."""
    return HostRoots(
        home=services.home,
        workspace_root=services.workspace_root,
        workspace_cwd=services.workspace_cwd,
        overrides=services.workspace_overrides,
    )


async def current_place(services: Services, agent_id: AgentId) -> ActiveWorkspace:
    """Return where an agent's commands and patches happen now."""
    bound = await services.store.reads.active_workspace(agent_id)
    return place_of(agent_id, bound, roots_of(services))


def profile_of(shell: Shell) -> ExecutionProfile:
    """Return what a host with this shell can do for its agents."""
    runs_commands = not isinstance(shell, NoShell)
    return ExecutionProfile(
        process_execution_exposed=runs_commands,
        allow_background_tasks=runs_commands,
        supports_managed_worktrees=False,
    )
