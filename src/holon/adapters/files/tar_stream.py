"""Reading a gzipped tar archive that a stranger made.

Owns:  the headers of ustar, of pax as far as names go, and of GNU's long names; nothing else of the
       format. The standard library's reader is not used: it trusts sizes that a header claims.
Rule 1: nothing is unpacked beyond the bound, whatever the compressed bytes promise, and no header
        makes the reader hold more than a few kilobytes.
Rule 2: what is not understood (sparse files, sizes in binary, unknown kinds) is refused, never
        guessed.
"""

import zlib
from collections.abc import Iterator
from enum import StrEnum
from typing import BinaryIO, Final

from holon.adapters.files.new_tree import BadTreeError
from holon.model import limits
from holon.model.record import Record

_BLOCK: Final = 512
_READ_BYTES: Final = 64 * limits.KIB
_GZIP: Final = 16 + zlib.MAX_WBITS
_PAX_KINDS: Final = b"xg"
_PAX_BYTES_MAX: Final = 64 * limits.KIB
_SPARSE: Final = "GNU.sparse."
_CHECKSUM_AT: Final = slice(148, 156)


class MemberKind(StrEnum):
    """What a member is."""

    FILE = "file"
    FOLDER = "folder"
    SYMLINK = "symlink"
    HARDLINK = "hard link"
    DEVICE = "device"
    SPARSE = "sparse file"
    UNKNOWN = "member of an unknown kind"


_KINDS: Final = {
    b"0": MemberKind.FILE,
    b"\0": MemberKind.FILE,
    b"7": MemberKind.FILE,
    b"1": MemberKind.HARDLINK,
    b"2": MemberKind.SYMLINK,
    b"3": MemberKind.DEVICE,
    b"4": MemberKind.DEVICE,
    b"5": MemberKind.FOLDER,
    b"6": MemberKind.DEVICE,
    b"S": MemberKind.SPARSE,
}


class Member(Record, frozen=True, kw_only=True):
    """One entry of an archive."""

    name: str
    kind: MemberKind
    mode: int
    size: int
    link: str = ""  # what a link names


class ArchiveBounds(Record, frozen=True, kw_only=True):
    """How much of an archive is looked at."""

    unpacked_bytes_max: int = limits.ARCHIVE_UNPACKED_BYTES_MAX
    entries_max: int = limits.ARCHIVE_ENTRIES_COUNT_MAX


