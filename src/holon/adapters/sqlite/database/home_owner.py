"""The owner of a home: a row in its database, besides the lock file.

The lock is a file, and a file can be deleted while it is held: the next process creates a new one
and locks that. So a process owns a home only once the database says so.

Owns:  the owner row: taking it, checking it with each group of commits, answering for it.
Rule 1: ownership is taken before anything of the home is changed, and never from a live process.
        The lock file that its last owner held proves that this one is gone; else its pid does,
        where pids are comparable; else it is asked through the database, and has the time of
        several checks to answer.
Rule 2: nothing is written while nothing happens. A heartbeat would be a write every few seconds,
        judged by clocks that jump; an owner that answers when asked needs neither. Checking for a
        question costs no write.
Rule 3: each owner has a generation. A group of commits whose writer has another generation than the
        row is refused, as is everything after it: the home was taken over, and two processes must
        not write.
Rule 4: a copied database takes the identity of the folder it lies in (HomeIdentity), and its owner
        is none of the processes it names.
"""

import secrets
import time
from pathlib import Path
from typing import Final, NamedTuple

import apsw
import msgspec

from holon.adapters.exec.process_table import ProcessIdentity, boot_id, is_living
from holon.adapters.sqlite.database.home_lock import HomeLock
from holon.adapters.sqlite.database.statements import named_queries
from holon.adapters.system.home_identity import (
    FileIdentity,
    HomeIdentity,
    new_identity,
    place_of,
    process_space,
)
from holon.adapters.system.run_files import own_identity
from holon.model.errors import HomeInUseError, HomeLostError, HomeReplacedError
from holon.model.limits import HOME_ANSWER_MS_MAX, SECOND_MS

_ANSWER_PAUSE_S: Final = 0.1
_QUESTION_MAX: Final = 2**62


class _Owner(NamedTuple):
    """The row."""

    generation: int
    home: HomeIdentity
    lock: FileIdentity
    process: ProcessIdentity
    process_space: str

    def is_of(self, place: FileIdentity) -> bool:
        """Whether it was written by the home that is in this place, and by no original of it."""
        if self.home.inode != place.inode:
            return False
        return self.home.device == place.device or self.process_space != process_space()


class HomeOwner:
    """This process, as the owner of a home."""

    def __init__(
        self,
        connection: apsw.Connection,
        path: Path,
        lock: HomeLock,
        home: HomeIdentity,
        *,
        generation: int,
        original: str | None,
    ) -> None:
        self.identity = home
        self.original = original  # where the home was copied from, the first time it is opened
        self._connection = connection
        self._sql = named_queries("home_owner")
        self._path = path
        self._lock = lock
        self._noted_lock = lock.place
        self._generation = generation

    def require(self) -> None:
        """Raise HomeReplacedError unless we still own the home."""
        generation, pid = next(iter(self._connection.execute(self._sql["fence"])), (0, 0))
        if generation != self._generation:
            raise HomeReplacedError(
                f"the home {self._path} was taken over by process {pid}: nothing more is written"
            )

    def look(self) -> bool:
        """See that we still own the home, answer who asks for us, and put the lock file back.

        Returns whether it had to be put back. Raises HomeReplacedError or HomeLostError.
        """
        self.require()
        if self._connection.execute(self._sql["is_asked"]).fetchall():
            self._connection.execute(self._sql["answer"])
        if place_of(self._path) != self.identity.place:
            raise home_lost(self._path)
        is_restored = self._lock.restored()
        if self._lock.place != self._noted_lock:
            moved = (*map(str, self._lock.place), self._generation)
            self._connection.execute(self._sql["move_lock"], moved)
            self._noted_lock = self._lock.place
        return is_restored


def require_no_owner(connection: apsw.Connection, path: Path, lock: FileIdentity) -> int:
    """Raise HomeInUseError when a process lives that owns this home; changes nothing else.

    `lock` is the lock file that we hold. Returns the generation of the last owner.
    """
    place = place_of(path)
    owner = _owner(connection)
    if owner is None or place is None:
        return 0
    if owner.is_of(place) and owner.lock != lock:
        if owner.process_space == process_space():
            if is_living(owner.process):
                raise _in_use(path, f"process {owner.process.pid}")
        elif _answers(connection):
            raise _in_use(path, f"process {owner.process.pid} of another machine or container")
    return owner.generation


def take_home(connection: apsw.Connection, path: Path, lock: HomeLock, *, after: int) -> HomeOwner:
    """Become the owner, as the holder of the lock, after the generation that was found gone.

    Raises HomeInUseError when another process has become the owner since.
    """
    place, process = place_of(path), own_identity()
    assert place is not None, "a home that is locked is there"
    connection.execute("begin immediate")
    try:
        last = _owner(connection)
        if last is not None and last.generation != after:
            raise _in_use(path, f"process {last.process.pid}")
        home = new_identity(path, place)
        if last is not None and last.is_of(place):
            home = msgspec.structs.replace(home, id=last.home.id)
        row = (
            after + 1,
            home.id,
            home.path,
            *map(str, place),
            *map(str, lock.place),
            process.pid,
            process.start_ticks,
            process_space(),
        )
        connection.execute(named_queries("home_owner")["take"], row)
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise
    original = None if last is None or last.home.id == home.id else last.home.path
    return HomeOwner(connection, path, lock, home, generation=after + 1, original=original)


def home_lost(path: Path) -> HomeLostError:
    """The folder of a home is not where it was when it was opened."""
    return HomeLostError(
        f"the folder {path} was moved, removed or replaced while it was served",
        hint="what was accepted is in the folder it was: move it back, or serve it there",
    )


def _owner(connection: apsw.Connection) -> _Owner | None:
    """The row; nothing in a home that is new, or was last opened by an older version."""
    sql = named_queries("home_owner")
    is_there = connection.execute(sql["has_table"]).fetchall()
    row = next(iter(connection.execute(sql["owner"])), None) if is_there else None
    if row is None:
        return None
    generation, home_id, path, device, inode, lock_device, lock_inode, pid, ticks, space = row
    return _Owner(
        generation=int(generation),
        home=HomeIdentity(id=home_id, path=path, device=int(device), inode=int(inode)),
        lock=FileIdentity(int(lock_device), int(lock_inode)),
        process=ProcessIdentity(int(pid), int(ticks), boot_id()),
        process_space=space,
    )


def _answers(connection: apsw.Connection) -> bool:
    """Whether an owner whose process cannot be seen from here is alive."""
    question = 1 + secrets.randbelow(_QUESTION_MAX)
    sql = named_queries("home_owner")
    connection.execute(sql["ask"], (question,))
    deadline_s = time.monotonic() + HOME_ANSWER_MS_MAX / SECOND_MS
    while time.monotonic() < deadline_s:
        if connection.execute(sql["is_answered"], (question,)).fetchall():
            return True
        time.sleep(_ANSWER_PAUSE_S)
    return False


def _in_use(path: Path, owner: str) -> HomeInUseError:
    return HomeInUseError(
        f"the home {path} is in use by {owner}, although its lock file was removed or replaced",
        hint="stop that process first, or use another HOLON_HOME; nothing was changed",
    )
