"""Patches that git and GNU diff made are applied to the byte."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.patching.edits import (
    NAMES,
    Tree,
    applied,
    dull_line,
    edited,
    git,
    git_diff,
    gnu_diff,
    odd_line,
    plain_file,
    plain_line,
    text,
)

LINES = (plain_line, odd_line, dull_line)
# What shows that a diff has a rename, a deletion and so on: each has to be among the examples.
FEATURES = ("\nrename from ", "\ndeleted file mode", "\nnew file mode", "\nold mode", "\r\n",
            "\n\\ No newline", '"a/\\303', "similarity index 100%", "\t\n")  # fmt: skip
SEEDS = st.integers(min_value=0, max_value=2**32)


def two_trees(random: Random) -> tuple[Tree, Tree]:
    """A tree, and the same after somebody worked on it."""
    before, after = Tree(), Tree()
    names = random.sample(NAMES, len(NAMES))
    for name in names[:4]:
        line, eol = random.choice(LINES), random.choice(("\n", "\n", "\r\n"))
        old = text(random, line, random.choice((0, 1, 6, 40)), eol=eol)
        before[name] = plain_file(old, random.choice((0o644, 0o755)))
        new = edited(random, old, line, eol=eol) if random.random() < 0.7 else old
        match random.choice(("keep", "keep", "delete", "rename", "mode")):
            case "keep":
                after[name] = plain_file(new, before[name].mode)
            case "rename":
                after[f"moved/{name}"] = plain_file(new, before[name].mode)
            case "mode":
                after[name] = plain_file(new, 0o644 + 0o755 - before[name].mode)
            case _:
                pass
    if random.random() < 0.5:
        after[names[4]] = plain_file(text(random, odd_line, random.choice((0, 1, 9))), 0o755)
    return before, after


@pytest.mark.requirement("apply-patch:a-real-diff-gives-the-exact-target")
def test_git_diffs_of_random_trees_reproduce_the_target(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    seen: set[str] = set()

    @settings(max_examples=40)
    @given(seed=SEEDS)
    def reproduces(seed: int) -> None:
        before, after = two_trees(Random(seed))
        patch = git_diff(tmp_path, before, after)
        seen.update(mark for mark in FEATURES if mark in patch)
        if patch:
            assert applied(before, patch) == after

    reproduces()
    assert seen == set(FEATURES)


@pytest.mark.requirement("apply-patch:a-real-diff-gives-the-exact-target")
def test_gnu_diffs_of_random_files_reproduce_the_target(tmp_path: Path) -> None:
    @settings(max_examples=80)
    @given(seed=SEEDS)
    def reproduces(seed: int) -> None:
        random = Random(seed)
        line, eol = random.choice(LINES), random.choice(("\n", "\n", "\r\n"))
        old = text(random, line, random.choice((1, 5, 30, 80)), eol=eol)
        new = edited(random, old, line, eol=random.choice((eol, eol, "\n")))
        patch = gnu_diff(tmp_path, old, new)
        if patch:
            assert applied({"f.txt": plain_file(old)}, patch)["f.txt"].content == new.encode()

    reproduces()


def test_a_line_that_is_neither_utf8_nor_touched_keeps_its_bytes() -> None:
    before = {"f": plain_file("")}
    before["f"] = before["f"].__class__(content=b"caf\xe9\none\ntwo\n", mode=0o644)
    after = applied(before, "--- a/f\n+++ b/f\n@@ -2,2 +2,2 @@\n one\n-two\n+three\n")
    assert after["f"].content == b"caf\xe9\none\nthree\n"


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-be", "utf-8-sig"])
def test_a_byte_order_mark_and_the_encoding_stay(codec: str) -> None:
    mark = b"\xfe\xff" if codec == "utf-16-be" else b""
    old, new = (mark + t.encode(codec) for t in ("één\r\ntwee\r\n", "één\r\ndrie\r\n"))
    before = {"f": plain_file("")}
    before["f"] = before["f"].__class__(content=old, mode=0o600)
    after = applied(before, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n één\n-twee\n+drie\n")
    assert after["f"].content == new
    assert after["f"].mode == 0o600
