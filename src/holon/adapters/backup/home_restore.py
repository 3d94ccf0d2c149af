"""Restore a home from a backup: all of it, or nothing.

Owns:  reading a backup that may have been tampered with, and giving the finished home its name.
Rule 1: everything is extracted into a private folder beside the home, compared with the manifest
        and checked, before the home's path is touched.
Rule 2: a backup can create regular files and folders below that folder only: links, devices, odd
        names and files missing from the manifest abort the restore.
Rule 3: no header decides how much memory is used: each read is bounded.
Rule 4: a restored home is another timeline: its log gets a new epoch, so that clients that followed
        the old one notice.
Rule 5: a home in use is never replaced. One that is not is kept beside the new one, and never
        inside the private folder, which is removed in any case.
Rule 6: what a killed restore left is removed by the next one there.
"""

import ctypes
import errno
import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from holon.adapters.backup.backup_format import (
    DATABASE,
    FORMAT,
    HOME,
    MANIFEST,
    SECRETS,
    VERSION,
    BackedUpFile,
    BadBackupError,
    HomeNotEmptyError,
    Manifest,
    require_known_name,
)
from holon.adapters.backup.home_backup import Progress
from holon.adapters.files.new_tree import place, scratch_in, sweep_abandoned
from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database.checkpoints import truncate_log
from holon.adapters.sqlite.database.connection import open_writer
from holon.adapters.sqlite.database.error_mapping import opening_errors
from holon.adapters.sqlite.database.home_lock import HomeLock
from holon.adapters.sqlite.database.migrate import begin_epoch, epoch_of, inspect_file, migrate
from holon.adapters.system.private_file import PRIVATE_FILE, PRIVATE_FOLDER, make_home, sync_folder
from holon.model.errors import HolonError, HomeUnusableError, StoreError
from holon.model.limits import (
    BACKUP_FILES_COUNT_MAX,
    BACKUP_MANIFEST_BYTES_MAX,
    BACKUP_READ_BYTES_MAX,
    MIB,
)

USER_FILES: Final = "user-files"  # below the restored home: another home's owner may have their own
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
_PLAIN: Final = (tarfile.REGTYPE, tarfile.AREGTYPE)


class RestoreRequest(NamedTuple):
    """What is to be restored, and where to."""

    file: Path
    home: Path
    replaces: bool = False


class Restored(NamedTuple):
    """The result of a restore."""

    manifest: Manifest
    event_log_epoch: str
    kept: Path | None  # where the home is that was replaced
    user_files: Path | None  # templates and skills of the user, to be looked through


def restore(request: RestoreRequest, progress: Progress, *, now: datetime) -> Restored:
    """Make a home of a backup, or raise BadBackupError, HomeUnusableError or a StoreError."""
    with _home_errors(request), _free(request), _scratch_beside(request.home) as scratch:
        restored_home = scratch / "home"
        restored_home.mkdir(mode=PRIVATE_FOLDER)
        with _opened(request.file) as file:
            manifest = _Reader(file, restored_home, progress).take_out()
        epoch = _another_timeline(restored_home / DATABASE.removeprefix(f"{HOME}/"), progress)
        os.sync()  # of thousands of files this is faster than one sync each
        previous = _publish(restored_home, request, now=now)
    user_files = request.home / USER_FILES
    return Restored(manifest, epoch, previous, user_files if user_files.is_dir() else None)


@contextmanager
def _home_errors(request: RestoreRequest) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else request.home
        raise HomeUnusableError(
            f"{where} cannot be used: {error.strerror}",
            hint="check its owner, its permissions and the disk; nothing was restored",
        ) from error


@contextmanager
def _free(request: RestoreRequest) -> Iterator[None]:
    """Hold the place of the home, so that no service comes up there meanwhile."""
    home = request.home
    if home.is_symlink() or (home.exists() and not home.is_dir()):
        raise HomeNotEmptyError(
            f"{home} is not a directory", hint="restore to a new directory with --home"
        )
    make_home(home.parent)
    is_there = home.is_dir() and any(home.iterdir())
    if is_there and not request.replaces:
        raise HomeNotEmptyError(
            f"{home} is not empty",
            hint="restore to a new directory with --home, or add --replace to keep this one beside"
            " the restored one",
        )
    lock = HomeLock(home) if is_there and (home / "run").is_dir() else None
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


