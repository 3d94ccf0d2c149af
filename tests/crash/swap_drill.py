"""Exchanging the database of a running `holon serve` at random moments, under load.

Owns:  the drill: start, let callers be acknowledged, exchange the database under the service, and
       judge what was acknowledged and what was left.

    python -m tests.crash.swap_drill --swaps 200 --seed 1

Rule 1: nothing that was asked for after the exchange is acknowledged; the service ends by itself.
Rule 2: what was acknowledged before it is in the files that were there: the old database, which the
        drill kept a second name of, and the log that was left.
Rule 3: a start refuses to lay that log over what is there now, and goes on with the old database.
"""

import argparse
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database.home_lock import database_path
from holon.model.errors import HolonError
from holon.model.values import MessageId
from tests.support.served_host import ANSWER_S_MAX, HostGoneError, Request, ServedHost

_CALLERS_COUNT: Final = 3
_PROMPTS_COUNT_MAX: Final = 2_000
_ENDED_BY_FAILURE: Final = 1
_UNUSABLE: Final = 2


@dataclass(slots=True)
class _Ledger:
    """What was acknowledged, by those who ask."""

    swapped: threading.Event = field(default_factory=threading.Event)
    enough: threading.Event = field(default_factory=threading.Event)
    acked: set[MessageId] = field(default_factory=set)
    late: set[MessageId] = field(default_factory=set)  # asked for after the exchange


def _unlinked(path: Path, older: Path) -> None:
    path.unlink()


def _renamed_over(path: Path, older: Path) -> None:
    draft = path.with_name("draft")
    shutil.copy(older, draft)
    draft.replace(path)


def _log_removed(path: Path, older: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def _copied_over(path: Path, older: Path) -> None:
    shutil.copyfile(older, path)


# Whether the old database and its log can be put together again afterwards.
SWAPS: Final[dict[Callable[[Path, Path], None], bool]] = {
    _unlinked: True,
    _renamed_over: True,
    _log_removed: False,
    _copied_over: False,
}


def run_swap(seed: int, root: Path) -> list[str]:
    """Exchange the database of one service once; return what was wrong."""
    chance = Random(seed)
    home, script = root / f"home-{seed}", root / f"script-{seed}.json"
    script.write_text('{"rules": [{"rounds": [{"text": "Hello yourself."}]}]}', encoding="utf-8")
    environ = {"HOLON_MODEL": f"scripted/{script}"}
    older = _first_life(home, environ)
    swap = chance.choice(list(SWAPS))
    found = _second_life(home, environ, older, swap=swap, chance=chance)
    named = f"seed {seed}, {swap.__name__.strip('_')}"
    if not found:
        shutil.rmtree(home)
    return [f"{named}: {problem}" for problem in found]


def _first_life(home: Path, environ: dict[str, str]) -> Path:
    """Serve for a moment; return a copy of the database as that life left it."""
    host = ServedHost(home, environ=environ)
    try:
        host.wait_ready()
        host.ask(_prompt("first"))
        host.process.terminate()
        host.process.wait(timeout=ANSWER_S_MAX)
    finally:
        host.kill()
    older = home.with_name(f"{home.name}.older")
    shutil.copy(database_path(home), older)
    return older


def _second_life(
    home: Path,
    environ: dict[str, str],
    older: Path,
    *,
    swap: Callable[[Path, Path], None],
    chance: Random,
) -> list[str]:
    path, aside = database_path(home), home.with_name(f"{home.name}.aside")
    ledger = _Ledger()
    host = ServedHost(home, environ=environ)
    try:
        host.wait_ready()
        after = chance.randrange(1, 60)
        callers = [
            threading.Thread(target=_ask_on, args=(host, ledger, f"{name}", after), daemon=True)
            for name in range(_CALLERS_COUNT)
        ]
        for caller in callers:
            caller.start()
        ledger.enough.wait(ANSWER_S_MAX)
        os.link(path, aside)
        swap(path, older)
        ledger.swapped.set()
        for caller in callers:
            caller.join(ANSWER_S_MAX)
        problems = [] if host.process.wait(timeout=ANSWER_S_MAX) == _ENDED_BY_FAILURE else ["ended"]
    finally:
        host.kill()
    if ledger.late:
        problems.append(f"{len(ledger.late)} were acknowledged after the exchange")
    if SWAPS[swap]:
        problems.extend(_judged(home, environ, aside, ledger.acked))
    aside.unlink()
    return problems


def _judged(home: Path, environ: dict[str, str], aside: Path, acked: set[MessageId]) -> list[str]:
    """Whether a start refuses, and the old files hold everything once they are put together."""
    problems = []
    refused = ServedHost(home, environ=environ)
    try:
        if refused.process.wait(timeout=ANSWER_S_MAX) != _UNUSABLE:
            problems.append("a start did not refuse the files that were left")
    finally:
        refused.kill()
    aside.rename(database_path(home))
    aside.touch()
    try:
        report = check_database(database_path(home), acked=acked)
    except HolonError as error:
        return [*problems, f"the old files cannot be read: {error.message}"]
    return [*problems, *(str(violation) for violation in report.violations)]


def _ask_on(host: ServedHost, ledger: _Ledger, name: str, after: int) -> None:
    """Prompt on and on, until nothing answers any more."""
    for number in range(_PROMPTS_COUNT_MAX):
        is_late = ledger.swapped.is_set()
        try:
            reply = host.ask(_prompt(f"{name}-{number}"))
        except (HostGoneError, HolonError, OSError):
            if ledger.swapped.is_set():
                return
            continue
        if reply.ok:
            message_id = MessageId(str(reply.at("message_id")))
            ledger.acked.add(message_id)
            if is_late:
                ledger.late.add(message_id)
        if number >= after:
            ledger.enough.set()


def _prompt(text: str) -> Request:
    return Request(path="/control/agents/main/prompt", body={"text": text})


def run_swaps(*, swaps: int, seed: int, root: Path | None = None) -> list[str]:
    """Exchange databases this often; return what was wrong."""
    folder = root or Path(tempfile.mkdtemp(prefix="holon-swaps-"))
    found: list[str] = []
    for number in range(swaps):
        found.extend(run_swap(seed * 10_000 + number, folder))
    if root is None and not found:
        shutil.rmtree(folder)
    return found


def main(arguments: list[str]) -> int:
    """Run the drill from the command line; 0 when nothing was wrong."""
    parser = argparse.ArgumentParser(prog="tests.crash.swap_drill")
    parser.add_argument("--swaps", type=int, default=20, help="how many databases to exchange")
    parser.add_argument("--seed", type=int, default=1, help="for the moments and manners")
    asked = parser.parse_args(arguments)
    found = run_swaps(swaps=asked.swaps, seed=asked.seed)
    print(f"swapped databases: {asked.swaps}, problems: {len(found)}", *found[:20], sep="\n  ")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
