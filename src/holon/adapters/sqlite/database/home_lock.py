"""The lock of a home: one process at a time.

Owns:  the lock on `<home>/run/lock` and the directories of a home.
Rule 1: the lock is the kernel's (`flock`) and held for the life of the process, so a crash releases
        it and a stale file means nothing. The pid inside is only for people.
Rule 2: the second process is refused and has changed nothing: at once, or a moment later when the
        first has not recorded its pid yet.
Rule 3: a lock counts only while its path names the locked file: other processes cannot see the lock
        of a deleted file. That is checked after locking, and now and then. An owner restores the
        path; meanwhile the database says that there is an owner (see home_owner).
"""

import errno
import fcntl
import os
import time
from pathlib import Path
from typing import Final

from holon.adapters.system.home_identity import FileIdentity, place_of
from holon.model.errors import HomeInUseError, StoreUnwritableError

NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_PID_BYTES_MAX: Final = 32
_LOOKS_COUNT_MAX: Final = 20
_LOOK_PAUSE_S: Final = 0.01
_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_HELD: Final = "stop that process first, or use another HOLON_HOME"
_SERVED: Final = (
    "it is a service: ask its agents with `holon prompt --wait`, end it with `holon daemon stop`,"
    " or use another HOLON_HOME"
)


def database_path(home: Path) -> Path:
    """Return where a home keeps its database."""
    return home / "state" / "runtime.sqlite"


def prepare_home(home: Path) -> None:
    """Make the directories of a home, private to their owner, or raise StoreUnwritableError."""
    _prepare(home, home / "run", home / "state")


def prepare_run(home: Path) -> None:
    """Make what the lock of a home needs, and no folder where its database may be put back."""
    _prepare(home, home / "run")


def _prepare(*folders: Path) -> None:
    for folder in folders:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(folder, error) from error
        if not os.access(folder, os.W_OK | os.X_OK):
            raise StoreUnwritableError(
                f"the directory {folder} is not writable",
                hint="check its owner and permissions, or set HOLON_HOME to another directory",
            )


def _serves(home: Path, holder: str) -> bool:
    """Whether the holder has said that it is a service; for a hint, so a guess will do."""
    try:
        with (home / "run" / "holon.pid").open("rb") as file:
            return file.read(_PID_BYTES_MAX).decode("ascii", "replace").strip() == holder
    except OSError:
        return False


class HomeLock:
    """Ownership of a home for as long as this object is not released."""

    def __init__(self, home: Path) -> None:
        """Take the lock, or raise HomeInUseError naming the process that has it."""
        self.path = home / "run" / "lock"
        self._handle = -1
        for _ in range(_LOOKS_COUNT_MAX):  # again when the file went before it was locked
            self._handle = self._taken(home)
            if self._handle >= 0:
                return
        raise StoreUnwritableError(
            f"{self.path} is removed again and again",
            hint="find out what removes it, or set HOLON_HOME elsewhere",
        )

    def _taken(self, home: Path) -> int:
        """Return a handle on the lock, or -1 when the file is not there any more."""
        try:
            handle = os.open(self.path, _OPEN, 0o600)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        try:
            if not _is_taken(handle, self.path):
                os.close(handle)
                return -1
        except BlockingIOError:
            holder = _holder(handle)
            os.close(handle)
            raise HomeInUseError(
                f"the home {home} is in use by process {holder}",
                hint=_SERVED if _serves(home, holder) else _HELD,
            ) from None
        except OSError as error:
            os.close(handle)
            if error.errno in NO_LOCKS:
                raise StoreUnwritableError(
                    f"the file system of {self.path} has no locks: {error.strerror}",
                    hint="a home needs a local disk: set HOLON_HOME to a directory on one",
                ) from error
            raise _unwritable(self.path, error) from error
        return handle

    @property
    def place(self) -> FileIdentity:
        """The file that is locked."""
        facts = os.fstat(self._handle)
        return FileIdentity(facts.st_dev, facts.st_ino)

    def restored(self) -> bool:
        """Whether the path had to be put back, since it named another file or none.

        Raises OSError when that cannot be done now; the file that is locked stays so.
        """
        if place_of(self.path, follow=False) == self.place:
            return False
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(self.path, _OPEN, 0o600)
        try:
            is_taken = _is_taken(handle, self.path)
        except BlockingIOError:  # by one who finds in a moment that the home has an owner
            is_taken = False
        except BaseException:
            os.close(handle)
            raise
        if is_taken:
            handle, self._handle = self._handle, handle
        os.close(handle)
        return is_taken

    def release(self) -> None:
        """Let the next process have the home."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _is_taken(handle: int, path: Path) -> bool:
    """Lock an open file, and say in it who has it; False when the path names it no more.

    Raises BlockingIOError when another process has it.
    """
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    facts = os.fstat(handle)
    if place_of(path, follow=False) != FileIdentity(facts.st_dev, facts.st_ino):
        return False
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    return True


def _holder(handle: int) -> str:
    """Name the holder, which has the lock a moment before it has written who it is."""
    for _ in range(_LOOKS_COUNT_MAX):
        if _is_alive(_written(handle)):
            break
        time.sleep(_LOOK_PAUSE_S)
    return _written(handle) or "unknown"


def _written(handle: int) -> str:
    text = os.pread(handle, _PID_BYTES_MAX, 0).decode("ascii", "replace").strip()
    return text if text.isdecimal() else ""


def _is_alive(pid: str) -> bool:
    """Whether there is such a process; the pid of an earlier holder is mostly none any more."""
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    return True


def _unwritable(path: Path, error: OSError) -> StoreUnwritableError:
    return StoreUnwritableError(
        f"{path} cannot be written: {error.strerror}",
        hint="check its owner, its permissions and the disk, or set HOLON_HOME elsewhere",
    )
