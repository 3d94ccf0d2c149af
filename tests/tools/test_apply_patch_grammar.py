"""The grammar ApplyPatch is offered with: what it takes, the engine reads.

No parser of grammars is among the packages; but no rule of this one refers back to itself, so that
it is a regular expression written in parts.
"""

import re
from random import Random
from typing import Final

import pytest

from holon.tools.workspaces.apply_patch import ApplyPatch
from holon.tools.workspaces.patching.parse import parse_patch
from tests.tools.patching.edits import begin

_TOKEN: Final = re.compile(r'\s*("(?:[^"\\]|\\.)*"|/(?:[^/\\]|\\.)*/|[A-Za-z_]+|[?*+|()])')
_RULE: Final = re.compile(r"^\??([A-Za-z_]+):(.*)$")
DIFF: Final = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"


def rules() -> dict[str, str]:
    """The rules by name."""
    freeform = ApplyPatch().spec.freeform
    assert freeform is not None
    found = {"NEWLINE": r"/\n/"}
    for line in freeform.definition.splitlines():
        rule = _RULE.match(line)
        if rule is not None:
            found[rule[1]] = rule[2]
    return found


def pattern_of(name: str, known: dict[str, str]) -> str:
    """The regular expression a rule stands for."""
    made = ""
    for token in _TOKEN.findall(known[name]):
        if token.startswith('"'):
            made += f"(?:{re.escape(token[1:-1].replace(chr(92) * 2, chr(92)))})"
        elif token.startswith("/"):
            made += f"(?:{token[1:-1]})"
        else:
            made += token if token in "?*+|()" else f"(?:{pattern_of(token, known)})"
    return made


GRAMMAR: Final = re.compile(pattern_of("start", rules()))


@pytest.mark.requirement("tool-shapes:the-patch-grammar-takes-a-unified-diff")
@pytest.mark.parametrize(
    "patch",
    [
        "--- a/path\n+++ b/path\n@@ ...\n a\n-b\n",
        DIFF,
        "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n",
        DIFF + "diff --git a/y b/y\nindex 1..2 100644\n--- a/y\n+++ b/y\n@@\n-a\n+b\n@@\n-c\n",
        "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n",
        "diff --git a/x b/x\ndeleted file mode 100644\n",
        "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n--- sql comment\n \n",
        begin("*** Update File: x", "@@ def f():", " a", "-b", "+c"),
        begin("*** Add File: n", "+a", "+"),
    ],
)
def test_both_forms_are_taken(patch: str) -> None:
    assert GRAMMAR.fullmatch(patch)
    assert parse_patch(patch).entries


@pytest.mark.requirement("tool-shapes:the-patch-grammar-takes-a-unified-diff")
@pytest.mark.parametrize("patch", ["", "hello\n", DIFF + "prose\n", f"```\n{DIFF}```\n"])
def test_nothing_else_is(patch: str) -> None:
    assert GRAMMAR.fullmatch(patch) is None


@pytest.mark.requirement("tool-shapes:the-patch-grammar-takes-a-unified-diff")
def test_a_second_file_is_never_mistaken_for_a_removed_line() -> None:
    random = Random(7)
    for _ in range(200):
        lines = random.choices(("-- a", "++ b", " c", "-d", "+e", "-", "+", " "), k=6)
        signed = "".join(f"{random.choice('+- ')}{line}\n" for line in lines)
        old = sum(line[0] != "+" for line in signed.splitlines())
        new = sum(line[0] != "-" for line in signed.splitlines())
        hunk = f"--- a/x\n+++ b/x\n@@ -1,{old} +1,{new} @@\n{signed}"
        assert GRAMMAR.fullmatch(hunk)
        assert len(parse_patch(hunk).entries) == 1
