"""What a host can do for its agents, and in which workspace a call is made.

Owns:  what a host can do for its agents, and the workspace of a scene.
Rule 1: an agent always has one workspace: the one its host was given, or else its own home.
"""

from holon.model.ids import WorkspaceId
from holon.model.workspace import (
    AGENT_HOME,
    WORKSPACE_ROOT,
    ExecutionProfile,
)
from holon.ports.shell import Shell
from holon.ports.unavailable import NoShell
from holon.tools.tool import ToolScene


def profile_of(shell: Shell) -> ExecutionProfile:
    """Return what a host with this shell can do for its agents."""
    runs_commands = not isinstance(shell, NoShell)
    return ExecutionProfile(
        process_execution_exposed=runs_commands,
        allow_background_tasks=runs_commands,
        supports_managed_worktrees=False,
    )


def workspace_id_of(scene: ToolScene) -> WorkspaceId:
    """Return the workspace a call of this scene is made in."""
    if scene.workspace is not None:
        return scene.workspace.workspace_id
    return AGENT_HOME if scene.execution_root == scene.agent_home else WORKSPACE_ROOT
