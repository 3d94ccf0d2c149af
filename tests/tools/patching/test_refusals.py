"""Patches that are refused: why, with what words, and how soon."""

from typing import Final

import pytest

from holon.ports.workspaces import StoredFile
from holon.tools.workspaces.patching.document import PatchRefusedError
from holon.tools.workspaces.patching.parse import parse_patch
from holon.tools.workspaces.patching.plan import plan_patch
from tests.tools.patching.edits import Tree, applied, begin, plain_file

TREE: Final[Tree] = {
    "x": plain_file("a\nb\nc\na\nb\nd\n"),
    "empty": plain_file(""),
    "bin": StoredFile(content=b"a\0b\n", mode=0o644),
    "latin": StoredFile(content=b"caf\xe9\n", mode=0o644),
}
UNSUPPORTED: Final = "unsupported_git_patch_feature"
MISMATCH: Final = "rename_path_mismatch"
HEAD: Final = "--- a/x\n+++ b/x\n"


def refusal(patch: str, tree: Tree = TREE) -> PatchRefusedError:
    """Why a patch is refused."""
    with pytest.raises(PatchRefusedError) as refused:
        applied(tree, patch)
    return refused.value


@pytest.mark.requirement("apply-patch:refusals-have-stable-kinds")
@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("invalid_patch_syntax", " \n"),
        ("invalid_patch_syntax", "hello"),
        ("invalid_patch_syntax", "@@ -1 +1 @@\n-a\n+b\n"),
        ("invalid_patch_syntax", "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n"),
        ("invalid_patch_syntax", "--- a/x\n+++ b/x\n"),
        ("invalid_patch_syntax", begin("*** Update File: x")),
        ("invalid_patch_syntax", begin("*** Delete File: x", "-a")),
        ("invalid_patch_syntax", '--- "a/\\377"\n+++ "b/\\377"\n@@ -1 +1 @@\n-a\n+b\n'),
        ("invalid_patch_syntax", "--- a/x\ud800\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"),
        ("invalid_hunk_body", f"{HEAD}@@ -1 +1 @@\n"),
        ("invalid_hunk_body", begin("*** Add File: n", "+a", "b")),
        ("invalid_hunk_body", "--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\n b\n"),
        ("invalid_hunk_overlap", f"{HEAD}@@\n-c\n+C\n@@\n-c\n+D\n"),
        ("context_not_found", f"{HEAD}@@ -1,2 +1,2 @@\n a\n-z\n+b\n"),
        ("context_not_found", "--- a/x\n+++ /dev/null\n@@ -3 +0,0 @@\n-c\n"),
        ("ambiguous_context", f"{HEAD}@@ -9 +9 @@\n-a\n+A\n"),
        ("ambiguous_context", f"{HEAD}@@\n a\n-b\n+B\n"),
        ("ambiguous_context", f"{HEAD}@@\n+new\n"),
        ("ambiguous_context", begin("*** Update File: x", "@@", "+new")),
        ("missing_file", "--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"),
        ("missing_file", begin("*** Delete File: y")),
        ("existing_file", "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"),
        ("already_applied", f"{HEAD}@@ -0,0 +1 @@\n+a\n"),
        ("already_applied", f"{HEAD}@@ -0,0 +1,3 @@\n+a\n+b\n+c\n"),
        ("already_applied", f"{HEAD}@@ -2,0 +3 @@\n+c\n"),
        ("already_applied", begin("*** Update File: x", "@@", "+b", "+d", "*** End of File")),
        ("existing_file", begin("*** Add File: x", "+a")),
        ("existing_file", begin("*** Update File: x", "*** Move to: empty")),
        ("duplicate_file_patch", begin("*** Add File: n", "+a", "*** Add File: n", "+b")),
        ("missing_git_header", f"rename from x\nrename to y\n{HEAD}@@ -3 +3 @@\n-c\n+C\n"),
        ("missing_rename_header", "--- a/x\n+++ b/y\n@@ -3 +3 @@\n-c\n+C\n"),
        ("missing_rename_header", "diff --git a/x b/y\nrename from x\n"),
        (MISMATCH, "diff --git a/x b/y\nrename from x\nrename to y\n--- a/x\n"
         "+++ b/z\n@@ -3 +3 @@\n-c\n+C\n"),
        (MISMATCH, "diff --git a/y b/y\n--- a/x\n+++ b/x\n@@ -3 +3 @@\n-c\n+C\n"),
        (UNSUPPORTED, "diff --git a/x b/y\ncopy from x\ncopy to y\n"),
        (UNSUPPORTED, "diff --git a/l b/l\nnew file mode 120000\n"
         "--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n"),
        (UNSUPPORTED, "diff --git a/x b/x\nold mode 100644\nnew mode 104755\n"),
        (UNSUPPORTED, "diff --git a/s b/s\nindex 1..2 160000\n"
         "--- a/s\n+++ b/s\n@@ -1 +1 @@\n-a\n+b\n"),
        (UNSUPPORTED, "diff --git a/p b/p\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIcmZ\n"),
        (UNSUPPORTED, "diff --git a/p b/p\nBinary files a/p and b/p differ\n"),
        (UNSUPPORTED, f"{HEAD}@@ -3 +3 @@\n-c\n+\0\n"),
        (UNSUPPORTED, f"{HEAD}@@@ -3 -3 +3 @@@\n--c\n++d\n"),
        ("binary_file", "--- a/bin\n+++ b/bin\n@@ -1 +1 @@\n-a\n+b\n"),
        ("unsupported_encoding", "--- a/latin\n+++ b/latin\n@@ -1,0 +2 @@\n+thé\n"),
        ("path_escape", "--- a/../../x\n+++ b/../../x\n@@ -1 +1 @@\n-a\n+b\n"),
        ("path_escape", "--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n"),
        ("path_escape", "--- /dev/null\n+++ b/d/../../x\n@@ -0,0 +1 @@\n+b\n"),
        ("path_escape", "--- /dev/null\n+++ /etc/x\n@@ -0,0 +1 @@\n+b\n"),
        ("path_escape", "diff --git a/x b/x\nrename from x\nrename to ../x\n"),
        ("path_escape", "--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+b\n"),
        ("path_escape", begin("*** Add File: sub/.GIT/config", "+a")),
        ("path_escape", begin("*** Add File: ../n", "+a")),
        ("path_escape", begin("*** Update File: x", "*** Move to: /tmp/x")),
        ("path_escape", begin("*** Delete File: /dev/null")),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(kind: str, patch: str) -> None:
    assert refusal(patch).kind == kind


