"""Write a directory tree from untrusted names and content, and scratch directories for it.

Owns:  scratch directories beside their target, the rename that publishes them, and their removal;
       the one writer for content of an archive or a foreign directory, and the copy of a directory.
Rule 1: a scratch directory has a name no target can have; those of a killed process are removed by
        the next process that works there.
Rule 2: the parent's lock is held while its entries change.
Rule 3: a scratch directory is locked while in use. Where the parent has no lock, as at the target
        of a backup, those that are not locked are removed.
Rule 4: only directories and regular files are created, below a directory no other process writes
        to. No link is ever created, so no later name can lead out; still each step is opened by
        descriptor without following links. A link to a file of the same tree becomes a copy of what
        was written here; any other link is refused.
Rule 5: every name is checked before use, a duplicate is refused, and files, bytes and depth are
        bounded.
Rule 6: files are private to the owner; of their old mode only the execute permission is kept.
"""

import fcntl
import os
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from holon.adapters.system.private_file import sync_folder
from holon.model import limits
from holon.model.errors import BadInputError
from holon.model.record import Record

SCRATCH_PREFIX: Final = ".holon-new-"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NAME_BYTES_MAX: Final = 255
_PIECE_BYTES: Final = 64 * limits.KIB
_SPECIAL_BITS: Final = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX
_ANY_MAY_RUN: Final = 0o111


@contextmanager
def scratch_in(parent: Path) -> Iterator[Path]:
    """Lend an empty private directory inside `parent`; afterwards it is gone, unless moved."""
    scratch, lock = _locked_scratch(parent)
    try:
        yield scratch
    finally:
        remove_tree(scratch)
        os.close(lock)


def _locked_scratch(parent: Path) -> tuple[Path, int]:
    while True:
        scratch = parent / f"{SCRATCH_PREFIX}{os.urandom(8).hex()}"
        scratch.mkdir(mode=0o700)
        lock = os.open(scratch, _FOLDER)
        with suppress(OSError):  # of a file system without locks: nothing is removed there
            fcntl.flock(lock, fcntl.LOCK_EX)
        if scratch.is_dir():
            return scratch, lock
        os.close(lock)  # it was removed before it was locked


def place(scratch: Path, target: Path) -> None:
    """Give a complete directory its name; raises OSError where something has it already."""
    if os.path.lexists(target):
        raise FileExistsError(f"{target} is already there")
    scratch.rename(target)
    sync_folder(target.parent)


def remove_tree(path: Path) -> None:
    """Remove a directory, or only the link where it is one. What is not there is fine."""
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(path.stat(follow_symlinks=False).st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def sweep_scratch(parent: Path) -> None:
    """Remove what killed processes left. The caller holds the parent's lock."""
    for name in os.listdir(parent):
        if name.startswith(SCRATCH_PREFIX):
            remove_tree(parent / name)


def sweep_abandoned(parent: Path) -> None:
    """Remove what killed processes of this user left in a parent that has no lock."""
    with suppress(OSError):
        for name in os.listdir(parent):
            if name.startswith(SCRATCH_PREFIX):
                _remove_if_abandoned(parent / name)


def _remove_if_abandoned(scratch: Path) -> None:
    with suppress(OSError):  # it is in use, gone by now, or not ours
        lock = os.open(scratch, _FOLDER)
        try:
            if os.fstat(lock).st_uid == os.geteuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(scratch)
        finally:
            os.close(lock)


class BadTreeError(BadInputError):
    """A directory or an archive holds what cannot be taken over."""

    code = "bad_tree"


class TreeBounds(Record, frozen=True, kw_only=True):
    """How much is taken over."""

    files_max: int = limits.TREE_FILES_COUNT_MAX
    bytes_max: int = limits.TREE_BYTES_MAX
    file_bytes_max: int = limits.TREE_FILE_BYTES_MAX
    depth_max: int = limits.TREE_DEPTH_COUNT_MAX


def checked_parts(name: str) -> tuple[str, ...]:
    """Return the components of a relative name, or raise BadTreeError."""
    parts = name.removesuffix("/").split("/")
    if name.startswith("/") or "\\" in name or not name.isprintable():
        raise BadTreeError(f"the name {_shown(name)} is not a relative path")
    for part in parts:
        if part in ("", ".", "..") or len(os.fsencode(part)) > _NAME_BYTES_MAX:
            raise BadTreeError(f"the name {_shown(name)} is not a relative path")
    return tuple(parts)


class NewTree:
    """A tree that grows below one fresh directory."""

    def __init__(self, root: Path, bounds: TreeBounds | None = None) -> None:
        self._bounds = bounds or TreeBounds()
        self._root = os.open(root, _FOLDER)
        self._files_count = 0
        self._bytes = 0
        self._links: dict[tuple[str, ...], tuple[str, ...]] = {}

    def __enter__(self) -> "NewTree":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)

    def add_folder(self, parts: tuple[str, ...]) -> None:
        """Make a directory, unless it exists."""
        os.close(self._folder(parts))

    def add_file(
        self, parts: tuple[str, ...], pieces: Iterable[bytes], *, mode: int, size: int
    ) -> None:
        """Write one file; `size` is what it claims to be."""
        self._admit(parts, mode=mode, size=size)
        folder = self._folder(parts[:-1])
        try:
            handle = os.open(parts[-1], _NEW_FILE, 0o600, dir_fd=folder)
        except FileExistsError:
            raise BadTreeError(f"{_shown('/'.join(parts))} is there twice") from None
        finally:
            os.close(folder)
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                self._take(len(piece))
                file.write(piece)
            file.flush()
            os.fchmod(handle, 0o700 if mode & _ANY_MAY_RUN else 0o600)
            os.fsync(handle)

    def add_link(self, parts: tuple[str, ...], target: str) -> None:
        """Note a link, or refuse one that leads out; `settle_links` writes what it leads to."""
        if parts in self._links:
            raise BadTreeError(f"{_shown('/'.join(parts))} is there twice")
        if len(self._links) >= self._bounds.files_max:
            raise BadTreeError(f"there are more than {self._bounds.files_max} files")
        self._links[parts] = _led_to(parts, target)

    def settle_links(self) -> int:
        """Write a copy in the place of each link, once all files exist; return how many."""
        for parts in self._links:
            name, target, steps = _shown("/".join(parts)), parts, 0
            while target in self._links:
                target, steps = self._links[target], steps + 1
                if steps > len(self._links):
                    raise BadTreeError(f"{name} is a link, and its links lead in a circle")
            try:
                self._add_copy(parts, target)
            except OSError:
                shown_target = _shown("/".join(target))
                raise BadTreeError(
                    f"{name} is a link to {shown_target}, which is not a file that comes with it"
                ) from None
        return len(self._links)

    def _add_copy(self, parts: tuple[str, ...], of: tuple[str, ...]) -> None:
        folder = os.dup(self._root)
        try:
            for part in of[:-1]:
                inner = os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = inner
            handle = os.open(of[-1] if of else ".", _READ, dir_fd=folder)
        finally:
            os.close(folder)
        with os.fdopen(handle, "rb", buffering=0) as file:
            facts = os.fstat(handle)
            mode = stat.S_IMODE(facts.st_mode)
            self.add_file(parts, _pieces(file.fileno()), mode=mode, size=facts.st_size)

    def _admit(self, parts: tuple[str, ...], *, mode: int, size: int) -> None:
        name, bounds = _shown("/".join(parts)), self._bounds
        self._files_count += 1
        if mode & _SPECIAL_BITS:
            raise BadTreeError(f"{name} is setuid or setgid (mode {mode:o})")
        if self._files_count > bounds.files_max:
            raise BadTreeError(f"there are more than {bounds.files_max} files")
        if size > bounds.file_bytes_max or self._bytes + size > bounds.bytes_max:
            raise BadTreeError(f"{name} is too large ({size} bytes)")

    def _take(self, count: int) -> None:
        self._bytes += count
        if self._bytes > self._bounds.bytes_max:
            raise BadTreeError(f"it is larger than {self._bounds.bytes_max} bytes")

    def _folder(self, parts: tuple[str, ...]) -> int:
        if len(parts) > self._bounds.depth_max:
            raise BadTreeError(f"{_shown('/'.join(parts))} is nested too deeply")
        folder = os.dup(self._root)
        try:
            for part in parts:
                inner = _made_inner(folder, part)
                os.close(folder)
                folder = inner
        except NotADirectoryError:
            os.close(folder)
            raise BadTreeError(f"{_shown('/'.join(parts))} is a file and a folder") from None
        return folder