class TarStream:
    """One pass over an archive. Read a member's pieces before asking for the next member."""

    def __init__(self, file: BinaryIO, bounds: ArchiveBounds | None = None) -> None:
        self._file = file
        self._bounds = bounds or ArchiveBounds()
        self._inflate = zlib.decompressobj(_GZIP)
        self._ready = b""
        self._at = 0  # how much of what is ready was handed out
        self._unpacked = 0
        self._left = 0  # of the current member's content
        self._padding = 0
        self.comment: str | None = None  # of the archive: GitHub puts the commit there

    def members(self) -> Iterator[Member]:
        """Yield the members in order; raises BadTreeError where the archive cannot be trusted."""
        count, pax = 0, dict[str, str]()
        while (header := self._header()) is not None:
            count += 1
            if count > self._bounds.entries_max:
                raise BadTreeError(f"the archive has more than {self._bounds.entries_max} entries")
            kind, size = header[156:157], _number(header[124:136])
            if kind in (b"x", b"g", b"L", b"K"):
                pax = self._extended(kind, size, pax)
                continue
            yield self._member(header, kind, size, pax)
            pax = {}
            self._skip()

    def pieces(self) -> Iterator[bytes]:
        """Yield the content of the member that was handed out last."""
        while self._left:
            piece = self._read(min(self._left, _READ_BYTES))
            self._left -= len(piece)
            yield piece

    def _member(self, header: bytes, kind: bytes, size: int, pax: dict[str, str]) -> Member:
        known = _KINDS.get(kind, MemberKind.UNKNOWN)
        if any(key.startswith(_SPARSE) for key in pax):
            known = MemberKind.SPARSE
        if "size" in pax:
            size = _decimal(pax["size"])
        if known is not MemberKind.FILE and known is not MemberKind.SPARSE:
            size = 0
        self._begin(size)
        name = pax.get("path") or _name(header)
        link = pax.get("linkpath") or header[157:257].partition(b"\0")[0].decode(errors="replace")
        return Member(name=name, kind=known, mode=_number(header[100:108]), size=size, link=link)

    def _extended(self, kind: bytes, size: int, pax: dict[str, str]) -> dict[str, str]:
        if size > _PAX_BYTES_MAX:
            raise BadTreeError("the archive has a header that is too large")
        self._begin(size)
        content = b"".join(self.pieces())
        self._skip()
        if kind not in _PAX_KINDS:
            long_name = _text(content.rstrip(b"\0"))
            return pax | {"path" if kind == b"L" else "linkpath": long_name}
        records = _pax_records(content)
        if kind == b"g":
            self.comment = records.get("comment", self.comment)
            return pax
        return pax | records

    def _begin(self, size: int) -> None:
        if self._unpacked + size > self._bounds.unpacked_bytes_max:
            raise self._too_large()
        self._left, self._padding = size, -size % _BLOCK

    def _skip(self) -> None:
        for _ in self.pieces():
            pass
        self._read(self._padding)
        self._padding = 0

    def _header(self) -> bytes | None:
        header = self._read(_BLOCK, may_end=True)
        if not header or not header.strip(b"\0"):
            return None
        plain = header[:148] + b" " * 8 + header[156:]
        if _number(header[_CHECKSUM_AT]) != sum(plain):
            raise BadTreeError("the archive is damaged, or is no tar archive")
        return header

    def _read(self, count: int, *, may_end: bool = False) -> bytes:
        while len(self._ready) - self._at < count:
            more, rest = self._inflated(), self._ready[self._at :]
            if not more:
                if may_end and not rest:
                    return b""
                raise BadTreeError("the archive ends too early")
            self._ready, self._at = rest + more, 0
        begin, self._at = self._at, self._at + count
        return self._ready[begin : self._at]

    def _inflated(self) -> bytes:
        """Return the next bytes, at most a few kilobytes at once; nothing at the end."""
        while not self._inflate.eof:
            compressed = self._inflate.unconsumed_tail or self._file.read(_READ_BYTES)
            if not compressed:
                return b""
            try:
                piece = self._inflate.decompress(compressed, _READ_BYTES)
            except zlib.error:
                raise BadTreeError("the archive is damaged, or is not gzipped") from None
            self._unpacked += len(piece)
            if self._unpacked > self._bounds.unpacked_bytes_max:
                raise self._too_large()
            if piece:
                return piece
        return b""

    def _too_large(self) -> BadTreeError:
        return BadTreeError(
            f"the archive unpacks to more than {self._bounds.unpacked_bytes_max} bytes"
        )


def _name(header: bytes) -> str:
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:262] == b"ustar" else b""
    return _text(prefix + b"/" + name if prefix else name)


def _text(name: bytes) -> str:
    if len(name) > limits.ARCHIVE_NAME_BYTES_MAX:
        raise BadTreeError("the archive has a name that is too long")
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise BadTreeError("the archive has a name that is not UTF-8") from None


def _number(field: bytes) -> int:
    digits = field.strip(b" \0")
    if not digits:
        return 0
    if not digits.isdigit() or b"8" in digits or b"9" in digits:
        raise BadTreeError("the archive has a header with a number that cannot be read")
    return int(digits, 8)


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise BadTreeError("the archive has a header with a number that cannot be read")
    return int(text)


def _pax_records(content: bytes) -> dict[str, str]:
    records: dict[str, str] = {}
    while content:
        digits, _, _ = content.partition(b" ")
        length = int(digits) if digits.isdigit() and len(digits) <= 6 else 0
        record = content[len(digits) + 1 : length]
        if length <= len(digits) + 1 or length > len(content) or not record.endswith(b"\n"):
            raise BadTreeError("the archive has a header that cannot be read")
        key, _, value = record[:-1].partition(b"=")
        records[_text(key)] = _text(value)
        content = content[length:]
    return records
