"""Back up a home while its service runs.

Owns:  the database snapshot, the files that join it, and putting the finished file in place.
Rule 1: the database is copied in one read transaction: it holds whole group commits, and everything
        acknowledged before the copy began. The files of agents are read after it.
Rule 2: a backup counts only after SQLite's integrity check and every invariant passed on the copy
        that goes into the file.
Rule 3: the file gets its name only when it is complete and on disk, with mode 0600; a failure
        before leaves nothing. What a killed backup left is removed by the next one there.
Rule 4: memory is bounded: files are streamed. A file that changes while it is read is stored as one
        of its states by size, with the digest of the bytes stored.
"""

import errno
import hashlib
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias

import apsw
import msgspec

from holon import __version__
from holon.adapters.backup.backup_format import (
    AGENTS,
    CONFIG,
    DATABASE,
    FORMAT,
    HOME,
    MANIFEST,
    NEVER,
    SECRETS,
    USER,
    USER_FOLDER,
    VERSION,
    BackedUpFile,
    BackupFailedError,
    Manifest,
    SkippedFile,
    is_made_anew,
)
from holon.adapters.files.new_tree import place, scratch_in, sweep_abandoned
from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.check.untouched import OpenMode, open_mode_of, open_untouched
from holon.adapters.sqlite.database.error_mapping import running_error
from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.system.private_file import PRIVATE_FILE, sync_folder
from holon.model.limits import (
    BACKUP_DEPTH_MAX,
    BACKUP_FILES_COUNT_MAX,
    BACKUP_NAME_BYTES_MAX,
    MIB,
)

Progress: TypeAlias = Callable[[str, int, int], None]  # what is done, how far, of how much
_PAGES_PER_STEP: Final = 1_024
_LOOKS_MAX: Final = 3
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FAULTS_SHOWN: Final = 5
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


class BackupRequest(NamedTuple):
    """What is to be backed up, and where to."""

    home: Path
    file: Path
    user_home: Path | None = None
    with_secrets: bool = False
    overwrites: bool = False


def back_up(request: BackupRequest, progress: Progress, *, now: datetime) -> Manifest:
    """Make a backup, or raise BackupFailedError or a StoreError and leave no file."""
    _require_place(request)
    sweep_abandoned(request.file.parent)
    with _scratch_beside(request.file) as scratch:
        copied, written = scratch / "runtime.sqlite", scratch / "backup.tar"
        schema_version = _copied_whole(database_path(request.home), copied, progress)
        _require_sound(copied, progress)
        with _private(written) as file:
            writer = _Writer(file, scratch / "file", progress)
            writer.add(copied, DATABASE)
            manifest = writer.finish(request, schema_version, now=now)
            file.flush()
            os.fsync(file.fileno())
        _put_in_place(written, request.file, overwrites=request.overwrites)
        sync_folder(request.file.parent)
    return manifest


def _require_place(request: BackupRequest) -> None:
    file = request.file
    if file.is_dir() or (os.path.lexists(file) and not request.overwrites):
        raise BackupFailedError(
            f"{file} is already there", hint="choose another name, or add --overwrite"
        )
    if not file.parent.is_dir():
        raise BackupFailedError(f"there is no directory {file.parent}", hint="make it first")
    if file.parent.resolve().is_relative_to(request.home.resolve()):
        raise BackupFailedError(
            f"{file} lies in the home it would be a backup of",
            hint="choose a place outside of it, best on another disk",
        )


@contextmanager
def _scratch_beside(file: Path) -> Iterator[Path]:
    """Yield a private folder on the same disk, which is gone afterwards."""
    try:
        with scratch_in(file.parent) as scratch:
            yield scratch
    except FileExistsError as taken:
        raise BackupFailedError(
            f"{file} is already there", hint="choose another name, or add --overwrite"
        ) from taken
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise BackupFailedError(
            f"{error.filename or file} cannot be written: {error.strerror}",
            hint="free disk space: about twice the size of the home is needed for a while"
            if full
            else "check the directory, its owner and the disk",
        ) from error
    except apsw.Error as error:
        raise running_error(error) from error