def copy_tree(source: Path, into: Path, *, passed_over: Collection[str] = ()) -> None:
    """Copy a directory of plain files into an empty one, or raise BadTreeError or OSError.

    What has one of the names that are `passed_over` is not copied, wherever it stands.
    """
    with NewTree(into) as tree:
        for parts, facts in _walked(source, (), passed_over):
            path = source.joinpath(*parts)
            if stat.S_ISDIR(facts.st_mode):
                tree.add_folder(parts)
            elif stat.S_ISREG(facts.st_mode):
                handle = os.open(path, _READ)
                with os.fdopen(handle, "rb") as file:
                    mode, size = stat.S_IMODE(facts.st_mode), facts.st_size
                    tree.add_file(parts, _pieces(file.fileno()), mode=mode, size=size)
            elif stat.S_ISLNK(facts.st_mode):
                tree.add_link(parts, os.readlink(path))
            else:
                raise BadTreeError(f"{_shown('/'.join(parts))} is neither a file nor a folder")
        tree.settle_links()


def _walked(
    source: Path, above: tuple[str, ...], passed_over: Collection[str]
) -> Iterator[tuple[tuple[str, ...], os.stat_result]]:
    with os.scandir(source.joinpath(*above)) as listing:
        entries = [each for each in listing if each.name not in passed_over]
    for entry in sorted(entries, key=lambda each: each.name):
        parts = checked_parts("/".join((*above, entry.name)))
        facts = entry.stat(follow_symlinks=False)
        yield parts, facts
        if stat.S_ISDIR(facts.st_mode):
            yield from _walked(source, parts, passed_over)


def _led_to(parts: tuple[str, ...], target: str) -> tuple[str, ...]:
    """Return what a link at this place names, as far as names tell; refuse what is outside."""
    name, steps, is_outside = _shown("/".join(parts) or "."), list(parts[:-1]), not parts
    if target.startswith("/"):
        raise BadTreeError(f"{name} is a link to {_shown(target)}, which is an absolute path")
    for part in target.split("/"):
        if part == "..":
            is_outside = is_outside or not steps
            steps = steps[:-1]
        elif part not in ("", "."):
            steps.append(part)
    if is_outside:
        raise BadTreeError(f"{name} is a link to {_shown(target)}, which leads out of its folder")
    return tuple(steps)


def _pieces(handle: int) -> Iterator[bytes]:
    while piece := os.read(handle, _PIECE_BYTES):
        yield piece


def _made_inner(folder: int, part: str) -> int:
    with suppress(FileExistsError):
        os.mkdir(part, 0o700, dir_fd=folder)
    return os.open(part, _FOLDER, dir_fd=folder)


def _shown(name: str) -> str:
    return ascii(name[:120])