@pytest.mark.requirement("apply-patch:a-miss-shows-where-it-parts")
def test_a_miss_shows_the_first_line_that_differs_and_what_comes_near() -> None:
    lines = "".join(f"    value_{n} = compute({n})\n" for n in range(60))
    patch = (
        "@@ -30,3 +30,3 @@\n     value_29 = compute(29)\n     value_30 = compute(33)\n-    x\n+y\n"
    )
    error = refusal(HEAD + patch, {"x": plain_file(lines)})
    assert error.kind == "context_not_found"
    assert error.details is not None
    assert error.details["expected"] == "    value_30 = compute(33)"
    assert error.details["found"] == "    value_30 = compute(30)"
    assert error.details["found_line"] == 31
    assert error.details["candidates"][0]["text"] in lines
    assert len(error.details["candidates"]) <= 3


@pytest.mark.requirement("apply-patch:nothing-is-guessed")
def test_an_exact_place_and_a_named_one_that_differ_are_a_doubt() -> None:
    tree = {"x": plain_file("a\nb \nc\na\nb\nd\n")}
    assert refusal(f"{HEAD}@@ -1,2 +1,2 @@\n a\n-b\n+B\n", tree).kind == "ambiguous_context"


@pytest.mark.parametrize("patch", [f"{HEAD}@@ -1 +1 @@\n-{'a' * 3_000}\n+b\n"])
def test_an_error_quotes_little(patch: str) -> None:
    error = refusal(patch, {"x": plain_file("a" * 2_999 + "\n")})
    assert len(error.message) < 1_000
    assert error.details is not None
    assert len(str(error.details)) < 1_000


def test_a_plan_reads_no_more_than_it_was_given() -> None:
    patch = parse_patch(f"{HEAD}@@ -1 +1 @@\n-a\n+b\n")
    with pytest.raises(PatchRefusedError):
        plan_patch(patch, {"x": None})


@pytest.mark.requirement("hostile-text:a-patch-of-mixed-forms-ends")
@pytest.mark.parametrize(
    "stray", ["diff --git a/x b/x", "--- a/x\n+++ b/x\n@@ -1 +1 @@", "--- a\n+++ b\ndiff --git a b"]
)
@pytest.mark.parametrize("before", ["", "@@\n-a\n+A\n"])
def test_a_header_of_the_other_form_inside_a_section_is_refused(stray: str, before: str) -> None:
    told = refusal(begin("*** Update File: x", before + stray, "@@", "-b", "+B"))
    rename_kinds = {"rename_path_mismatch", "missing_rename_header"}  # a header that names no x
    assert told.kind in {"invalid_patch_syntax", "invalid_hunk_body"} | rename_kinds
