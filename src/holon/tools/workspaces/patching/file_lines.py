"""Text files as lines: decoding, encoding, and searching for the lines of a hunk.

Owns:  byte order marks, encodings and line ends; levels of similarity between two lines, and
       finding every position where a hunk matches.
Rule 1: untouched lines keep their bytes, also where they are no valid text.
Rule 2: a line includes its line end. Only the last one may have none.
Rule 3: a looser level is tried only when the stricter one found nothing.
Rule 4: comparisons are counted. A patch crafted to be expensive ends in `patch_too_large`, not in a
        hang.
"""

import codecs
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, TypeAlias

from holon.model.limits import PATCH_FILE_LINES_COUNT_MAX
from holon.model.record import Record
from holon.tools.workspaces.patching.document import (
    TOO_LARGE,
    Hunk,
    HunkLine,
    PatchRefusedError,
    quoted,
)

_WIDE: Final = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_BLANKS: Final = " \t\r\n"
_PLACE_STEPS: Final = 6  # of trying one place
_COMPARE_STEPS: Final = 4  # of comparing one line there
Spellings: TypeAlias = tuple[str, ...]


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
    complete = [line + "\n" for line in lines]
    if last:
        complete.append(last)
    return complete


def ending_of(lines: Sequence[str]) -> str:
    """Return the line end most lines have; a line feed in case of a tie."""
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


class MatchLevel(IntEnum):
    """How closely a hunk's lines match the file's."""

    EXACT = 0
    LINE_ENDS = 1  # except for CRLF or LF, or a missing last one
    TRAILING_BLANKS = 2
    LOST_SPACE = 3  # context lines whose leading space was lost
    LOST_SIGN = 4  # and lines that begin with a minus, which look removed without it


