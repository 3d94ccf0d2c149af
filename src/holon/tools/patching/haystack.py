"""A file's lines, ready to be searched for hunks.

Owns:  how alike two lines have to be, level by level, and finding every place a hunk fits.
Rule 1: a level is looked at only when the stricter one found nothing.
Rule 2: the work is counted. A patch made to be expensive ends in `patch_too_large`, not in a hang.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from holon.tools.patching.document import Hunk, HunkLine
from holon.tools.patching.problem import TOO_LARGE, PatchRefusedError

_BLANKS: Final = " \t\r\n"


class Likeness(IntEnum):
    """How a hunk's lines agree with the file's."""

    EXACT = 0
    LINE_ENDS = 1  # but for CRLF or LF, or a missing last one
    TRAILING_BLANKS = 2
    LOST_SPACE = 3  # context lines whose leading space was lost
    LOST_SIGN = 4  # and lines that begin with a minus, which look removed without it


class Budget:
    """How much looking is left for one patch."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def spend(self, steps: int) -> None:
        """Count steps, or refuse the patch."""
        self._steps -= steps
        if self._steps < 0:
            raise PatchRefusedError(
                TOO_LARGE,
                "the places of these hunks take too long to find",
                hint="give more distinct context lines, or split the patch",
            )

    def grant(self, steps: int) -> None:
        """Allow for the reading of a file, which is paid by its size."""
        self._steps += steps


class Haystack:
    """The lines of one file, as one entry of a patch looks at them."""

    def __init__(self, lines: Sequence[str], hunks: Sequence[Hunk], budget: Budget) -> None:
        self.lines = lines
        self.budget = budget
        self._hunks = hunks
        self._keys: dict[Likeness, Sequence[str]] = {}
        self._places: dict[Likeness, dict[str, list[int]]] = {}

    def fits(self, old: Sequence[HunkLine], at: int, level: Likeness) -> bool:
        """Whether these lines stand at this place."""
        if _ends_elsewhere(old, at, len(self.lines)):
            return False
        return self._stands(self._keys_at(level), _spelled(old, level), at)

    def level_at(self, old: Sequence[HunkLine], at: int) -> Likeness | None:
        """Return how well these lines agree with the place, or nothing when they do not."""
        return next((level for level in Likeness if self.fits(old, at, level)), None)

    def find(
        self, old: Sequence[HunkLine], level: Likeness, *, count_max: int | None = None
    ) -> list[int]:
        """Return the places where these lines stand, in order; all, or the first few."""
        spelled = _spelled(old, level)
        rarest = self._rarest(spelled, level)
        if rarest is None:
            return []
        offset, places = rarest
        keys, found = self._keys_at(level), list[int]()
        for place in places:
            start = place - offset
            if self._stands(keys, spelled, start) and not _ends_elsewhere(old, start, len(keys)):
                found.append(start)
                if len(found) == count_max:
                    break
        return found

    def _stands(self, keys: Sequence[str], spelled: Sequence[Sequence[str]], at: int) -> bool:
        end = at + len(spelled)
        self.budget.spend(1)
        if at < 0 or end > len(keys) or not spelled:
            return not spelled
        if keys[at] not in spelled[0] or keys[end - 1] not in spelled[-1]:
            return False
        self.budget.spend(len(spelled) // 4)
        pairs = zip(keys[at:end], spelled, strict=True)
        return all(key in spellings for key, spellings in pairs)

    def lines_like(self, text: str) -> list[int]:
        """Return where a line stands, but for blanks around it; else where it begins one."""
        wanted = text.strip(_BLANKS)
        self.budget.spend(len(self.lines))
        found = [at for at, line in enumerate(self.lines) if line.strip(_BLANKS) == wanted]
        if found:
            return found
        return [at for at, line in enumerate(self.lines) if line.lstrip(_BLANKS).startswith(wanted)]

    def block_end(self, at: int) -> int:
        """Return where the block a line opens ends: the next line that is not indented more."""
        depth = _depth(self.lines[at])
        for end in range(at + 1, len(self.lines)):
            self.budget.spend(1)
            if self.lines[end].strip(_BLANKS) and _depth(self.lines[end]) <= depth:
                return end
        return len(self.lines)

    def _rarest(
        self, spelled: Sequence[Sequence[str]], level: Likeness
    ) -> tuple[int, Sequence[int]] | None:
        """Return the line with the fewest places: its position in the hunk and these places."""
        index = self._index(level)
        self.budget.spend(len(spelled))
        counts = [sum(len(index.get(key, ())) for key in keys) for keys in spelled]
        fewest = min(counts)
        if fewest == 0:
            return None
        offset = counts.index(fewest)
        lists = [index[key] for key in spelled[offset] if index.get(key)]
        return offset, lists[0] if len(lists) == 1 else sorted({at for li in lists for at in li})

    def _index(self, level: Likeness) -> dict[str, list[int]]:
        """Where the lines the hunks speak of stand; other lines are not kept."""
        if level not in self._places:
            index: dict[str, list[int]] = {}
            for hunk in self._hunks:
                for line in hunk.old:
                    index.update((key, []) for key in _spellings(line, level))
            for at, key in enumerate(self._keys_at(level)):
                if key in index:
                    index[key].append(at)
            self._places[level] = index
        return self._places[level]

    def _keys_at(self, level: Likeness) -> Sequence[str]:
        if level not in self._keys:
            self.budget.spend(len(self.lines))
            self._keys[level] = (
                self.lines
                if level is Likeness.EXACT
                else [key_of(line, level) for line in self.lines]
            )
        return self._keys[level]


def key_of(line: str, level: Likeness) -> str:
    """Return what must be the same for two lines to agree."""
    match level:
        case Likeness.EXACT:
            return line
        case Likeness.LINE_ENDS:
            return line.rstrip("\r\n")
        case _:
            return line.rstrip(_BLANKS)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _spellings(line: HunkLine, level: Likeness) -> tuple[str, ...]:
    """What a line of a hunk may stand for; the space before context may be part of its text."""
    key = key_of(line.text, level)
    if level >= Likeness.LOST_SPACE and line.sign == " ":
        return key, f" {key}"
    if level is Likeness.LOST_SIGN and line.sign == "-":
        return key, f"-{key}"
    return (key,)


def _spelled(old: Sequence[HunkLine], level: Likeness) -> list[tuple[str, ...]]:
    return [_spellings(line, level) for line in old]


def is_lost_minus(line: HunkLine, there: str) -> bool:
    """Whether a line that looks removed is one of context that begins with a minus."""
    level = Likeness.LOST_SIGN
    return line.sign == "-" and key_of(there, level) == f"-{key_of(line.text, level)}"


def _ends_elsewhere(old: Sequence[HunkLine], at: int, count: int) -> bool:
    """A line without its line feed ends the file, so it can stand nowhere else."""
    return bool(old) and not old[-1].text.endswith("\n") and at + len(old) != count
