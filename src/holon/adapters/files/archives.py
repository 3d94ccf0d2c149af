"""Extract one directory from a gzipped tar archive, safely.

Owns:  which members are written, which are skipped and which make the archive invalid; finding the
       directory of a named skill in a repository's archive.
Rule 1: a name that leads out of the archive makes it invalid, wherever it occurs. Links and devices
        are skipped in a repository, where they are ordinary, also when all of it is extracted; in
        one wanted directory they make the archive invalid, except for links to its own files, which
        are copied.
Rule 2: everything is below one top directory, as GitHub packs a repository; a member outside it is
        refused.
Rule 3: unpacked bytes, entries and names are bounded, whatever a header claims, and no header makes
        the reader hold more than a few kilobytes. What is not understood (sparse files, unknown
        kinds) is refused.
Rule 4: `tarfile` parses each header. Its own iteration is not used: a few bytes keep it busy for
        seconds, and it takes a damaged header for the end of the archive (decision 0036).
Rule 5: a skill is found by the name of its directory, then by the name in its front matter, then,
        if it is the whole repository, by the repository's name.
Rule 6: a conventional location wins over any other. Two equally good matches are an error that
        names them.
"""

import gzip
import re
import tarfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from holon.adapters.files.new_tree import BadTreeError, NewTree, TreeBounds, checked_parts
from holon.adapters.files.skill_front_matter import BadFrontMatterError, read_front_matter
from holon.model import limits
from holon.model.guidance import SKILL_FILES, GithubSkillRef
from holon.model.limits import SKILL_HEAD_BYTES_MAX
from holon.model.record import Record

_READ_BYTES: Final = 64 * limits.KIB
_EXTENSION_BYTES_MAX: Final = 64 * limits.KIB
_PAX: Final = (tarfile.XHDTYPE, tarfile.XGLTYPE)
_LONG_NAMES: Final = {tarfile.GNUTYPE_LONGNAME: "path", tarfile.GNUTYPE_LONGLINK: "linkpath"}
_PLAIN: Final = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_SPARSE: Final = "GNU.sparse."
_RECORD_LENGTH: Final = re.compile(rb"(\d{1,6}) ")
_CONVENTIONAL: Final = ("skills/", "", ".agents/skills/", ".codex/skills/", ".claude/skills/")
_SHOWN_COUNT_MAX: Final = 8


class ArchiveBounds(Record, frozen=True, kw_only=True):
    """How much of an archive is looked at; how much is fetched is bounded where that is done."""

    unpacked_bytes_max: int = limits.ARCHIVE_UNPACKED_BYTES_MAX
    entries_max: int = limits.ARCHIVE_ENTRIES_COUNT_MAX


class ArchiveListing(Record, frozen=True, kw_only=True):
    """What is in a repository's archive, by names below its top directory."""

    files: tuple[str, ...]
    comment: str | None = None


class Extracted(Record, frozen=True, kw_only=True):
    """What was written."""

    files_count: int
    comment: str | None = None


