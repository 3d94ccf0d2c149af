"""Where an agent's tools run, and how firmly which boundary is held there.

Owns:  the execution snapshot of a scene and the view of it.
Rule 1: what the host does not confine is told as `not_enforced`; no sandbox is implied.
Rule 2: an agent always has one workspace: the one its host was given, or else its own home.
"""

from typing import Final

import msgspec

from holon.model.ids import WorkspaceId
from holon.model.json_value import JsonValue
from holon.model.workspace import (
    ExecutionPolicy,
    ExecutionProfile,
    ExecutionSnapshot,
    ProjectionKind,
)
from holon.ports.unavailable import NoShell
from holon.tools.tool import ToolPorts, ToolScene

AGENT_HOME: Final = WorkspaceId("agent_home")
WORKSPACE_ROOT: Final = WorkspaceId("workspace_root")


def execution_of(scene: ToolScene, ports: ToolPorts) -> ExecutionSnapshot:
    """Return where a call of this scene runs."""
    runs_commands = not isinstance(ports.shell, NoShell)
    is_home = scene.execution_root == scene.agent_home
    return ExecutionSnapshot(
        profile=ExecutionProfile(
            process_execution_exposed=runs_commands,
            allow_background_tasks=runs_commands,
            supports_managed_worktrees=False,
        ),
        policy=ExecutionPolicy(),
        workspace_id=AGENT_HOME if is_home else WORKSPACE_ROOT,
        workspace_anchor=scene.execution_root,
        execution_root=scene.execution_root,
        cwd=scene.cwd,
        projection_kind=ProjectionKind.CANONICAL_ROOT,
    )


def execution_view(execution: ExecutionSnapshot) -> JsonValue:
    """Return what there is of the snapshot, its parts with every field, also at its default."""
    parts = {"profile": execution.profile, "policy": execution.policy}
    whole = {name: msgspec.structs.asdict(part) for name, part in parts.items()}
    view: dict[str, JsonValue] = msgspec.to_builtins(msgspec.structs.asdict(execution) | whole)
    return {name: part for name, part in view.items() if part is not None}
