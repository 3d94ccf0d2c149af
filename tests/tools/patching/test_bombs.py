"""Patches made to be expensive: refused early, by counted work, whatever they are made of.

Work is told by how many functions were called and by the steps of the planner's own budget. Both
are the same on every machine, which time is not.
"""

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Final

import pytest

from holon.model.limits import (
    PATCH_BYTES_MAX,
    PATCH_FILE_LINES_COUNT_MAX,
    PATCH_FILES_COUNT_MAX,
    PATCH_HUNKS_COUNT_MAX,
    PATCH_LINES_COUNT_MAX,
    PATCH_MATCH_STEPS_COUNT_MAX,
)
from holon.tools.workspaces.patching.document import PatchRefusedError
from holon.tools.workspaces.patching.file_lines import Budget
from holon.tools.workspaces.patching.parse import parse_patch
from holon.tools.workspaces.patching.plan import paths_of, plan_patch
from tests.tools.patching.edits import begin, plain_file

pytestmark = pytest.mark.long

HEAD: Final = "--- a/x\n+++ b/x\n"
MANY: Final = PATCH_HUNKS_COUNT_MAX - 1
STEPS_PER_LINE_MAX: Final = 3  # of a file that is looked through
CALLS_COUNT_MAX: Final = 800_000  # of functions, most of them the language's own and short
READ_CALLS_PER_LINE_MAX: Final = 2
REFUSED: Final = {"patch_too_large", "context_not_found", "ambiguous_context"}


