"""A look from outside: at a home, and at the processes of this machine.

Owns:  reading a home while a host may be running on it, waiting for what shall be seen there, and
       finding the processes that have to do with a folder.
Rule 1: looking changes nothing.
Rule 2: whatever is waited for is waited for within bounds.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import anyio

from holon.adapters.exec.process_table import ProcessFacts, kill_all, living
from holon.adapters.sqlite.database.connection import open_inspector
from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.sqlite.reads import SqliteReads
from holon.model.events.briefs import BriefRecord
from holon.model.events.event import Event
from holon.model.limits import EVENT_PAGE_COUNT_MAX
from holon.model.tasks import TaskRecord
from holon.model.turns.transcript import TurnLog
from holon.model.values import AgentId, TaskId
from scripts.demo.narrator import StoryBrokenError

SEEN_S_MAX: Final = 30.0
_POLL_S: Final = 0.02
Seen = TypeVar("Seen")


def until_seen(look: Callable[[], Seen | None], what: str) -> Seen:
    """Look until there is something to see."""
    deadline = time.monotonic() + SEEN_S_MAX
    while not (seen := look()):
        if time.monotonic() > deadline:
            raise StoryBrokenError(f"waited in vain: {what}")
        time.sleep(_POLL_S)
    return seen


def events_of(home: Path, agent_id: str) -> list[Event]:
    """Return what has happened to an agent, in order."""
    with _reads(home) as reads:
        page = partial(reads.events.events_after, limit=EVENT_PAGE_COUNT_MAX)
        return [audit.event for audit in anyio.run(page, AgentId(agent_id), 0)]


def turns_of(home: Path, agent_id: str) -> Sequence[TurnLog]:
    """Return the settled turns of an agent, oldest first."""
    with _reads(home) as reads:
        return anyio.run(
            partial(reads.turns.recent_turns, limit=EVENT_PAGE_COUNT_MAX), AgentId(agent_id)
        )


def briefs_of(home: Path, agent_id: str) -> Sequence[BriefRecord]:
    """Return what an agent has told its operator, oldest first."""
    with _reads(home) as reads:
        return anyio.run(
            partial(reads.events.briefs, limit=EVENT_PAGE_COUNT_MAX), AgentId(agent_id)
        )


def task_of(home: Path, task_id: str) -> TaskRecord:
    """Return a task that there is."""
    with _reads(home) as reads:
        task = anyio.run(reads.tasks.task, TaskId(task_id))
    if task is None:
        raise StoryBrokenError(f"there is no task {task_id}")
    return task


@contextmanager
def _reads(home: Path) -> Iterator[SqliteReads]:
    connection = open_inspector(database_path(home))
    try:
        yield SqliteReads(connection)
    finally:
        connection.close()


def processes_about(folder: Path) -> list[ProcessFacts]:
    """Return the living processes that were started with this folder in mind."""
    marker = os.fsencode(folder)
    return [
        facts
        for facts in living()
        if facts.pid != os.getpid()
        and any(marker in _words(facts.pid, name) for name in ("environ", "cmdline"))
    ]


def end_processes_about(folder: Path) -> None:
    """End what a story that broke has left running."""
    kill_all(lambda: processes_about(folder))


def _words(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
