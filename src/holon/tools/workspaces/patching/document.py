"""The parsed patch: entries, hunks, paths, and the error of this package.

Owns:  the one error (a stable kind, a message for the model, bounded details); the shapes both
       patch forms are parsed into, so that there is one planner; unquoting of paths, the a/ and b/
       prefixes, and which spellings can never be inside the root.
Rule 1: a refused patch has changed nothing.
Rule 2: a line's text keeps its line feed; a line without one ends its file.
Rule 3: paths here are clean: relative, without dot segments, inside the root by their spelling.
Rule 4: a path that is absolute, climbs, names no file, or enters a repository's own folder is
        refused by its spelling alone; symlinks are checked by the files port.
Rule 5: names are exact: no case folding, double decoding or completion.
"""

import re
from enum import StrEnum
from typing import Final, NamedTuple

from holon.decide.text.bounded import beginning_of
from holon.model.errors import HolonError
from holon.model.limits import PATCH_FILES_COUNT_MAX, PATCH_PATH_BYTES_MAX, PATCH_QUOTED_CHARS_MAX
from holon.model.record import Record
from holon.model.values import JsonValue

TOO_LARGE: Final = "patch_too_large"
SYNTAX: Final = "invalid_patch_syntax"
UNSUPPORTED: Final = "unsupported_git_patch_feature"
NOT_FOUND: Final = "context_not_found"
AMBIGUOUS: Final = "ambiguous_context"
ESCAPE: Final = "path_escape"
NULL_PATH: Final = "/dev/null"
_OLD_PREFIXES: Final = ("a/", "i/", "c/", "o/", "w/")
_NEW_PREFIXES: Final = ("b/", "w/", "i/", "c/", "o/")
_BACKUP_SUFFIXES: Final = (".orig", ".old", ".bak", "~")
_ESCAPES: Final = {
    "a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92,
}  # fmt: skip
_QUOTED_PART: Final = re.compile(r'[^"\\]+|\\([abtnvfr"\\]|[0-3][0-7]{2})')
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class PatchRefusedError(HolonError):
    """The patch cannot be applied; `kind` names the reason."""

    code = "patch_failed"

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        hint: str | None = None,
        details: dict[str, JsonValue] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.details = details


def require_files(count: int) -> None:
    """Refuse a patch with too many entries while it is being parsed."""
    if count > PATCH_FILES_COUNT_MAX:
        raise PatchRefusedError(
            TOO_LARGE,
            f"a patch touches at most {PATCH_FILES_COUNT_MAX} files",
            hint="split the change into several smaller patches",
        )


def quoted(text: str) -> str:
    """Return a line of a patch or file for an error message: short, and plain Unicode."""
    plain = text.rstrip("\r\n").encode("utf-8", "replace").decode("utf-8")
    return beginning_of(plain, chars_max=PATCH_QUOTED_CHARS_MAX)


class HunkLine(NamedTuple):
    """One line of a hunk: " " is context, "-" removed, "+" added."""

    sign: str
    text: str


class Sequel(NamedTuple):
    """Text after a patch's apparent end that may belong to its last hunk.

    The hunk's end is doubtful if the file has one of `texts` within `within` lines after it.
    """

    texts: frozenset[str]
    within: int


class Hunk(Record, frozen=True, kw_only=True):
    """Consecutive lines to find in a file, and their changes.

    `hint` is the expected index of the first old line, from zero. `anchors` are lines to find
    above, outermost first. `padding` counts trailing blank lines that may not belong to the hunk.
    `lost_minuses` counts removed lines that the header counts as context: lines of the file that
    begin with a minus, whose own sign was lost. `sequel` is set when lines that may be changes
    follow the end of the patch.
    """

    lines: tuple[HunkLine, ...]
    patch_line: int
    hint: int | None = None
    inserts_at: int | None = None  # the header names a position between two lines
    anchors: tuple[str, ...] = ()
    at_end: bool = False
    padding: int = 0
    counted: bool = False  # the header's counts are right
    miscounted: bool = False  # the header has counts, and they are wrong
    lost_minuses: int = 0
    sequel: Sequel | None = None

    @property
    def old(self) -> list[HunkLine]:
        """The lines that must be in the file."""
        return [line for line in self.lines if line.sign != "+"]

    @property
    def added(self) -> list[str]:
        """The added lines."""
        return [line.text for line in self.lines if line.sign == "+"]

    @property
    def only_adds(self) -> bool:
        """Whether the hunk has no old lines."""
        return not self.lines or [line.sign for line in self.lines].count("+") == len(self.lines)

    @property
    def unended(self) -> tuple[bool, bool]:
        """Whether the file lacks its last line feed according to the hunk, before and after."""
        old = [line.text for line in self.lines if line.sign != "+"]
        new = [line.text for line in self.lines if line.sign != "-"]
        return bool(old) and old[-1][-1:] != "\n", bool(new) and new[-1][-1:] != "\n"


class Action(StrEnum):
    """What an entry does to its file."""

    ADD = "add"
    MODIFY = "modify"
    DELETE = "delete"
    MOVE = "move"