def calls_in(work: Callable[[], None]) -> int:
    """How many functions are called, ours and the language's own."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def refusal(content: str, patch: str, budget: Budget | None = None) -> str:
    """Why a patch is refused."""
    stored = plain_file(content)
    try:
        parsed = parse_patch(patch)
        plan_patch(parsed, dict.fromkeys(paths_of(parsed), stored), budget=budget)
    except PatchRefusedError as error:
        return error.kind
    return "applied"


@pytest.mark.requirement("apply-patch:bombs-are-refused-early")
@pytest.mark.parametrize(
    "patch",
    [
        HEAD + "@@\n" * 1_000_000,
        HEAD + "@@ -1 +1 @@\n-a\n+b\n" * 20_000,
        HEAD + "\n" * (PATCH_LINES_COUNT_MAX + 1),
        f"{HEAD}@@ -1,999999999 @@\n-a\n",
        f"{HEAD}@@ -1,999999999 +1,1 @@\n-a\n+b\n",
        f"{HEAD}@@ -{'9' * 100_000} +1 @@\n-a\n+b\n",
        f"{HEAD}@@ -1 +1 @@\n-a\n+{'x' * (500 << 20)}\n",
        f"{HEAD}@@ -1 +1 @@\n-a\n+{'é' * (PATCH_BYTES_MAX // 2)}\n",
        "".join(
            f"--- /dev/null\n+++ b/n{n}\n@@ -0,0 +1 @@\n+a\n"
            for n in range(PATCH_FILES_COUNT_MAX + 1)
        ),
        begin(*(line for n in range(9_000) for line in (f"*** Add File: n{n}", "+a"))),
    ],
    ids=["hunks", "full-hunks", "lines", "claim", "counted-claim", "digits", "500-MB-line",
         "wide-letters", "files", "sections"],
)  # fmt: skip
def test_s38_a_patch_bomb_is_refused_before_it_is_kept(patch: str) -> None:
    kinds: list[str] = []
    tracemalloc.start()
    try:
        calls = calls_in(lambda: kinds.append(refusal("a\n", patch)))
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()
    assert kinds == ["patch_too_large"]
    assert calls < CALLS_COUNT_MAX // 4


def unlike(count: int) -> str:
    """Lines that are all different."""
    return "".join(f"line {n}\n" for n in range(count))


SEARCHES: Final = {
    "long-context": ("x\n" * 100_000, "@@\n" + " x\n" * 10_000 + "-y\n"),
    "every-place": ("x\n" * 100_000, "@@\n" + " x\n" * 10_000 + "-x\n+z\n"),
    "alternating": ("x\ny\n" * 40_000, "@@ -7 +7 @@\n x\n y\n x\n y\n-x\n-x\n+z\n" * MANY),
    "many-misses": ("x\n" * 100_000, "@@ -9 +9 @@\n+a\n x\n-y\n" * MANY),
    "many-places": ("x\n" * 100_000, "@@\n-x\n+y\n" * MANY),
    "many-lines": ("x\n" * (PATCH_FILE_LINES_COUNT_MAX + 1), "@@ -9 +9 @@\n-x\n+x\n"),
    "anchors": ("x\n" * 100_000, "@@ x\n" * MANY + "+y\n"),
    "nested-blocks": (
        "".join(f"{' ' * (n % 200)}x\n" for n in range(90_000)), "@@ x\n" * 9 + "+y\n"
    ),
    "headers-inside": ("a\n", "@@\n" + "--- x\n" * (PATCH_LINES_COUNT_MAX - 9)),
    "blank-hunks": ("\n" * 100_000, "@@\n \n-\n+x\n" * MANY),
    "line-ends": ("x\n" * 100_000, "@@\n-x\r\n-y\r\n+b\n"),
    "lost-space": (" x\nx\n" * 50_000, "@@\n" + "x\nx\nx\n" * 5_000 + "-y\n+b\n"),
    "near-misses": (unlike(50_000), "".join(f"@@\n-lime {n}\n+b\n" for n in range(MANY))),
    "chained-hunks": (
        "a0\n" + unlike(10_000),
        "".join(f"@@\n-a{n}\n+a{n + 1}\n" for n in range(MANY)),
    ),
    "ends-of-file": ("x\n" * 1_000, "@@\n-x\n+x\n\\ No newline at end of file\n" * (MANY // 2)),
    "claims": ("a\n", ("@@ -1,9000000 +1,9000000 @@\n" + " a\n" * 9) * (MANY - 9)),
}  # fmt: skip


@pytest.mark.requirement("apply-patch:bombs-are-refused-early")
@pytest.mark.parametrize("name", SEARCHES)
def test_s38_a_search_made_to_be_slow_ends_within_counted_work(name: str) -> None:
    content, hunks = SEARCHES[name]
    budget, kinds = Budget(PATCH_MATCH_STEPS_COUNT_MAX), list[str]()
    calls = calls_in(lambda: kinds.append(refusal(content, HEAD + hunks, budget)))
    line_count = content.count("\n")
    assert kinds[0] in REFUSED
    allowed = PATCH_MATCH_STEPS_COUNT_MAX + STEPS_PER_LINE_MAX * line_count
    assert budget.spent <= allowed
    assert calls <= CALLS_COUNT_MAX + READ_CALLS_PER_LINE_MAX * line_count


@pytest.mark.requirement("apply-patch:bombs-are-refused-early")
def test_s38_many_entries_for_one_long_file_are_one_search() -> None:
    patch = "".join(f"{HEAD}@@\n-x\n+x\n" for _ in range(400))
    kinds: list[str] = []
    calls = calls_in(lambda: kinds.append(refusal("x\n" * 200_000, patch)))
    assert kinds == ["patch_too_large"]
    assert calls <= CALLS_COUNT_MAX + READ_CALLS_PER_LINE_MAX * 200_000


def test_s38_a_header_of_blanks_is_read_in_one_go() -> None:
    header = f"@@ a{' ' * 900_000}b"
    kinds: list[str] = []
    calls = calls_in(lambda: kinds.append(refusal("a\n", f"{HEAD}{header}\n-a\n+b\n")))
    assert kinds == ["applied"]
    assert calls < 1_000


def test_what_is_large_but_honest_is_applied() -> None:
    lines = [f"line {n}\n" for n in range(300_000)]
    hunks = "".join(
        f"@@\n line {n}\n-line {n + 1}\n+changed {n}\n line {n + 2}\n"
        for n in range(0, 290_000, 290)
    )
    assert refusal("".join(lines), HEAD + hunks) == "applied"
    wide = "".join(line.replace("\n", "\r\n") for line in lines)
    assert refusal(wide, HEAD + "@@ -7,2 +7,2 @@\n line 250000\n-line 250001\n+b\n") == "applied"
