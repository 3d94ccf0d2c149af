"""Patch planning: from parsed entries and file contents to the new contents of every path.

Owns:  the working copy of each path (as read, as changed by entries, as it will be written),
       applying placed hunks, and carrying out entries in order. Nothing is written here.
Rule 1: a file is decoded once and encoded once, however many entries touch it.
Rule 2: a retained line keeps its own bytes, however loosely it was matched.
Rule 3: lines added by an exact hunk are literal. Those of a relaxed one take the line ends of their
        neighbours, and the end of the file stays unless the hunk changes it.
Rule 4: one entry that cannot be carried out refuses the whole patch.
Rule 5: entries for the same file are applied in sequence: each sees the result of the one before.
"""

from collections.abc import Mapping, Sequence
from typing import Final, assert_never

import msgspec

from holon.model.limits import PATCH_MATCH_STEPS_COUNT_MAX, PATCH_NOTES_COUNT_MAX
from holon.model.record import Record
from holon.ports.workspaces import FileChange, StoredFile
from holon.tools.workspaces.patching.document import (
    NOT_FOUND,
    Action,
    FileEntry,
    Hunk,
    Note,
    Patch,
    PatchRefusedError,
    quoted,
)
from holon.tools.workspaces.patching.file_lines import (
    Budget,
    LineIndex,
    MatchLevel,
    TextFile,
    decode_text,
    encode_text,
    ending_of,
    require_encodable,
)
from holon.tools.workspaces.patching.placing import Placement, place_first

_PLAIN_MODE: Final = 0o644
_LOOKS_PER_LINE: Final = 3  # the cost of indexing a file once
_COPIED_PER_STEP: Final = 8
_BOM: Final = "\ufeff"
_RELAXED: Final = {
    MatchLevel.LINE_ENDS: "line ends aside",
    MatchLevel.TRAILING_BLANKS: "blanks at line ends aside",
    MatchLevel.LOST_SPACE: "with the lost leading space of context lines",
    MatchLevel.LOST_SIGN: "with the lost leading space of context lines",
}


class WorkingTree:
    """The contents of paths while entries are applied."""

    def __init__(self, files: Mapping[str, StoredFile | None], *, literal_mark: bool) -> None:
        self._before = files
        self._now: dict[str, StoredFile | None] = dict(files)
        self._texts: dict[str, TextFile] = {}
        self._origins: dict[str, str] = {}
        self._touched: dict[str, None] = {}
        self._literal_mark = literal_mark

    def holds(self, path: str) -> bool:
        """Whether the path is a file."""
        return self._now.get(path) is not None

    def is_empty(self, path: str) -> bool:
        """Whether the path is an empty file."""
        text, stored = self._texts.get(path), self._now.get(path)
        return not text.lines if text is not None else stored is not None and not stored.content

    def was_there(self, path: str) -> bool:
        """Whether the file existed before the patch."""
        return self._before.get(path) is not None

    def text(self, path: str) -> tuple[TextFile, bool]:
        """Return a file as lines, and whether this is its first read."""
        known = self._texts.get(path)
        if known is not None:
            return known, False
        stored = self._now[path]
        content = b"" if stored is None else stored.content
        text = decode_text(content, path=path, literal_mark=self._literal_mark)
        self._texts[path] = text
        return text, True

    def write(self, path: str, text: TextFile, *, mode: int) -> None:
        """Set the lines of a path."""
        self._touched[path] = None
        self._texts[path] = text
        self._now[path] = StoredFile(content=b"", mode=mode)

    def mode_of(self, path: str) -> int:
        """Return the mode of an existing file."""
        stored = self._now[path]
        return 0 if stored is None else stored.mode

    def set_mode(self, path: str, mode: int) -> None:
        """Change a file's mode."""
        self._touched[path] = None
        stored = self._now[path]
        if stored is not None:
            self._now[path] = msgspec.structs.replace(stored, mode=mode)

    def remove(self, path: str) -> None:
        """Remove a path."""
        self._touched[path] = None
        self._now[path] = None
        self._texts.pop(path, None)
        self._origins.pop(path, None)

    def move(self, path: str, target: str) -> None:
        """Move a file to another path."""
        stored, text = self._now[path], self._texts.get(path)
        origin = self._origins.get(path, path)
        self.remove(path)
        self._touched[target] = None
        self._now[target] = stored
        if text is not None:
            self._texts[target] = text
        if self.was_there(origin):
            self._origins[target] = origin

    def changes(self) -> list[FileChange]:
        """Return every path whose contents differ from before."""
        changes = list[FileChange]()
        for path in self._touched:
            stored, text = self._now[path], self._texts.get(path)
            if stored is not None and text is not None:
                content = encode_text(text, text.lines, path=path)
                stored = StoredFile(content=content, mode=stored.mode)
            if stored != self._before.get(path):
                changes.append(FileChange(path=path, after=stored, before=self._before.get(path)))
        return changes

    def origin_of(self, path: str) -> str | None:
        """Return the original path of a moved file."""
        origin = self._origins.get(path)
        return None if origin == path or self._now.get(path) is None else origin


