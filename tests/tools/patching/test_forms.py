"""Every way to write a patch that is taken, and what it does."""

from typing import Final

import pytest

from holon.tools.workspaces.patching.document import Action
from holon.tools.workspaces.patching.parse import parse_patch
from holon.tools.workspaces.patching.plan import paths_of, plan_patch
from tests.tools.patching.edits import Tree, applied, begin, plain_file

CODE: Final = "def f():\n    return 1\n\n\ndef g():\n    return 1\n"
HEAD: Final = "--- a/x.py\n+++ b/x.py\n"
SWAP: Final = "-    return 1\n+    return 2\n"
BEGUN: Final = "*** Begin Patch\n*** Update File: x.py"


def texts(tree: Tree) -> dict[str, str]:
    """What a tree's files hold."""
    return {name: file.content.decode() for name, file in tree.items()}


def after(patch: str, **files: str) -> dict[str, str]:
    """What files named with `__` for a dot hold after a patch."""
    before = {name.replace("__", "."): plain_file(content) for name, content in files.items()}
    return texts(applied(before, patch))


@pytest.mark.requirement("apply-patch:both-forms-are-taken")
@pytest.mark.parametrize(
    "patch",
    [
        f"{HEAD}@@ -1,2 +1,2 @@\n def f():\n{SWAP}",
        f"--- x.py\n+++ x.py\n@@ -1,2 +1,2 @@\n def f():\n{SWAP}",
        f"--- x.py\t2024-01-01 00:00:00\n+++ x.py\t2024-01-02\n@@ -2 +2 @@\n{SWAP}",
        f"--- old/x.py\n+++ new/x.py\n@@ -1,2 +1,2 @@\n def f():\n{SWAP}",
        f"--- x.py.orig\n+++ x.py\n@@ -1,2 +1,2 @@\n def f():\n{SWAP}",
        f'--- "a/x.py"\n+++ "b/\\170.py"\n@@ -1,2 +1,2 @@\n def f():\n{SWAP}',
        f"diff --git a/x.py b/x.py\nindex 1..2 100644\n{HEAD}@@ -2 +2 @@\n{SWAP}",
        f"{HEAD}@@\n def f():\n{SWAP}",
        f"{HEAD}@@ def f(): @@\n{SWAP}",
        f"{HEAD}@@ -1,9 +1,9 @@ def f():\ndef f():\n{SWAP}",
        f"*** Begin Patch\n*** Update File: x.py\n@@ def f():\n{SWAP}*** End Patch",
        f"*** Begin Patch\n*** Update File: x.py\n@@\n def f():\n{SWAP}*** End Patch\n",
        f"*** Update File: x.py\n def f():\n{SWAP}",
        f"*** Begin Patch\n*** Update File: ./x.py\n@@ -1,2 +1,2 @@\n def f():\n{SWAP}",
        f"*** Begin Patch\n--- a/x.py\n+++ b/x.py\n@@ -2 +2 @@\n{SWAP}*** End Patch\n",
        f"apply_patch <<'PATCH'\n{BEGUN}\n@@\n def f():\n{SWAP}*** End Patch\nPATCH\n",
        f"Sure:\n```diff\n{HEAD}@@ -2 +2 @@\n{SWAP}```\nDone.\n",
        f"{HEAD}@@ -1,2 +1,2 @@\n def f():\n{SWAP}-- \n2.39.5\n\n",
    ],
)  # fmt: skip
def test_one_change_in_many_spellings(patch: str) -> None:
    changed = CODE.replace("return 1", "return 2", 1)
    assert after(patch, x__py=CODE) == {"x.py": changed}


