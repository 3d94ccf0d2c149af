"""Hunk reader: hunk headers and bodies, tolerant of the mistakes models make.

Owns:  the `@@` line and the body below it, in both patch forms.
Rule 1: the counts of a header are trusted when the body they describe is well formed and is
        followed by a boundary. Otherwise the body extends to the next line that can only be a
        header.
Rule 2: a line without a sign is a context line that lost its space.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from holon.model.limits import PATCH_HUNK_CLAIM_COUNT_MAX
from holon.model.record import Record
from holon.tools.workspaces.patching.document import (
    SYNTAX,
    TOO_LARGE,
    UNSUPPORTED,
    Hunk,
    HunkLine,
    PatchRefusedError,
    quoted,
)
from holon.tools.workspaces.patching.wrappers import SECTIONS, Wrapping, is_file_header

_RANGES: Final = re.compile(
    r"@@\s*-(?P<old>\d+)(?:,(?P<old_count>\d+))?"
    r"(?:\s*\+(?P<new>\d+)(?:,(?P<new_count>\d+))?)?\s*(?:@@.*)?"
)
_NO_ANCHOR: Final = re.compile(r"[\s.…,+\-\dN_]*")
_BEGIN_PATCH_LINES: Final = (*SECTIONS, "*** Move to: ")
_BEGIN_PATCH_MARKS: Final = ("*** End of File", "*** End Patch", "*** Begin Patch")
_AFTER_HUNK: Final = ("@@", "diff ", "Index: ", "Only in ", "Binary files ", "From ")
_NO_FEED: Final = "\\ No newline at end of file"
_SIGNS: Final = frozenset(" +-")
_HEADER_LETTERS: Final = frozenset("@d*-")  # the first characters of lines that end a hunk


class HunkHeader(Record, frozen=True, kw_only=True):
    """A parsed `@@` line."""

    old_start: int | None = None
    old_count: int | None = None
    new_count: int | None = None
    anchor: str | None = None


class HunkBody(NamedTuple):
    """The lines below an `@@` line, and where they end in the patch."""

    lines: list[HunkLine]
    end: int
    padding: int
    counted: bool


def read_header(line: str) -> HunkHeader:
    """Parse an `@@` line: ranges, an anchor, or nothing."""
    line = line.rstrip("\r")
    if line.startswith("@@@"):
        raise PatchRefusedError(UNSUPPORTED, "combined diffs of merges cannot be applied")
    ranges = _RANGES.fullmatch(line)
    if ranges is not None:
        return HunkHeader(
            old_start=_number(ranges["old"]),
            old_count=_number(ranges["old_count"] or "1"),
            new_count=_number(ranges["new_count"] or "1") if ranges["new"] else None,
        )
    anchor, _, after = (part.strip() for part in line[2:].partition("@@"))
    if _NO_ANCHOR.fullmatch(anchor):
        anchor = after
    return HunkHeader(anchor=None if _NO_ANCHOR.fullmatch(anchor) else anchor)


def _number(digits: str) -> int:
    if len(digits) > len(str(PATCH_HUNK_CLAIM_COUNT_MAX)):
        raise PatchRefusedError(
            TOO_LARGE,
            f"a hunk claims {digits[:12]} lines",
            hint="give the true line numbers, or a bare @@",
        )
    return int(digits)


def read_hunk(lines: Sequence[str], at: int, wrapping: Wrapping) -> tuple[Hunk, int]:
    """Read the hunk whose `@@` line is at `at`; return it and where it ends."""
    headers = [read_header(lines[at])]
    body_at = at + 1
    while headers[-1].anchor is not None and lines[body_at : body_at + 1]:
        if not lines[body_at].startswith("@@"):
            break
        headers.append(read_header(lines[body_at]))
        body_at += 1
    header = headers[-1]
    body = read_body(lines, body_at, header, wrapping)
    if not body.lines:
        raise PatchRefusedError(
            "invalid_hunk_body",
            f"line {at + 1} of the patch opens a hunk without lines: {quoted(lines[at])!r}",
            hint="below @@ come context lines with a space, removed with -, added with +",
        )
    hunk = _hunk(header, body, patch_line=at + 1)
    return msgspec.structs.replace(
        hunk,
        anchors=tuple(each.anchor for each in headers if each.anchor is not None),
        sequel=wrapping.sequel(body.end, padding=body.padding),
    ), body.end


def _hunk(header: HunkHeader, body: HunkBody, *, patch_line: int) -> Hunk:
    _require_last(body.lines, patch_line)
    start = header.old_start
    signs = [line.sign for line in body.lines]
    old, new = len(signs) - signs.count("+"), len(signs) - signs.count("-")
    has_old = old > 0
    short = (header.new_count or 0) - new if header.old_count == old else 0
    return Hunk(
        lines=tuple(body.lines),
        patch_line=patch_line,
        hint=start - 1 if start and has_old else None,
        inserts_at=start if header.old_count == 0 and not has_old else None,
        padding=body.padding,
        counted=body.counted,
        miscounted=not body.counted and header.old_start is not None,
        lost_minuses=max(0, short),
    )


def _require_last(lines: Sequence[HunkLine], patch_line: int) -> None:
    """Refuse a hunk with a line after one that lacks its line feed."""
    for sign in "+-":
        side = [line.text[-1:] for line in lines if line.sign != sign]
        if side.count("\n") < len(side) - (side[-1:] != ["\n"]):
            raise PatchRefusedError(
                "invalid_hunk_body",
                f"the hunk at line {patch_line} of the patch has lines after the end of the file",
                hint="begin every line of a hunk with its sign",
            )


def read_body(lines: Sequence[str], at: int, header: HunkHeader, wrapping: Wrapping) -> HunkBody:
    """Read the lines of a hunk from `at` on."""
    counted = _counted(lines, at, header, wrapping)
    return counted if counted is not None else _uncounted(lines, at, wrapping)


def _counted(
    lines: Sequence[str], at: int, header: HunkHeader, wrapping: Wrapping
) -> HunkBody | None:
    """Read as many lines as the header claims; None when the counts are wrong."""
    if header.old_count is None or header.new_count is None:
        return None
    old, new, body = header.old_count, header.new_count, list[HunkLine]()
    while old > 0 or new > 0:
        if at >= len(lines):
            return None
        line = lines[at]
        if line.startswith("\\ "):
            _take_feed(body)
        elif not line or line[0] in _SIGNS:
            signed = _signed(line)
            body.append(signed)
            old -= signed.sign != "+"
            new -= signed.sign != "-"
        else:
            return None
        at += 1
    if old < 0 or new < 0:
        return None
    if at < len(lines) and lines[at].startswith("\\ ") and body:
        _take_feed(body)
        at += 1
    if not _ends_at(lines, at, wrapping) or _swallowed_header(lines, at, body):
        return None
    return HunkBody(body, at, 0, True)


def _uncounted(lines: Sequence[str], at: int, wrapping: Wrapping) -> HunkBody:
    """Read up to the next line that can only be a header, ignoring counts."""
    body = list[HunkLine]()
    blanks = 0
    while at < len(lines):
        line = lines[at]
        first = line[:1]
        if first in _HEADER_LETTERS and _is_header(lines, at):
            break
        if first == "\\" and line.rstrip() == _NO_FEED and body:
            _take_feed(body)
        elif not first or first in _SIGNS:
            body.append(_signed(line))
        elif wrapping.closes_hunk(at):
            break
        else:
            body.append(HunkLine(" ", line + "\n"))
        blanks = blanks + 1 if not line or line.isspace() else 0
        at += 1
    return HunkBody(body, at, blanks if blanks < len(body) else 0, False)


def _signed(line: str) -> HunkLine:
    return HunkLine(line[0], line[1:] + "\n") if line else HunkLine(" ", "\n")


def _take_feed(body: list[HunkLine]) -> None:
    """Apply a `\\\\ No newline` line: the line before is the last of its file."""
    if body:
        body[-1] = HunkLine(body[-1].sign, body[-1].text.removesuffix("\n"))


def _ends_at(lines: Sequence[str], at: int, wrapping: Wrapping) -> bool:
    """Whether a body may end here: only blank lines follow, or a boundary."""
    while at < len(lines) and lines[at].strip() == "":
        at += 1
    if at >= len(lines) or lines[at].startswith(_AFTER_HUNK) or lines[at].rstrip() == "--":
        return True
    return _is_header(lines, at) or wrapping.closes(at)


def _is_header(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    if line.startswith(("@@", "diff --git ", *_BEGIN_PATCH_LINES)):
        return True
    if line.rstrip() in _BEGIN_PATCH_MARKS:
        return True
    return is_file_header(lines, at)


def _swallowed_header(lines: Sequence[str], at: int, body: Sequence[HunkLine]) -> bool:
    """Whether wrong counts included the next file's header in this hunk."""
    if len(body) <= 2 or at >= len(lines) or not lines[at].startswith("@@"):
        return False
    return is_file_header(lines, at - 2)


def require_text(lines: Sequence[str]) -> None:
    """Refuse an empty patch."""
    if not any(line.strip() for line in lines):
        raise PatchRefusedError(SYNTAX, "the patch is empty")
