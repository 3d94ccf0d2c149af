"""Instruction files: AGENTS.md from its three places, and the digests of instruction sources.

Owns:  where guidance is looked for, how much of it is read, and the problems reported; finding
       AGENTS.md, the two memory files and the agent's own skills, and their digests.
Rule 1: the places are the user's `~/.agents`, the agent's home and the workspace's anchor; never a
        shell's current directory or a worktree. CLAUDE.md is read at the anchor only, and only
        where there is no AGENTS.md.
Rule 2: an edit takes effect with the next prompt. A file that has not changed since it was read is
        not read again: a check costs one stat. So a home with few files is checked on the event
        loop; a thread would take many times as long, twice for every command.
Rule 3: a link is followed while it stays inside its place. One that leads out of a workspace or a
        home is not: its author must not choose which files of this machine enter a prompt. The
        user's own `~/.agents` may link anywhere.
Rule 4: no file makes this module raise or block: a FIFO has no content.
"""

import hashlib
import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import anyio.to_thread

from holon.adapters.files.openat import Stamp, lasting_stamp, open_beneath, open_root, stamp_of
from holon.adapters.files.skill_scan import SkillScan
from holon.decide.guidance.instructions import WATCHED_FILES
from holon.model.guidance import (
    InstructionKind,
    InstructionSource,
    LoadedGuidance,
    LoadedInstructions,
)
from holon.model.limits import (
    INSTRUCTIONS_BYTES_MAX,
    MEMORY_FILE_BYTES_MAX,
    SKILL_ROOTS_KEPT_COUNT_MAX,
)
from holon.model.lru import Lru
from holon.ports.workspaces import FileRefusedError, PathEscapeError

AGENTS_FILE: Final = "AGENTS.md"
CLAUDE_FILE: Final = "CLAUDE.md"
USER_FOLDER: Final = ".agents"
_KINDS: Final = {
    AGENTS_FILE: InstructionKind.AGENTS_MD,
    CLAUDE_FILE: InstructionKind.CLAUDE_MD,
}


_FILES_KEPT_COUNT_MAX: Final = 256
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_AT_ONCE_COUNT_MAX: Final = 16


class _LoadedFile(NamedTuple):
    """What came of looking for one file."""

    found: LoadedInstructions | None = None
    problem: str | None = None


_NOTHING: Final = _LoadedFile()


class InstructionFiles:
    """The guidance files of this machine."""

    def __init__(self, user_home: Path | None) -> None:
        self._user = None if user_home is None else user_home / USER_FOLDER
        self._known: Lru[str, tuple[Stamp | None, _LoadedFile]] = Lru(_FILES_KEPT_COUNT_MAX)

    async def load(self, *, agent_home: str, workspace_anchor: str | None) -> LoadedGuidance:
        """Return the guidance for an agent in a workspace, in the order of its sources."""
        looks = []
        if self._user is not None:
            looks.append(self._look(InstructionSource.USER_GLOBAL, str(self._user), AGENTS_FILE))
        looks.append(self._look(InstructionSource.AGENT, agent_home, AGENTS_FILE))
        if workspace_anchor is not None and not _is_same(workspace_anchor, agent_home):
            look = self._look(InstructionSource.WORKSPACE, workspace_anchor, AGENTS_FILE)
            if look == _NOTHING:
                look = self._look(InstructionSource.WORKSPACE, workspace_anchor, CLAUDE_FILE)
            looks.append(look)
        return LoadedGuidance(
            files=tuple(look.found for look in looks if look.found is not None),
            problems=tuple(look.problem for look in looks if look.problem is not None),
        )

    def _look(self, source: InstructionSource, place: str, name: str) -> _LoadedFile:
        path = f"{place}/{name}"
        try:
            facts = os.lstat(path)
        except (OSError, ValueError):
            return _NOTHING
        if not stat.S_ISREG(facts.st_mode):
            return _look(source, place, name)  # a link's own facts tell nothing of what it leads to
        key = f"{source}:{path}"
        known = self._known.get(key)
        if known is None or known[0] != stamp_of(facts):
            known = (lasting_stamp(facts), _look(source, place, name))
            self._known.put(key, known)
        return known[1]


def _look(source: InstructionSource, place: str, name: str) -> _LoadedFile:
    path = f"{place}/{name}"
    try:
        handle = _opened(source, place, name)
    except PathEscapeError:
        return _LoadedFile(problem=f"{path} is not used: it leads out of {place}")
    except (OSError, ValueError, FileRefusedError) as error:
        return _LoadedFile(problem=f"{path} is not used: {_why(error)}")
    try:
        return _read(handle, source, path)
    except OSError as error:
        return _LoadedFile(problem=f"{path} is not used: {_why(error)}")
    finally:
        os.close(handle)


