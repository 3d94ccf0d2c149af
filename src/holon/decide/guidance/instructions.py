"""Instruction sources: which files tell an agent how to behave.

Owns:  the names of an agent's instruction sources, and whether a path is one of them.
Rule 1: the content of these files is shown to the agent in every turn, or is followed when it uses
        a skill. A writer of these files influences every later turn.
Rule 2: names are compared without regard to case: some file systems do not distinguish it.
"""

import posixpath
from collections.abc import Mapping
from typing import Final

from holon.model.guidance import InstructionSourceChanged
from holon.model.queue import AuthorityClass
from holon.model.record import Record
from holon.model.values import TurnId

WATCHED_FILES: Final = ("AGENTS.md", "memory/self.md", "memory/operator.md")
# What lies in .agents counts for every agent where a workspace is the user's own home directory.
_GUIDANCE: Final = frozenset({"agents.md", "claude.md", ".agents/agents.md"})
_SHARED_FOLDERS: Final = (
    ".agents/skills/",
    ".agents/templates/",
    ".codex/skills/",
    ".claude/skills/",
)
_HOME_FOLDERS: Final = ("skills/", "memory/", *_SHARED_FOLDERS)


class InstructionRoots(Record, frozen=True, kw_only=True):
    """Where a patch is applied, and where instructions are read: absolute, free of links."""

    execution_root: str
    agent_home: str
    workspace_anchor: str | None = None


def is_instruction_source(path: str, places: InstructionRoots) -> bool:
    """Whether a path below the execution root is one that instructions are read from."""
    target = posixpath.normpath(f"{places.execution_root}/{path}")
    if _is_among(_below(target, places.agent_home), _HOME_FOLDERS):
        return True
    anchor = places.workspace_anchor
    return anchor is not None and _is_among(_below(target, anchor), _SHARED_FOLDERS)


class InstructionCheck(Record, frozen=True, kw_only=True):
    """When digests were taken: in which turn, after which call, and the turn's authority."""

    turn_id: TurnId
    effect_id: str | None
    authority_class: AuthorityClass
    tainted: bool


def changes_between(
    before: Mapping[str, str], after: Mapping[str, str], noticed: InstructionCheck
) -> tuple[InstructionSourceChanged, ...]:
    """Return the changes between two sets of digests of an agent's sources."""
    return tuple(
        InstructionSourceChanged(
            path=path,
            old_sha256=before.get(path),
            new_sha256=after.get(path),
            turn_id=noticed.turn_id,
            effect_id=noticed.effect_id,
            authority_class=noticed.authority_class,
            tainted=noticed.tainted,
        )
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    )


def _below(path: str, place: str) -> str | None:
    inside = f"{place.rstrip('/')}/"
    return path[len(inside) :].lower() if path.startswith(inside) else None


def _is_among(name: str | None, folders: tuple[str, ...]) -> bool:
    return name is not None and (name in _GUIDANCE or name.startswith(folders))
