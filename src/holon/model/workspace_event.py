"""The runtime events about where an agent works.

Owns:  what the audit log can say about workspaces. The rules are those of model/event.
"""

from typing import TypeAlias

from holon.model.ids import WorkspaceId
from holon.model.record import Record
from holon.model.workspace import AccessMode, ProjectionKind


class WorkspaceAttached(
    Record, tag_field="kind", tag="workspace_attached", frozen=True, kw_only=True
):
    """The agent may use a workspace."""

    workspace_id: WorkspaceId
    workspace_anchor: str


class WorkspaceEntered(
    Record, tag_field="kind", tag="workspace_entered", frozen=True, kw_only=True
):
    """The agent's commands and patches happen under this root from now on."""

    workspace_id: WorkspaceId
    execution_root_id: str
    execution_root: str
    cwd: str
    projection_kind: ProjectionKind
    access_mode: AccessMode
    occupancy_id: str


class WorkspaceExited(Record, tag_field="kind", tag="workspace_exited", frozen=True, kw_only=True):
    """The agent works at home again."""

    workspace_id: WorkspaceId


class WorkspaceDetached(
    Record, tag_field="kind", tag="workspace_detached", frozen=True, kw_only=True
):
    """The agent no longer knows a workspace; its directory was not touched."""

    workspace_id: WorkspaceId


WorkspaceEvent: TypeAlias = (
    WorkspaceAttached | WorkspaceEntered | WorkspaceExited | WorkspaceDetached
)
