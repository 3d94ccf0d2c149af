"""A file as lines, and back to the very same bytes.

Owns:  byte order marks, encodings and line ends.
Rule 1: what is not touched keeps its bytes, also where they are no valid text.
Rule 2: a line holds its line end. Only the last one may have none.
"""

import codecs
from collections.abc import Sequence
from typing import Final

from holon.model.command_limits import PATCH_FILE_LINES_COUNT_MAX
from holon.model.record import Record
from holon.tools.patching.problem import TOO_LARGE, PatchRefusedError, quoted

_WIDE: Final = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


class TextFile(Record, frozen=True, kw_only=True):
    """A file's lines, and how they were encoded."""

    lines: list[str]
    encoding: str = "utf-8"
    ending: str = "\n"  # the line end most lines have
    mark: bytes = b""  # the byte order mark, when it is not part of the first line
    legacy: bool = False  # no valid UTF-8


def decode_text(content: bytes, *, path: str, literal_mark: bool) -> TextFile:
    """Return a file's lines; `literal_mark` keeps a byte order mark in the first of them."""
    mark, encoding = b"", "utf-8"
    for bom, wide in _WIDE:
        if content.startswith(bom):
            mark, encoding = bom, wide
    if not mark and not literal_mark and content.startswith(codecs.BOM_UTF8):
        mark = codecs.BOM_UTF8
    body = content[len(mark) :]
    if encoding == "utf-8" and b"\0" in body:
        raise _binary(path)
    try:
        text = body.decode(encoding, "surrogateescape" if encoding == "utf-8" else "strict")
    except UnicodeDecodeError:
        raise _binary(path) from None
    ends, wide_ends = text.count("\n"), text.count("\r\n")
    if ends > PATCH_FILE_LINES_COUNT_MAX:
        raise PatchRefusedError(
            TOO_LARGE,
            f"{quoted(path)!r} has more than {PATCH_FILE_LINES_COUNT_MAX} lines",
            details={"path": path},
        )
    legacy = encoding == "utf-8" and not text.isascii() and not _is_unicode(text)
    return TextFile(
        lines=split_lines(text),
        encoding=encoding,
        ending="\r\n" if 2 * wide_ends > ends else "\n",
        mark=mark,
        legacy=legacy,
    )


def encode_text(file: TextFile, lines: Sequence[str], *, path: str) -> bytes:
    """Return the bytes of a file with these lines."""
    text = "".join(lines)
    try:
        if file.encoding == "utf-8":
            return file.mark + text.encode("utf-8", "surrogateescape")
        return file.mark + text.encode(file.encoding)
    except UnicodeEncodeError:
        raise PatchRefusedError(
            "unsupported_encoding", f"{quoted(path)!r} cannot hold the added text"
        ) from None


def require_encodable(file: TextFile, added: Sequence[str], *, path: str) -> None:
    """Refuse to mix encodings: letters beyond ASCII in a file that is not UTF-8."""
    if file.legacy and not all(text.isascii() for text in added):
        raise PatchRefusedError(
            "unsupported_encoding",
            f"{quoted(path)!r} is not UTF-8, and the patch adds letters beyond ASCII",
            hint="change such a file with a command that knows its encoding",
            details={"path": path},
        )


def split_lines(text: str) -> list[str]:
    """Split at line feeds only; every line keeps its own."""
    lines = text.split("\n")
    last = lines.pop()
    kept = [line + "\n" for line in lines]
    if last:
        kept.append(last)
    return kept


def ending_of(lines: Sequence[str]) -> str:
    """Return the line end most lines have; a line feed alone when there is no telling."""
    wide = sum(line.endswith("\r\n") for line in lines)
    plain = sum(line.endswith("\n") for line in lines) - wide
    return "\r\n" if wide > plain else "\n"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _binary(path: str) -> PatchRefusedError:
    return PatchRefusedError(
        "binary_file",
        f"{quoted(path)!r} is not a text file",
        hint="change such a file with a command instead",
        details={"path": path},
    )
