"""Workspace decisions: which root an agent works in, and attach, enter, exit, detach.

Owns:  the choice between the workspace an agent is in, the root its host was given, and its home;
       workspace identity, and the refusals of paths. The disk was inspected by the caller.
Rule 1: an agent always has exactly one root. Without a workspace it is at home, or in the root its
        host gives every agent instead.
Rule 2: the workspace an agent is in takes precedence over the root of its host, unless that root
        was named for this very run.
Rule 3: a path is absolute, since no working directory is defined that a relative one could refer
        to.
Rule 4: Holon's own folders under its home are never a workspace.
Rule 5: a workspace's id follows from its anchor alone: the root of the repository that contains a
        directory, or else the directory itself. The same project has the same id for every agent.
Rule 6: a directory in another worktree of an attached repository belongs to that repository: the
        worktree is its execution root, and an agent in it has it exclusively.
Rule 7: home can be neither exited nor detached, and an active workspace is exited before it is
        detached.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from holon.model.commits import Change
from holon.model.errors import Refusal, RefusalCode
from holon.model.limits import WORKSPACE_PATH_CHARS_MAX, WORKSPACES_ATTACHED_COUNT_MAX
from holon.model.record import Record
from holon.model.values import AgentId, WorkspaceId
from holon.model.workspaces import (
    AGENT_HOME,
    WORKSPACE_ROOT,
    AccessMode,
    ActiveWorkspace,
    AttachWorkspace,
    EnterWorkspace,
    ExitWorkspace,
    PathProblem,
    ProjectionKind,
    ResolvedDirectory,
    WorkspaceBindings,
    WorkspaceEntry,
    WorkspaceOccupancy,
)

PRIVATE_FOLDERS: Final = ("state", "run", "commands", "agents")  # of HOLON_HOME
_QUOTED_CHARS: Final = 200
_DIGEST_CHARS: Final = 20
_BUILT_IN: Final = frozenset({AGENT_HOME, WORKSPACE_ROOT})


class HostRoots(Record, frozen=True, kw_only=True):
    """The host's settings about roots: where homes are, and a shared root, if any."""

    home: str
    workspace_root: str | None = None
    workspace_cwd: str | None = None
    overrides: bool = False  # the root was requested explicitly: it precedes any workspace


def agent_home_of(home: str, agent_id: AgentId) -> str:
    """Return the directory that is an agent's own."""
    below = f"{home.rstrip('/')}/" if home else ""
    return f"{below}agents/{agent_id}"


def place_of(agent_id: AgentId, bound: ActiveWorkspace | None, roots: HostRoots) -> ActiveWorkspace:
    """Return where an agent works; `bound` is the workspace it is in, if any."""
    root = roots.workspace_root
    if bound is not None and not (roots.overrides and root is not None):
        return bound
    if root is not None:
        return ActiveWorkspace(
            workspace_id=WORKSPACE_ROOT,
            workspace_anchor=root,
            execution_root_id=f"{ProjectionKind.CANONICAL_ROOT}:{WORKSPACE_ROOT}",
            execution_root=root,
            projection_kind=ProjectionKind.CANONICAL_ROOT,
            access_mode=AccessMode.SHARED_READ,
            cwd=roots.workspace_cwd or root,
        )
    own = agent_home_of(roots.home, agent_id)
    return ActiveWorkspace(
        workspace_id=AGENT_HOME,
        workspace_anchor=own,
        execution_root_id=f"{ProjectionKind.CANONICAL_ROOT}:{AGENT_HOME}:{agent_id}",
        execution_root=own,
        projection_kind=ProjectionKind.CANONICAL_ROOT,
        access_mode=AccessMode.EXCLUSIVE_WRITE,
        cwd=own,
    )


class _PathRefusal(NamedTuple):
    code: RefusalCode
    says: str
    hint: str


_PROBLEMS: Final[Mapping[PathProblem, _PathRefusal]] = MappingProxyType(
    {
        PathProblem.MALFORMED: _PathRefusal(
            RefusalCode.WORKSPACE_PATH_INVALID,
            "is no path",
            "leave out NUL characters and anything that is not UTF-8",
        ),
        PathProblem.MISSING: _PathRefusal(
            RefusalCode.WORKSPACE_PATH_MISSING,
            "does not exist on the machine of the runtime",
            "check the spelling, or make the directory first",
        ),
        PathProblem.NOT_A_DIRECTORY: _PathRefusal(
            RefusalCode.WORKSPACE_PATH_NOT_DIRECTORY,
            "is not a directory",
            "name the directory that holds it",
        ),
        PathProblem.UNREADABLE: _PathRefusal(
            RefusalCode.WORKSPACE_PATH_UNREADABLE,
            "cannot be read by the runtime",
            "check the permissions of the directory and of those above it",
        ),
    }
)


