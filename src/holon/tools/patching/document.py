"""A patch, read: what it wants done to which file.

Owns:  the shapes both patch forms are read into, so that there is one way to plan.
Rule 1: a line's text keeps its line feed; a line without one ends its file.
Rule 2: paths here are clean: relative, without dots, inside the root by their spelling.
"""

from enum import StrEnum
from typing import NamedTuple

from holon.model.record import Record


class HunkLine(NamedTuple):
    """One line of a hunk: " " stays, "-" goes, "+" comes."""

    sign: str
    text: str


class Sequel(NamedTuple):
    """How the file goes on if a hunk does not end where its patch seems to end.

    One of `texts`, below fewer than `within` blank lines.
    """

    texts: frozenset[str]
    within: int


class Hunk(Record, frozen=True, kw_only=True):
    """Lines to find together, and what becomes of them.

    `hint` is where the first old line should be, counted from zero. `anchors` are lines to look for
    above, outermost first. `padding` counts blank lines at the end that may be no part of the hunk.
    `lost_minuses` counts removed lines that the header counts as context: lines of the file that
    begin with a minus, whose own sign was lost. `sequel` is there when lines that may be changes
    stand behind the end of the patch.
    """

    lines: tuple[HunkLine, ...]
    patch_line: int
    hint: int | None = None
    inserts_at: int | None = None  # a header that names a place between two lines
    anchors: tuple[str, ...] = ()
    at_end: bool = False
    padding: int = 0
    counted: bool = False  # the header's counts are right
    miscounted: bool = False  # the header has counts, and they are wrong
    lost_minuses: int = 0
    sequel: Sequel | None = None

    @property
    def old(self) -> list[HunkLine]:
        """The lines the file should have."""
        return [line for line in self.lines if line.sign != "+"]

    @property
    def added(self) -> list[str]:
        """The lines that are new."""
        return [line.text for line in self.lines if line.sign == "+"]

    @property
    def only_adds(self) -> bool:
        """Whether nothing of it has to be in the file already."""
        return not self.lines or [line.sign for line in self.lines].count("+") == len(self.lines)

    @property
    def unended(self) -> tuple[bool, bool]:
        """Whether the file has no last line feed by this hunk, before and after."""
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
    """What a patch wants of one file.

    `path` is the file as it is, `target` where it shall be (the same unless it moves), and
    `other_path` how the header might also be read when there is no file at `path`.
    """

    action: Action
    path: str
    target: str
    other_path: str | None = None
    hunks: tuple[Hunk, ...] = ()
    executable: bool | None = None
    whole: bool = False  # a deletion that lists no lines


class Note(Record, frozen=True, kw_only=True):
    """Something a model should know of how its patch was read."""

    path: str
    kind: str
    message: str


class Patch(Record, frozen=True, kw_only=True):
    """All entries in their order."""

    entries: tuple[FileEntry, ...]
    ignored_metadata: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
