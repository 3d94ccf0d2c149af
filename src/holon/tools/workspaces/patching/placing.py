"""Hunk placement: the position of each hunk of an entry in its file.

Owns:  the search, from an exact match at the stated line to a relaxed one elsewhere; the nearest
       positions and the first differing line, for an error message.
Rule 1: everything is bounded: positions tried, lines compared, text quoted.
Rule 2: a position is taken when it is at the stated line and matches except for line ends, or when
        it is the only match. Between two positions nothing is guessed.
Rule 3: hunks follow the order of the file, so a position counts as the only one when no other
        order-preserving choice exists.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from holon.model.values import JsonValue
from holon.tools.workspaces.patching.document import (
    AMBIGUOUS,
    NOT_FOUND,
    Hunk,
    HunkLine,
    PatchRefusedError,
    quoted,
)
from holon.tools.workspaces.patching.file_lines import LineIndex, MatchLevel, is_lost_minus, key_of

_PLACES_COUNT_MAX: Final = 20
_COMPARED_COUNT_MAX: Final = 200
_CANDIDATES_COUNT_MAX: Final = 3
_SCANNED_COUNT_MAX: Final = 20_000
_SCORED_COUNT_MAX: Final = 200
_SCANNED_CHARS_MAX: Final = 160
_LIKENESS_MIN: Final = 0.6
_WORD: Final = re.compile(r"\w+")
_SHOWN_COUNT_MAX: Final = 5
_LOOSE: Final = MatchLevel.TRAILING_BLANKS


def not_found(index: LineIndex, hunk: Hunk, drift: int, *, path: str) -> PatchRefusedError:
    """Return the error that shows where the hunk and the file first differ."""
    old, lines = hunk.old, index.lines
    places = _places(index, hunk, drift)
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


def _places(index: LineIndex, hunk: Hunk, drift: int) -> list[int]:
    """Return positions where the hunk was possibly meant to start."""
    old, count = hunk.old, len(index.lines)
    places = list[int]()
    if hunk.hint is not None:
        places.append(hunk.hint + drift)
    for offset, line in enumerate(old[:_PLACES_COUNT_MAX]):
        if line.text.strip():
            alike = index.find(
                [HunkLine(" ", line.text)],
                MatchLevel.TRAILING_BLANKS,
                count_max=_PLACES_COUNT_MAX,
            )
            places.extend(at - offset for at in alike)
        if len(places) >= _PLACES_COUNT_MAX:
            break
    inside = [at for at in places[:_PLACES_COUNT_MAX] if 0 <= at < count]
    return [at for at in inside if _agreeing(index.lines, old, at) > 0]


def _agreeing(lines: Sequence[str], old: Sequence[HunkLine], start: int) -> int:
    """Return how many lines match from the start of the hunk on."""
    level, count = MatchLevel.TRAILING_BLANKS, min(len(old), _COMPARED_COUNT_MAX)
    for at in range(count):
        if start + at >= len(lines):
            return at
        if key_of(lines[start + at], level) != key_of(old[at].text, level):
            return at
    return count


def _near(lines: Sequence[str], expected: str, around: int | None) -> list[JsonValue]:
    """Return the lines of the file most similar to the expected one."""
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
    """Return a few lines to compare: those with the longest word, and the nearest ones."""
    word = max(_WORD.findall(wanted), key=len, default=wanted)
    scan = range(max(0, around - _SCANNED_COUNT_MAX // 2), len(lines))[:_SCANNED_COUNT_MAX]
    named = [at for at in scan if word in lines[at]]
    close = range(max(0, around - _SCORED_COUNT_MAX // 2), len(lines))[:_SCORED_COUNT_MAX]
    nearest = sorted(named, key=lambda at: abs(at - around))[:_SCORED_COUNT_MAX]
    return sorted({*nearest, *close})


class Placement(NamedTuple):
    """A hunk and the position of its first old line."""

    hunk: Hunk
    start: int
    level: MatchLevel

    @property
    def span(self) -> tuple[int, int]:
        """The lines of the file that change: context at both edges left out."""
        before, after = _core(self.hunk)
        return self.start + before, self.start + after


class _Choice(NamedTuple):
    """A hunk and its possible positions."""

    hunk: Hunk
    starts: list[int]


def place_first(index: LineIndex, hunks: Sequence[Hunk], *, path: str) -> list[Placement]:
    """Return the placements of hunks up to the first that has none yet, possibly of all.

    Raises when the first hunk has no position, or one of them has several.
    """
    choices, drift = list[_Choice](), 0
    for hunk in hunks:
        choice = _choice(index, hunk, drift, path=path)
        if choice is None and not choices:
            raise not_found(index, hunk, drift, path=path)
        if choice is None:
            break
        choices.append(choice)
        if len(choice.starts) == 1 and hunk.hint is not None:
            drift = choice.starts[0] - hunk.hint
    starts = _resolved(choices, path=path)
    placed = [
        _placement(index, choice.hunk, start) for choice, start in zip(choices, starts, strict=True)
    ]
    for placement in placed:
        _require_signs(index, placement, path=path)
        _require_end(index, placement, path=path)
    return sorted(placed, key=lambda placement: placement.start)


def _placement(index: LineIndex, hunk: Hunk, start: int) -> Placement:
    level = index.level_at(hunk.old, start) or MatchLevel.EXACT
    if level is MatchLevel.LOST_SIGN:
        hunk = _with_signs(index, hunk, start)
    return Placement(hunk, start, level)


def _with_signs(index: LineIndex, hunk: Hunk, start: int) -> Hunk:
    """Return the hunk with seemingly removed lines restored to context."""
    at, lines = start, list[HunkLine]()
    for line in hunk.lines:
        lost = line.sign == "-" and is_lost_minus(line, index.lines[at])
        lines.append(HunkLine(" ", f"-{line.text}") if lost else line)
        at += line.sign != "+"
    return msgspec.structs.replace(hunk, lines=tuple(lines))


def _choice(index: LineIndex, hunk: Hunk, drift: int, *, path: str) -> _Choice | None:
    if hunk.only_adds:
        return _Choice(hunk, [_insertion(index, hunk, drift, path=path)])
    if not hunk.counted and _is_blank(index, hunk):
        raise _nowhere(hunk, path)
    variants = [hunk]
    if hunk.padding:
        trimmed = hunk.lines[: len(hunk.lines) - hunk.padding]
        variants.append(msgspec.structs.replace(hunk, lines=trimmed, padding=0))
    for variant in variants:
        starts = _starts(index, variant, drift) if variant.old else []
        if starts:
            return _Choice(variant, starts)
    return None


def _starts(index: LineIndex, hunk: Hunk, drift: int) -> list[int]:
    """Return every possible position; a hunk about the last line feed must be at the end."""
    starts = _alike(index, hunk, drift)
    last = len(index.lines) - len(hunk.old)
    return [at for at in starts if at == last] if any(hunk.unended) else starts


def _alike(index: LineIndex, hunk: Hunk, drift: int) -> list[int]:
    """Return every position at the strictest level that has any."""
    old = hunk.old
    hinted = None if hunk.hint is None else hunk.hint + drift
    if hinted is not None and index.fits(old, hinted, MatchLevel.EXACT):
        return [hinted]
    for level in MatchLevel:
        if level is MatchLevel.LOST_SIGN and not hunk.lost_minuses:
            continue
        starts = index.find(old, level)
        if level is MatchLevel.LOST_SIGN:
            lost = hunk.lost_minuses
            index.budget.spend(len(starts) * len(hunk.lines))
            starts = [at for at in starts if _lost_minuses(index, hunk, at) == lost]
        if not starts:
            continue
        if hinted in starts and level is MatchLevel.LINE_ENDS:
            return [hinted]
        if hinted is not None and level is MatchLevel.EXACT and index.level_at(old, hinted):
            return sorted({*starts, hinted})  # the header and the text disagree on the position
        return _narrowed(index, hunk, starts)
    return []


def _narrowed(index: LineIndex, hunk: Hunk, starts: list[int]) -> list[int]:
    """Restrict positions by the end of the file or the anchors, unless none would be left."""
    if hunk.at_end:
        last = len(index.lines) - len(hunk.old)
        starts = [last] if last in starts else starts
    if len(starts) > 1 and hunk.anchors:
        blocks = _anchored(index, hunk.anchors)
        index.budget.spend(4 * len(starts) * len(blocks))
        inside = [s for s in starts if any(top <= s <= end for top, end in blocks)]
        return inside or starts
    return starts


def _anchored(index: LineIndex, anchors: Sequence[str]) -> list[tuple[int, int]]:
    """Return the blocks that the anchors open, nested in order."""
    blocks = [(0, len(index.lines))]
    for anchor in anchors:
        anchored = index.lines_like(anchor)
        index.budget.spend(4 * len(anchored) * len(blocks))
        inner = [at for at in anchored if any(top <= at < end for top, end in blocks)]
        blocks = [(at, index.block_end(at)) for at in inner]
    return blocks


def _insertion(index: LineIndex, hunk: Hunk, drift: int, *, path: str) -> int:
    """Return the position of added lines without context."""
    count = len(index.lines)
    if count == 0 or hunk.at_end:
        at = count
    elif hunk.inserts_at == 0:  # written for a file that was empty: the lines come first
        at = 0
    elif hunk.inserts_at is not None and 0 < hunk.inserts_at + drift <= count:
        at = hunk.inserts_at + drift
    else:
        blocks = _anchored(index, hunk.anchors) if hunk.anchors else []
        if len(blocks) != 1:
            raise _nowhere(hunk, path)
        at = blocks[0][0] + 1
    _require_new(index, hunk, at, path=path)
    return at


def _require_new(index: LineIndex, hunk: Hunk, at: int, *, path: str) -> None:
    """Refuse added lines without context that are already there: the hunk was applied before."""
    added, level = hunk.added, MatchLevel.TRAILING_BLANKS
    if not any(text.strip() for text in added):
        return
    index.budget.spend(2 * len(added))
    wanted = [key_of(text, level) for text in added]
    for start in (at, at - len(added)):
        there = index.lines[max(0, start) : start + len(added)]
        if len(there) == len(added) and [key_of(text, level) for text in there] == wanted:
            raise PatchRefusedError(
                "already_applied",
                f"the lines that the hunk at line {hunk.patch_line} of the patch adds are already"
                f" in {quoted(path)!r}, at line {start + 1}",
                hint="leave the hunk out; to have the lines twice, give context lines around them",
                details={"path": path, "line": start + 1},
            )


def _is_blank(index: LineIndex, hunk: Hunk) -> bool:
    """Whether a hunk has only blank old lines in a file with text: they match everywhere."""
    known = any(line.text.strip() for line in hunk.old)
    return not known and index.has_text


def _nowhere(hunk: Hunk, path: str) -> PatchRefusedError:
    return PatchRefusedError(
        AMBIGUOUS,
        f"the hunk at line {hunk.patch_line} of the patch says nothing about where in"
        f" {quoted(path)!r} its lines belong",
        hint="add the lines around the place as context, each with a leading space",
        details={"path": path, "patch_line": hunk.patch_line},
    )


def _resolved(choices: Sequence[_Choice], *, path: str) -> list[int]:
    """Return the only way to place all hunks in order."""
    earliest, latest = _earliest(choices), _latest(choices)
    if earliest is None or latest is None:
        return _out_of_order(choices, path=path)
    for choice, first, last in zip(choices, earliest, latest, strict=True):
        if first != last:
            raise _ambiguous(choice, path)
    return earliest


def _earliest(choices: Sequence[_Choice]) -> list[int] | None:
    found, end, previous = list[int](), 0, -1
    for hunk, starts in choices:
        before, after = _core(hunk)
        at = bisect_left(starts, max(end - before, previous + bool(hunk.old)))
        if at == len(starts):
            return None
        found.append(starts[at])
        end, previous = starts[at] + after, starts[at]
    return found


def _latest(choices: Sequence[_Choice]) -> list[int] | None:
    found, limit, following = list[int](), None, None
    for hunk, starts in reversed(choices):
        before, after = _core(hunk)
        last = starts[-1] if limit is None else limit - after
        if following is not None and hunk.old:
            last = min(last, following - 1)
        at = bisect_right(starts, last) - 1
        if at < 0:
            return None
        found.append(starts[at])
        limit, following = starts[at] + before, starts[at]
    return found[::-1]


def _out_of_order(choices: Sequence[_Choice], *, path: str) -> list[int]:
    """Place hunks that are not in file order: each must have exactly one position."""
    spans = list[tuple[int, int]]()
    for choice in choices:
        if len(choice.starts) > 1:
            raise _ambiguous(choice, path)
        before, after = _core(choice.hunk)
        spans.append((choice.starts[0] + before, choice.starts[0] + after))
    ordered = sorted(spans)
    for span, (start, end) in pairwise(ordered):
        if start < span[1] or span == (start, end):
            raise PatchRefusedError(
                "invalid_hunk_overlap",
                f"two hunks change the same lines of {quoted(path)!r}, near line {start + 1}",
                hint="merge them into one hunk",
                details={"path": path, "line": start + 1},
            )
    return [choice.starts[0] for choice in choices]


def _core(hunk: Hunk) -> tuple[int, int]:
    """Return which of the old lines change, as offsets; context at both edges left out."""
    changed = [at for at, line in enumerate(hunk.lines) if line.sign != " "]
    if not changed:
        return 0, 0
    count = len(hunk.old)
    return changed[0], count - (len(hunk.lines) - 1 - changed[-1])


def _ambiguous(choice: _Choice, path: str) -> PatchRefusedError:
    shown: list[int] = [start + 1 for start in choice.starts[:_SHOWN_COUNT_MAX]]
    return PatchRefusedError(
        AMBIGUOUS,
        f"the hunk at line {choice.hunk.patch_line} of the patch fits {len(choice.starts)} places"
        f" in {quoted(path)!r}, among them lines {', '.join(map(str, shown))}",
        hint="add context lines, or an `@@ line above` anchor, until only one place is left",
        details={
            "path": path,
            "patch_line": choice.hunk.patch_line,
            "candidates": [{"line": line} for line in shown],
            "candidate_count": len(choice.starts),
        },
    )


def _require_signs(index: LineIndex, placement: Placement, *, path: str) -> None:
    """Refuse an added line that may be context: without correct counts, the file may have its +."""
    hunk, lines = placement.hunk, index.lines
    if hunk.counted or hunk.only_adds:
        return
    signs = [line.sign for line in hunk.lines]
    first = next(at for at, sign in enumerate(signs) if sign != "+")
    last = len(signs) - next(at for at, sign in enumerate(reversed(signs)) if sign != "+")
    end = placement.start + len(hunk.old)
    around = (
        (lines[max(0, placement.start - 1) : placement.start], hunk.lines[:first]),
        (lines[end : end + 1], hunk.lines[last:]),
    )
    for there, added in around:
        if there and any(key_of(there[0], _LOOSE) == _signed_key(line) for line in added):
            raise PatchRefusedError(
                AMBIGUOUS,
                f"the hunk at line {hunk.patch_line} of the patch has no correct counts, and"
                f" {quoted(there[0])!r} may be added or be context that lost its space",
                hint="begin context lines with a space, and give correct counts",
                details={"path": path, "patch_line": hunk.patch_line},
            )


def _require_end(index: LineIndex, placement: Placement, *, path: str) -> None:
    """Refuse a hunk whose end is doubtful: the file continues like the text after the patch."""
    hunk = placement.hunk
    if hunk.sequel is None:
        return
    end = placement.start + len(hunk.old)
    window = index.lines[end : end + hunk.sequel.within]
    index.budget.spend(len(window))
    there = next((key for line in window if (key := key_of(line, _LOOSE))), None)
    if there in hunk.sequel.texts:
        raise PatchRefusedError(
            AMBIGUOUS,
            f"the hunk at line {hunk.patch_line} of the patch may continue after its end: the file"
            f" continues with {quoted(there)!r}, as does the patch",
            hint="give correct counts, begin context lines with a space, and write nothing after"
            " the patch",
            details={"path": path, "patch_line": hunk.patch_line},
        )


def _signed_key(line: HunkLine) -> str:
    return key_of(f"+{line.text}", _LOOSE)


def _lost_minuses(index: LineIndex, hunk: Hunk, start: int) -> int:
    """Return how many seemingly removed lines are context at this position."""
    there = index.lines[start : start + len(hunk.lines)]
    return sum(is_lost_minus(line, text) for line, text in zip(hunk.old, there, strict=False))
