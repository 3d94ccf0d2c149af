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
ROUNDS_COUNT_MAX: Final = 8  # passes, for processes forked while others were killed
_GONE: Final = frozenset("ZXx")
_MARK: Final = b"holon.adapters.exec.fork_server"
_GENERATIONS_COUNT_MAX: Final = 256
_INIT: Final = 1


class ProcessIdentity(NamedTuple):
    """One process, distinct from later ones with the same pid."""

    pid: int
    start_ticks: int
    boot_id: str


class ProcessFacts(NamedTuple):
    """The kernel's facts about a living process."""

    pid: int
    parent: int
    group: int
    start_ticks: int


@cache
def boot_id() -> str:
    """Return the id of this boot: process start times count from the boot."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def facts_of(pid: int) -> ProcessFacts | None:
    """Return the facts of a living process; None for an exited one, zombies included."""
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
    # The name is in parentheses and may contain any character, so fields start after the last one.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 20 or fields[0].decode("ascii") in _GONE:
        return None
    return ProcessFacts(
        pid=pid, parent=int(fields[1]), group=int(fields[2]), start_ticks=int(fields[19])
    )


def identity_of(pid: int) -> ProcessIdentity | None:
    """Return the identity of the process with this pid, or None when there is none."""
    facts = facts_of(pid)
    if facts is None:
        return None
    return ProcessIdentity(pid=pid, start_ticks=facts.start_ticks, boot_id=boot_id())


def open_living(identity: ProcessIdentity) -> int | None:
    """Open a pidfd of the process, or return None when it has ended.

    The pidfd is opened before the identity is compared, so it cannot refer to a later process with
    the same pid.
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
    """Whether exactly this process is alive."""
    return identity is not None and identity_of(identity.pid) == identity


def living() -> list[ProcessFacts]:
    """Return every visible living process."""
    processes = (facts_of(int(name)) for name in os.listdir(PROC) if name.isdecimal())
    return [facts for facts in processes if facts is not None]


def descendants_of(ancestor: int) -> list[ProcessFacts]:
    """Return all living descendants of a process."""
    children: dict[int, list[ProcessFacts]] = {}
    for facts in living():
        children.setdefault(facts.parent, []).append(facts)
    descendants: list[ProcessFacts] = []
    unvisited = [ancestor]
    while unvisited:
        started = children.pop(unvisited.pop(), [])
        descendants.extend(started)
        unvisited.extend(each.pid for each in started)
    return descendants


def marked_with(marker: bytes) -> list[ProcessFacts]:
    """Return the processes whose initial environment contains the marker, a whole NAME=value."""
    processes: list[ProcessFacts] = []
    for name in os.listdir(PROC):
        if name.isdecimal() and marker in _environment(name):
            facts = facts_of(int(name))
            if facts is not None:
                processes.append(facts)
    return processes


def _environment(pid: str) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return file.readall().split(b"\0")
    except OSError:
        return []


def send(processes: Iterable[ProcessFacts], *signals: int) -> None:
    """Send signals to the processes; those that have exited meanwhile are skipped."""
    for facts in processes:
        for number in signals:
            try:
                os.kill(facts.pid, number)
            except OSError:
                break


def kill_all(find: Callable[[], list[ProcessFacts]]) -> bool:
    """Kill what `find` returns until it returns nothing; False when processes remain.

    Whole process groups are killed at once, because a group that keeps forking could outrun
    killing its processes one by one.
    """
    own_group = os.getpgrp()
    for _ in range(ROUNDS_COUNT_MAX):
        processes = find()
        if not processes:
            return True
        for group in {facts.group for facts in processes} - {0, 1, own_group}:
            try:
                os.killpg(group, signal.SIGKILL)
            except OSError:
                continue
        send((facts for facts in processes if facts.group == own_group), signal.SIGKILL)
    return not find()


def last_pid() -> int:
    """Return the pid of the newest process or thread, a cheap measure of forks."""
    return _load(4)


def tasks_count() -> int:
    """Return the number of processes and threads on the machine."""
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


def runs_for_an_agent(pid: int) -> bool:
    """Whether the process descends from the fork server of any runtime."""
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
