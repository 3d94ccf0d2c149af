"""Which paths may become a workspace.

Owns:  the refusals of paths. Pure: somebody else has looked at the disk.
Rule 1: a path is absolute: whose working directory would a relative one be relative to?
Rule 2: what Holon keeps for itself under its home is nobody's workspace.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from holon.model.limits import WORKSPACE_PATH_CHARS_MAX
from holon.model.refusal import Refusal, RefusalCode
from holon.model.workspace import FoundPlace, PathProblem

PRIVATE_FOLDERS: Final = ("state", "run", "commands", "agents")  # of HOLON_HOME

_SHOWN_CHARS: Final = 200


class _Words(NamedTuple):
    code: RefusalCode
    says: str
    hint: str


_PROBLEMS: Final[Mapping[PathProblem, _Words]] = MappingProxyType(
    {
        PathProblem.MALFORMED: _Words(
            RefusalCode.WORKSPACE_PATH_INVALID,
            "is no path",
            "leave out NUL characters and anything that is not UTF-8",
        ),
        PathProblem.MISSING: _Words(
            RefusalCode.WORKSPACE_PATH_MISSING,
            "does not exist on the machine of the runtime",
            "check the spelling, or make the directory first",
        ),
        PathProblem.NOT_A_DIRECTORY: _Words(
            RefusalCode.WORKSPACE_PATH_NOT_DIRECTORY,
            "is not a directory",
            "name the directory that holds it",
        ),
        PathProblem.UNREADABLE: _Words(
            RefusalCode.WORKSPACE_PATH_UNREADABLE,
            "cannot be read by the runtime",
            "check the permissions of the directory and of those above it",
        ),
    }
)


def refuse_form(path: str) -> Refusal | None:
    """Decline what cannot be a path, before anybody looks."""
    if not path.startswith("/"):
        return _refusal(
            RefusalCode.WORKSPACE_PATH_INVALID,
            f"{_shown(path)} is not an absolute path",
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
    """Decline a path for what was found there."""
    words = _PROBLEMS[problem]
    return _refusal(words.code, f"{_shown(path)} {words.says}", words.hint)


def refuse_private(found: FoundPlace, home: str) -> Refusal | None:
    """Decline what is Holon's own; `home` is HOLON_HOME by its real name."""
    own = home.rstrip("/")
    inside = [f"{own}/{folder}" for folder in PRIVATE_FOLDERS]
    roots = (found.path, found.repository_root or found.path)
    if own in roots or any(_is_inside(root, folder) for root in roots for folder in inside):
        return _refusal(
            RefusalCode.WORKSPACE_PATH_PRIVATE,
            f"{_shown(found.path)} is where Holon keeps its own files",
            "choose a directory outside of HOLON_HOME; to work at home, exit the workspace",
        )
    return None


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _shown(path: str) -> str:
    shown = path.encode(errors="replace").decode()[:_SHOWN_CHARS]
    return repr(shown) if shown else "an empty text"


def _refusal(code: RefusalCode, message: str, hint: str) -> Refusal:
    return Refusal(code=code, message=message, hint=hint, field="path")
