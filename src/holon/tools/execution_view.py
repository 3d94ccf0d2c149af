"""Where an agent's tools run, and how firmly which boundary is held there.

Owns:  the execution snapshot of a scene and the view of it.
Rule 1: what the host does not confine is told as `not_enforced`; no sandbox is implied.
Rule 2: an agent always has one workspace: the one its host was given, or else its own home.
"""

import msgspec

from holon.model.ids import WorkspaceId
from holon.model.json_value import JsonValue
from holon.model.workspace import (
    AGENT_HOME,
    WORKSPACE_ROOT,
    ExecutionPolicy,
    ExecutionProfile,
    ExecutionSnapshot,
    ProjectionKind,
)
from holon.ports.shell import Shell
from holon.ports.unavailable import NoShell
from holon.tools.tool import ToolPorts, ToolScene


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


def execution_of(scene: ToolScene, ports: ToolPorts) -> ExecutionSnapshot:
    """Return where a call of this scene runs."""
    place = scene.workspace
    return ExecutionSnapshot(
        profile=profile_of(ports.shell),
        policy=ExecutionPolicy(),
        workspace_id=workspace_id_of(scene),
        workspace_anchor=scene.execution_root if place is None else place.workspace_anchor,
        execution_root=scene.execution_root,
        cwd=scene.cwd,
        execution_root_id=None if place is None else place.execution_root_id,
        projection_kind=(ProjectionKind.CANONICAL_ROOT if place is None else place.projection_kind),
    )


def execution_view(execution: ExecutionSnapshot) -> JsonValue:
    """Return the snapshot as JSON."""
    view: JsonValue = msgspec.to_builtins(execution)
    return view
