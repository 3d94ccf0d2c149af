"""Looks at the files that instruct an agent.

Owns:  finding AGENTS.md, the two memory files and the agent's own skills, and their digests.
Rule 1: a file that has not changed since it was read is not read again: a look costs one stat each.
        The moment of the last change of a file's facts (ctime) is part of that, which a writer
        cannot choose. So a look at a home with few files is taken at once: asking a thread for it
        would take many times as long, twice for every command.
Rule 2: nothing here raises because of a file, and nothing waits for one: a pipe has no content.
"""

import hashlib
import os
import stat
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

import anyio.to_thread

from holon.adapters.files.skill_scan import SkillScan
from holon.decide.instruction_sources import WATCHED_FILES
from holon.model.limits import MEMORY_FILE_BYTES_MAX, SKILL_ROOTS_KEPT_COUNT_MAX

_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_AT_ONCE_COUNT_MAX: Final = 16
_Stamp: TypeAlias = tuple[int, int, int, int, int]


class _Known(NamedTuple):
    stamp: _Stamp
    sha256: str


class FileInstructionSources:
    """The instruction sources of the homes of this machine."""

    def __init__(self) -> None:
        self._skills = SkillScan(None)
        self._known: dict[str, dict[str, _Known]] = {}

    async def digests(self, agent_home: str) -> Mapping[str, str]:
        """Return the digest of every instruction source of a home."""
        below = f"{agent_home.rstrip('/')}/"
        known = self._known.get(below)
        if known is not None and len(known) <= _AT_ONCE_COUNT_MAX:
            return self._look(below)
        return await anyio.to_thread.run_sync(self._look, below)

    def _look(self, below: str) -> dict[str, str]:
        catalog = self._skills.own_catalog(below.removesuffix("/"))
        skills = (entry.path.removeprefix(below) for entry in catalog.entries)
        known = self._known.pop(below, {})
        seen = {
            path: found
            for path in (*WATCHED_FILES, *skills)
            if (found := _digest(below + path, known.get(path)))
        }
        self._known[below] = seen  # the newest is last
        while len(self._known) > SKILL_ROOTS_KEPT_COUNT_MAX:
            self._known.pop(next(iter(self._known)), None)
        return {path: found.sha256 for path, found in seen.items()}


def _digest(path: str, known: _Known | None) -> _Known | None:
    try:
        if known is not None and _stamp(os.stat(path)) == known.stamp:
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
    return _Known(_stamp(facts), hashlib.sha256(content).hexdigest())


def _stamp(facts: os.stat_result) -> _Stamp:
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
