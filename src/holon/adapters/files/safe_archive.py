"""One directory out of an archive, and nothing besides.

Owns:  which members are written, which are passed over, and which spoil the whole archive.
Rule 1: a name that leads out of the archive spoils it, wherever it stands. Links and devices are
        passed over in a repository, where they are ordinary, also when all of it is wanted; in a
        directory that is wanted they spoil it, but for links to its own files, which are copied.
Rule 2: everything is below one top directory, as GitHub packs a repository; a stray is refused.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from holon.adapters.files.new_tree import BadTreeError, NewTree, TreeBounds, checked_parts
from holon.adapters.files.tar_stream import ArchiveBounds, Member, MemberKind, TarStream
from holon.model.record import Record


class ArchiveListing(Record, frozen=True, kw_only=True):
    """What is in a repository's archive, by names below its top directory."""

    files: tuple[str, ...]
    comment: str | None = None


class Extracted(Record, frozen=True, kw_only=True):
    """What was written."""

    files_count: int
    comment: str | None = None


def list_archive(archive: Path, bounds: ArchiveBounds | None = None) -> ArchiveListing:
    """Return the plain files of an archive, or raise BadTreeError."""
    with archive.open("rb") as file:
        stream = TarStream(file, bounds)
        found = [_below_top(each) for each in stream.members() if each.kind is MemberKind.FILE]
        return ArchiveListing(files=tuple("/".join(each) for each in found), comment=stream.comment)


def file_heads(
    archive: Path, names: Collection[str], *, bytes_max: int, bounds: ArchiveBounds | None = None
) -> Iterator[tuple[str, bytes]]:
    """Yield the beginnings of some files of an archive, or raise BadTreeError."""
    with archive.open("rb") as file:
        stream = TarStream(file, bounds)
        for member in stream.members():
            name = "/".join(_below_top(member))
            if member.kind is MemberKind.FILE and name in names:
                yield name, _head(stream, bytes_max)


def _head(stream: TarStream, bytes_max: int) -> bytes:
    head = b""
    for piece in stream.pieces():
        head += piece[: bytes_max - len(head)]
        if len(head) == bytes_max:
            break
    return head


def extract_folder(
    archive: Path,
    folder: str,
    into: Path,
    *,
    bounds: ArchiveBounds | None = None,
    tree_bounds: TreeBounds | None = None,
) -> Extracted:
    """Write one directory of an archive, or all of it for "", into an empty one, or raise.

    What was written before the error stays: `into` is a scratch directory of the caller.
    """
    wanted = checked_parts(folder) if folder else ()
    count = 0
    with archive.open("rb") as file, NewTree(into, tree_bounds) as tree:
        stream = TarStream(file, bounds)
        for member in stream.members():
            parts = _below_top(member)
            if parts[: len(wanted)] != wanted:
                continue
            if not wanted and member.kind not in (MemberKind.FILE, MemberKind.FOLDER):
                continue
            count += _written(member, parts[len(wanted) :], stream, tree)
        count += tree.settle_links()
        comment = stream.comment
    if not count:
        raise BadTreeError(f"the repository has no directory {folder} at that ref")
    return Extracted(files_count=count, comment=comment)


def _written(member: Member, parts: tuple[str, ...], stream: TarStream, tree: NewTree) -> int:
    match member.kind:
        case MemberKind.FILE if parts:
            tree.add_file(parts, stream.pieces(), mode=member.mode, size=member.size)
            return 1
        case MemberKind.FOLDER:
            tree.add_folder(parts)
            return 0
        case MemberKind.SYMLINK:
            tree.add_link(parts, member.link)
            return 0
        case _:
            raise BadTreeError(f"{member.name[:120]!a} is a {member.kind}")


def _below_top(member: Member) -> tuple[str, ...]:
    parts = checked_parts(member.name)
    if len(parts) == 1 and member.kind is not MemberKind.FOLDER:
        raise BadTreeError(f"{member.name[:120]!a} stands outside the archive's directory")
    return parts[1:]