def rewritten(lines: Sequence[str], placements: Sequence[Placement], *, ending: str) -> list[str]:
    """Return the file's lines with every hunk applied; `ending` is the file's line end."""
    result, at, may_lack_feed = list[str](), 0, list[int]()
    for placement in placements:
        first, end = placement.span
        result.extend(lines[at:first])
        may_lack_feed.append(len(result) - 1)  # it may have been the last line
        result.extend(_changed(lines, placement, ending))
        may_lack_feed.extend(range(may_lack_feed[-1] + 1, len(result)))
        at = max(at, end)
    result.extend(lines[at:])
    for index in may_lack_feed:
        if 0 <= index < len(result) - 1 and not result[index].endswith("\n"):
            result[index] += ending
    _settle_end(result, lines, placements, ending)
    return result


def _changed(lines: Sequence[str], placement: Placement, style: str) -> list[str]:
    hunk = placement.hunk
    literal = _is_literal(lines, placement)
    around = lines[placement.start : placement.start + len(hunk.old)]
    ending = ending_of(around) if around else style
    if around and not any(line.endswith("\n") for line in around):
        ending = style
    first, end = placement.span
    at, result = placement.start, list[str]()
    for line in hunk.lines:
        if line.sign == "+":
            result.append(line.text if literal else line.text.rstrip("\r\n") + ending)
            continue
        if line.sign == " " and first <= at < end:
            result.append(lines[at])
        at += 1
    return result


def _is_literal(lines: Sequence[str], placement: Placement) -> bool:
    """Whether added lines are used literally: the hunk matched exactly, or the file is new."""
    return placement.level is MatchLevel.EXACT and bool(placement.hunk.old or not lines)


def _settle_end(
    result: list[str], lines: Sequence[str], placements: Sequence[Placement], style: str
) -> None:
    """Add or remove the last line feed where a relaxed hunk reaches the end of the file."""
    if not result or not placements:
        return
    last = placements[-1]
    reaches = last.start + len(last.hunk.old) == len(lines)
    if not reaches or _is_literal(lines, last):
        return
    was_unended, is_unended = last.hunk.unended
    unended = bool(lines) and not lines[-1].endswith("\n")
    if was_unended != is_unended:
        unended = is_unended
    ended = result[-1].endswith("\n")
    # A retained line keeps its end; an added blank line would disappear without one.
    adds_last = last.hunk.lines[-1].sign == "+" and bool(result[-1].rstrip("\r\n"))
    if unended and ended and adds_last:
        result[-1] = result[-1].removesuffix("\n").removesuffix("\r")
    elif not unended and not ended:
        result[-1] += style


class ChangedFile(Record, frozen=True, kw_only=True):
    """One changed file, for the result."""

    action: Action
    path: str
    from_path: str | None = None


class PatchPlan(Record, frozen=True, kw_only=True):
    """All changes of a patch."""

    changes: tuple[FileChange, ...]
    changed_files: tuple[ChangedFile, ...]
    notes: tuple[Note, ...]


def paths_of(patch: Patch) -> list[str]:
    """Return every path a plan needs, each once, in order."""
    named = dict[str, None]()
    for entry in patch.entries:
        for path in (entry.path, entry.other_path, entry.target):
            if path is not None:
                named[path] = None
    return list(named)


def plan_patch(
    patch: Patch, files: Mapping[str, StoredFile | None], *, budget: Budget | None = None
) -> PatchPlan:
    """Return the new contents of every path, or raise PatchRefusedError; work is bounded."""
    texts = (line.text for e in patch.entries for hunk in e.hunks for line in hunk.lines)
    tree = WorkingTree(files, literal_mark=any(text.startswith(_BOM) for text in texts))
    planner = _Planner(tree, budget or Budget(PATCH_MATCH_STEPS_COUNT_MAX))
    for entry in patch.entries:
        planner.carry_out(entry)
    changes = tree.changes()
    notes = [*patch.notes, *planner.notes]
    return PatchPlan(
        changes=tuple(changes),
        changed_files=tuple(_changed_files(tree, changes)),
        notes=tuple(notes[:PATCH_NOTES_COUNT_MAX]),
    )


