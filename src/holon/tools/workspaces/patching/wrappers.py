"""Patch wrappers: remove the text around a patch that is not part of it.

Owns:  the size limit of a patch, line ends and indentation of the whole text, and the wrappers a
       patch is sent in: code fences, here-documents, mails.
Rule 1: sizes are checked by counting, before anything is split or stored.
Rule 2: a wrapper ends only at its own closing line, outside any hunk. In a hunk without correct
        counts, whose end is unknown, it ends there only when nothing after that line could be a
        change. A closing fence without an opening one ends a patch only when nothing but wrappers
        follows.
Rule 3: nothing that looks like a change is skipped: it is read, or the whole patch is refused. `-
        word` after a patch is a list, unless the file continues with the line that ends it.
Rule 4: every line is examined a fixed number of times, however many parts a text has.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from holon.model.limits import PATCH_BYTES_MAX, PATCH_HUNKS_COUNT_MAX, PATCH_LINES_COUNT_MAX
from holon.tools.workspaces.patching.document import (
    SYNTAX,
    TOO_LARGE,
    PatchRefusedError,
    Sequel,
    quoted,
)

SECTIONS: Final = ("*** Add File: ", "*** Update File: ", "*** Delete File: ")
EXTENDED: Final = (
    "old mode ", "new mode ", "new file mode ", "deleted file mode ",
    "rename from ", "rename to ", "copy from ", "copy to ",
)  # fmt: skip
BINARY: Final = ("GIT binary patch", "Binary files ")
_NAMES: Final = ("diff --git ", *SECTIONS)
_STARTS: Final = (*_NAMES, "@@", *EXTENDED, *BINARY)
_HEREDOC: Final = re.compile(r"""<<-?\s*(['"]?)(?P<word>[A-Za-z_][A-Za-z0-9_]{0,99})\1""")
_FENCE: Final = re.compile(r"\s{0,3}(?P<marks>`{3,}|~{3,})[\w.+-]*\s*")
_MAIL: Final = re.compile(r"From [0-9a-f]{40,64} ")
# `- word` is a list, `---` a rule: prose. Before a patch, `--- word ---` is a heading.
_LEFTOVER: Final = re.compile(r"\+|-(?! \S|-+\s*$)")
_UNNAMED: Final = re.compile(r"\+(?!\+\+)|-(?! \S|-+\s*$|--)")
_STRAY_MARK: Final = re.compile(r"\*{3}(?:\s|(?:Add|Update|Delete) File|Move to)")
_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_CHANGES: Final = ("+", "-", "@@", "diff --git ", "*** ")
_BEGINNINGS: Final = (*_NAMES, "--- ", _BEGIN, "From ", "Index: ")
_OPEN_COUNT_MAX: Final = 8
_CLOSING_CHARS_MAX: Final = 120


def patch_lines(text: str) -> list[str]:
    """Return the lines of a patch text, without line feeds and without a common indent."""
    _require_size(text)
    if "\0" in text:
        raise PatchRefusedError(
            "unsupported_git_patch_feature", "the patch holds a NUL: binary patches are refused"
        )
    lines = text.removeprefix("\ufeff").split("\n")
    if lines and lines[-1] in ("", "\r"):
        lines.pop()
    if lines and all(line.endswith("\r") for line in lines[:-1] if line):
        lines = [line.removesuffix("\r") for line in lines]  # the whole text has CRLF line ends
    lines = _dedented(lines)
    if sum(line.startswith("@@") for line in lines) > PATCH_HUNKS_COUNT_MAX:
        raise _too_large()  # the first count missed indented ones
    return lines


def _require_size(text: str) -> None:
    too_large = len(text) > PATCH_BYTES_MAX or text.count("\n") > PATCH_LINES_COUNT_MAX
    if too_large or text.count("\n@@") > PATCH_HUNKS_COUNT_MAX:
        raise _too_large()
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise PatchRefusedError(SYNTAX, "the patch is not plain Unicode") from None
    if size > PATCH_BYTES_MAX:
        raise PatchRefusedError(TOO_LARGE, f"a patch has at most {PATCH_BYTES_MAX} bytes")


def _too_large() -> PatchRefusedError:
    return PatchRefusedError(
        TOO_LARGE,
        f"a patch has at most {PATCH_BYTES_MAX} bytes, {PATCH_LINES_COUNT_MAX} lines and"
        f" {PATCH_HUNKS_COUNT_MAX} hunks",
        hint="split the change into several smaller patches",
    )


def _dedented(lines: list[str]) -> list[str]:
    """Remove a common indent, as of a patch in a list or in a quoted string.

    A text that names any file at the margin is returned unchanged: there, an indented line is
    context, or a sample in a commit message.
    """
    first, indent = None, ""
    for at, line in enumerate(lines):
        bare = line.lstrip(" \t")
        if not _names_a_file(bare, lines[at + 1].lstrip(" \t") if at + 1 < len(lines) else ""):
            continue
        if len(bare) == len(line):
            return lines
        if first is None:
            first, indent = at, line[: len(line) - len(bare)]
    if first is None:
        return lines
    for at in range(first, len(lines)):
        if lines[at].strip() and not lines[at].startswith(indent):
            return lines if _names_more(lines, at, indent) else _cut(lines, indent, at)
    return _cut(lines, indent, len(lines))


def _names_a_file(line: str, following: str) -> bool:
    return line.startswith(_NAMES) or (line.startswith("--- ") and following.startswith("+++ "))


def _names_more(lines: Sequence[str], at: int, indent: str) -> bool:
    """Whether indented lines follow one that is not: then the indent is not uniform."""
    return any(line.startswith(indent) and line.strip() for line in lines[at:])


def _cut(lines: Sequence[str], indent: str, end: int) -> list[str]:
    cut = [
        line.removeprefix(indent) if line.startswith(indent) or line.strip() else ""
        for line in lines[:end]
    ]
    return [*cut, *lines[end:]]


def is_file_header(lines: Sequence[str], at: int) -> bool:
    """Whether a ---/+++ pair here is a file header, and not a change of similar lines."""
    if not is_name_pair(lines, at):
        return False
    return at + 2 >= len(lines) or lines[at + 2].startswith(("@@", "diff --git "))


def is_name_pair(lines: Sequence[str], at: int) -> bool:
    """Whether a ---/+++ pair is here, header or not."""
    if not lines[at].startswith("--- ") or at + 1 >= len(lines):
        return False
    return lines[at + 1].startswith("+++ ")


def is_stray_mark(line: str) -> bool:
    """Whether a line resembles the marks of the `*** Begin Patch` form."""
    return _STRAY_MARK.match(line) is not None


class Wrapping:
    """The text around the patches of one text, and the currently open wrappers."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._open: list[str] = []  # closing lines, the innermost last
        self._last_closings: frozenset[int] | None = None
        self._trailing: _Trailing | None = None
        self._ended = False  # after the end of a patch, without a new beginning
        self._ended_above_prose = False

    def next_patch(self, at: int, *, follows: bool) -> int | None:
        """Return where the next patch begins; `follows`: another one has been read before."""
        lines = self._lines
        self._ended, self._ended_above_prose = at > 0 and lines[at - 1].rstrip() == _END, False
        while at < len(lines):
            line = lines[at]
            if _MAIL.match(line):
                follows, at = False, self._message_end(at + 1)
                continue
            if line.startswith(_STARTS) or is_file_header(lines, at):
                return at
            if line.startswith((_BEGIN, _END)):
                self._frame(at)
            elif not self._enters_or_leaves(line):
                self._require_prose(at, follows=follows)
            at += 1
        return None

    def _frame(self, at: int) -> None:
        """Refuse a second end below prose: the first may have been a line of a file."""
        line = self._lines[at]
        ends = line.startswith(_END)
        if ends and self._ended_above_prose:
            raise PatchRefusedError(
                SYNTAX,
                f"line {at + 1} ends the patch again, with other text since its first end:"
                f" {quoted(line)!r}",
                hint=f"write `{_END}` once, below all changes; begin context lines with a space",
            )
        self._ended, self._ended_above_prose = ends, False

    def _message_end(self, at: int) -> int:
        """Return the end of a mail's message, its `---` line; fences in it are ignored."""
        while at < len(self._lines):
            line = self._lines[at]
            if line.rstrip() == "---":
                return at + 1
            if line.startswith("diff --git ") or is_file_header(self._lines, at):
                return at
            at += 1
        return at

    def _enters_or_leaves(self, line: str) -> bool:
        """Track fences and here-documents in prose."""
        text = line.strip()
        if text in self._open:
            while self._open.pop() != text:
                pass
            return True
        closing = _opens(line)
        if closing is None:
            return False
        if len(self._open) < _OPEN_COUNT_MAX:
            self._open.append(closing)
        return True

    def _require_prose(self, at: int, *, follows: bool) -> None:
        """Refuse a line that looks like a change and would be skipped as prose."""
        line = self._lines[at]
        self._ended_above_prose |= self._ended and bool(line.strip())
        if is_name_pair(self._lines, at):
            raise PatchRefusedError(
                SYNTAX,
                f"line {at + 1} of the patch names a file, but no hunk follows: {quoted(line)!r}",
                hint="below `--- a/path` and `+++ b/path` comes an @@ line",
            )
        change = _LEFTOVER.match(line) if follows else _UNNAMED.match(line)
        if change is not None or is_stray_mark(line):
            where = "after the end of the patch" if follows else "before the patch"
            raise PatchRefusedError(
                SYNTAX,
                f"line {at + 1} is {where} and looks like a part of it: {quoted(line)!r}",
                hint="send the patch alone, without a fence or text around it",
            )

    def closes(self, at: int) -> bool:
        """Whether a line outside any hunk closes a wrapper of the patch."""
        line = self._lines[at]
        if _MAIL.match(line):
            return True
        text = line.strip()
        if text in self._open and len(line) - len(line.lstrip(" ")) <= 3:
            return True
        return line.startswith("```") and self._trailing_text().is_wrapping[at]

    def sequel(self, at: int, *, padding: int) -> Sequel | None:
        """Return the text after the hunk that ends at `at`, if it may belong to the hunk.

        The next line may be context, with or without its space, when possible changes follow
        it; one that begins with a minus may be such a change itself.
        """
        lines, end = self._lines, at
        while at < len(lines) and not lines[at].strip():
            at += 1
        if at == len(lines) or lines[at].startswith(("@@", *_NAMES)) or is_file_header(lines, at):
            return None
        line, texts = lines[at].rstrip(), set[str]()
        if self._trailing_text().has_changes[at + 1]:
            texts |= {line, line.removeprefix(" ")}
        if line.startswith("-"):
            texts.add(line[1:])
        return Sequel(frozenset(texts), at - end + padding + 1) if texts else None

    def _trailing_text(self) -> "_Trailing":
        if self._trailing is None:
            self._trailing = _trailing(self._lines)
        return self._trailing

    def closes_hunk(self, at: int) -> bool:
        """Whether a line without a sign closes a wrapper inside a hunk of unknown length.

        Only when it is the last one of its kind, and nothing after it could be a change.
        """
        text = self._lines[at].rstrip()
        if text not in self._open:
            return False
        if self._last_closings is None:
            self._last_closings = self._find_last_closings()
        return at in self._last_closings

    def _find_last_closings(self) -> frozenset[int]:
        found, later = set[int](), set[str]()
        changes = begins = False  # whether a change follows; whether a patch begins right below
        for at in range(len(self._lines) - 1, -1, -1):
            line = self._lines[at]
            text = line.rstrip()
            if not text:
                continue
            if begins and _opens(line):
                changes = begins = False  # another wrapper's contents are read separately
                later.clear()
                continue
            begins = line.startswith(_BEGINNINGS)
            if line.startswith(_CHANGES):
                changes = True
            elif not changes and len(text) <= _CLOSING_CHARS_MAX and text not in later:
                later.add(text)
                found.add(at)
        return frozenset(found)


class _Trailing(NamedTuple):
    """Properties of the text from each line to the next patch, with one extra entry at the end."""

    is_wrapping: Sequence[bool]  # nothing but blank lines and wrappers
    has_changes: Sequence[bool]  # a line with the sign of a change


def _trailing(lines: Sequence[str]) -> _Trailing:
    is_wrapping, has_changes = [True] * (len(lines) + 1), [False] * (len(lines) + 1)
    for at in range(len(lines) - 1, -1, -1):
        line = lines[at]
        if _begins(lines, at):
            continue
        is_wrapper = not line.strip() or line.startswith((_BEGIN, _END)) or _opens(line) is not None
        is_wrapping[at] = is_wrapper and is_wrapping[at + 1]
        has_changes[at] = line.startswith(("+", "-")) or has_changes[at + 1]
    return _Trailing(is_wrapping, has_changes)


def _begins(lines: Sequence[str], at: int) -> bool:
    """Whether a patch, or a mail with one, begins here."""
    line = lines[at]
    return line.startswith(_NAMES) or is_file_header(lines, at) or _MAIL.match(line) is not None


def _opens(line: str) -> str | None:
    """Return the line that closes the wrapper this one opens, if it opens any."""
    if line.startswith(("+", "-")):  # a changed line, not an opening one
        return None
    fence, heredoc = _FENCE.fullmatch(line), _HEREDOC.search(line)
    return fence["marks"] if fence else heredoc["word"] if heredoc else None