@contextmanager
def _scratch_beside(home: Path) -> Iterator[Path]:
    sweep_abandoned(home.parent)
    with scratch_in(home.parent) as scratch:
        yield scratch


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise BadBackupError(
            f"{path} cannot be read: {error.strerror}", hint="name a file that `holon backup` made"
        ) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise BadBackupError(f"{path} is not a plain file")
    with os.fdopen(handle, "rb", buffering=0) as raw:
        yield _Bounded(raw)  # type: ignore[misc]  # what tarfile needs of a file


class _Bounded:
    """A file with a bound on each read, whatever a header claims."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= BACKUP_READ_BYTES_MAX:
            raise BadBackupError("the backup has a header that is too large")
        pieces = bytearray()
        while len(pieces) < size and (piece := self._raw.read(size - len(pieces))):
            pieces += piece
        return bytes(pieces)

    def seek(self, position: int, whence: int = 0) -> int:
        return self._raw.seek(position, whence)

    def tell(self) -> int:
        return self._raw.tell()


class _Reader:
    """Extracts one backup into a private folder."""

    def __init__(self, file: BinaryIO, restored_home: Path, progress: Progress) -> None:
        self._file = file
        self._target = restored_home
        self._progress = progress
        self._files: dict[str, BackedUpFile] = {}
        self._folders: set[str] = set()

    def take_out(self) -> Manifest:
        """Take everything out and compare it with the manifest."""
        try:
            manifest = self._take_all()
        except (tarfile.TarError, EOFError, UnicodeError, ValueError, OverflowError) as error:
            raise BadBackupError(f"the file is no backup, or it is damaged: {error}") from error
        if manifest is None:
            raise BadBackupError("the backup has no manifest: its end is missing")
        _require_known(manifest)
        declared = {each.path: each for each in manifest.files}
        if declared != self._files or len(declared) != len(manifest.files):
            differing = sorted({*declared, *self._files} - _equal_entries(declared, self._files))[
                :3
            ]
            raise BadBackupError(
                f"the backup is damaged: {', '.join(differing)} is not what its manifest says"
            )
        if DATABASE not in declared:
            raise BadBackupError("the backup holds no database")
        return manifest

    def _take_all(self) -> Manifest | None:
        manifest: Manifest | None = None
        with tarfile.open(fileobj=self._file, mode="r:") as tar:
            while (member := tar.next()) is not None:
                tar.members.clear()  # type: ignore[attr-defined]  # it would keep every one
                if manifest is not None:
                    raise BadBackupError("the backup goes on after its manifest")
                if len(self._files) + len(self._folders) > BACKUP_FILES_COUNT_MAX:
                    raise BadBackupError("the backup holds too many files")
                if member.name == MANIFEST:
                    manifest = self._manifest(tar, member)
                else:
                    self._take(tar, member)
        return manifest

    def _take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        name = member.name
        require_known_name(name)
        if name in self._files or name in self._folders:
            raise BadBackupError(f"the backup holds {name} twice")
        if member.type == tarfile.DIRTYPE:
            self._folders.add(name)
            self._place_of(name).mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            return
        target = self._place_of(name)
        target.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        content = _content_of(tar, member)
        try:
            handle = os.open(target, flags, PRIVATE_FILE)
        except (FileExistsError, NotADirectoryError):
            raise BadBackupError(f"the backup holds {name} twice") from None
        digest = hashlib.sha256()
        with os.fdopen(handle, "wb") as file:
            while piece := content.read(BACKUP_READ_BYTES_MAX // 2):
                digest.update(piece)
                file.write(piece)
                self._progress("taking out the files", file.tell() // MIB, member.size // MIB)
            os.fchmod(handle, _mode_of(name, member.mode))
            size = file.tell()
        self._files[name] = BackedUpFile(path=name, bytes=size, sha256=digest.hexdigest())

    def _place_of(self, name: str) -> Path:
        top, _, below = name.partition("/")
        folder = self._target if top == HOME else self._target / USER_FILES
        return folder / below if below else folder

    def _manifest(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> Manifest:
        if member.size > BACKUP_MANIFEST_BYTES_MAX:
            raise BadBackupError("the manifest of the backup is too large")
        content, pieces = _content_of(tar, member), bytearray()
        while piece := content.read(BACKUP_READ_BYTES_MAX // 2):
            pieces += piece
        try:
            return msgspec.json.decode(pieces, type=Manifest)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise BadBackupError(f"the manifest of the backup cannot be read: {error}") from error


def _equal_entries(declared: dict[str, BackedUpFile], actual: dict[str, BackedUpFile]) -> set[str]:
    return {path for path, each in declared.items() if actual.get(path) == each}


def _require_known(manifest: Manifest) -> None:
    if manifest.format != FORMAT:
        raise BadBackupError("the file is no backup of a Holon home")
    if manifest.version != VERSION:
        raise BadBackupError(
            f"the backup has format {manifest.version}, and this Holon knows {VERSION}",
            hint="restore it with the Holon that made it",
        )


def _content_of(tar: tarfile.TarFile, member: tarfile.TarInfo) -> BinaryIO:
    if member.type not in _PLAIN or member.issparse():
        raise BadBackupError(
            f"the backup holds {member.name}, which is no plain file",
            hint="it was not made by `holon backup`; nothing was restored",
        )
    content = tar.extractfile(member)
    if content is None:
        raise BadBackupError(f"{member.name} cannot be read from the backup")
    return content  # type: ignore[return-value]  # as its stub says IO[bytes]


def _mode_of(name: str, mode: int) -> int:
    """The mode of a file: its own, where it is an agent's; no other user may ever write to it."""
    is_private = name == DATABASE or name.removeprefix(f"{HOME}/") in SECRETS
    return PRIVATE_FILE if is_private else PRIVATE_FILE | (mode & 0o155)