class FileEntry(Record, frozen=True, kw_only=True):
    """The change of one file.

    `path` is the current file, `target` the new path (the same unless it moves), and
    `other_path` the alternative reading of the header when no file exists at `path`.
    """

    action: Action
    path: str
    target: str
    other_path: str | None = None
    hunks: tuple[Hunk, ...] = ()
    executable: bool | None = None
    whole: bool = False  # a deletion that lists no lines


class Note(Record, frozen=True, kw_only=True):
    """A remark for the model on how its patch was read."""

    path: str
    kind: str
    message: str


class Patch(Record, frozen=True, kw_only=True):
    """All entries in order."""

    entries: tuple[FileEntry, ...]
    ignored_metadata: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


class NamedPaths(NamedTuple):
    """The file a pair of headers names, and the alternative reading."""

    path: str
    other: str | None


def clean_path(spelled: str) -> str:
    """Return the path relative to the root, or refuse it."""
    if not spelled or _CONTROL.search(spelled):
        raise PatchRefusedError(SYNTAX, f"{quoted(spelled)!r} is no file name")
    if len(spelled.encode()) > PATCH_PATH_BYTES_MAX:
        raise PatchRefusedError(SYNTAX, "a file name is too long")
    parts = [part for part in spelled.split("/") if part not in ("", ".")]
    if spelled.startswith(("/", "~/")) or ".." in parts:
        raise _escape(spelled, "is outside the execution root")
    if any(part.lower() == ".git" for part in parts):
        raise _escape(spelled, "is inside a repository's own .git")
    if not parts or spelled.endswith(("/", "/.")):
        raise PatchRefusedError(SYNTAX, f"{quoted(spelled)!r} names no file")
    return "/".join(parts)


def _escape(spelled: str, why: str) -> PatchRefusedError:
    return PatchRefusedError(
        ESCAPE,
        f"{quoted(spelled)!r} {why}",
        hint="name files relative to the execution root, without `..`",
        details={"path": quoted(spelled)},
    )


def header_name(rest: str) -> str:
    """Return the name in the rest of a header line: unquoted, without a timestamp."""
    rest = rest.rstrip("\r")
    if rest.startswith('"'):
        name, _ = unquoted(rest)
        return name
    return rest.split("\t", 1)[0] if "\t" in rest else rest.strip(" ")


def unquoted(text: str) -> tuple[str, str]:
    """Return the name a C-style quoted text begins with, and what follows it."""
    raw, at = bytearray(), 1
    while at < len(text) and text[at] != '"':
        part = _QUOTED_PART.match(text, at)
        if part is None:
            break
        code = part[1]
        if code is None:
            raw += part[0].encode()
        else:
            raw.append(_ESCAPES[code] if code in _ESCAPES else int(code, 8))
        at = part.end()
    if at >= len(text) or text[at] != '"':
        raise PatchRefusedError(SYNTAX, f"{quoted(text)!r} is no quoted file name")
    try:
        return raw.decode("utf-8"), text[at + 1 :]
    except UnicodeDecodeError:
        raise PatchRefusedError(SYNTAX, "a file name is not UTF-8") from None


def git_names(rest: str) -> tuple[str, str] | None:
    """Return both names of a `diff --git` line, or None when it is ambiguous."""
    rest = rest.rstrip("\r")
    if rest.startswith('"'):
        old, rest = unquoted(rest)
        rest = rest.lstrip(" ")
        return old, unquoted(rest)[0] if rest.startswith('"') else rest
    if rest.endswith('"') and ' "' in rest:
        at = rest.index(' "')
        return rest[:at], unquoted(rest[at + 1 :])[0]
    half = len(rest) // 2
    old, new = rest[:half], rest[half + 1 :]
    if rest[half : half + 1] == " " and without_prefixes(old, new) is not None:
        return old, new
    pair = rest.split(" ")
    return (pair[0], pair[1]) if len(pair) == 2 else None


def without_prefixes(old: str, new: str) -> NamedPaths | None:
    """Return the one file two header names refer to, or None when they name two files."""
    bare_old, bare_new = _bare(old, _OLD_PREFIXES), _bare(new, _NEW_PREFIXES)
    if old == new:
        inner = _bare(old, ("a/", "b/"))
        return NamedPaths(old, inner if inner != old else None)
    if bare_old == bare_new:
        return NamedPaths(bare_old, None)
    if bare_old == new or old == bare_new:
        return NamedPaths(new if bare_old == new else old, None)
    for suffix in _BACKUP_SUFFIXES:
        if bare_old == bare_new + suffix:
            return NamedPaths(bare_new, None)
    return _below_two_folders(old, new)


def _below_two_folders(old: str, new: str) -> NamedPaths | None:
    """`diff -r old new` names the same file below two folders."""
    inner_old, inner_new = old.partition("/")[2], new.partition("/")[2]
    return NamedPaths(inner_old, None) if inner_old and inner_old == inner_new else None


def single_side(name: str, *, old: bool) -> NamedPaths:
    """Return the file when the other side of the header is /dev/null."""
    bare = _bare(name, ("a/",) if old else ("b/",))
    return NamedPaths(bare, name if old and bare != name else None)


def _bare(name: str, prefixes: tuple[str, ...]) -> str:
    return name[2:] if name.startswith(prefixes) and len(name) > 2 else name