class _Archive:
    """One pass over a gzipped tar. Read a member's pieces before asking for the next member."""

    def __init__(self, file: BinaryIO, bounds: ArchiveBounds | None) -> None:
        self._bounds = bounds or ArchiveBounds()
        self._unpacked = gzip.GzipFile(fileobj=file, mode="rb")
        self._bytes_left = self._bounds.unpacked_bytes_max
        self._content_left = 0  # of the current member
        self._padding = 0
        self.comment: str | None = None  # of the archive: GitHub puts the commit there

    def members(self) -> Iterator[tarfile.TarInfo]:
        """Yield the members in order; raises BadTreeError where the archive cannot be trusted."""
        count, extended = 0, dict[str, str]()
        while (header := self._header()) is not None:
            count += 1
            if count > self._bounds.entries_max:
                raise BadTreeError(f"the archive has more than {self._bounds.entries_max} entries")
            if header.type in _PAX or header.type in _LONG_NAMES:
                extended |= self._extension(header)
            else:
                _extend(header, extended)
                extended = {}
                self._begin(header.size if _has_content(header) else 0)
                yield header
            for _ in self.pieces():
                pass
            self._read(self._padding)

    def pieces(self) -> Iterator[bytes]:
        """Yield the content of the member that was handed out last."""
        while self._content_left:
            piece = self._read(min(self._content_left, _READ_BYTES))
            self._content_left -= len(piece)
            yield piece

    def _header(self) -> tarfile.TarInfo | None:
        block = self._read(tarfile.BLOCKSIZE, may_end=True)
        if not block.strip(b"\0"):
            return None
        try:
            return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except (tarfile.HeaderError, ValueError):
            raise BadTreeError("the archive is damaged, or is no tar archive") from None

    def _extension(self, header: tarfile.TarInfo) -> dict[str, str]:
        """Return what a header with content says of the next member, or keep it of the archive."""
        if header.size > _EXTENSION_BYTES_MAX:
            raise BadTreeError("the archive has a header that is too large")
        self._begin(header.size)
        content = b"".join(self.pieces())
        if header.type not in _PAX:
            return {_LONG_NAMES[header.type]: _text(content.rstrip(b"\0"))}
        records = _pax_records(content)
        if header.type == tarfile.XHDTYPE:
            return records
        self.comment = records.get("comment", self.comment)
        return {}

    def _begin(self, size: int) -> None:
        if size < 0:
            raise BadTreeError("the archive has a header with a number that cannot be read")
        if size > self._bytes_left:
            raise self._too_large()
        self._content_left, self._padding = size, -size % tarfile.BLOCKSIZE

    def _read(self, count: int, *, may_end: bool = False) -> bytes:
        if count > self._bytes_left:
            raise self._too_large()
        try:
            block = self._unpacked.read(count)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise BadTreeError("the archive is damaged, or is not gzipped") from None
        if len(block) < count and (block or not may_end):
            raise BadTreeError("the archive ends too early")
        self._bytes_left -= count
        return block

    def _too_large(self) -> BadTreeError:
        return BadTreeError(
            f"the archive unpacks to more than {self._bounds.unpacked_bytes_max} bytes"
        )


def _extend(header: tarfile.TarInfo, extended: dict[str, str]) -> None:
    """Put into a header what the ones before it said of it."""
    header.name = extended.get("path", header.name)
    header.linkname = extended.get("linkpath", header.linkname)
    if any(key.startswith(_SPARSE) for key in extended):
        header.type = tarfile.GNUTYPE_SPARSE
    if (size := extended.get("size")) is not None:
        header.size = int(size) if size.isascii() and size.isdigit() and len(size) <= 18 else -1


def _has_content(header: tarfile.TarInfo) -> bool:
    return header.isreg() or header.type not in tarfile.SUPPORTED_TYPES


def _text(name: bytes) -> str:
    if len(name) > limits.ARCHIVE_NAME_BYTES_MAX:
        raise BadTreeError("the archive has a name that is too long")
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise BadTreeError("the archive has a name that is not UTF-8") from None


def _pax_records(content: bytes) -> dict[str, str]:
    """Return the records of a pax header, each `<length> <key>=<value>` and a line end."""
    records, at = dict[str, str](), 0
    while at < len(content):
        length = _RECORD_LENGTH.match(content, at)
        begin, end = (length.end(), at + int(length[1])) if length is not None else (at, at)
        if end > len(content) or not content[begin:end].endswith(b"\n"):
            raise BadTreeError("the archive has a header that cannot be read")
        key, _, value = content[begin : end - 1].partition(b"=")
        records[_text(key)] = _text(value)
        at = end
    return records


def list_archive(archive: Path, bounds: ArchiveBounds | None = None) -> ArchiveListing:
    """Return the plain files of an archive, or raise BadTreeError."""
    with archive.open("rb") as file:
        stream = _Archive(file, bounds)
        files = [_below_top(each) for each in stream.members() if each.type in _PLAIN]
        return ArchiveListing(files=tuple("/".join(each) for each in files), comment=stream.comment)


