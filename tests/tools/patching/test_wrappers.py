"""What a patch is wrapped in: every file of a text changes, or the whole text is refused."""

from random import Random
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holon.tools.workspaces.patching.document import PatchRefusedError
from holon.tools.workspaces.patching.parse import parse_patch
from tests.tools.patching.edits import Tree, applied, begin, plain_file
from tests.tools.patching.test_bombs import calls_in

PAGE: Final = "# Title\n```\ncode\n```\nold\nend\n"
TREE: Final[Tree] = {"x.md": plain_file(PAGE), "y.txt": plain_file("a\nb\nc\n")}
BOTH: Final = {"x.md": PAGE.replace("old", "new"), "y.txt": "a\nB\nc\n"}
ON_PAGE: Final = "--- a/x.md\n+++ b/x.md\n@@ -3,4 +3,4 @@\n code\n ```\n-old\n+new\n end\n"
ON_TEXT: Final = "--- a/y.txt\n+++ b/y.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
BARE_PAGE: Final = ON_PAGE.replace("@@ -3,4 +3,4 @@", "@@")
BARE_TEXT: Final = ON_TEXT.replace("@@ -1,3 +1,3 @@", "@@")
MAIL: Final = (
    "From 1f0e24c5f4f8a3f2b6fbe4d6e0c7f5a0c9a1b2d3 Mon Sep 17 00:00:00 2001\n"
    "From: A <a@example.org>\nSubject: [PATCH] Say it anew\n\nRun this:\n```\n"
    "cat <<EOF\n--- not a diff\n```\nand\n```sh\nthat\n\n---\n x.md | 2 +-\n\n"
)
SIGNATURE: Final = "-- \n2.39.5\n\n"


def texts(patch: str, tree: Tree = TREE) -> dict[str, str]:
    """What every file holds after a patch."""
    return {name: file.content.decode() for name, file in applied(tree, patch).items()}


def indented(patch: str, indent: str) -> str:
    """A patch in which every line that is not empty is indented."""
    return "".join(indent + line if line.strip() else line for line in patch.splitlines(True))


@pytest.mark.requirement("patch-text:a-wrapper-ends-at-its-own-line")
@pytest.mark.parametrize(
    "patch",
    [
        f"```diff\n{ON_PAGE}{ON_TEXT}",
        f"```diff\n{BARE_PAGE}{BARE_TEXT}",
        f"```diff\n{ON_PAGE}{ON_TEXT}```\n",
        f"```diff\n{BARE_PAGE}{BARE_TEXT}```\n",
        f"````diff\n{ON_PAGE}{ON_TEXT}````\nDone:\n\n```\n- both\n```\n",
        f"First:\n```diff\n{ON_PAGE}```\nthen:\n- the other\n```diff\n{ON_TEXT}```\n",
        f"```diff\n{BARE_PAGE}```\n```diff\n{BARE_TEXT}```\n",
        f"```bash\ngit apply <<'EOF'\n{BARE_PAGE}{BARE_TEXT}EOF\n```\n",
        f"apply_patch <<EOF\n{ON_PAGE}{ON_TEXT}",
        "apply_patch <<EOF\n"
        + begin("*** Update File: x.md", "@@", " ```", "-old", "+new")
        + begin("*** Update File: y.txt", "@@", "-b", "+B")
        + "EOF\n",
        begin("*** Update File: x.md", "@@", " ```", "-old", "+new") + ON_TEXT,
        ON_PAGE + begin("*** Update File: y.txt", "@@", "-b", "+B"),
        "*** Update File: x.md\n@@\n ```\n-old\n+new\n" + ON_TEXT,
    ],
)
def test_both_files_change_whatever_the_patch_is_wrapped_in(patch: str) -> None:
    assert texts(patch) == BOTH


@pytest.mark.requirement("patch-text:a-series-of-mails-is-read-whole")
@pytest.mark.parametrize("tail", ["", SIGNATURE])
def test_mails_with_fences_in_their_messages_change_every_file(tail: str) -> None:
    git = "diff --git a/{0} b/{0}\nindex 1..2 100644\n"
    first, second = git.format("x.md") + ON_PAGE, git.format("y.txt") + ON_TEXT
    assert texts(f"{MAIL}{first}{second}{tail}") == BOTH
    assert texts(f"{MAIL}{first}{tail}{MAIL}{second}{tail}") == BOTH
    assert texts(f"```\n{MAIL}{first}{tail}{MAIL}{second}{tail}```\n") == BOTH


