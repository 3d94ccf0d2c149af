"""Whatever comes in: a plan, or the one declared error, and never a path that leads out."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holon.tools.workspaces.patching.document import PatchRefusedError
from holon.tools.workspaces.patching.parse import parse_patch
from holon.tools.workspaces.patching.plan import paths_of, plan_patch
from tests.tools.patching.edits import begin, plain_file

PIECES = (
    "--- a/x", "+++ b/x", "--- /dev/null", "+++ /dev/null", "@@ -1,2 +1,2 @@", "@@", "@@ def f():",
    "diff --git a/x b/x", "diff --git a/x b/../y", "rename from x", "rename to y",
    "new mode 100755", "deleted file mode 100644",
    "new file mode 100644", "index 1..2 100644", "*** Begin Patch",
    "*** Update File: x", "*** Add File: y", "*** Delete File: x", "*** Move to: ../z",
    "*** End Patch", "*** End of File",
    "\\ No newline at end of file", " a", "-a", "+a", "a", "", "+", "-", " ",
    "```", "```diff", "EOF", "git apply <<EOF", '--- "a/\\303', "--- ../x", "+++ /etc/passwd", "\r",
    "@@ -0,0 +1 @@", "-- ", "@@@ -1 -1 +1 @@@", "*** Update File: ", "+++ b/.git/x", "--- x~",
)  # fmt: skip
FILE = plain_file("a\n\n\ndef f():\na\nb\n")


def survives(text: str) -> None:
    """Read and plan; nothing but the declared error may come of it."""
    try:
        patch = parse_patch(text)
        plan = plan_patch(patch, {p: FILE if p in "xz" else None for p in paths_of(patch)})
    except PatchRefusedError:
        return
    for change in plan.changes:
        parts = change.path.split("/")
        assert not change.path.startswith("/")
        assert not {"..", ".git", "", "."} & set(parts)


@pytest.mark.requirement("apply-patch:refusals-have-stable-kinds")
@settings(max_examples=300)
@given(lines=st.lists(st.sampled_from(PIECES), max_size=14))
def test_pieces_of_patches_in_any_order(lines: list[str]) -> None:
    survives("\n".join(lines))


@settings(max_examples=150)
@given(text=st.text(max_size=200))
def test_any_text_at_all(text: str) -> None:
    survives(text)
    survives(f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n{text}")
    survives(begin("*** Update File: x", "@@", text))


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32))
def test_a_good_patch_with_letters_changed(seed: int) -> None:
    random = Random(seed)
    letters = list("--- a/x\n+++ b/x\n@@ -1,4 +1,4 @@\n a\n \n \n-def f():\n+def g():\n")
    for _ in range(random.randrange(1, 6)):
        letters[random.randrange(len(letters))] = random.choice("\n @+-\\/.\t\0\r\ud800x9,\u2028")
    survives("".join(letters))
