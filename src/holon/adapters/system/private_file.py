"""Small private files that are replaced atomically.

Owns:  creating a home folder, reading a bounded file, and replacing a file.
Rule 1: a new version is complete and on disk before it takes the name, so a crash or a full disk
        leaves the old one unchanged.
Rule 2: a new file has its mode from the first byte on, whatever the umask.
Rule 3: a read-modify-write holds the folder's lock, so two commands cannot undo each other's work.
"""

import fcntl
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from holon.model.errors import HolonError, HomeUnusableError

PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700


class FileUnusableError(HolonError):
    """A file of the home cannot be read or written."""

    code = "file_unusable"


class FolderUnusableError(FileUnusableError, HomeUnusableError):
    """A folder that should hold a home's files cannot be made or locked."""

    code = "file_unusable"


class FileContent(NamedTuple):
    """What a file holds, and who may look at it."""

    content: bytes
    mode: int


def read_bounded(path: Path, *, bytes_max: int) -> FileContent | None:
    """Return a file's content, or nothing when there is no such file."""
    try:
        # A pipe in the file's place must not make us wait for a writer.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(path, "read", error) from error
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise FileUnusableError(f"{path} is not a plain file", hint="move it away")
        with os.fdopen(handle, "rb", closefd=False) as file:
            content = file.read(bytes_max + 1)
    except OSError as error:
        raise _unusable(path, "read", error) from error
    finally:
        os.close(handle)
    if len(content) > bytes_max:
        raise FileUnusableError(f"{path} is larger than {bytes_max} bytes")
    return FileContent(content=content, mode=stat.S_IMODE(facts.st_mode))


def make_home(home: Path) -> None:
    """Make the folder, private to its owner, unless it exists."""
    try:
        missing = not home.exists()
        home.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        if missing:
            home.chmod(PRIVATE_FOLDER)  # an odd umask may have taken the owner's own rights
    except OSError as error:
        raise _folder_unusable(home, "made", error) from error


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Keep other writers of the folder's files out while the block runs."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _folder_unusable(folder, "opened", error) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:  # a file system that has no locks
            raise _folder_unusable(folder, "locked", error) from error
        yield
    finally:
        os.close(handle)


def replace_file(path: Path, content: bytes, *, mode: int = PRIVATE_FILE) -> None:
    """Put `content` in the file's place, or raise FileUnusableError and leave the old one."""
    target = Path(os.path.realpath(path))  # a link stays a link
    draft = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        _write_draft(draft, content, mode=mode)
        draft.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        with suppress(OSError):  # a disk that takes no writes has no draft to remove
            draft.unlink(missing_ok=True)
        raise _unusable(path, "written", error) from error


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_draft(draft: Path, content: bytes, *, mode: int) -> None:
    draft.unlink(missing_ok=True)  # left by one with our numbers that was killed
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(draft, flags, mode & PRIVATE_FILE), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _folder_unusable(path: Path, deed: str, error: OSError) -> FolderUnusableError:
    return FolderUnusableError(
        f"{path} cannot be {deed}: {error.strerror}",
        hint="check its owner, its permissions and the disk, or set HOLON_HOME elsewhere",
    )


def _unusable(path: Path, deed: str, error: OSError) -> FileUnusableError:
    return FileUnusableError(
        f"{path} cannot be {deed}: {error.strerror}",
        hint="check its owner, its permissions and the disk",
    )
