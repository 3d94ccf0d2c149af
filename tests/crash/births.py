"""Processes that are killed while they make a home.

Owns:  many short births in a row, each cut off at a random moment between the first directory and
       the last migration. Run as a program of its own, because it forks: a child needs no time to
       start, so the moment of its death can be chosen to a fraction of a millisecond.

    python -m tests.crash.births --root DIR --births 60 --seed 1

Prints one line of JSON: how many were cut off, and what was wrong with which home.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.sqlite.store import open_store
from holon.model.errors import HolonError

CUTS_PER_HOME_MAX = 3


def main(arguments: list[str]) -> int:
    """Cut births off and see whether each home can still be opened; 0 when all can."""
    parser = argparse.ArgumentParser(prog="tests.crash.births")
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--births", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    chance = Random(asked.seed)
    began = time.monotonic()
    _fork(lambda: _be_born(asked.root / "whole")).wait()
    whole_s = time.monotonic() - began
    cut, problems = 0, []
    for number in range(asked.births):
        home = asked.root / f"home-{number}"
        for _ in range(chance.randint(1, CUTS_PER_HOME_MAX)):
            cut += _fork(lambda home=home: _be_born(home)).kill_after(  # type: ignore[misc]
                chance.uniform(0.0, whole_s)
            )
        if _fork(lambda home=home: _grow_up(home)).wait() != 0:  # type: ignore[misc]
            problems.append(str(home))
    print(json.dumps({"cut": cut, "problems": problems}))
    return int(bool(problems))


class _Child:
    """A forked process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def wait(self) -> int:
        """Return its exit code."""
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def kill_after(self, seconds: float) -> bool:
        """Kill it after a while; True when it was still alive."""
        time.sleep(seconds)
        os.kill(self._pid, signal.SIGKILL)
        return self.wait() == -signal.SIGKILL


def _fork(live: Callable[[], None]) -> _Child:
    pid = os.fork()
    if pid:
        return _Child(pid)
    try:
        live()
    except HolonError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)


def _be_born(home: Path) -> None:
    open_store(home)


def _grow_up(home: Path) -> None:
    async def close() -> None:
        await store.close()

    store = open_store(home)
    asyncio.run(close())
    violations = check_database(database_path(home)).violations
    if violations:
        raise HolonError(str(violations[0]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
