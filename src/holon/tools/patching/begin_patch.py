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
from holon.tools.patching.paths import clean_path
from holon.tools.patching.problem import SYNTAX, PatchRefusedError, quoted, require_files

_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_END_OF_FILE: Final = "*** End of File"
_MOVE: Final = "*** Move to: "
_SECTIONS: Final = {
    "*** Add File: ": Action.ADD,
    "*** Update File: ": Action.MODIFY,
    "*** Delete File: ": Action.DELETE,
}


def is_begin_patch(lines: Sequence[str]) -> bool:
    """Whether a patch has sections of this form."""
    return any(line.startswith(tuple(_SECTIONS)) for line in lines)


def read_begin_patch(lines: Sequence[str]) -> Patch:
    """Read a patch of this form."""
    entries, notes, at = list[FileEntry](), list[Note](), 0
    while at < len(lines):
        line = lines[at]
        action = next((a for start, a in _SECTIONS.items() if line.startswith(start)), None)
        if action is not None:
            entry, at = _section(lines, at, action)
            entries.append(entry)
            require_files(len(entries))
        elif line.rstrip() == _END:
            break
        elif line.strip() == "" or line.rstrip() == _BEGIN or not entries:
            at += 1
        else:
            raise _stray(lines, at)
    if at >= len(lines):
        notes.append(Note(path="", kind="missing_end_patch", message=f"{_END} is missing"))
    return Patch(entries=tuple(entries), notes=tuple(notes))


def _stray(lines: Sequence[str], at: int) -> PatchRefusedError:
    return PatchRefusedError(
        SYNTAX,
        f"line {at + 1} of the patch belongs to no file: {quoted(lines[at])!r}",
        hint="every change stands below `*** Add/Update/Delete File: path`",
    )


def _section(lines: Sequence[str], at: int, action: Action) -> tuple[FileEntry, int]:
    spelled = lines[at].partition(": ")[2].strip()
    path = clean_path(spelled)
    match action:
        case Action.ADD:
            hunks, end = _added(lines, at + 1)
            return FileEntry(action=action, path=path, target=path, hunks=hunks), end
        case Action.DELETE:
            end = _skip_blank(lines, at + 1)
            return FileEntry(action=action, path=path, target=path, whole=True), end
        case _:
            return _updated(lines, at + 1, path)


def _added(lines: Sequence[str], at: int) -> tuple[tuple[Hunk, ...], int]:
    first, body = at, list[str]()
    while at < len(lines) and not _is_mark(lines[at]):
        body.append(lines[at])
        at += 1
    while body and body[-1] == "":
        body.pop()
    if any(line.startswith("+") for line in body):
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


def _updated(lines: Sequence[str], at: int, path: str) -> tuple[FileEntry, int]:
    target, hunks = path, list[Hunk]()
    if at < len(lines) and lines[at].startswith(_MOVE):
        target = clean_path(lines[at].partition(": ")[2].strip())
        at += 1
    while at < len(lines):
        line = lines[at]
        if line.rstrip() == _END_OF_FILE and hunks:
            hunks[-1] = msgspec.structs.replace(hunks[-1], at_end=True)
            at += 1
        elif line.startswith("@@"):
            hunk, at = read_hunk(lines, at)
            hunks.append(hunk)
        elif _is_mark(line):
            break
        elif line.strip() == "" or _is_name_line(lines, at, hunks):
            at += 1
        else:  # the first hunk may stand there without its @@
            body = read_body(lines, at, HunkHeader())
            if body.end == at:  # a header of the other form: no line of it can be a hunk's
                raise _stray(lines, at)
            hunks.append(Hunk(lines=tuple(body.lines), patch_line=at + 1, padding=body.padding))
            at = body.end
    if not hunks and target == path:
        raise PatchRefusedError(
            SYNTAX, f"the patch changes nothing in {quoted(path)!r}", details={"path": path}
        )
    action = Action.MODIFY if target == path else Action.MOVE
    return FileEntry(action=action, path=path, target=target, hunks=tuple(hunks)), at


def _is_name_line(lines: Sequence[str], at: int, hunks: Sequence[Hunk]) -> bool:
    """A unified header inside a section says nothing new."""
    pair = lines[at : at + 2]
    opens = len(pair) == 2 and pair[0].startswith("--- ") and pair[1].startswith("+++ ")
    closes = lines[at].startswith("+++ ") and at > 0 and lines[at - 1].startswith("--- ")
    return not hunks and (opens or closes)


def _is_mark(line: str) -> bool:
    return line.startswith((_MOVE, *_SECTIONS)) or line.rstrip() in (_BEGIN, _END, _END_OF_FILE)


def _skip_blank(lines: Sequence[str], at: int) -> int:
    while at < len(lines) and lines[at].strip() == "":
        at += 1
    return at
