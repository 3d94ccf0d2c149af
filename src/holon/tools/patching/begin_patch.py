"""The `*** Begin Patch` form.

Owns:  its sections (Add File, Update File with Move to, Delete File) and what stands in them.
Rule 1: the lines around it may be missing; a section's own line may not.
Rule 2: hunks are read by the same rules as those of a unified diff.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from holon.tools.patching.document import Action, FileEntry, Hunk, HunkLine, Note, Patch
from holon.tools.patching.hunk_reading import HunkHeader, read_body, read_hunk
from holon.tools.patching.paths import NULL_PATH, clean_path, header_name
from holon.tools.patching.problem import SYNTAX, PatchRefusedError, quoted, require_files
from holon.tools.patching.wrappers import (
    Wrapping,
    is_file_header,
    is_name_pair,
    is_stray_mark,
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
        hint="every change stands below `*** Add/Update/Delete File: path`",
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
    """Return where an added file ends that no mark ends: at the one line that closes a wrapper."""
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
        else:  # the first hunk may stand there without its @@
            body = read_body(lines, at, HunkHeader(), wrapping)
            if body.end == at:  # a header of the other form: no line of it can be a hunk's
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
    """A unified header inside a section names the section's file, or says nothing new."""
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
