"""A file's lines after its hunks.

Owns:  putting placed hunks into effect.
Rule 1: a line that stays keeps its own bytes, however loosely it was matched.
Rule 2: lines added by an exact hunk are literal. Those of a relaxed one take the line ends of the
        lines around them, and the end of the file stays as it was unless the hunk changes it.
"""

from collections.abc import Sequence

from holon.tools.patching.haystack import Likeness
from holon.tools.patching.placing import Placement
from holon.tools.patching.text_file import ending_of


def rewritten(lines: Sequence[str], placements: Sequence[Placement], *, ending: str) -> list[str]:
    """Return the file's lines with every hunk applied; `ending` is how most lines end."""
    result, at, may_lack_feed = list[str](), 0, list[int]()
    for placement in placements:
        first, end = placement.span
        result.extend(lines[at:first])
        may_lack_feed.append(len(result) - 1)  # it was perhaps the last line
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
    """Whether added lines are as they shall be: the hunk knows the file, or there is none."""
    return placement.level is Likeness.EXACT and bool(placement.hunk.old or not lines)


def _settle_end(
    result: list[str], lines: Sequence[str], placements: Sequence[Placement], style: str
) -> None:
    """Give the last line its line feed, or take it, where a relaxed hunk reached the end."""
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
    # A line that stays keeps its end; an added blank line would vanish without one.
    adds_last = last.hunk.lines[-1].sign == "+" and bool(result[-1].rstrip("\r\n"))
    if unended and ended and adds_last:
        result[-1] = result[-1].removesuffix("\n").removesuffix("\r")
    elif not unended and not ended:
        result[-1] += style
