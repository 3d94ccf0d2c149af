"""What a patch is wrapped in: every file of a text changes, or the whole text is refused."""

from random import Random
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holon.tools.patching.parse import parse_patch
from holon.tools.patching.problem import PatchRefusedError
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
                  "--", "plain", "*** note", "@ at")  # fmt: skip


def random_page(random: Random) -> list[str]:
    """Lines of which many look like a wrapper, none of them twice in a row."""
    made = [f"first {random.random()}"]
    for _ in range(random.randrange(2, 9)):
        made += [random.choice(CONTENT), f"line {random.random()}"]
    return made


def diff_of(name: str, before: list[str], at: int, *, counted: bool, loose: bool) -> str:
    """A diff of one hunk that replaces the line at a place."""
    header = f"@@ -1,{len(before)} +1,{len(before)} @@" if counted else "@@"
    body = [line if loose and line[:1] not in ("", *" +-@*") else f" {line}" for line in before]
    body[at : at + 1] = [f"-{before[at]}", "+changed"]
    return "\n".join([f"--- a/{name}", f"+++ b/{name}", header, *body, ""])


def wrapped(random: Random, patch: str) -> str:
    """A patch in a random wrapper, closed or not, in an indented text or not."""
    opening, closing = random.choice(
        (("", ""), ("```diff\n", "```\n"), ("```\n", "```\n"), ("~~~\n", "~~~\n"),
         ("git apply <<EOF\n", "EOF\n"), ("```sh\ngit apply <<'EOF'\n", "EOF\n```\n"),
         (MAIL, SIGNATURE), ("Here:\n\n```diff\n", "```\n\nThat is it.\n"))
    )  # fmt: skip
    text = opening + patch + (closing if random.random() < 0.7 else "")
    return indented(text, random.choice(("", "", "  ", "\t")))


@pytest.mark.requirement("patch-text:what-looks-like-a-change-is-never-passed-over")
@settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, 2**32), counted=st.booleans(), loose=st.booleans())
def test_a_wrapped_patch_changes_all_its_files_or_none(
    seed: int, counted: bool, loose: bool
) -> None:
    random = Random(seed)
    before = {f"{n}.md": random_page(random) for n in range(random.randrange(1, 4))}
    places = {name: random.randrange(len(page)) for name, page in before.items()}
    after = {
        name: [*page[: places[name]], "changed", *page[places[name] + 1 :]]
        for name, page in before.items()
    }
    diffs = (
        diff_of(name, page, places[name], counted=counted, loose=loose)
        for name, page in before.items()
    )
    patch = wrapped(random, "".join(diffs))
    tree = {name: plain_file("\n".join([*page, ""])) for name, page in before.items()}
    try:
        got = texts(patch, tree)
    except PatchRefusedError:
        assert loose or not counted, "a patch with its signs and counts is always read"
        return
    assert got == {name: "\n".join([*page, ""]) for name, page in after.items()}


@pytest.mark.requirement("patch-text:reading-is-linear")
@pytest.mark.parametrize(
    "unit",
    [
        "```\n", "```a\n", "cat <<EOF\n", "~~~\n<<A\n", "--\n", "\n", " \n", "*** Begin Patch\n",
        f"```\n{BARE_PAGE}", f"```diff\n{BARE_PAGE}```\n", f"{MAIL}{ON_PAGE}{SIGNATURE}",
        "*** Add File: a\n```\n", "--- a/x\n+++ b/x\n@@\n-a\n```\n", "\t```\n", "<<",
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