def _put_in_place(written: Path, file: Path, *, overwrites: bool) -> None:
    if overwrites:
        written.replace(file)
        return
    try:
        os.link(written, file)  # unlike a rename, never in the place of another file
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        place(written, file)


@contextmanager
def _private(path: Path) -> Iterator[BinaryIO]:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, PRIVATE_FILE), "w+b") as file:
        yield file


def _copied_whole(path: Path, target: Path, progress: Progress) -> int:
    """Copy the database as of one moment; return the version of its schema."""
    for _ in range(_LOOKS_MAX):
        manner = open_mode_of(path)
        target.unlink(missing_ok=True)
        with _private(target):
            pass  # so that it has its mode before it holds anything
        version = _copied(path, target, progress)
        if manner is OpenMode.LIVE or open_mode_of(path) is manner:
            return version  # else a service came up meanwhile, and the copy may be torn
    raise BackupFailedError(
        f"services come and go at {path.parent.parent}", hint="try again in a moment"
    )


def _copied(path: Path, target: Path, progress: Progress) -> int:
    with open_untouched(path) as source:
        copy = apsw.Connection(str(target))
        try:
            copy.pragma("synchronous", "off")  # it is synced as a part of the whole file
            with copy.backup("main", source, "main") as copying:
                while not copying.done:
                    copying.step(_PAGES_PER_STEP)
                    total = copying.page_count
                    progress("copying the database", total - copying.remaining, total)
        finally:
            copy.close()
        return int(str(source.pragma("user_version")))


def _require_sound(copied: Path, progress: Progress) -> None:
    progress("checking the copy", 0, 1)
    report = check_database(copied)
    if not report.is_clean:
        first = "; ".join(str(each) for each in report.violations[:_FAULTS_SHOWN])
        raise BackupFailedError(
            f"the database is not sound, {len(report.violations)} findings: {first}",
            hint="see all of them with `holon debug check`; restore the newest sound backup",
        )
    progress("checking the copy", 1, 1)


