"""Replace several files atomically: all of them or none.

Owns:  draft files and their names, telling drafts in use from those of a killed process, and their
       cleanup; the steps of a replacement and how each is undone.
Rule 1: the creator of drafts in a folder holds a shared lock on it. The kernel releases the lock
        when its holder dies, so a folder that can be locked exclusively holds leftovers only.
Rule 2: before drafts are created below the root, a draft in the root itself lists their folders.
        The next replacement under that root finds leftovers wherever they are.
Rule 3: only regular files with the name of a draft are ever removed, whatever a list says.
Rule 4: new versions are complete and on disk before the first rename. A name always refers to the
        whole old file or the whole new one.
Rule 5: every step that changes something first records how it is undone. When a later one fails,
        all are undone in reverse order.
Rule 6: a crash leaves whole files, some of them perhaps old, and drafts that are never read. The
        next replacement under the same root removes them.
Rule 7: a change that states the content it was made for applies to that content only. That is
        checked before anything is written, right before the rename, and once more in the file the
        rename replaced.
"""

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, NamedTuple

from holon.adapters.files.openat import open_beneath, open_folder, parts_of
from holon.ports.workspaces import (
    AnyContent,
    FileChange,
    FileChangedError,
    FileRefusedError,
    PathEscapeError,
    StoredFile,
)

DRAFT_PREFIX: Final = ".holon-draft-"
NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DRAFT: Final = re.compile(re.escape(DRAFT_PREFIX) + r"[0-9a-f]{16}")
_LIST_HEAD: Final = b"folders with drafts\0"
_LIST_BYTES_MAX: Final = 4 << 20
_TRIES_COUNT_MAX: Final = 50
_TRY_AGAIN_S: Final = 0.01
_PERMISSIONS: Final = 0o777
_CHUNK_BYTES: Final = 1 << 20
_NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
Watch = Callable[[str], None]


def draft_name() -> str:
    """Return an unused random name."""
    return f"{DRAFT_PREFIX}{os.urandom(8).hex()}"


def hold_folder(folder: int, *, root: int) -> None:
    """Sweep a folder's leftovers, then lock it for as long as its handle is open."""
    with _alone(folder) as is_alone:
        if is_alone:
            _sweep(folder, root)
    for _ in range(_TRIES_COUNT_MAX):
        if _is_locked(folder, fcntl.LOCK_SH):
            return
        time.sleep(_TRY_AGAIN_S)  # another process is removing leftovers, which is short


def write_list(root: int, folders: Sequence[str]) -> str:
    """Write down in which folders drafts will be; return the name of the list."""
    name = draft_name()
    handle = os.open(name, NEW_FILE, 0o600, dir_fd=root)
    try:
        os.write(handle, _LIST_HEAD + b"\0".join(os.fsencode(folder) for folder in folders))
    finally:
        os.close(handle)
    return name


def _sweep(folder: int, root: int) -> None:
    for name in os.listdir(folder):
        if not _DRAFT.fullmatch(name):
            continue
        with suppress(OSError):
            if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                continue
            for listed in _listed(folder, name):
                _sweep_beneath(root, listed)
            os.unlink(name, dir_fd=folder)


def _sweep_beneath(root: int, path: str) -> None:
    try:
        folder = open_folder(root, parts_of(path))
    except (OSError, PathEscapeError, FileRefusedError):
        return  # it is gone, or was never ours
    try:
        with _alone(folder) as is_alone:
            if is_alone:
                for name in filter(_DRAFT.fullmatch, os.listdir(folder)):
                    with suppress(OSError):
                        os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)


def _listed(folder: int, name: str) -> list[str]:
    """Return the folders a draft lists, if it is a list."""
    handle = open_beneath(folder, (name,), os.O_RDONLY | os.O_NONBLOCK)
    try:
        content = os.read(handle, _LIST_BYTES_MAX)
    finally:
        os.close(handle)
    if not content.startswith(_LIST_HEAD):
        return []
    return [os.fsdecode(part) for part in content[len(_LIST_HEAD) :].split(b"\0") if part]


@contextmanager
def _alone(folder: int) -> Iterator[bool]:
    """Yield whether no other process works in a folder, and keep it so in the block."""
    is_alone = _is_locked(folder, fcntl.LOCK_EX)
    try:
        yield is_alone
    finally:
        if is_alone:
            fcntl.flock(folder, fcntl.LOCK_UN)