def refuse_form(path: str) -> Refusal | None:
    """Refuse what cannot be a path, before the disk is inspected."""
    if not path.startswith("/"):
        return _refusal(
            RefusalCode.WORKSPACE_PATH_INVALID,
            f"{_quoted_path(path)} is not an absolute path",
            "write it from the root on, such as /srv/project",
        )
    if len(path) > WORKSPACE_PATH_CHARS_MAX:
        return _refusal(
            RefusalCode.WORKSPACE_PATH_INVALID,
            "the path is too long",
            f"use at most {WORKSPACE_PATH_CHARS_MAX} characters",
        )
    return None


def refuse_problem(path: str, problem: PathProblem) -> Refusal:
    """Decline a path for a problem found on the disk."""
    refusal = _PROBLEMS[problem]
    return _refusal(refusal.code, f"{_quoted_path(path)} {refusal.says}", refusal.hint)


def refuse_private(directory: ResolvedDirectory, home: str) -> Refusal | None:
    """Decline what is Holon's own; `home` is HOLON_HOME by its real name."""
    own = home.rstrip("/")
    inside = [f"{own}/{folder}" for folder in PRIVATE_FOLDERS]
    roots = (directory.path, directory.repository_root or directory.path)
    if own in roots or any(_is_inside(root, folder) for root in roots for folder in inside):
        return _refusal(
            RefusalCode.WORKSPACE_PATH_PRIVATE,
            f"{_quoted_path(directory.path)} is where Holon keeps its own files",
            "choose a directory outside of HOLON_HOME; to work at home, exit the workspace",
        )
    return None


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _quoted_path(path: str) -> str:
    shown = path.encode(errors="replace").decode()[:_QUOTED_CHARS]
    return repr(shown) if shown else "an empty text"


def _refusal(code: RefusalCode, message: str, hint: str) -> Refusal:
    return Refusal(code=code, message=message, hint=hint, field="path")


class AttachTarget(Record, frozen=True, kw_only=True):
    """Where attaching a directory would lead."""

    entry: WorkspaceEntry
    place: ActiveWorkspace


class Enter(Record, frozen=True, kw_only=True):
    """Enter it: exit the current workspace, and attach this one if it is not attached."""

    place: ActiveWorkspace
    leaves: WorkspaceId | None = None
    attaches: WorkspaceEntry | None = None


class AlreadyEntered(Record, frozen=True, kw_only=True):
    """The agent is in it already."""


class Exit(Record, frozen=True, kw_only=True):
    """Exit this workspace; the agent is at home again."""

    workspace_id: WorkspaceId


class Detach(Record, frozen=True, kw_only=True):
    """Detach this workspace."""

    workspace_id: WorkspaceId


AttachDecision: TypeAlias = Enter | AlreadyEntered | Refusal


def workspace_id_of(anchor: str) -> WorkspaceId:
    """Return the id of the workspace with this anchor."""
    return WorkspaceId(f"ws_{_digest(anchor)}")


def attach_target_of(
    directory: ResolvedDirectory, bindings: WorkspaceBindings, *, now: datetime
) -> AttachTarget:
    """Return the workspace a directory belongs to, and the place attaching it would lead to."""
    top = directory.repository_root or directory.path
    parent = _attached_parent(directory, bindings)
    anchor = top if parent is None else parent.workspace_anchor
    workspace_id = workspace_id_of(anchor)
    is_worktree = parent is not None
    kind = ProjectionKind.GIT_WORKTREE_ROOT if is_worktree else ProjectionKind.CANONICAL_ROOT
    root_id = f"{kind}:{workspace_id}"
    return AttachTarget(
        entry=WorkspaceEntry(
            workspace_id=workspace_id,
            workspace_anchor=anchor,
            repo_name=_last_part(anchor) if directory.repository_root is not None else None,
            created_at=now,
            updated_at=now,
        ),
        place=ActiveWorkspace(
            workspace_id=workspace_id,
            workspace_anchor=anchor,
            execution_root_id=f"{root_id}:{_digest(top)}" if is_worktree else root_id,
            execution_root=top,
            projection_kind=kind,
            access_mode=AccessMode.EXCLUSIVE_WRITE if is_worktree else AccessMode.SHARED_READ,
            cwd=directory.path,
        ),
    )


