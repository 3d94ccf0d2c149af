"""Writing a tree of files whose names somebody else chose.

Owns:  the one writer for what comes out of an archive or a stranger's directory, and the copy of a
       directory made with it.
Rule 1: only directories and plain files are made, below a directory nobody else writes to. Since no
        link is ever made, no later name can lead out of it; each step is opened by descriptor and
        without following links all the same.
Rule 2: every name is checked before it is used, a name that was used is refused, and files, bytes
        and depth are bounded.
Rule 3: files are the owner's alone; of their old mode only the permission to run is kept.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from holon.model import limits
from holon.model.errors import BadInputError
from holon.model.record import Record

_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NAME_BYTES_MAX: Final = 255
_PIECE_BYTES: Final = 64 * limits.KIB
_SPECIAL_BITS: Final = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX
_ANY_MAY_RUN: Final = 0o111


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

    def __enter__(self) -> "NewTree":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)

    def add_folder(self, parts: tuple[str, ...]) -> None:
        """Make a directory, unless it is there."""
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

    def _admit(self, parts: tuple[str, ...], *, mode: int, size: int) -> None:
        name, bounds = _shown("/".join(parts)), self._bounds
        self._files_count += 1
        if mode & _SPECIAL_BITS:
            raise BadTreeError(f"{name} would run with somebody's rights (mode {mode:o})")
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


def copy_tree(source: Path, into: Path, bounds: TreeBounds | None = None) -> None:
    """Copy a directory of plain files into an empty one, or raise BadTreeError or OSError."""
    with NewTree(into, bounds) as tree:
        for parts, facts in _walked(source, ()):
            path = source.joinpath(*parts)
            if stat.S_ISDIR(facts.st_mode):
                tree.add_folder(parts)
            elif stat.S_ISREG(facts.st_mode):
                handle = os.open(path, _READ)
                with os.fdopen(handle, "rb") as file:
                    mode, size = stat.S_IMODE(facts.st_mode), facts.st_size
                    tree.add_file(parts, _pieces(file.fileno()), mode=mode, size=size)
            else:
                raise BadTreeError(f"{_shown('/'.join(parts))} is neither a file nor a folder")


def _walked(
    source: Path, above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], os.stat_result]]:
    for entry in sorted(os.scandir(source.joinpath(*above)), key=lambda each: each.name):
        parts = checked_parts("/".join((*above, entry.name)))
        facts = entry.stat(follow_symlinks=False)
        yield parts, facts
        if stat.S_ISDIR(facts.st_mode):
            yield from _walked(source, parts)


def _pieces(handle: int) -> Iterator[bytes]:
    while piece := os.read(handle, _PIECE_BYTES):
        yield piece


def _made_inner(folder: int, part: str) -> int:
    with suppress(FileExistsError):
        os.mkdir(part, 0o700, dir_fd=folder)
    return os.open(part, _FOLDER, dir_fd=folder)


def _shown(name: str) -> str:
    return ascii(name[:120])