def _opened(source: InstructionSource, place: str, name: str) -> int:
    """Open a file without blocking: a FIFO in its place may have no writer."""
    if source is InstructionSource.USER_GLOBAL:
        return os.open(f"{place}/{name}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    root = os.path.realpath(place, strict=True)
    real = os.path.realpath(f"{root}/{name}", strict=True)
    if not real.startswith(f"{root.rstrip('/')}/"):
        raise PathEscapeError("it leads out")
    folder = open_root(root)
    try:
        # By its real name and without links: what was swapped since leads nowhere.
        parts = os.path.relpath(real, root).split("/")
        return open_beneath(folder, parts, os.O_RDONLY | os.O_NONBLOCK)
    finally:
        os.close(folder)


def _read(handle: int, source: InstructionSource, path: str) -> _LoadedFile:
    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode):
        kind = "a directory" if stat.S_ISDIR(facts.st_mode) else "not a plain file"
        return _LoadedFile(problem=f"{path} is not used: it is {kind}")
    with os.fdopen(handle, "rb", closefd=False) as file:
        content = file.read(INSTRUCTIONS_BYTES_MAX + 1)
    is_cut = len(content) > INSTRUCTIONS_BYTES_MAX
    content = content[:INSTRUCTIONS_BYTES_MAX]
    text = _text(content, is_cut=is_cut)
    if text is None:
        return _LoadedFile(problem=f"{path} is not used: it is not UTF-8 text; save it as UTF-8")
    loaded = LoadedInstructions(
        source=source,
        kind=_KINDS[os.path.basename(path)],
        path=path,
        text=text,
        bytes=facts.st_size,
        sha256=hashlib.sha256(content).hexdigest(),
        truncated=is_cut,
    )
    problem = (
        f"{path} is cut: only its first {INSTRUCTIONS_BYTES_MAX} of {facts.st_size} bytes count"
    )
    return _LoadedFile(found=loaded, problem=problem if is_cut else None)


def _text(content: bytes, *, is_cut: bool) -> str | None:
    """Return the text, or nothing; the last character may have been cut in two by us."""
    for dropped in range(4 if is_cut else 1):
        try:
            text = content[: len(content) - dropped].decode("utf-8-sig")
        except UnicodeDecodeError:
            continue
        return text.replace("\r\n", "\n").replace("\r", "\n")  # whatever system it was written on
    return None


def _is_same(first: str, second: str) -> bool:
    return os.path.realpath(first) == os.path.realpath(second)


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or "unreadable"


class _CachedSource(NamedTuple):
    stamp: Stamp | None
    sha256: str


class FileInstructionSources:
    """The instruction sources of the homes of this machine."""

    def __init__(self) -> None:
        self._skills = SkillScan(None)
        self._known: Lru[str, dict[str, _CachedSource]] = Lru(SKILL_ROOTS_KEPT_COUNT_MAX)

    async def digests(self, agent_home: str) -> Mapping[str, str]:
        """Return the digest of every instruction source of a home."""
        below = f"{agent_home.rstrip('/')}/"
        if self._stat_count(below) <= _AT_ONCE_COUNT_MAX:
            return self._look(below)
        return await anyio.to_thread.run_sync(self._look, below)

    def _stat_count(self, below: str) -> float:
        """How many files and folders a look takes, by the one before; without one, no end."""
        cached = self._known.peek(below)
        if cached is None:
            return math.inf
        return len(cached) + self._skills.folders_count(below.removesuffix("/"))

    def _look(self, below: str) -> dict[str, str]:
        catalog = self._skills.own_catalog(below.removesuffix("/"))
        skills = (entry.path.removeprefix(below) for entry in catalog.entries)
        known = self._known.peek(below) or {}
        seen = {
            path: found
            for path in (*WATCHED_FILES, *skills)
            if (found := _digest(below + path, known.get(path)))
        }
        self._known.put(below, seen)
        return {path: found.sha256 for path, found in seen.items()}


def _digest(path: str, cached: _CachedSource | None) -> _CachedSource | None:
    try:
        if cached is not None and stamp_of(os.stat(path)) == cached.stamp:
            return cached
        handle = os.open(path, _READ)
    except (OSError, ValueError):
        return None
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            return None
        with os.fdopen(handle, "rb", closefd=False) as file:
            content = file.read(MEMORY_FILE_BYTES_MAX)
    except OSError:
        return None
    finally:
        os.close(handle)
    return _CachedSource(lasting_stamp(facts), hashlib.sha256(content).hexdigest())