@pytest.mark.requirement("patch-text:what-looks-like-a-change-is-never-passed-over")
@pytest.mark.parametrize(
    "patch",
    [
        f"```diff\n{ON_PAGE}```\n-b\n+B\n",
        f"```diff\n{ON_PAGE}```\n+    indented\n",
        f"```diff\n{ON_PAGE}```\n-cat <<EOF\n",
        f"{ON_PAGE}```\n+cat <<EOF\n",
        f"```diff\n{ON_PAGE}```\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
        f"```diff\n{ON_PAGE}```\n--- a/y.txt\n+++ b/y.txt\n-b\n+B\n",
        f"--- a/x.md\n+++ b/x.md\n-old\n+new\n{ON_TEXT}",
        f"```diff\n{BARE_PAGE.replace(' ```', '```')}```\n-- b\n+B\n",
        begin("*** Update File: x.md", "@@", " ```", "-old", "+new") + "+B\n",
        begin("*** Update File: x.md", "@@", "-old", "+new", "--- a/y.txt", "+++ b/y.txt", "-b"),
        begin("*** Update File: x.md", "--- a/y.txt", "+++ b/y.txt", "@@", "-b", "+B"),
        "```\n*** Add File: new.md\ntext\n```\nmore text\n",
        "```\n*** Add File: new.md\n+text\n```\n+more text\n",
        f"  - fix:\n    {indented(ON_PAGE, '    ').lstrip()}not indented\n    -b\n    +B\n",
    ],
)
def test_what_would_be_lost_refuses_the_whole_patch(patch: str) -> None:
    with pytest.raises(PatchRefusedError):
        applied(TREE, patch)


# A hunk whose counts end just above a line of context that lost its space and looks like a fence.
C_TREE: Final[Tree] = {
    "a.c": plain_file("/**\n * old\n * ```\n```\n * gone\n */\n"),
    "b.txt": plain_file("b\n"),
}
C_BODY: Final = " /**\n- * old\n+ * new\n  * ```\n```\n- * gone\n  */\n"
C_DIFF: Final = f"--- a/a.c\n+++ b/a.c\n@@ -1,3 +1,3 @@\n{C_BODY}"
C_SECTION: Final = f"*** Begin Patch\n*** Update File: a.c\n@@ -1,3 +1,3 @@\n{C_BODY}"


@pytest.mark.requirement("patch-text:what-looks-like-a-change-is-never-passed-over")
@pytest.mark.parametrize(
    "patch",
    [
        C_DIFF,
        f"{C_DIFF}```\n",
        f"{C_SECTION}*** End Patch\n",
        f"```diff\n{C_DIFF}```\n",
        f"```diff\n{C_DIFF}",
        f"```diff\n{C_DIFF.replace(chr(10) + '```', chr(10) + ' ```')}",
        f"```\n{C_SECTION}*** End Patch\n```\n",
        f"apply_patch <<EOF\n{C_SECTION}*** End Patch\nEOF\n",
        f"```diff\n{C_DIFF}```\n```sh\nmake\n```\n",
        "```diff\n--- a/a.c\n+++ b/a.c\n@@ -1,3 +1,3 @@\n" + C_BODY.replace("  */\n", "*/\n"),
    ],
)
def test_a_hunk_that_goes_on_behind_a_line_like_a_fence_changes_whole_or_not_at_all(
    patch: str,
) -> None:
    try:
        got = texts(patch, C_TREE)
    except PatchRefusedError:
        return
    assert got["a.c"] == "/**\n * new\n * ```\n```\n */\n"


@pytest.mark.parametrize("patch", [C_DIFF, f"{C_SECTION}*** End Patch\n"])
def test_a_fence_that_none_opened_ends_nothing(patch: str) -> None:
    assert texts(patch, C_TREE)["a.c"] == "/**\n * new\n * ```\n```\n */\n"
    assert not any(note.kind == "missing_end_patch" for note in parse_patch(patch).notes)


@pytest.mark.requirement("patch-text:what-looks-like-a-change-is-never-passed-over")
@pytest.mark.parametrize("end", ["--", "-- ", "*** End Patch", "EOF", "```"])
def test_what_is_behind_an_end_that_the_file_holds_is_read_or_refuses_the_patch(end: str) -> None:
    held = plain_file(f"a\nb\n{end}\n gone\nc\n")
    removed = plain_file(f"a\nb\n{end[1:]}\n gone\nc\n")
    patch = f"```diff\n--- a/y\n+++ b/y\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n{end}\n- gone\n"
    for opening in ("", "git apply <<EOF\n"):
        for tree in ({"y": held}, {"y": removed} if end.startswith("-") else {"y": held}):
            try:
                got = texts(opening + patch, tree)["y"]
            except PatchRefusedError:
                continue
            assert got == f"a\nB\n{end}\nc\n", "the line was context, and what follows was read"