def _is_locked(folder: int, kind: int) -> bool:
    try:
        fcntl.flock(folder, kind | fcntl.LOCK_NB)
    except OSError:  # held by another, or this file system has no locks
        return False
    return True


class _Slot(NamedTuple):
    """A name in an open directory, what stood there, and what must still stand there."""

    folder: int
    name: str
    before: os.stat_result | None
    expected: StoredFile | AnyContent | None

    @property
    def path_facts(self) -> os.stat_result | None:
        """What stands there now, without following a link."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None


class Replacement:
    """One all-or-nothing change of files beneath an open root.

    `watch` hears the name of every step before it is taken; it may raise to stop it.
    """

    def __init__(self, root: int, watch: Watch) -> None:
        self._root = root
        self._watch = watch
        self._folders: dict[tuple[str, ...], int] = {}
        self._leftovers: list[tuple[int, str]] = []

    def make(self, changes: Sequence[FileChange]) -> None:
        """Make all changes, or raise with none made."""
        with ExitStack() as handles:
            hold_folder(self._root, root=self._root)
            with ExitStack() as undo:
                self._list_folders(changes, undo)
                slots = [self._slot(change, handles, undo) for change in changes]
                drafts = [
                    None if change.after is None else self._draft(slot, change.after, undo)
                    for slot, change in zip(slots, changes, strict=True)
                ]
                for slot, draft in zip(slots, drafts, strict=True):
                    self._put(slot, draft, undo)
                for folder in dict.fromkeys(self._folders.values()):
                    self._watch("sync folder")
                    os.fsync(folder)
                undo.pop_all()  # from here on it is done
            for folder, name in reversed(self._leftovers):  # the list of folders goes last
                with suppress(OSError):
                    self._watch("sweep")
                    os.unlink(name, dir_fd=folder)

    def _list_folders(self, changes: Sequence[FileChange], undo: ExitStack) -> None:
        parents = dict.fromkeys("/".join(parts_of(change.path)[:-1]) for change in changes)
        if any(parents):
            self._watch("list folders")
            name = write_list(self._root, [path for path in parents if path])
            undo.callback(self._unlink_draft, os.unlink, name, self._root)
            self._leftovers.append((self._root, name))

    def _slot(self, change: FileChange, handles: ExitStack, undo: ExitStack) -> _Slot:
        parts = parts_of(change.path)
        creates = change.after is not None
        folder = self._folder(parts[:-1], handles, undo, creates=creates)
        slot = _Slot(folder, parts[-1], None, change.before)
        before = slot.path_facts
        if before is not None and stat.S_ISLNK(before.st_mode):
            raise PathEscapeError(f"{change.path!r} is a link")
        if before is not None and not stat.S_ISREG(before.st_mode):
            raise FileRefusedError(f"{change.path!r} is no regular file")
        if before is None and not creates and change.before is AnyContent.ANYTHING:
            raise FileRefusedError(f"{change.path!r} is gone already")
        _require_expected(slot, slot.name)
        return slot._replace(before=before)

    def _folder(
        self, parts: tuple[str, ...], handles: ExitStack, undo: ExitStack, *, creates: bool
    ) -> int:
        """Return an open directory, made if it is missing and wanted; all are closed together."""
        if parts in self._folders:
            return self._folders[parts]
        try:
            handle = open_folder(self._root, parts)
        except FileNotFoundError:
            if not creates:
                raise
            above = self._folder(parts[:-1], handles, undo, creates=True)
            self._watch("make folder")
            os.mkdir(parts[-1], dir_fd=above)
            undo.callback(self._unlink_draft, os.rmdir, parts[-1], above)
            handle = open_beneath(above, parts[-1:], os.O_RDONLY | os.O_DIRECTORY)
        self._folders[parts] = handle
        handles.callback(os.close, handle)
        if parts:
            hold_folder(handle, root=self._root)
        return handle

    def _draft(self, slot: _Slot, after: StoredFile, undo: ExitStack) -> str:
        """Write the new version beside the old one."""
        name = draft_name()
        self._watch("write draft")
        handle = os.open(name, NEW_FILE, 0o600, dir_fd=slot.folder)
        undo.callback(self._unlink_draft, os.unlink, name, slot.folder)
        try:
            view = memoryview(after.content)
            while view:
                view = view[os.write(handle, view[:_CHUNK_BYTES]) :]
            if slot.before is not None and slot.before.st_uid != os.geteuid():
                with suppress(PermissionError):
                    os.fchown(handle, slot.before.st_uid, slot.before.st_gid)
            os.fchmod(handle, after.mode & _PERMISSIONS)
            self._watch("sync draft")
            os.fsync(handle)
        finally:
            os.close(handle)
        return name

    def _put(self, slot: _Slot, draft: str | None, undo: ExitStack) -> None:
        _require_same_file(slot)
        _require_expected(slot, slot.name)
        if draft is None:
            self._delete(slot, undo)
        elif slot.before is None:
            self._add(slot, draft, undo)
        else:
            self._exchange(slot, draft, undo)

    def _delete(self, slot: _Slot, undo: ExitStack) -> None:
        backup = draft_name()
        self._watch("take away")
        _rename(slot.folder, slot.name, backup)
        undo.callback(self._restore, slot.folder, backup, slot.name)
        self._leftovers.append((slot.folder, backup))
        _require_expected(slot, backup)

    def _add(self, slot: _Slot, draft: str, undo: ExitStack) -> None:
        """Give the draft its name; unlike a rename, a link never covers what appeared meanwhile."""
        self._watch("add")
        if _linked(slot.folder, draft, slot.name):
            self._leftovers.append((slot.folder, draft))
        else:
            _rename(slot.folder, draft, slot.name)
        undo.callback(self._unlink_draft, os.unlink, slot.name, slot.folder)

    def _exchange(self, slot: _Slot, draft: str, undo: ExitStack) -> None:
        backup = draft_name()
        self._watch("keep old")
        if not _linked(slot.folder, slot.name, backup):
            _copy(slot, backup)
        undo.callback(self._unlink_draft, os.unlink, backup, slot.folder)
        self._watch("exchange")
        _rename(slot.folder, draft, slot.name)
        undo.callback(self._restore, slot.folder, backup, slot.name)
        self._leftovers.append((slot.folder, backup))
        _require_expected(slot, backup)  # the file may have been written to until the rename

    def _restore(self, folder: int, backup: str, name: str) -> None:
        self._watch("take back")
        _rename(folder, backup, name)

    def _unlink_draft(self, deed: Callable[..., None], name: str, folder: int) -> None:
        self._watch("take back")
        with suppress(OSError):
            deed(name, dir_fd=folder)


def _linked(folder: int, name: str, second: str) -> bool:
    """Give a file a second name, or say that this file system has no such thing."""
    try:
        os.link(name, second, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    return True


def _copy(slot: _Slot, backup: str) -> None:
    source = open_beneath(slot.folder, (slot.name,), os.O_RDONLY | os.O_NONBLOCK)
    try:
        target = os.open(backup, NEW_FILE, 0o600, dir_fd=slot.folder)
        try:
            while chunk := os.read(source, _CHUNK_BYTES):
                os.write(target, chunk)
            os.fchmod(target, stat.S_IMODE(os.fstat(source).st_mode) & _PERMISSIONS)
            os.fsync(target)
        finally:
            os.close(target)
    finally:
        os.close(source)


def _require_same_file(slot: _Slot) -> None:
    """Raise if a name no longer refers to the file it had when the replacement began."""
    now = slot.path_facts
    expected = None if slot.before is None else (slot.before.st_dev, slot.before.st_ino)
    if (None if now is None else (now.st_dev, now.st_ino)) != expected:
        raise _changed(slot)


def _require_expected(slot: _Slot, name: str) -> None:
    """Raise if the content is not the one the change was made for."""
    if isinstance(slot.expected, AnyContent):
        return
    try:
        content = _stored(slot.folder, name, bytes_max=_size_of(slot.expected))
    except FileNotFoundError:
        content = None
    if content != slot.expected:
        raise _changed(slot)


def _size_of(file: StoredFile | None) -> int:
    return 0 if file is None else len(file.content)


def _stored(folder: int, name: str, *, bytes_max: int) -> StoredFile:
    """Read a file as far as is needed to tell whether it is the one with so many bytes."""
    with os.fdopen(open_beneath(folder, (name,), os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        return StoredFile(content=file.read(bytes_max + 1), mode=mode)


def _changed(slot: _Slot) -> FileChangedError:
    return FileChangedError(
        f"{slot.name!r} was changed by another process meanwhile",
        hint="nothing was written; read the file again and make the change for what it holds now",
    )


def _rename(folder: int, old: str, new: str) -> None:
    os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)
