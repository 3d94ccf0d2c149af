"""ApplyPatch as a model calls it, on a real folder."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holon.adapters.files.contained_files import ContainedFiles
from holon.model.limits import (
    PATCH_FILE_BYTES_MAX,
    PATCH_QUOTED_CHARS_MAX,
    TOOL_ARGUMENTS_BYTES_MAX,
    TOOL_ERROR_DETAIL_CHARS_MAX,
)
from holon.model.turns.conversation import ToolUseBlock
from holon.model.turns.tools import ToolOk, ToolRefused
from holon.model.values import AgentId, CallId, JsonValue, MessageId, TurnId
from holon.tools.tool import ToolScene, receipt_of
from holon.tools.workspaces.apply_patch import ApplyPatch
from tests.support.hosts import tool_ports
from tests.support.sequential_ids import SequentialIds
from tests.tools.patching.edits import begin

HEAD = "--- a/f\n+++ b/f\n"
CHANGE = f"{HEAD}@@ -1,2 +1,2 @@\n one\n-two\n+three\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An execution root with a file, beside something that must not change."""
    (tmp_path / "canary").write_text("alive")
    made = tmp_path / "root"
    made.mkdir()
    (made / "f").write_text("one\ntwo\n")
    return made


async def call(root: Path, arguments: JsonValue) -> ToolOk | ToolRefused:
    """Run the tool."""
    scene = ToolScene(
        agent_id=AgentId("main"),
        turn_id=TurnId("turn_1"),
        message_id=MessageId("msg_1"),
        effect_id="turn_1.1.1",
        now=datetime(2030, 1, 1, tzinfo=UTC),
        agent_home=str(root.parent),
        execution_root=str(root),
        cwd=str(root),
    )
    ports = tool_ports(reads=_NO_READS, ids=SequentialIds(), files=ContainedFiles())
    execution = await ApplyPatch().run(arguments, scene, ports)
    assert execution.changes == ()
    return execution.outcome


_NO_READS: Any = None  # the tool reads files, and nothing of the store


def held(folder: Path) -> dict[str, bytes | str]:
    """Everything beneath a folder; a link is told by where it leads."""
    return {
        str(p.relative_to(folder)): os.readlink(p) if p.is_symlink() else p.read_bytes()
        for p in folder.rglob("*")
        if p.is_symlink() or p.is_file()
    }


@pytest.mark.requirement("apply-patch:results-tell-what-changed")
async def test_a_patch_changes_files_and_tells_which(root: Path) -> None:
    (root / "old").write_text("x\n")
    patch = (
        f"diff --git a/f b/f\nindex 1..2 100644\n{HEAD}@@ -1,7 +1,7 @@\n one\n-two\n+three\n"
        "diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n"
    )
    outcome = await call(root, {"patch": patch})
    assert isinstance(outcome, ToolOk)
    assert outcome.result == {
        "changed_files": [
            {"action": "modify", "path": "f"},
            {"action": "move", "path": "new", "from_path": "old"},
        ],
        "changed_paths": ["f", "new"],
        "changed_file_count": 2,
        "ignored_metadata": ["index 1..2 100644", "similarity index 100%"],
        "diagnostics": [
            {
                "path": "f",
                "kind": "hunk_count_mismatch",
                "message": "the counts of the hunk at line 5 of the patch are wrong",
            }
        ],
        "summary_text": "modify f, move new",
    }
    assert held(root) == {"f": b"one\nthree\n", "new": b"x\n"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"patch": CHANGE},
        {"input": CHANGE},
        {"arguments": {"patch": CHANGE}},
        {"patch": begin("*** Update File: f", "@@", " one", "-two", "+three")},
    ],
)
async def test_a_call_that_is_nearly_right_is_understood(root: Path, arguments: JsonValue) -> None:
    assert isinstance(await call(root, arguments), ToolOk)
    assert (root / "f").read_text() == "one\nthree\n"


@pytest.mark.requirement("apply-patch:all-or-nothing")
async def test_one_bad_hunk_keeps_every_file_as_it_is(root: Path) -> None:
    before = held(root)
    patch = f"--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n{HEAD}@@ -1 +1 @@\n-zero\n+one\n"
    outcome = await call(root, {"patch": patch})
    assert isinstance(outcome, ToolRefused)
    assert outcome.error.kind == "context_not_found"
    assert held(root) == before


