"""Processes of this machine, read from /proc.

Owns:  identifying a process beyond the reuse of its number, finding every descendant of a process,
       killing a set of processes reliably, and telling whether an agent's command started a
       process.
Rule 1: a pid alone never identifies a process; pid, start time and boot id together do.
Rule 2: every command of an agent runs under a supervisor, and every supervisor is a fork of a fork
        server; what a command starts and detaches stays below one of them.
Rule 3: a process that can no longer be inspected counts as started by an agent: the caller asks
        whether it may trust it.
Rule 4: the fork server imports this module, so it uses the standard library only.
"""

import os
import signal
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

PROC: Final = Path("/proc")
ROUNDS_COUNT_MAX: Final = 8  # of looking again for what was forked while we were ending the rest
_GONE: Final = frozenset("ZXx")


class ProcessIdentity(NamedTuple):
    """One process, never mistaken for a later one with its number."""

    pid: int
    start_ticks: int
    boot_id: str


class ProcessFacts(NamedTuple):
    """What the kernel says of a living process."""

    pid: int
    parent: int
    group: int
    start_ticks: int


@cache
def boot_id() -> str:
    """Return what sets this boot of the machine apart: start times begin anew with each."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def facts_of(pid: int) -> ProcessFacts | None:
    """Return the facts of a living process; one that has ended and was not collected is gone."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.read(file, 1024)
    except OSError:
        return None
    finally:
        os.close(file)
    # The name stands in parentheses and may hold anything, so what follows the last one counts.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 20 or fields[0].decode("ascii") in _GONE:
        return None
    return ProcessFacts(
        pid=pid, parent=int(fields[1]), group=int(fields[2]), start_ticks=int(fields[19])
    )


def identity_of(pid: int) -> ProcessIdentity | None:
    """Return who has this number now, or nothing when nobody lives under it."""
    facts = facts_of(pid)
    if facts is None:
        return None
    return ProcessIdentity(pid=pid, start_ticks=facts.start_ticks, boot_id=boot_id())


def open_living(identity: ProcessIdentity) -> int | None:
    """Return a handle on the process, or nothing when it has ended.

    The handle is opened before the identity is compared, so that it cannot come to stand for
    another process in between.
    """
    try:
        handle = os.pidfd_open(identity.pid)
    except OSError:
        return None
    if identity_of(identity.pid) != identity:
        os.close(handle)
        return None
    return handle


def is_living(identity: ProcessIdentity | None) -> bool:
    """Whether this very process is still there."""
    return identity is not None and identity_of(identity.pid) == identity


def living() -> list[ProcessFacts]:
    """Return every living process we can see."""
    found = (facts_of(int(name)) for name in os.listdir(PROC) if name.isdecimal())
    return [facts for facts in found if facts is not None]


def descendants_of(ancestor: int) -> list[ProcessFacts]:
    """Return everything a process started, directly or not."""
    children: dict[int, list[ProcessFacts]] = {}
    for facts in living():
        children.setdefault(facts.parent, []).append(facts)
    found: list[ProcessFacts] = []
    fresh = [ancestor]
    while fresh:
        born = children.pop(fresh.pop(), [])
        found.extend(born)
        fresh.extend(each.pid for each in born)
    return found


def marked_with(marker: bytes) -> list[ProcessFacts]:
    """Return the processes whose first environment holds the marker, a whole NAME=value."""
    found: list[ProcessFacts] = []
    for name in os.listdir(PROC):
        if name.isdecimal() and marker in _environment(name):
            facts = facts_of(int(name))
            if facts is not None:
                found.append(facts)
    return found


def _environment(pid: str) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return file.readall().split(b"\0")
    except OSError:
        return []


def send(processes: Iterable[ProcessFacts], *signals: int) -> None:
    """Send signals to each of the processes; those that have ended meanwhile are no matter."""
    for facts in processes:
        for number in signals:
            try:
                os.kill(facts.pid, number)
            except OSError:
                break


def end_for_certain(find: Callable[[], list[ProcessFacts]]) -> bool:
    """Kill what `find` finds until it finds nothing; False when something is still there.

    Whole groups are killed at once: a group that forks cannot outrun that, one process after the
    other it might.
    """
    own_group = os.getpgrp()
    for _ in range(ROUNDS_COUNT_MAX):
        found = find()
        if not found:
            return True
        for group in {facts.group for facts in found} - {0, 1, own_group}:
            try:
                os.killpg(group, signal.SIGKILL)
            except OSError:
                continue
        send((facts for facts in found if facts.group == own_group), signal.SIGKILL)
    return not find()


def last_pid() -> int:
    """Return the number the newest process or thread got: a cheap sign of how much was forked."""
    return _load(4)


def tasks_count() -> int:
    """Return how many processes and threads there are on the machine."""
    return _load(3)


def _load(field: int) -> int:
    try:
        file = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return int(os.read(file, 256).split()[field].rpartition(b"/")[2])
    except (OSError, ValueError, IndexError):
        return 0
    finally:
        os.close(file)


_MARK: Final = b"holon.adapters.exec.fork_server"
_GENERATIONS_COUNT_MAX: Final = 256
_INIT: Final = 1


def runs_for_an_agent(pid: int) -> bool:
    """Whether a fork server, of whichever runtime, is among the process's parents."""
    for _ in range(_GENERATIONS_COUNT_MAX):
        if pid <= _INIT:
            return False
        facts = facts_of(pid)
        if facts is None or _is_fork_server(PROC / str(pid) / "cmdline"):
            return True
        pid = facts.parent
    return True


def _is_fork_server(cmdline: Path) -> bool:
    try:
        return _MARK in cmdline.read_bytes()
    except OSError:
        return True
