"""How the cost of a scan grows with the length of a text.

Owns:  the hostile texts, and the verdict whether a scan is linear.
Rule 1: what is judged is growth, never how long something takes: the cost per character at one
        length against the cost at an eighth of it, in processor time of this thread. A linear scan
        keeps it, a quadratic one pays eight times as much.
Rule 2: lengths grow up to 2^17 and the first bad pair ends the search, so that a quadratic scan
        fails in a moment instead of running for minutes; one that is worse is found below 2^10. A
        scan whose growth showed at 2^14 is not measured beyond.
Rule 3: what looks bad is measured again, several times, and the best counts: a busy machine only
        ever adds time. It also has to go on at twice the length: memory for a long text is taken
        from the system anew for each call, which raises the cost per character once.
"""

import random
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

Scan = Callable[[str], object]

SIZES: Final = (2**8, 2**11, 2**14, 2**17)
_RATIO_MAX: Final = 5.0  # linear: 1; n log n: below 1.5; quadratic: 8
_DOUBLED_MAX: Final = 1.5  # the same for twice the length: linear 1, quadratic 2
_NOISE_NS: Final = 400_000  # a measurement below this says nothing about growth
_CLEAR_NS: Final = 2_000_000  # and one above this says it clearly enough
_TRIES_COUNT: Final = 5
_SLOW_NS: Final = 200_000_000
_MIXES_COUNT: Final = 12

UNITS: Final = (
    " ", "\t", "\n", "\r", "\r\n", "#", "<", ">", "[", "]", "(", "{", "}", '"', "'", "`", "\\", "/",
    ".", "-", "_", ":", "=", "@", "$", "%", "*", "|", "~", "!", "a", "A", "0", "é", "中",
    "\u200b", "\u200d", "\u0301", "\ufe0f", "\x00", "\x1b", "\x1b]", "\x1b[", "\ud800",
    "< ", " <", "</", "<!--", "<!-- -->", "--> <!--", "# ", "\n ", "\n#", "\n# ", "\n\t", "[ ",
    "<<", "<<'", '<<"', "a.", "a/", "a ", " a", "/scripts/", '\\"', "\\\\", "\\u0000", "1.",
    "body-", "[message", "system ", "\nsystem ", "\n[message", " - at `", "Bearer ", "sk-", "eyJ",
    "trigger_", "[[", "][", "}{", '"a', "'a", "a: ", "a:\n", "- ", "---\n", "...\n", "&a ",
    "*a ", "!a ",
    "@@ -1 ", "@@\n", "\n@@ a\n", "\n-\n+\n", "*** ", "diff --git ", "```\n", "cd a;", "$HOME",
    "\n<", "\n </", "data: a\n", "\n\n", "\\\n",
)  # fmt: skip
HEADS: Final = ("", "<", "[", '"', "'", "---\n", "@@ -1", "a: ")
TAILS: Final = ("", "x", "\n")


class Shape(NamedTuple):
    """A hostile text of any length: a head, a unit repeated, and a tail."""

    head: str
    unit: str
    tail: str

    def text(self, size: int) -> str:
        return self.head + self.unit * max(1, size // len(self.unit)) + self.tail


def shapes(seed: str) -> Iterator[Shape]:
    """Every unit, in heads and tails that take turns, blanks in each of them, and mixes."""
    chance = random.Random(seed)
    for number, unit in enumerate(UNITS):
        yield Shape(HEADS[number % len(HEADS)], unit, TAILS[number % len(TAILS)])
    yield from (Shape(head, " ", tail) for head in HEADS for tail in ("", "x"))
    for _ in range(_MIXES_COUNT):
        unit = "".join(chance.choices(UNITS, k=chance.randint(2, 4)))
        yield Shape(chance.choice(HEADS), unit, chance.choice(TAILS))


def superlinear(scan: Scan, shape: Shape) -> str | None:
    """Return what shows that a scan is not linear in texts of this shape, or nothing."""
    cost_before = _cost_ns(scan, shape.text(SIZES[0]))
    for before, size in pairwise(SIZES):
        cost = _cost_ns(scan, shape.text(size))
        if cost >= _NOISE_NS and _ratio(cost, cost_before, size / before) > _RATIO_MAX:
            ratio = _careful_ratio(scan, shape, before, size)
            if ratio > _RATIO_MAX and _goes_on(scan, shape, size):
                return f"{shape!r}: {ratio:.1f} times the cost per character of {before} at {size}"
        if cost >= _CLEAR_NS and size >= 2**14:
            return None
        cost_before = cost
    return None


def _careful_ratio(scan: Scan, shape: Shape, before: int, size: int) -> float:
    long, short = shape.text(size), shape.text(before)
    ratio = 0.0
    best_long = best_short = float("inf")
    for _ in range(_TRIES_COUNT):
        if best_long > _SLOW_NS and ratio > 2 * _RATIO_MAX:
            break  # noise does not do this, and the next try would take as long
        best_short = min(best_short, *(_cost_ns(scan, short) for _ in range(3)))
        best_long = min(best_long, _cost_ns(scan, long))
        ratio = _ratio(best_long, best_short, size / before)
        if ratio <= _RATIO_MAX:
            break
    return ratio


def _goes_on(scan: Scan, shape: Shape, size: int) -> bool:
    """Whether the cost per character grows again when the text becomes twice as long."""
    long, short = shape.text(2 * size), shape.text(size)
    best_long = best_short = float("inf")
    for _ in range(_TRIES_COUNT):
        best_short = min(best_short, _cost_ns(scan, short))
        best_long = min(best_long, _cost_ns(scan, long))
        if best_long / best_short / 2 < _DOUBLED_MAX:
            return False
        if best_long > _SLOW_NS:
            break
    return True


def _ratio(cost: float, cost_before: float, times_as_long: float) -> float:
    floor = _NOISE_NS / 40  # what a call costs however short its text is
    return cost / max(cost_before, floor) / times_as_long


def _cost_ns(scan: Scan, text: str) -> float:
    began = time.thread_time_ns()
    scan(text)
    return time.thread_time_ns() - began
