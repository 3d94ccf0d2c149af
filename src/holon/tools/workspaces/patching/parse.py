"""Patch parser: unified diffs and apply-patch sections become file entries.

Owns:  apply-patch sections (Add File, Update File with Move to, Delete File) and their contents;
       unified diff headers of git and GNU diff, with git's modes, renames and deletions; telling
       the two forms apart, and joining the patches of one text (several fences, a series of mails).
       Both forms are accepted wherever a patch is.
Rule 1: an apply-patch text may lack its begin and end lines, but no section line.
Rule 2: hunks of both forms are read by the same rules.
Rule 3: the headers of one entry must agree with each other. Which of two names is meant is never
        guessed.
Rule 4: what cannot be carried out exactly is refused: copies, links, submodules, binary content.
Rule 5: every patch in a text is read, or the text is refused: no part is skipped.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from holon.model.limits import PATCH_NOTES_COUNT_MAX
from holon.tools.workspaces.patching.document import (
    NULL_PATH,
    SYNTAX,
    UNSUPPORTED,
    Action,
    FileEntry,
    Hunk,
    HunkLine,
    NamedPaths,
    Note,
    Patch,
    PatchRefusedError,
    clean_path,
    git_names,
    header_name,
    quoted,
    require_files,
    single_side,
    without_prefixes,
)
from holon.tools.workspaces.patching.hunk_reading import (
    HunkHeader,
    read_body,
    read_hunk,
    require_text,
)
from holon.tools.workspaces.patching.wrappers import (
    BINARY,
    EXTENDED,
    SECTIONS,
    Wrapping,
    is_file_header,
    is_name_pair,
    is_stray_mark,
    patch_lines,
)

_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_END_OF_FILE: Final = "*** End of File"
_MOVE: Final = "*** Move to: "
_SECTIONS: Final = {
    "*** Add File: ": Action.ADD,
    "*** Update File: ": Action.MODIFY,
    "*** Delete File: ": Action.DELETE,
}
_EXECUTABLE: Final = {"100644": False, "100755": True}
_IGNORED: Final = ("index ", "similarity index ", "dissimilarity index ", "Index: ", "old mode ")
_BLOBS: Final = re.compile(r"index [0-9a-fA-F]+\.\.[0-9a-fA-F]+(?: (?P<mode>\d+))?")
_ENDINGS: Final = ("--", "*** End Patch", "*** Begin Patch")
_BETWEEN: Final = ("diff ", "Only in ", "====")
_SHELL_HINT: Final = "change such a file with a command instead"


def read_begin_patch(lines: Sequence[str], at: int, wrapping: Wrapping) -> tuple[Patch, int]:
    """Read the sections from `at` on; return them and where they end."""
    entries, notes = list[FileEntry](), list[Note]()
    while at < len(lines):
        line = lines[at]
        action = next((a for start, a in _SECTIONS.items() if line.startswith(start)), None)
        if action is not None:
            entry, at = _section(lines, at, action, wrapping)
            entries.append(entry)
            require_files(len(entries))
        elif line.rstrip() == _END:
            return Patch(entries=tuple(entries)), at + 1
        elif line.strip() == "" or line.rstrip() == _BEGIN:
            at += 1
        elif _begins_unified(lines, at) or wrapping.closes(at):
            break
        else:
            raise _stray(lines, at)
    notes.append(Note(path="", kind="missing_end_patch", message=f"{_END} is missing"))
    return Patch(entries=tuple(entries), notes=tuple(notes)), at


def _stray(lines: Sequence[str], at: int) -> PatchRefusedError:
    return PatchRefusedError(
        SYNTAX,
        f"line {at + 1} of the patch belongs to no file: {quoted(lines[at])!r}",
        hint="every change goes below `*** Add/Update/Delete File: path`",
    )


def _section(
    lines: Sequence[str], at: int, action: Action, wrapping: Wrapping
) -> tuple[FileEntry, int]:
    spelled = lines[at].partition(": ")[2].strip()
    path = clean_path(spelled)
    match action:
        case Action.ADD:
            hunks, end = _added(lines, at + 1, wrapping)
            return FileEntry(action=action, path=path, target=path, hunks=hunks), end
        case Action.DELETE:
            end = _skip_blank(lines, at + 1)
            return FileEntry(action=action, path=path, target=path, whole=True), end
        case _:
            return _updated(lines, at + 1, path, wrapping)


def _added(lines: Sequence[str], at: int, wrapping: Wrapping) -> tuple[tuple[Hunk, ...], int]:
    first = at
    while at < len(lines) and not _is_mark(lines[at]):
        at += 1
    if at == len(lines):
        at = _unmarked_end(lines, first, wrapping)
    body = list(lines[first:at])
    while body and body[-1] == "":
        body.pop()
    signed = any(line.startswith("+") for line in body)
    if signed or any(is_stray_mark(line) for line in body):
        wrong = next((i for i, line in enumerate(body) if line and line[0] != "+"), None)
        if wrong is not None:
            raise PatchRefusedError(
                "invalid_hunk_body",
                f"line {first + wrong + 1} of the patch lacks its +: {quoted(body[wrong])!r}",
                hint="every line of an added file begins with +",
            )
        body = [line[1:] for line in body]
    if not body:
        return (), at
    added = tuple(HunkLine("+", line + "\n") for line in body)
    return (Hunk(lines=added, patch_line=first),), at


def _unmarked_end(lines: Sequence[str], first: int, wrapping: Wrapping) -> int:
    """Return the end of an added file without an end mark: the line that closes a wrapper."""
    signed = any(line.startswith("+") for line in lines[first:])
    closings = [
        at
        for at in range(first, len(lines))
        if wrapping.closes(at) or (not signed and lines[at].startswith("```"))
    ]
    if not closings:
        return len(lines)
    if not signed and any(line.strip() for line in lines[closings[0] + 1 :]):
        raise PatchRefusedError(
            SYNTAX,
            f"line {closings[0] + 1} may end the patch or be a line of the added file:"
            f" {quoted(lines[closings[0]])!r}",
            hint=f"begin every line of an added file with +, and end the patch with `{_END}`",
        )
    return closings[0]


def _updated(lines: Sequence[str], at: int, path: str, wrapping: Wrapping) -> tuple[FileEntry, int]:
    target, hunks = path, list[Hunk]()
    if at < len(lines) and lines[at].startswith(_MOVE):
        target = clean_path(lines[at].partition(": ")[2].strip())
        at += 1
    at = _skip_blank(lines, at)
    if at < len(lines) and is_name_pair(lines, at):
        _require_same_file(lines, at, path=path, target=target)
        at += 2
    while at < len(lines):
        line = lines[at]
        if line.rstrip() == _END_OF_FILE and hunks:
            hunks[-1] = msgspec.structs.replace(hunks[-1], at_end=True)
            at += 1
        elif line.startswith("@@"):
            hunk, at = read_hunk(lines, at, wrapping)
            hunks.append(hunk)
        elif _is_mark(line) or _begins_unified(lines, at) or wrapping.closes(at):
            break
        elif line.strip() == "":
            at += 1
        else:  # the first hunk may lack its @@
            body = read_body(lines, at, HunkHeader(), wrapping)
            if body.end == at:  # a header of the other form, which no hunk contains
                raise _stray(lines, at)
            sequel = wrapping.sequel(body.end, padding=body.padding)
            hunks.append(
                Hunk(
                    lines=tuple(body.lines),
                    patch_line=at + 1,
                    padding=body.padding,
                    sequel=sequel,
                )
            )
            at = body.end
    if not hunks and target == path:
        raise PatchRefusedError(
            SYNTAX, f"the patch changes nothing in {quoted(path)!r}", details={"path": path}
        )
    action = Action.MODIFY if target == path else Action.MOVE
    return FileEntry(action=action, path=path, target=target, hunks=tuple(hunks)), at


def _begins_unified(lines: Sequence[str], at: int) -> bool:
    return lines[at].startswith("diff --git ") or is_file_header(lines, at)


def _require_same_file(lines: Sequence[str], at: int, *, path: str, target: str) -> None:
    """Refuse a unified header inside a section that names another file."""
    named = {header_name(lines[at][4:]), header_name(lines[at + 1][4:])}
    same = {path, target, f"a/{path}", f"b/{target}", f"a/{target}", f"b/{path}", NULL_PATH}
    if not named <= same | {f"./{path}", f"./{target}"}:
        raise PatchRefusedError(
            "rename_path_mismatch",
            f"line {at + 1} of the patch names another file than its section, {quoted(path)!r}",
            hint="give every file a section of its own, or write a unified diff alone",
        )


def _is_mark(line: str) -> bool:
    return line.startswith((_MOVE, *_SECTIONS)) or line.rstrip() in (_BEGIN, _END, _END_OF_FILE)


def _skip_blank(lines: Sequence[str], at: int) -> int:
    while at < len(lines) and lines[at].strip() == "":
        at += 1
    return at


@dataclass(slots=True)
class _Headers:
    """The headers of one entry, collected while parsing."""

    patch_line: int
    git: tuple[str, str] | None = None
    is_git: bool = False
    old: str | None = None
    new: str | None = None
    rename_from: str | None = None
    rename_to: str | None = None
    added: bool = False
    deleted: bool = False
    executable: bool | None = None
    hunks: list[Hunk] = field(default_factory=list)


class _UnifiedReader:
    """One pass over the lines of a patch."""

    def __init__(self, lines: Sequence[str], wrapping: Wrapping) -> None:
        self._lines = lines
        self._wrapping = wrapping
        self._current: _Headers | None = None
        self._entries: list[FileEntry] = []
        self._ignored: list[str] = []

    def part(self, at: int) -> tuple[Patch, int]:
        """Read the patch that begins at `at`; return it and its end."""
        end: int | None = at
        while end is not None:
            at, end = end, self._step(end) if end < len(self._lines) else None
        self._close()
        return Patch(entries=tuple(self._entries), ignored_metadata=tuple(self._ignored)), at

    def _step(self, at: int) -> int | None:
        """Read the line at `at`; return the next position, or None when the patch ends here."""
        line = self._lines[at]
        if line.startswith("@@"):
            return self._hunk(at)
        if is_file_header(self._lines, at):
            return self._names(at)
        if line.startswith("diff --git "):
            self._open(_Headers(patch_line=at + 1, is_git=True, git=git_names(line[11:])))
        elif line.startswith(BINARY):
            raise PatchRefusedError(UNSUPPORTED, "the patch has binary content", hint=_SHELL_HINT)
        elif line.startswith((*EXTENDED, *_IGNORED)):
            self._extended(line.rstrip("\r"), at)
        elif self._current is None or self._ends(at):
            return None
        elif line.strip() and not line.startswith(_BETWEEN):
            raise PatchRefusedError(
                SYNTAX,
                f"line {at + 1} of the patch belongs to no hunk: {quoted(line)!r}",
                hint="put every changed line below its @@ line",
            )
        return at + 1

    def _ends(self, at: int) -> bool:
        """Whether a line outside any hunk is after the patch: a mail signature, a wrapper."""
        line = self._lines[at]
        if line.rstrip() in _ENDINGS or line.startswith(SECTIONS):
            return True
        return self._wrapping.closes(at)

    def _open(self, headers: _Headers) -> None:
        self._close()
        self._current = headers

    def _close(self) -> None:
        if self._current is not None:
            self._entries.append(_entry(self._current))
            require_files(len(self._entries))
        self._current = None

    def _names(self, at: int) -> int:
        if self._current is None or not self._current.is_git or self._current.old is not None:
            self._open(_Headers(patch_line=at + 1))
        assert self._current is not None  # opened above, or by the line that said diff --git
        self._current.old = header_name(self._lines[at][4:])
        self._current.new = header_name(self._lines[at + 1][4:])
        return at + 2

    def _hunk(self, at: int) -> int:
        if self._current is None or (self._current.is_git and self._current.old is None):
            raise PatchRefusedError(
                SYNTAX,
                f"line {at + 1} of the patch opens a hunk, but no file is named above it",
                hint="write `--- a/path` and `+++ b/path` above the first @@ of each file",
            )
        hunk, end = read_hunk(self._lines, at, self._wrapping)
        self._current.hunks.append(hunk)
        return end

    def _extended(self, line: str, at: int) -> None:
        blobs = _BLOBS.fullmatch(line)
        if blobs is not None and blobs["mode"]:
            _require_plain_mode(blobs["mode"])
        if line.startswith(_IGNORED):
            if len(self._ignored) < PATCH_NOTES_COUNT_MAX:
                self._ignored.append(quoted(line))
            return
        if self._current is None or not self._current.is_git or self._current.hunks:
            raise PatchRefusedError(
                "missing_git_header",
                f"line {at + 1} of the patch needs a `diff --git` line above it: {quoted(line)!r}",
            )
        _extend(self._current, line)


def _extend(headers: _Headers, line: str) -> None:
    verb, _, mode = line.rpartition(" ")
    if verb.endswith(" mode"):
        executable = _require_plain_mode(mode)
        headers.added = headers.added or verb == "new file mode"
        headers.deleted = headers.deleted or verb == "deleted file mode"
        headers.executable = None if headers.deleted else executable
    elif line.startswith("rename from "):
        headers.rename_from = header_name(line[12:])
    elif line.startswith("rename to "):
        headers.rename_to = header_name(line[10:])
    else:
        raise PatchRefusedError(UNSUPPORTED, "copies cannot be applied", hint=_SHELL_HINT)


def _require_plain_mode(mode: str) -> bool:
    if mode not in _EXECUTABLE:
        raise PatchRefusedError(
            UNSUPPORTED,
            f"mode {quoted(mode)} is refused: only plain files, 100644 and 100755",
            hint=_SHELL_HINT,
        )
    return _EXECUTABLE[mode]


def read_unified(lines: Sequence[str], at: int, wrapping: Wrapping) -> tuple[Patch, int]:
    """Read the unified diff that begins at `at`; return it and where it ends."""
    return _UnifiedReader(lines, wrapping).part(at)


def _entry(headers: _Headers) -> FileEntry:
    if headers.rename_from is not None or headers.rename_to is not None:
        return _rename(headers)
    named = _named(headers)
    path = clean_path(named.path)
    other = clean_path(named.other) if named.other is not None else None
    action = _action(headers)
    if action is Action.MODIFY and not headers.hunks and headers.executable is None:
        raise PatchRefusedError(
            SYNTAX, f"the patch changes nothing in {quoted(path)!r}", details={"path": path}
        )
    return FileEntry(
        action=action,
        path=path,
        target=path,
        other_path=other if action is not Action.ADD else None,
        hunks=tuple(headers.hunks),
        executable=headers.executable,
        whole=action is Action.DELETE and not headers.hunks,
    )


def _action(headers: _Headers) -> Action:
    if headers.added or headers.old == NULL_PATH:
        return Action.ADD
    if headers.deleted or headers.new == NULL_PATH:
        return Action.DELETE
    return Action.MODIFY


def _named(headers: _Headers) -> NamedPaths:
    """Return the one file an entry refers to."""
    by_git = without_prefixes(*headers.git) if headers.git is not None else None
    if headers.old is None or headers.new is None:
        if by_git is None:
            raise PatchRefusedError(
                SYNTAX, f"line {headers.patch_line} of the patch does not name its file"
            )
        return by_git
    named = _named_by_pair(headers.old, headers.new)
    if by_git is not None and named.path != by_git.path:
        if named.path not in (by_git.other, headers.git and headers.git[0]):
            raise PatchRefusedError(
                "rename_path_mismatch",
                f"the headers above line {headers.patch_line + 1} name different files:"
                f" {quoted(by_git.path)!r} and {quoted(named.path)!r}",
            )
        return by_git
    return named


def _named_by_pair(old: str, new: str) -> NamedPaths:
    if old == NULL_PATH and new == NULL_PATH:
        raise PatchRefusedError(SYNTAX, "both names of an entry are /dev/null")
    if old == NULL_PATH:
        return single_side(new, old=False)
    if new == NULL_PATH:
        return single_side(old, old=True)
    for spelled in (old, new):
        clean_path(spelled)  # an escaping path is reported first, whatever else is wrong
    named = without_prefixes(old, new)
    if named is None:
        raise PatchRefusedError(
            "missing_rename_header",
            f"{quoted(old)!r} and {quoted(new)!r} are two files, and nothing says it is renamed",
            hint="give the same path twice, or `diff --git` with `rename from` and `rename to`",
        )
    return named


def _rename(headers: _Headers) -> FileEntry:
    if headers.rename_from is None or headers.rename_to is None:
        raise PatchRefusedError(
            "missing_rename_header", "a rename needs both `rename from` and `rename to`"
        )
    path, target = clean_path(headers.rename_from), clean_path(headers.rename_to)
    old, new = headers.old or headers.rename_from, headers.new or headers.rename_to
    for header, renamed in ((old, path), (new, target)):
        if renamed not in (header, header[2:]):
            raise PatchRefusedError(
                "rename_path_mismatch",
                f"the rename says {quoted(renamed)!r}, the header says {quoted(header)!r}",
            )
    return FileEntry(
        action=Action.MOVE,
        path=path,
        target=target,
        hunks=tuple(headers.hunks),
        executable=headers.executable,
    )


def parse_patch(text: str) -> Patch:
    """Parse a patch, or raise PatchRefusedError."""
    lines = patch_lines(text)
    require_text(lines)
    wrapping = Wrapping(lines)
    entries, ignored, notes = list[FileEntry](), list[str](), list[Note]()
    start = wrapping.next_patch(0, follows=False)
    while start is not None:
        read = read_begin_patch if lines[start].startswith(SECTIONS) else read_unified
        part, end = read(lines, start, wrapping)
        entries.extend(part.entries)
        require_files(len(entries))
        ignored.extend(part.ignored_metadata)
        notes.extend(part.notes)
        start = wrapping.next_patch(end, follows=True)
    if not entries:
        raise PatchRefusedError(
            SYNTAX,
            "the patch names no file",
            hint="begin with `--- a/path` and `+++ b/path`, or with `*** Begin Patch`",
        )
    return Patch(entries=tuple(entries), ignored_metadata=tuple(ignored), notes=tuple(notes))