@pytest.mark.requirement("apply-patch:both-forms-are-taken")
@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ("--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n", {"n.txt": "one\ntwo\n"}),
        ("--- a/n.txt\n+++ b/n.txt\n@@ -0,0 +1 @@\n+one\n", {"n.txt": "one\n"}),
        ("--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1 @@\n+one\n\\ No newline at end of file\n",
         {"n.txt": "one"}),
        (begin("*** Add File: d/n.txt", "+one", "+", "+two"), {"d/n.txt": "one\n\ntwo\n"}),
        (begin("*** Add File: n.txt", "one", "two"), {"n.txt": "one\ntwo\n"}),
        (begin("*** Add File: x.txt", "+one"), {"x.txt": "one\n"}),
        ("diff --git a/n b/n\nnew file mode 100755\nindex 0000000..e69de29\n", {"n": ""}),
    ],
)  # fmt: skip
def test_files_come_into_being(patch: str, expected: dict[str, str]) -> None:
    assert after(patch, x__txt="") == {"x.txt": "", **expected}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ("--- a/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n", {}),
        ("diff --git a/x b/x\ndeleted file mode 100644\n", {}),
        (begin("*** Delete File: x"), {}),
        ("diff --git a/x b/d/y\nsimilarity index 100%\nrename from x\nrename to d/y\n",
         {"d/y": "a\nb\n"}),
        ("diff --git a/x b/y\nrename from x\nrename to y\n"
         "--- a/x\n+++ b/y\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
         {"y": "a\nc\n"}),
        (begin("*** Update File: x", "*** Move to: y", "@@", " a", "-b", "+c"), {"y": "a\nc\n"}),
        (begin("*** Update File: x", "*** Move to: y"), {"y": "a\nb\n"}),
        (begin("*** Delete File: x", "*** Add File: x", "+new"), {"x": "new\n"}),
        (begin("*** Update File: x", "@@", "+end", "*** End of File"), {"x": "a\nb\nend\n"}),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+A\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n A\n-b\n+B\n",
         {"x": "A\nB\n"}),
        ("--- a/x\n+++ b/x\n@@\n-b\n+B\n@@\n-a\n+A\n", {"x": "A\nB\n"}),
        ("--- a/x\n+++ b/x\n@@ -0,0 +1,2 @@\n+top\n+\n", {"x": "top\n\na\nb\n"}),
        ("--- a/x\n+++ b/x\n@@\n-a\n+A\n+A2\n@@\n A2\n-b\n+B\n", {"x": "A\nA2\nB\n"}),
    ],
)  # fmt: skip
def test_files_go_move_and_change_in_several_steps(patch: str, expected: dict[str, str]) -> None:
    assert after(patch, x="a\nb\n") == expected


@pytest.mark.requirement("apply-patch:style-of-a-file-is-kept")
@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nB\r\nc\r\n"),
        ("a\r\nb\r\nc", "a\r\nB\r\nc"),
        ("a  \nb\nc", "a  \nB\nc"),
        ("\ufeffa\nb\nc\n", "\ufeffa\nB\nc\n"),
        ("a\nb\r\nc\r\n", "a\nB\r\nc\r\n"),
    ],
)
def test_line_ends_blanks_and_marks_stay(before: str, expected: str) -> None:
    patch = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
    assert after(patch, x=before) == {"x": expected}


@pytest.mark.parametrize(
    ("before", "patch", "expected"),
    [
        ("a\nb", "@@\n a\n-b\n+c\n", "a\nc"),
        ("a\nb", "@@\n a\n b\n+c\n", "a\nb\nc"),
        ("a\r\nb", "@@\n a\n b\n+c\n", "a\r\nb\r\nc"),
        ("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", "a\nb\n"),
        ("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n", "a\nb"),
        ("\ufeffa\n", "@@ -1 +1 @@\n-\ufeffa\n+a\n", "a\n"),
        ("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n", "a\nb\r\n"),
    ],
)
def test_the_end_of_a_file_changes_only_when_the_patch_says_so(
    before: str, patch: str, expected: str
) -> None:
    assert after(f"--- a/x\n+++ b/x\n{patch}", x=before) == {"x": expected}


@pytest.mark.parametrize(
    ("mode", "patch", "expected"),
    [
        (0o640, "old mode 100644\nnew mode 100755\n", 0o750),
        (0o755, "old mode 100755\nnew mode 100644\n", 0o644),
        (0o600, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", 0o600),
    ],
)
def test_modes_change_only_in_what_may_be_executed(mode: int, patch: str, expected: int) -> None:
    tree = applied({"x": plain_file("a\n", mode)}, f"diff --git a/x b/x\n{patch}")
    assert tree["x"].mode == expected


def test_anchors_choose_between_equal_lines() -> None:
    patch = "*** Begin Patch\n*** Update File: x.py\n@@ def g():\n-    return 1\n+    return 2\n"
    assert after(patch, x__py=CODE) == {"x.py": CODE[:-2] + "2\n"}


def test_a_plan_tells_what_it_does() -> None:
    patch = parse_patch(
        "*** Begin Patch\n*** Add File: n\n+1\n*** Update File: x\n@@\n-a\n+b\n"
        "*** Update File: y\n*** Move to: z\n*** Delete File: w\n*** End Patch\n"
    )
    files = {path: plain_file("a\n") if path in "xyw" else None for path in paths_of(patch)}
    plan = plan_patch(patch, files)
    assert [(f.action, f.path, f.from_path) for f in plan.changed_files] == [
        (Action.ADD, "n", None),
        (Action.MODIFY, "x", None),
        (Action.MOVE, "z", "y"),
        (Action.DELETE, "w", None),
    ]
    assert [(c.path, c.after is None) for c in plan.changes] == [
        ("n", False), ("x", False), ("y", True), ("z", False), ("w", True),
    ]  # fmt: skip


def test_what_is_no_change_is_none() -> None:
    patch = parse_patch("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+a\n")
    assert plan_patch(patch, {"x": plain_file("a\n")}).changes == ()