def decide_attach(
    agent_id: AgentId,
    bindings: WorkspaceBindings,
    target: AttachTarget,
    *,
    occupants: Sequence[WorkspaceOccupancy],
) -> AttachDecision:
    """Decide whether an agent may enter a directory; `occupants` are under that root now."""
    active, place = bindings.active, target.place
    if active is not None and (active.execution_root_id, active.cwd) == (
        place.execution_root_id,
        place.cwd,
    ):
        return AlreadyEntered()
    others = [each for each in occupants if each.holder_agent_id != agent_id]
    conflict = next((each for each in others if _excludes(each, place.access_mode)), None)
    if conflict is not None:
        return _occupied(place, conflict)
    is_known = _is_attached(bindings, place.workspace_id)
    if not is_known and len(bindings.attached) >= WORKSPACES_ATTACHED_COUNT_MAX:
        return _too_many()
    return Enter(
        place=place,
        leaves=None if active is None else active.workspace_id,
        attaches=None if is_known else target.entry,
    )


def enter_changes(agent_id: AgentId, decision: Enter, *, occupancy_id: str) -> tuple[Change, ...]:
    """Return the changes of a decision to enter a workspace."""
    changes: list[Change] = []
    if decision.leaves is not None:
        changes.append(ExitWorkspace(agent_id=agent_id, workspace_id=decision.leaves))
    if decision.attaches is not None:
        changes.append(AttachWorkspace(agent_id=agent_id, entry=decision.attaches))
    entered = EnterWorkspace(agent_id=agent_id, place=decision.place, occupancy_id=occupancy_id)
    return (*changes, entered)


def decide_exit(agent_id: AgentId, bindings: WorkspaceBindings) -> Exit | Refusal:
    """Decide whether an agent may exit its workspace."""
    if bindings.active is None:
        return Refusal(
            code=RefusalCode.AT_AGENT_HOME,
            message=f"agent {agent_id} is in no workspace: it works at home, which cannot be left",
            hint="attach a workspace to work somewhere else",
        )
    return Exit(workspace_id=bindings.active.workspace_id)


def decide_detach(
    agent_id: AgentId, bindings: WorkspaceBindings, workspace_id: WorkspaceId
) -> Detach | Refusal:
    """Decide whether an agent may detach a workspace. Its directory is not inspected."""
    if workspace_id in _BUILT_IN:
        return Refusal(
            code=RefusalCode.AT_AGENT_HOME,
            message=f"{workspace_id} is built in and cannot be detached",
            hint="name a workspace that was attached",
            field="workspace_id",
        )
    if bindings.active is not None and bindings.active.workspace_id == workspace_id:
        return Refusal(
            code=RefusalCode.WORKSPACE_ACTIVE,
            message=f"agent {agent_id} is in workspace {workspace_id}",
            hint="exit it first, which brings the agent home, or attach another workspace",
            field="workspace_id",
        )
    if not _is_attached(bindings, workspace_id):
        return Refusal(
            code=RefusalCode.WORKSPACE_NOT_FOUND,
            message=f"agent {agent_id} has no workspace {workspace_id}",
            hint="look at attached_workspaces of the agent's state for the ids it has",
            field="workspace_id",
        )
    return Detach(workspace_id=workspace_id)


def _attached_parent(
    directory: ResolvedDirectory, bindings: WorkspaceBindings
) -> WorkspaceEntry | None:
    if directory.main_root is None:
        return None
    parent_id = workspace_id_of(directory.main_root)
    return next((each for each in bindings.attached if each.workspace_id == parent_id), None)


def _is_attached(bindings: WorkspaceBindings, workspace_id: WorkspaceId) -> bool:
    return any(each.workspace_id == workspace_id for each in bindings.attached)


def _excludes(occupancy: WorkspaceOccupancy, mode: AccessMode) -> bool:
    return AccessMode.EXCLUSIVE_WRITE in (occupancy.access_mode, mode)


def _occupied(place: ActiveWorkspace, by: WorkspaceOccupancy) -> Refusal:
    return Refusal(
        code=RefusalCode.WORKSPACE_OCCUPIED,
        message=f"agent {by.holder_agent_id} is in {place.execution_root} ({by.access_mode})",
        hint=f"let agent {by.holder_agent_id} exit its workspace first, or use another directory",
        field="path",
    )


def _too_many() -> Refusal:
    return Refusal(
        code=RefusalCode.QUOTA_REACHED,
        message=f"the agent has {WORKSPACES_ATTACHED_COUNT_MAX} workspaces attached",
        hint="detach some of them first",
    )


def _digest(text: str) -> str:
    # A file name may hold bytes that are no text; they are distinguished as well.
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:_DIGEST_CHARS]


def _last_part(path: str) -> str | None:
    return path.rstrip("/").rpartition("/")[2] or None