class Budget:
    """The remaining work for one patch. A step is about one read of one line."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self.spent = 0

    def spend(self, steps: int) -> None:
        """Count steps before they are taken, or refuse the patch."""
        if self.spent + steps > self._steps:
            raise PatchRefusedError(
                TOO_LARGE,
                "the places of these hunks take too long to find",
                hint="give more distinct context lines, or split the patch",
            )
        self.spent += steps

    def grant(self, steps: int) -> None:
        """Add steps for reading a file, in proportion to its size."""
        self._steps += steps


class LineIndex:
    """The lines of one file, indexed for the hunks of one entry."""

    def __init__(self, lines: Sequence[str], hunks: Sequence[Hunk], budget: Budget) -> None:
        self.lines = lines
        self.budget = budget
        self._hunks = hunks
        self._has_text: bool | None = None
        self._stripped: list[str] | None = None
        self._loose: list[str] | None = None
        self._known: list[int] | None = None
        self._places: dict[MatchLevel, dict[str, list[int]]] = {}

    def fits(self, old: Sequence[HunkLine], at: int, level: MatchLevel) -> bool:
        """Whether these lines match at this position."""
        if not old:
            return True
        if at < 0 or at + len(old) > len(self.lines):
            return False
        if _ends_elsewhere(old, at, len(self.lines)):
            return False
        return self._matches(self._spelled(old, level), at, level)

    def level_at(self, old: Sequence[HunkLine], at: int) -> MatchLevel | None:
        """Return the strictest level at which these lines match here, or None."""
        return next((level for level in MatchLevel if self.fits(old, at, level)), None)

    def find(
        self, old: Sequence[HunkLine], level: MatchLevel, *, count_max: int | None = None
    ) -> list[int]:
        """Return the positions where these lines match, in order; all, or the first few."""
        if len(old) > len(self.lines):
            return []
        spelled = self._spelled(old, level)
        rarest = self._rarest(spelled, level)
        if rarest is None:
            return []
        offset, places = rarest
        matches = list[int]()
        for place in places:
            start = place - offset
            self.budget.spend(_PLACE_STEPS)
            if start < 0 or start + len(old) > len(self.lines):
                continue
            if _ends_elsewhere(old, start, len(self.lines)):
                continue
            if len(old) == 1 or self._matches(spelled, start, level):
                matches.append(start)
                if len(matches) == count_max:
                    break
        return matches

    def _matches(self, spelled: Sequence[Spellings], at: int, level: MatchLevel) -> bool:
        """Whether lines match at a position inside the file; comparisons are counted."""
        last = len(spelled) - 1
        self.budget.spend(_PLACE_STEPS)
        if key_of(self.lines[at], level) not in spelled[0]:
            return False
        if key_of(self.lines[at + last], level) not in spelled[last]:
            return False
        for offset in range(1, last):
            self.budget.spend(_COMPARE_STEPS)
            if key_of(self.lines[at + offset], level) not in spelled[offset]:
                return False
        return True

    @property
    def has_text(self) -> bool:
        """Whether any line is more than blank."""
        if self._has_text is None:
            self._has_text = any(self._loose_keys())
        return self._has_text

    def lines_like(self, text: str) -> list[int]:
        """Return where a line occurs, ignoring blanks around it, or else where it begins one."""
        wanted = text.strip(_BLANKS)
        count = len(self.lines)
        if self._stripped is None:
            self.budget.spend(2 * count)
            self._stripped = [line.strip(_BLANKS) for line in self.lines]
        self.budget.spend(count // 2)
        equal = [at for at, line in enumerate(self._stripped) if line == wanted]
        if equal:
            return equal
        self.budget.spend(count)
        return [at for at, line in enumerate(self._stripped) if line.startswith(wanted)]

    def block_end(self, at: int) -> int:
        """Return the end of the block a line opens: the next line that is not indented more."""
        depth = _depth(self.lines[at])
        for end in range(at + 1, len(self.lines)):
            self.budget.spend(2 * _COMPARE_STEPS)
            if self.lines[end].strip(_BLANKS) and _depth(self.lines[end]) <= depth:
                return end
        return len(self.lines)

    def _rarest(
        self, spelled: Sequence[Spellings], level: MatchLevel
    ) -> tuple[int, Sequence[int]] | None:
        """Return the line with the fewest occurrences: its offset in the hunk, and these."""
        index = self._index(level)
        offset, fewest = 0, len(self.lines) + 1
        for at, keys in enumerate(spelled):
            self.budget.spend(_COMPARE_STEPS)
            count = sum(len(index.get(key, ())) for key in keys)
            if count == 0:
                return None
            if count < fewest:
                offset, fewest = at, count
        self.budget.spend(fewest)
        lists = [index[key] for key in spelled[offset] if index.get(key)]
        return offset, lists[0] if len(lists) == 1 else sorted({at for li in lists for at in li})

    def _index(self, level: MatchLevel) -> dict[str, list[int]]:
        """The positions of lines that occur in the hunks; other lines are not indexed."""
        if level not in self._places:
            known = self._known_places()
            index = {key: list[int]() for key in self._wanted(level)}
            self.budget.spend(_COMPARE_STEPS * len(known))
            for at in known:
                places = index.get(key_of(self.lines[at], level))
                if places is not None:
                    places.append(at)
            self._places[level] = index
        return self._places[level]

    def _known_places(self) -> list[int]:
        """Return every line that occurs in some hunk at the loosest level; usually few."""
        if self._known is None:
            wanted = frozenset(self._wanted(max(MatchLevel)))
            keys = self._loose_keys()
            self._known = [at for at, key in enumerate(keys) if key in wanted]
        return self._known

    def _wanted(self, level: MatchLevel) -> Iterator[str]:
        for hunk in self._hunks:
            self.budget.spend(_PLACE_STEPS)
            for spellings in self._spelled(hunk.old, level):
                yield from spellings

    def _loose_keys(self) -> list[str]:
        if self._loose is None:
            self.budget.spend(2 * len(self.lines))
            self._loose = [line.rstrip(_BLANKS) for line in self.lines]
        return self._loose

    def _spelled(self, old: Sequence[HunkLine], level: MatchLevel) -> list[Spellings]:
        self.budget.spend(_COMPARE_STEPS * len(old))
        return [_spellings(line, level) for line in old]


def key_of(line: str, level: MatchLevel) -> str:
    """Return the key that must be equal for two lines to match."""
    match level:
        case MatchLevel.EXACT:
            return line
        case MatchLevel.LINE_ENDS:
            return line.rstrip("\r\n")
        case _:
            return line.rstrip(_BLANKS)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _spellings(line: HunkLine, level: MatchLevel) -> Spellings:
    """The keys a hunk line may match; a context line's space may be part of its text."""
    key = key_of(line.text, level)
    if level >= MatchLevel.LOST_SPACE and line.sign == " ":
        return key, f" {key}"
    if level is MatchLevel.LOST_SIGN and line.sign == "-":
        return key, f"-{key}"
    return (key,)


def is_lost_minus(line: HunkLine, there: str) -> bool:
    """Whether a line that looks removed is context that begins with a minus."""
    level = MatchLevel.LOST_SIGN
    return line.sign == "-" and key_of(there, level) == f"-{key_of(line.text, level)}"


def _ends_elsewhere(old: Sequence[HunkLine], at: int, count: int) -> bool:
    """Whether a hunk whose last line lacks its line feed is not at the end of the file."""
    return bool(old) and not old[-1].text.endswith("\n") and at + len(old) != count