@pytest.mark.requirement("apply-patch:a-miss-shows-where-it-parts")
async def test_the_error_a_model_reads_is_whole_and_bounded(root: Path) -> None:
    (root / "f").write_text("".join(f"{'long ' * 60}{n}\n" for n in range(50)))
    patch = f"{HEAD}@@ -1 +1 @@\n-{'long ' * 60}x\n+y\n"
    outcome = await call(root, {"patch": patch})
    use = ToolUseBlock(call_id=CallId("c1"), name="ApplyPatch", input={})
    content = receipt_of(use, outcome).content
    told = msgspec.json.decode(content)
    assert told["ok"] is False
    assert told["kind"] == "context_not_found"
    assert told["field"] == "patch"
    details = told["details"]
    assert details["path"] == "f"
    assert [near["line"] for near in details["candidates"]] == [1, 2, 3]
    quoted = [details["expected"], *(near["text"] for near in details["candidates"])]
    cut = ("long " * 60)[: PATCH_QUOTED_CHARS_MAX - 1] + "…"
    assert quoted == [cut] * 4
    assert len(content) <= 2 * TOOL_ERROR_DETAIL_CHARS_MAX


def outward_link(root: Path) -> None:
    (root / "link").symlink_to("../canary")


def outward_folder(root: Path) -> None:
    (root / "away").symlink_to("..")


def pipe(root: Path) -> None:
    os.mkfifo(root / "pipe")


def huge(root: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(PATCH_FILE_BYTES_MAX + 1)


SCENERY: Mapping[str, Any] = {
    "link": outward_link,
    "away/canary": outward_folder,
    "away/new": outward_folder,
    "pipe": pipe,
    "huge": huge,
}


@pytest.mark.requirement("apply-patch:nothing-outside-the-root")
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("link", "path_escape"),
        ("away/canary", "path_escape"),
        ("away/new", "path_escape"),
        ("pipe", "file_refused"),
        ("huge", "file_refused"),
        ("../canary", "path_escape"),
        ("../../canary", "path_escape"),
        ("/tmp/canary", "path_escape"),
        (".git/hooks/post-commit", "path_escape"),
        ("none", "missing_file"),
    ],
)
@pytest.mark.parametrize("form", ["modify", "add", "delete", "move"])
async def test_s37_what_leads_out_is_refused_whole(
    root: Path, path: str, kind: str, form: str
) -> None:
    SCENERY.get(path, lambda _: None)(root)
    patch = {
        "modify": f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-alive\n+dead\n",
        "add": begin(f"*** Add File: {path}", "+dead"),
        "delete": begin(f"*** Delete File: {path}"),
        "move": begin("*** Update File: f", f"*** Move to: {path}", "@@", " one", "-two", "+2"),
    }[form]
    names = sorted(p.name for p in root.iterdir())
    outcome = await call(root, {"patch": f"{patch}"})
    if path == "none" and form in ("add", "move"):
        assert isinstance(outcome, ToolOk)
        return
    assert isinstance(outcome, ToolRefused)
    if not path.startswith("/") or form != "modify":
        assert outcome.error.kind == kind
    assert (root.parent / "canary").read_text() == "alive"
    assert sorted(p.name for p in root.parent.iterdir()) == ["canary", "root"]
    assert sorted(p.name for p in root.iterdir()) == names
    assert (root / "f").read_text() == "one\ntwo\n"


@pytest.mark.requirement("apply-patch:nothing-outside-the-root")
async def test_s37_a_link_cannot_be_made_and_then_written_through(root: Path) -> None:
    patch = (
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+..\n"
        "--- /dev/null\n+++ b/l/canary\n@@ -0,0 +1 @@\n+dead\n"
    )
    outcome = await call(root, {"patch": patch})
    assert isinstance(outcome, ToolRefused)
    assert outcome.error.kind == "unsupported_git_patch_feature"
    assert held(root.parent) == {"canary": b"alive", "root/f": b"one\ntwo\n"}


async def test_a_root_that_is_gone_is_a_refusal(root: Path) -> None:
    (root / "f").unlink()
    root.rmdir()
    outcome = await call(root, {"patch": CHANGE})
    assert isinstance(outcome, ToolRefused)
    assert outcome.error.kind == "file_refused"


async def test_a_patch_that_changes_nothing_says_so(root: Path) -> None:
    outcome = await call(root, {"patch": f"{HEAD}@@ -1 +1 @@\n-one\n+one\n"})
    assert isinstance(outcome, ToolOk)
    assert outcome.result["changed_file_count"] == 0


def test_the_tool_is_offered_in_both_forms() -> None:
    spec = ApplyPatch().spec
    assert spec.mutates
    assert spec.freeform is not None
    assert spec.freeform.argument == "patch"
    assert "*** Begin Patch" in spec.freeform.definition
    assert spec.input_schema["required"] == ["patch"]
    assert len(spec.freeform.definition) < TOOL_ARGUMENTS_BYTES_MAX