@pytest.mark.requirement("patch-text:a-wrapper-ends-at-its-own-line")
@pytest.mark.parametrize(
    "behind",
    ["", "Done.\n", "\nSummary:\n- b is B\n- all else stays\n", "\nRun:\n```\nmake\n```\n",
     "\n---\nThe end\n"],
)  # fmt: skip
def test_a_text_behind_a_wrapper_that_has_ended_may_hold_lists(behind: str) -> None:
    assert texts(f"```diff\n{ON_TEXT}```\n{behind}")["y.txt"] == "a\nB\nc\n"
    sections = begin("*** Update File: y.txt", "@@", "-b", "+B")
    assert texts(f"{sections}{behind}")["y.txt"] == "a\nB\nc\n"


@pytest.mark.requirement("patch-text:what-looks-like-a-change-is-never-passed-over")
@pytest.mark.parametrize(
    "patch",
    [
        begin("*** Update File: y.txt", "@@", "-b", "+B") + "*** Delete File:x.md\n",
        begin("*** Update File: y.txt", "@@", "-b", "+B") + "*** Move to: z\n",
        begin("*** Update File: y.txt", "@@", "-b", "+B") + "***Delete File: x.md\n",
        f"*** Delete File:x.md\n{ON_TEXT}",
        begin("*** Add File: n", "text", "*** Delete File:x.md"),
        begin("*** Add File: n", "text", "*** End Patch", "more text"),
        f"-c\n+C\n{ON_TEXT}",
        f"+C\n{begin('*** Update File: y.txt', '@@', '-b', '+B')}",
        f"```\n-c\n```\n```diff\n{ON_TEXT}```\n",
    ],
)
def test_a_part_before_or_behind_a_patch_refuses_it(patch: str) -> None:
    with pytest.raises(PatchRefusedError):
        applied(TREE, patch)


def test_a_text_before_a_patch_may_hold_lists_and_headings() -> None:
    before = "--- Patch ---\n\n- first\n---\n+++ it +++\n1. then\n"
    assert texts(before + ON_TEXT)["y.txt"] == "a\nB\nc\n"


@pytest.mark.requirement("patch-text:an-indented-patch-is-taken")
@pytest.mark.parametrize("indent", [" ", "    ", "\t", "  \t"])
def test_a_patch_that_is_indented_as_a_whole_is_taken(indent: str) -> None:
    for patch in (ON_PAGE + ON_TEXT, BARE_PAGE + BARE_TEXT, f"```diff\n{ON_PAGE}{ON_TEXT}```\n"):
        assert texts(indented(patch, indent)) == BOTH
    assert texts(f"1. So:\n\n{indented(ON_PAGE + ON_TEXT, indent)}\n") == BOTH
    sections = begin("*** Update File: x.md", "@@", " ```", "-old", "+new", "*** Add File: n", "+1")
    assert texts(indented(sections, indent)) == {**BOTH, "y.txt": "a\nb\nc\n", "n": "1\n"}


def test_a_sample_in_an_indented_message_is_no_patch() -> None:
    shown = f"commit 1f0e24c\n\n{indented(ON_TEXT, '    ')}\n{ON_PAGE}"
    assert texts(shown) == {**BOTH, "y.txt": "a\nb\nc\n"}


@pytest.mark.requirement("patch-text:an-addition-comes-once")
def test_an_addition_for_an_empty_file_goes_to_the_top_of_one_that_has_lines_once() -> None:
    patch = "--- a/y.txt\n+++ b/y.txt\n@@ -0,0 +1,2 @@\n+# License\n+\n"
    tree = applied(TREE, patch)
    assert tree["y.txt"].content == b"# License\n\na\nb\nc\n"
    with pytest.raises(PatchRefusedError) as refused:
        applied(tree, patch)
    assert refused.value.kind == "already_applied"


# --- Properties -----------------------------------------------------------------------------------

CONTENT: Final = ("```", "```sh", "~~~", "EOF", "cat <<EOF", "- item", "+ item", "", "    deep",
                  "--", "-", "plain", "*** note", "@ at", " * item", " item",
                  "*** End Patch")  # fmt: skip
COUNTS: Final = ("true", "none", "wrong")