def file_heads(
    archive: Path, names: Collection[str], *, bytes_max: int, bounds: ArchiveBounds | None = None
) -> Iterator[tuple[str, bytes]]:
    """Yield the beginnings of some files of an archive, or raise BadTreeError."""
    with archive.open("rb") as file:
        stream = _Archive(file, bounds)
        for member in stream.members():
            name = "/".join(_below_top(member))
            if member.type in _PLAIN and name in names:
                yield name, _head(stream, bytes_max)


def _head(stream: _Archive, bytes_max: int) -> bytes:
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
    prefix = checked_parts(folder) if folder else ()
    count = 0
    with archive.open("rb") as file, NewTree(into, tree_bounds) as tree:
        stream = _Archive(file, bounds)
        for member in stream.members():
            parts = _below_top(member)
            if parts[: len(prefix)] != prefix:
                continue
            if not prefix and not (member.type in _PLAIN or member.isdir()):
                continue
            count += _written(member, parts[len(prefix) :], stream, tree)
        count += tree.settle_links()
        comment = stream.comment
    if not count:
        raise BadTreeError(f"the repository has no directory {folder} at that ref")
    return Extracted(files_count=count, comment=comment)


def _written(
    member: tarfile.TarInfo, parts: tuple[str, ...], stream: _Archive, tree: NewTree
) -> int:
    """Write a member; return how many files that makes."""
    if member.type in _PLAIN and parts:
        tree.add_file(parts, stream.pieces(), mode=member.mode, size=member.size)
        return 1
    if member.isdir():
        tree.add_folder(parts)
    elif member.issym():
        tree.add_link(parts, member.linkname)
    else:
        raise BadTreeError(f"{member.name[:120]!a} is neither a file, a folder nor a symbolic link")
    return 0


def _below_top(member: tarfile.TarInfo) -> tuple[str, ...]:
    parts = checked_parts(member.name)
    if len(parts) == 1 and not member.isdir():
        raise BadTreeError(f"{member.name[:120]!a} stands outside the archive's directory")
    return parts[1:]


def skill_folder(archive: Path, ref: GithubSkillRef) -> str:
    """Return the directory of a skill below the top, or raise BadTreeError."""
    files = {each for each in list_archive(archive).files if _name(each) in SKILL_FILES}
    folders = {_folder(each) for each in files}
    for root in _CONVENTIONAL:
        if f"{root}{ref.skill}" in folders:
            return f"{root}{ref.skill}"
    by_folder = {each for each in folders if _name(each) == ref.skill}
    candidates = by_folder or _folders_named(archive, files, ref.skill)
    if not candidates and "" in folders and ref.skill.lower() == ref.repo.lower():
        return ""
    if len(candidates) == 1:
        return candidates.pop()
    if candidates:
        raise BadTreeError(
            f"{ref.owner}/{ref.repo} has several skills named {ref.skill}: {_shown(candidates)}"
        )
    others = {_name(each) or ref.repo for each in folders}
    available = f"it has {_shown(others)}" if others else "it has none at all"
    raise BadTreeError(f"{ref.owner}/{ref.repo} has no skill named {ref.skill}; {available}")


def _folders_named(archive: Path, files: set[str], name: str) -> set[str]:
    """Return the directories whose front matter gives this name."""
    folders = set()
    for path, head in file_heads(archive, files, bytes_max=SKILL_HEAD_BYTES_MAX + 1):
        try:
            if read_front_matter(head).name == name:
                folders.add(_folder(path))
        except BadFrontMatterError:
            continue  # another skill's defect is irrelevant
    return folders


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _shown(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = len(ordered) - _SHOWN_COUNT_MAX
    text = ", ".join(ordered[:_SHOWN_COUNT_MAX])
    return f"{text} and {more} more" if more > 0 else text