def _another_timeline(path: Path, progress: Progress) -> str:
    """Bring the database up to date, begin its new timeline, and check all of it."""
    progress("checking the database", 0, 1)
    try:
        inspect_file(path)
        with opening_errors(path):
            connection = open_writer(path)
            try:
                migrate(connection)
                begin_epoch(connection)
                epoch = epoch_of(connection)
                truncate_log(connection)
            finally:
                connection.close()
        report = check_database(path)
    except StoreError as error:
        raise _unsound(error) from error
    if not report.is_clean:
        raise BadBackupError(
            f"the database in the backup is not sound: {report.violations[0]}",
            hint="use an older backup; nothing was restored",
        )
    progress("checking the database", 1, 1)
    return epoch


def _unsound(error: HolonError) -> BadBackupError:
    return BadBackupError(f"the database in the backup cannot be used: {error.message}")


def _publish(restored_home: Path, request: RestoreRequest, *, now: datetime) -> Path | None:
    home = request.home
    if not (home.is_dir() and any(home.iterdir())):
        if home.is_dir():
            home.rmdir()
        place(restored_home, home)
        return None
    if not request.replaces:
        raise HomeNotEmptyError(f"{home} is not empty any more", hint="nothing was restored")
    previous = home.with_name(f"{home.name}.before-restore-{now:%Y%m%dT%H%M%SZ}")
    if os.path.lexists(previous):
        raise HomeNotEmptyError(f"{previous} is already there", hint="try again in a moment")
    restored_home.rename(previous)
    try:
        _exchange(previous, home)
    except OSError:
        previous.rename(restored_home)
        raise
    sync_folder(home.parent)
    return previous


def _exchange(restored_home: Path, home: Path) -> None:
    """Let two folders change names, at once where the system can: a crash leaves one of them."""
    libc = ctypes.CDLL(None, use_errno=True)
    names = (_AT_FDCWD, os.fsencode(restored_home), _AT_FDCWD, os.fsencode(home))
    if hasattr(libc, "renameat2") and libc.renameat2(*names, _RENAME_EXCHANGE) == 0:
        return
    if ctypes.get_errno() not in (0, errno.ENOSYS, errno.EINVAL):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(home))
    aside = restored_home.with_name(f"{restored_home.name}.aside")
    home.rename(aside)
    try:
        restored_home.rename(home)
    except OSError:
        aside.rename(home)
        raise
    aside.rename(restored_home)
