"""Patches damaged the way models damage them: recovered, or refused, never misapplied."""

import os
from collections import Counter
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from random import Random

import pytest

from holon.tools.workspaces.patching.document import PatchRefusedError
from tests.tools.patching.edits import (
    DAMAGES,
    applied,
    dull_line,
    edited,
    gnu_diff,
    odd_line,
    plain_file,
    plain_line,
    text,
)

# What only a wrong line number can do: send a hunk to a place that looks exactly right.
MISLEADING = "wrong_places"
SEEDS_COUNT = int(os.environ.get("HOLON_DRILL_PATCHES", "60"))
LISTED = ("no_last_feed", "unmarked_end", "bare_headers", "wrong_counts", "lost_space", "all_crlf",
          "all_lf")  # fmt: skip


def outcome(before: str, after: str, patch: str) -> str:
    """What came of a damaged patch."""
    try:
        got = applied({"f.txt": plain_file(before)}, patch)["f.txt"].content
    except PatchRefusedError:
        return "refused"
    return "recovered" if got == after.encode() else "wrong"


@pytest.mark.requirement("apply-patch:damage-is-mended-or-refused")
def test_nearly_all_damaged_patches_of_plain_files_are_recovered(tmp_path: Path) -> None:
    counts: dict[str, Counter[str]] = {name: Counter() for name in DAMAGES}
    for seed in range(SEEDS_COUNT):
        random = Random(seed)
        eol = random.choice(("\n", "\n", "\r\n"))
        before = text(random, plain_line, random.choice((5, 20, 80)), eol=eol)
        after = edited(random, before, plain_line, eol=eol)
        patch = gnu_diff(tmp_path, before, after)
        if patch:
            for name, damage in DAMAGES.items():
                counts[name][outcome(before, after, damage(patch, random))] += 1
    for name, count in counts.items():
        assert count["wrong"] == 0, name
        assert count["recovered"] >= 0.95 * count.total(), (name, count)
    assert all(counts[name].total() > SEEDS_COUNT // 2 for name in LISTED)


@pytest.mark.requirement("apply-patch:nothing-is-guessed")
@pytest.mark.parametrize("line", [odd_line, dull_line])
def test_no_damage_leads_to_a_wrong_file(line: Callable[[Random], str], tmp_path: Path) -> None:
    names = [name for name in DAMAGES if name != MISLEADING]
    pairs = list(permutations(names, 2))
    for seed in range(40):
        random = Random(seed)
        before = text(random, line, random.choice((3, 12, 60, 120)))
        after = edited(random, before, line)
        patch = gnu_diff(tmp_path, before, after)
        if not patch:
            continue
        for name in names:
            assert outcome(before, after, DAMAGES[name](patch, random)) != "wrong", (seed, name)
        for first, second in random.sample(pairs, 8):
            worse = DAMAGES[second](DAMAGES[first](patch, random), random)
            if "unmarked_end" not in (first, second) or line is dull_line:
                assert outcome(before, after, worse) != "wrong", (seed, first, second)


@pytest.mark.requirement("apply-patch:nothing-is-guessed")
def test_a_hunk_without_numbers_among_equal_lines_is_refused_not_put_anywhere(
    tmp_path: Path,
) -> None:
    count: Counter[str] = Counter()
    for seed in range(60):
        random = Random(seed)
        before = text(random, dull_line, 120)
        after = edited(random, before, dull_line)
        patch = gnu_diff(tmp_path, before, after)
        if patch:
            count[outcome(before, after, DAMAGES["bare_headers"](patch, random))] += 1
    assert count["wrong"] == 0
    assert count["refused"] > 0, "nothing here could have been guessed"
