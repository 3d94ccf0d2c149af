"""What to tell a model whose hunk was not found.

Owns:  the first line that differs, and the places that come nearest.
Rule 1: everything is bounded: places looked at, lines compared, text quoted.
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

from holon.model.json_value import JsonValue
from holon.tools.patching.document import Hunk, HunkLine
from holon.tools.patching.haystack import Haystack, Likeness, key_of
from holon.tools.patching.problem import NOT_FOUND, PatchRefusedError, quoted

_PLACES_COUNT_MAX: Final = 20
_COMPARED_COUNT_MAX: Final = 200
_CANDIDATES_COUNT_MAX: Final = 3
_SCANNED_COUNT_MAX: Final = 20_000
_SCORED_COUNT_MAX: Final = 200
_SCANNED_CHARS_MAX: Final = 160
_LIKENESS_MIN: Final = 0.6
_WORD: Final = re.compile(r"\w+")


def not_found(haystack: Haystack, hunk: Hunk, drift: int, *, path: str) -> PatchRefusedError:
    """Return the error that shows where the hunk and the file part."""
    old, lines = hunk.old, haystack.lines
    places = _places(haystack, hunk, drift)
    if places:
        start = max(places, key=lambda at: _agreeing(lines, old, at))
        diverging = _agreeing(lines, old, start)
    else:
        start, diverging = -1, next((i for i, line in enumerate(old) if line.text.strip()), 0)
    expected = old[min(diverging, len(old) - 1)].text
    at = start + diverging
    found = quoted(lines[at]) if start >= 0 and at < len(lines) else None
    near = _near(lines, expected, at if start >= 0 else hunk.hint)
    details: dict[str, JsonValue] = {
        "path": path,
        "patch_line": hunk.patch_line,
        "expected": quoted(expected),
        "found": found,
        "found_line": at + 1 if found is not None else None,
        "candidates": near,
    }
    where = f"; line {at + 1} of the file is {found!r}" if found is not None else ""
    return PatchRefusedError(
        NOT_FOUND,
        f"the hunk at line {hunk.patch_line} of the patch does not fit {quoted(path)!r}:"
        f" it wants {quoted(expected)!r}{where}",
        hint="read the file again and copy its lines exactly, with the signs before them",
        details=details,
    )


def _places(haystack: Haystack, hunk: Hunk, drift: int) -> list[int]:
    """Return where the hunk might have been meant to start."""
    old, count = hunk.old, len(haystack.lines)
    places = list[int]()
    if hunk.hint is not None:
        places.append(hunk.hint + drift)
    for offset, line in enumerate(old[:_PLACES_COUNT_MAX]):
        if line.text.strip():
            alike = haystack.find(
                [HunkLine(" ", line.text)],
                Likeness.TRAILING_BLANKS,
                count_max=_PLACES_COUNT_MAX,
            )
            places.extend(at - offset for at in alike)
        if len(places) >= _PLACES_COUNT_MAX:
            break
    kept = [at for at in places[:_PLACES_COUNT_MAX] if 0 <= at < count]
    return [at for at in kept if _agreeing(haystack.lines, old, at) > 0]


def _agreeing(lines: Sequence[str], old: Sequence[HunkLine], start: int) -> int:
    """Return how many lines agree from the start of the hunk on."""
    level, count = Likeness.TRAILING_BLANKS, min(len(old), _COMPARED_COUNT_MAX)
    for at in range(count):
        if start + at >= len(lines):
            return at
        if key_of(lines[start + at], level) != key_of(old[at].text, level):
            return at
    return count


def _near(lines: Sequence[str], expected: str, around: int | None) -> list[JsonValue]:
    """Return the lines of the file that look most like the one that is wanted."""
    wanted = expected.strip()[:_SCANNED_CHARS_MAX]
    if not wanted:
        return []
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    scored = list[tuple[float, int]]()
    for at in _promising(lines, wanted, around or 0):
        matcher.set_seq1(lines[at].strip()[:_SCANNED_CHARS_MAX])
        if matcher.real_quick_ratio() < _LIKENESS_MIN:
            continue
        ratio = matcher.quick_ratio()
        if ratio >= _LIKENESS_MIN:
            scored.append((-ratio, at))
    best = sorted(scored)[:_CANDIDATES_COUNT_MAX]
    return [{"line": at + 1, "text": quoted(lines[at])} for _, at in best]


def _promising(lines: Sequence[str], wanted: str, around: int) -> list[int]:
    """Return a few lines worth a closer look: those with the longest word, and those around."""
    word = max(_WORD.findall(wanted), key=len, default=wanted)
    scan = range(max(0, around - _SCANNED_COUNT_MAX // 2), len(lines))[:_SCANNED_COUNT_MAX]
    named = [at for at in scan if word in lines[at]]
    close = range(max(0, around - _SCORED_COUNT_MAX // 2), len(lines))[:_SCORED_COUNT_MAX]
    nearest = sorted(named, key=lambda at: abs(at - around))[:_SCORED_COUNT_MAX]
    return sorted({*nearest, *close})