def random_page(random: Random) -> list[str]:
    """Lines of which many look like a wrapper, none of them twice in a row."""
    made = [f"first {random.random()}"]
    for _ in range(random.randrange(2, 9)):
        made += [random.choice(CONTENT), f"{random.choice(('', ' ', ' * '))}line {random.random()}"]
    return made


def edited_page(random: Random, before: list[str], loosely: float) -> tuple[list[str], list[str]]:
    """A page after a few lines were replaced or removed, and the body of a hunk that says so."""
    after, body = list[str](), list[str]()
    places = {random.randrange(len(before)) for _ in range(random.randrange(1, 4))}
    for at, line in enumerate(before):
        put = [] if at not in places or random.random() < 0.5 else ["changed"]
        if at in places:
            body += [f"-{line}", *(f"+{new}" for new in put)]
            after += put
        else:
            lost = random.random() < loosely and line[:1] not in ("", *" +-@")
            body.append(line if lost else f" {line}")
            after.append(line)
    return after, body


def hunk_header(random: Random, body: list[str], counts: str) -> str:
    """The header of a hunk; a wrong one is right for a beginning of the body."""
    if counts == "none":
        return "@@"
    told = body[: random.randrange(1, len(body) + 1)] if counts == "wrong" else body
    added, removed = (sum(line.startswith(sign) for line in told) for sign in "+-")
    return f"@@ -1,{len(told) - added} +1,{len(told) - removed} @@"


def wrapped(random: Random, patch: str) -> str:
    """A patch in a random wrapper, closed or not, in an indented text or not."""
    opening, closing = random.choice(
        (("", ""), ("```diff\n", "```\n"), ("```\n", "```\n"), ("~~~\n", "~~~\n"),
         ("git apply <<EOF\n", "EOF\n"), ("```sh\ngit apply <<'EOF'\n", "EOF\n```\n"),
         ("*** Begin Patch\n", "*** End Patch\n"), (MAIL, SIGNATURE),
         ("Here:\n\n```diff\n", "```\n\nThat is it.\n"))
    )  # fmt: skip
    text = opening + patch + (closing if random.random() < 0.7 else "")
    return indented(text, random.choice(("", "", "  ", "\t")))


@pytest.mark.requirement("patch-text:what-looks-like-a-change-is-never-passed-over")
@settings(max_examples=800, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    counts=st.sampled_from(COUNTS),
    loosely=st.sampled_from((0.0, 0.3, 1.0)),
)
def test_a_wrapped_patch_changes_all_its_files_or_none(
    seed: int, counts: str, loosely: float
) -> None:
    random = Random(seed)
    before = {f"{n}.md": random_page(random) for n in range(random.randrange(1, 4))}
    after, diffs = dict[str, list[str]](), list[str]()
    sectioned = random.random() < 0.3
    for name, page in before.items():
        after[name], body = edited_page(random, page, loosely)
        names = [f"*** Update File: {name}"] if sectioned else [f"--- a/{name}", f"+++ b/{name}"]
        diffs.append("\n".join([*names, hunk_header(random, body, counts), *body, ""]))
    patch = wrapped(random, "".join(diffs))
    tree = {name: plain_file("\n".join([*page, ""])) for name, page in before.items()}
    try:
        got = texts(patch, tree)
    except PatchRefusedError:
        is_well_formed = counts == "true" and not loosely and not sectioned
        assert not is_well_formed, "a diff with its signs and counts is always read"
        return
    assert got == {name: "\n".join([*page, ""]) for name, page in after.items()}


@pytest.mark.requirement("patch-text:reading-is-linear")
@pytest.mark.parametrize(
    "unit",
    [
        "```\n", "```a\n", "cat <<EOF\n", "~~~\n<<A\n", "--\n", "\n", " \n", "*** Begin Patch\n",
        f"```\n{BARE_PAGE}", f"```diff\n{BARE_PAGE}```\n", f"{MAIL}{ON_PAGE}{SIGNATURE}",
        "*** Add File: a\n```\n", "--- a/x\n+++ b/x\n@@\n-a\n```\n", "\t```\n", "<<",
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\n```\n", "*** End Patch\n- a\n",
    ],
)  # fmt: skip
def test_every_line_is_looked_at_a_fixed_number_of_times(unit: str) -> None:
    def read(count: int) -> int:
        return calls_in(lambda: outcomes.append(is_taken(unit * count)))

    outcomes = list[bool]()
    read(2)  # what is loaded and compiled once is not counted
    assert read(1_600) <= 4.5 * read(400)


def is_taken(text: str) -> bool:
    """Whether a text can be read as a patch."""
    try:
        parse_patch(text)
    except PatchRefusedError:
        return False
    return True
