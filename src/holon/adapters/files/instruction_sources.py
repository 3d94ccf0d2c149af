"""Looks at the files that instruct an agent.

Owns:  finding AGENTS.md, the two memory files and the agent's own skills, and their digests.
Rule 1: a file that has not changed since it was read is not read again: a look costs one stat each.
        So a look at a home with few files is taken at once: asking a thread for it would take many
        times as long, twice for every command.
Rule 2: nothing here raises because of a file, and nothing waits for one: a pipe has no content.
"""

import hashlib
import math
import os
import stat
from collections.abc import Mapping
from typing import Final, NamedTuple

import anyio.to_thread

from holon.adapters.files.file_stamp import Stamp, lasting_stamp, stamp_of
from holon.adapters.files.skill_scan import SkillScan
from holon.decide.instruction_sources import WATCHED_FILES
from holon.model.limits import MEMORY_FILE_BYTES_MAX, SKILL_ROOTS_KEPT_COUNT_MAX
from holon.model.lru import Lru

_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_AT_ONCE_COUNT_MAX: Final = 16


class _Known(NamedTuple):
    stamp: Stamp | None
    sha256: str


class FileInstructionSources:
    """The instruction sources of the homes of this machine."""

    def __init__(self) -> None:
        self._skills = SkillScan(None)
        self._known: Lru[str, dict[str, _Known]] = Lru(SKILL_ROOTS_KEPT_COUNT_MAX)

    async def digests(self, agent_home: str) -> Mapping[str, str]:
        """Return the digest of every instruction source of a home."""
        below = f"{agent_home.rstrip('/')}/"
        if self._looks_count(below) <= _AT_ONCE_COUNT_MAX:
            return self._look(below)
        return await anyio.to_thread.run_sync(self._look, below)

    def _looks_count(self, below: str) -> float:
        """How many files and folders a look takes, by the one before; without one, no end."""
        known = self._known.peek(below)
        if known is None:
            return math.inf
        return len(known) + self._skills.folders_count(below.removesuffix("/"))

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


def _digest(path: str, known: _Known | None) -> _Known | None:
    try:
        if known is not None and stamp_of(os.stat(path)) == known.stamp:
            return known
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
    return _Known(lasting_stamp(facts), hashlib.sha256(content).hexdigest())