class _Planner:
    """Applies entries to a working copy."""

    def __init__(self, tree: WorkingTree, budget: Budget) -> None:
        self._tree = tree
        self._budget = budget
        self.notes: list[Note] = []

    def carry_out(self, entry: FileEntry) -> None:
        """Apply one entry."""
        match entry.action:
            case Action.ADD:
                self._add(entry)
            case Action.DELETE:
                self._delete(entry)
            case Action.MODIFY:
                self._modify(entry)
            case Action.MOVE:
                self._move(entry)
            case _:
                assert_never(entry.action)

    def _add(self, entry: FileEntry) -> None:
        path, tree = entry.path, self._tree
        if tree.holds(path) and not tree.is_empty(path):
            known = tree.was_there(path)
            raise PatchRefusedError(
                "existing_file" if known else "duplicate_file_patch",
                f"{quoted(path)!r} already exists and is not empty"
                if known
                else f"the patch adds {quoted(path)!r} twice",
                hint="update the file instead, or delete it first in the same patch",
                details={"path": path},
            )
        if any(not hunk.only_adds for hunk in entry.hunks):
            raise PatchRefusedError(
                "invalid_hunk_body",
                f"the new file {quoted(path)!r} can only have added lines",
                hint="begin every line of a new file with +",
                details={"path": path},
            )
        mode = tree.mode_of(path) if tree.holds(path) else _PLAIN_MODE
        lines = [text for hunk in entry.hunks for text in hunk.added]
        tree.write(
            path,
            TextFile(lines=lines, ending=ending_of(lines)),
            mode=_with_bits(mode, entry.executable),
        )

    def _delete(self, entry: FileEntry) -> None:
        path = self._existing(entry)
        if not entry.whole and not self._tree.is_empty(path):
            left = self._applied(path, entry.hunks)
            if left.lines:
                raise PatchRefusedError(
                    NOT_FOUND,
                    f"the patch deletes {quoted(path)!r}, but does not list all of its lines",
                    hint="use `*** Delete File: path` to delete it whatever it contains",
                    details={"path": path, "expected": None, "found": quoted(left.lines[0])},
                )
        self._tree.remove(path)

    def _modify(self, entry: FileEntry) -> None:
        creates = bool(entry.hunks) and all(hunk.only_adds for hunk in entry.hunks)
        spelled = (entry.path, entry.other_path or entry.path)
        if creates and not any(self._tree.holds(path) for path in spelled):
            self._note(entry.path, "created_file", "there was no such file; it was created")
            self._add(entry)
            return
        path = self._existing(entry)
        if entry.hunks:
            text = self._applied(path, entry.hunks)
            self._tree.write(path, text, mode=self._tree.mode_of(path))
        self._tree.set_mode(path, _with_bits(self._tree.mode_of(path), entry.executable))

    def _move(self, entry: FileEntry) -> None:
        self._modify(msgspec.structs.replace(entry, action=Action.MODIFY, hunks=entry.hunks))
        if entry.target == entry.path:
            return
        if self._tree.holds(entry.target):
            raise PatchRefusedError(
                "existing_file",
                f"{quoted(entry.target)!r} already exists and is not overwritten",
                details={"path": entry.target},
            )
        self._tree.move(entry.path, entry.target)

    def _existing(self, entry: FileEntry) -> str:
        for path in (entry.path, entry.other_path):
            if path is not None and self._tree.holds(path):
                return path
        raise PatchRefusedError(
            "missing_file",
            f"there is no file {quoted(entry.path)!r}",
            hint="check the path, relative to the execution root; to create a file, add it",
            details={"path": entry.path},
        )

    def _applied(self, path: str, hunks: Sequence[Hunk]) -> TextFile:
        """Return a file with its hunks applied: together, or in sequence if necessary."""
        text, is_first_read = self._tree.text(path)
        if is_first_read:
            self._budget.grant(_LOOKS_PER_LINE * len(text.lines))
        require_encodable(text, [new for hunk in hunks for new in hunk.added], path=path)
        lines, pending = text.lines, list(hunks)
        while pending:
            self._budget.spend(len(lines) // _COPIED_PER_STEP)
            placed = place_first(LineIndex(lines, pending, self._budget), pending, path=path)
            pending = pending[len(placed) :]
            lines = rewritten(lines, placed, ending=text.ending)
            self._note_relaxed(path, placed)
        return msgspec.structs.replace(text, lines=lines)

    def _note_relaxed(self, path: str, placed: Sequence[Placement]) -> None:
        for hunk, start, level in placed:
            if level is not MatchLevel.EXACT:
                how = _RELAXED[level]
                where = f"the hunk at line {hunk.patch_line} of the patch fits line {start + 1}"
                self._note(path, "relaxed_match", f"{where} {how}")
            elif hunk.miscounted:
                where = f"the hunk at line {hunk.patch_line} of the patch"
                self._note(path, "hunk_count_mismatch", f"the counts of {where} are wrong")

    def _note(self, path: str, kind: str, message: str) -> None:
        if len(self.notes) < PATCH_NOTES_COUNT_MAX:
            self.notes.append(Note(path=path, kind=kind, message=message))


def _with_bits(mode: int, executable: bool | None) -> int:
    """Return a mode with execute bits for all readers, or without any."""
    if executable is None:
        return mode
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111


def _changed_files(tree: WorkingTree, changes: Sequence[FileChange]) -> list[ChangedFile]:
    origins = {tree.origin_of(change.path) for change in changes}
    changed = list[ChangedFile]()
    for change in changes:
        origin = tree.origin_of(change.path)
        if origin is not None:
            changed.append(ChangedFile(action=Action.MOVE, path=change.path, from_path=origin))
        elif change.after is None:
            if change.path not in origins:
                changed.append(ChangedFile(action=Action.DELETE, path=change.path))
        else:
            action = Action.MODIFY if tree.was_there(change.path) else Action.ADD
            changed.append(ChangedFile(action=action, path=change.path))
    return changed