class _Writer:
    """The growing tar file."""

    def __init__(self, file: BinaryIO, staged: Path, progress: Progress) -> None:
        self._tar = tarfile.TarFile(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)
        self._staged = staged
        self._progress = progress
        self._files: list[BackedUpFile] = []
        self._folders: list[str] = []
        self._skipped: list[SkippedFile] = []
        self._left_out: list[str] = []
        self._bytes = 0

    def add(self, path: Path, name: str) -> None:
        """Add a file that no other process writes to."""
        with path.open("rb") as file:
            facts = os.fstat(file.fileno())
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            self._put(name, file, facts.st_size, mode=stat.S_IMODE(facts.st_mode))
        self._files.append(BackedUpFile(path=name, bytes=facts.st_size, sha256=digest))

    def finish(self, request: BackupRequest, schema_version: int, *, now: datetime) -> Manifest:
        """Add everything else, and the manifest at the end."""
        self._add_named(request.home, CONFIG)
        for name in SECRETS:
            if request.with_secrets:
                self._add_named(request.home, name)
            elif os.path.lexists(request.home / name):
                self._left_out.append(name)
        self._left_out.extend(name for name in NEVER if os.path.lexists(request.home / name))
        self._add_tree(request.home / AGENTS, f"{HOME}/{AGENTS}")
        if request.user_home is not None:
            self._add_tree(request.user_home / USER_FOLDER, f"{USER}/{USER_FOLDER}")
        manifest = Manifest(
            format=FORMAT,
            version=VERSION,
            holon_version=__version__,
            schema_version=schema_version,
            created_at=now,
            home_dir=str(request.home),
            files=tuple(self._files),
            folders=tuple(self._folders),
            skipped=tuple(self._skipped),
            left_out=tuple(self._left_out),
        )
        self._staged.write_bytes(msgspec.json.encode(manifest))
        with self._staged.open("rb") as file:
            self._put(MANIFEST, file, self._staged.stat().st_size, mode=PRIVATE_FILE)
        self._tar.close()
        return manifest

    def _put(self, name: str, file: BinaryIO, size: int, *, mode: int) -> None:
        member = tarfile.TarInfo(name)
        member.size, member.mode = size, mode
        self._tar.addfile(member, file)
        self._tar.members.clear()  # type: ignore[attr-defined]  # it would keep every one
        self._bytes += size

    def _add_named(self, folder: Path, name: str) -> None:
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            self._skip(f"{HOME}/{name}", error.strerror or "it cannot be read")
            return
        try:
            if os.path.lexists(folder / name):
                self._add_at(handle, name, f"{HOME}/{name}")
        finally:
            os.close(handle)

    def _add_tree(self, folder: Path, name: str) -> None:
        """Add what is below a folder; a link is not followed, wherever it stands."""
        if folder.is_symlink() or not folder.is_dir():
            return

        def unreadable(error: OSError) -> None:
            self._skip(name, f"{error.filename} cannot be read: {error.strerror}")

        for root, folders, files, handle in os.fwalk(folder, onerror=unreadable):
            below = Path(root).relative_to(folder)
            place = name if below == Path() else f"{name}/{below}"
            self._folders.append(place)
            self._put_folder(place, os.fstat(handle).st_mode)
            for each in list(folders):
                if not self._is_to_enter(handle, each, f"{place}/{each}"):
                    folders.remove(each)
            for each in files:
                if not is_made_anew(each):
                    self._add_at(handle, each, f"{place}/{each}")

    def _is_to_enter(self, handle: int, name: str, place: str) -> bool:
        if place == f"{HOME}/{AGENTS}/.births":
            return False  # of agents that were being made just then
        if not self._is_storable(place):
            return False
        if stat.S_ISLNK(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
            self._skip(place, "it is a symbolic link")
            return False
        return True

    def _is_storable(self, place: str) -> bool:
        try:
            size = len(place.encode())
        except UnicodeError:
            self._skip(place.encode(errors="backslashreplace").decode(), "its name is no text")
            return False
        if size > BACKUP_NAME_BYTES_MAX or place.count("/") >= BACKUP_DEPTH_MAX:
            self._skip(place[:BACKUP_NAME_BYTES_MAX], "it lies too deep")
            return False
        return True

    def _put_folder(self, place: str, mode: int) -> None:
        member = tarfile.TarInfo(place)
        member.type, member.mode = tarfile.DIRTYPE, stat.S_IMODE(mode)
        self._tar.addfile(member)

    def _add_at(self, folder: int, name: str, place: str) -> None:
        """Add a file that may change meanwhile: what is added is a copy of it."""
        if len(self._files) + len(self._folders) >= BACKUP_FILES_COUNT_MAX:
            raise BackupFailedError(
                f"the home has more than {BACKUP_FILES_COUNT_MAX} files and folders",
                hint="move what agents do not need, such as packages they installed, out of the"
                " home",
            )
        if not self._is_storable(place):
            return
        try:
            handle = os.open(name, _FLAGS, dir_fd=folder)
        except OSError as error:
            is_link = error.errno == errno.ELOOP
            self._skip(place, "it is a symbolic link" if is_link else str(error.strerror))
            return
        with os.fdopen(handle, "rb") as file:
            facts = os.fstat(handle)
            if not stat.S_ISREG(facts.st_mode):
                self._skip(place, "it is no plain file")
                return
            try:
                size, digest = self._stage(file, facts.st_size)
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise
                self._skip(place, str(error.strerror))
                return
        with self._staged.open("rb") as staged:
            self._put(place, staged, size, mode=stat.S_IMODE(facts.st_mode))
        self._files.append(BackedUpFile(path=place, bytes=size, sha256=digest))
        self._progress("adding the files of agents", len(self._files), 0)

    def _stage(self, file: BinaryIO, size: int) -> tuple[int, str]:
        """Copy as much of a file as there was when it was opened."""
        digest, left = hashlib.sha256(), size
        with self._staged.open("wb") as staged:
            while left and (piece := file.read(min(left, MIB))):
                digest.update(piece)
                staged.write(piece)
                left -= len(piece)
        return size - left, digest.hexdigest()

    def _skip(self, place: str, reason: str) -> None:
        with suppress(UnicodeError):
            place.encode()
            self._skipped.append(SkippedFile(path=place, reason=reason))
