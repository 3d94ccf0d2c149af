"""Calls that try to get out, with a real shell on real directories: what the model is answered."""

import os
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from holon.adapters.exec.local_shell import LocalShell
from holon.adapters.files.contained_files import ContainedFiles
from holon.adapters.system.clock import SystemClock
from holon.adapters.system.directories import SystemPlaces
from holon.model.turns.tools import ToolOk, ToolRefused
from holon.model.values import AgentId, JsonValue, MessageId, TurnId
from holon.tools.tasks.exec_command import ExecCommand, ExecCommandBatch
from holon.tools.tool import Tool, ToolScene
from holon.tools.workspaces.apply_patch import ApplyPatch
from tests.support.hosts import tool_ports
from tests.support.sequential_ids import SequentialIds
from tests.tools.patching.edits import begin

_NO_READS: Any = None  # nothing here reaches the store
ESCAPE: Final = "execution_root_violation"
NO_PLACE: Final = "command_spawn_failed"


class Yard:
    """An execution root beside something that must not be touched."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.outside = folder / "outside"
        for place in (self.root / "d", self.outside):
            place.mkdir(parents=True)
        (self.outside / "canary").write_text("alive")
        (self.root / "f").write_text("one\ntwo\n")
        self.shell = LocalShell(folder / "runs", os.environ, SystemClock())
        self.cwd = self.root

    async def call(self, tool: Tool, arguments: JsonValue) -> ToolOk | ToolRefused:
        """Run a tool as a turn would."""
        scene = ToolScene(
            agent_id=AgentId("main"),
            turn_id=TurnId("turn_1"),
            message_id=MessageId("msg_1"),
            effect_id="turn_1.1.1",
            now=datetime(2030, 1, 1, tzinfo=UTC),
            agent_home=str(self.root.parent),
            execution_root=str(self.root),
            cwd=str(self.cwd),
        )
        ports = tool_ports(
            reads=_NO_READS,
            ids=SequentialIds(),
            clock=SystemClock(),
            shell=self.shell,
            files=ContainedFiles(),
            places=SystemPlaces(),
        )
        return (await tool.run(arguments, scene, ports)).outcome

    def held(self) -> dict[str, str]:
        """Every file beside the runs, by its name."""
        return {
            str(path.relative_to(self.root.parent)): path.read_text()
            for place in (self.root, self.outside)
            for path in place.rglob("*")
            if path.is_file() and not path.is_symlink()
        }


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    made = Yard(tmp_path)
    yield made
    made.shell.close()
    assert not list((tmp_path / "runs").glob("*")), "a refused command leaves nothing"


def as_it_is(yard: Yard) -> None:
    """Nothing is prepared."""


def linked(yard: Yard) -> None:
    (yard.root / "away").symlink_to(yard.outside)
    (yard.root / "far").symlink_to("away")


def cwd_deleted(yard: Yard) -> None:
    yard.cwd = yard.root / "d"
    yard.cwd.rmdir()


def cwd_linked(yard: Yard) -> None:
    (yard.root / "d").rmdir()
    (yard.root / "d").symlink_to(yard.outside)
    yard.cwd = yard.root / "d"


def root_deleted(yard: Yard) -> None:
    (yard.root / "f").unlink()
    (yard.root / "d").rmdir()
    yard.root.rmdir()


@pytest.mark.requirement("command-tools:workdir-stays-inside-the-root")
@pytest.mark.parametrize(
    ("prepare", "workdir", "kind"),
    [
        (as_it_is, "..", ESCAPE),
        (as_it_is, "../outside", ESCAPE),
        (as_it_is, "d/../../outside", ESCAPE),
        (as_it_is, "/", ESCAPE),
        (as_it_is, "/proc/self/root", ESCAPE),
        (as_it_is, "/proc/self/cwd/..", ESCAPE),
        (as_it_is, "../root-of-another", ESCAPE),
        (as_it_is, "none", NO_PLACE),
        (as_it_is, "f", NO_PLACE),
        (as_it_is, "~", NO_PLACE),
        (linked, "away", ESCAPE),
        (linked, "far", ESCAPE),
        (linked, "far/../outside", ESCAPE),
        (cwd_deleted, None, NO_PLACE),
        (cwd_linked, None, ESCAPE),
        (root_deleted, None, NO_PLACE),
    ],
)
async def test_s65_a_place_outside_or_gone_is_an_error_and_nothing_runs(
    yard: Yard, prepare: Callable[[Yard], None], workdir: str | None, kind: str
) -> None:
    prepare(yard)
    before = yard.held()
    asked: dict[str, JsonValue] = {"cmd": "echo dead > canary"}
    if workdir is not None:
        asked["workdir"] = workdir
    outcome = await yard.call(ExecCommand(), asked)
    assert isinstance(outcome, ToolRefused)
    assert (outcome.error.kind, outcome.error.field) == (kind, "workdir")
    assert outcome.error.hint
    assert yard.held() == before
    batch = await yard.call(ExecCommandBatch(), {"items": [asked]})
    assert "dead" not in "".join(yard.held().values()), batch


@pytest.mark.requirement("command-tools:spawn-failure-is-explained")
@pytest.mark.parametrize("shell", ["no-such-shell", "./sh", "/etc/passwd", "/dev/null", ".."])
async def test_s65_a_missing_shell_is_said(yard: Yard, shell: str) -> None:
    outcome = await yard.call(ExecCommand(), {"cmd": "true", "shell": shell})
    assert isinstance(outcome, ToolRefused)
    assert outcome.error.kind == NO_PLACE
    assert outcome.error.hint


@pytest.mark.requirement("command-tools:completed-envelope")
@pytest.mark.parametrize(
    ("cmd", "shown"),
    [
        (r"printf 'caf\351 \377\376 ok'", "caf\ufffd \ufffd\ufffd ok"),
        (r"printf 'a\000b'", "a\0b"),
        (r"printf '\303'", "\ufffd"),
        (r"printf '\355\240\200'", "\ufffd\ufffd\ufffd"),
        (r"printf '\033[31mred\033[0m\007'", "\x1b[31mred\x1b[0m\x07"),
    ],
    ids=["latin", "nul", "cut-short", "surrogate", "escapes"],
)
async def test_s64_bytes_that_are_no_text_reach_the_model_as_text(
    yard: Yard, cmd: str, shown: str
) -> None:
    outcome = await yard.call(ExecCommand(), {"cmd": cmd})
    assert isinstance(outcome, ToolOk)
    assert isinstance(outcome.result, dict)
    assert outcome.result["stdout_preview"] == shown


HEAD: Final = "--- a/f\n+++ b/f\n"
DIFFS: Final[dict[str, tuple[bytes, str, bytes | str]]] = {
    "nul-in-patch": (b"one\n", f"{HEAD}@@ -1 +1 @@\n-one\n+\0\n", "unsupported_git_patch_feature"),
    "binary-file": (b"a\0b\n", f"{HEAD}@@ -1 +1 @@\n-a\n+b\n", "binary_file"),
    "git-binary": (
        b"one\n",
        "diff --git a/f b/f\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIcmZ\n",
        "unsupported_git_patch_feature",
    ),
    "crlf-mix": (b"one\r\ntwo\nsix\r\n", f"{HEAD}@@ -2 +2 @@\n-two\n+2\n", b"one\r\n2\nsix\r\n"),
    "crlf-file": (b"one\r\ntwo\r\n", f"{HEAD}@@ -2 +2 @@\n-two\n+2\n", b"one\r\n2\r\n"),
    "not-utf-8": (b"caf\xe9\none\n", f"{HEAD}@@ -2 +2 @@\n-one\n+two\n", b"caf\xe9\ntwo\n"),
    "mixed-encodings": (
        b"caf\xe9\none\n",
        f"{HEAD}@@ -2 +2 @@\n-one\n+zwölf\n",
        "unsupported_encoding",
    ),
    "mark": (b"\xef\xbb\xbfone\n", f"{HEAD}@@ -1 +1 @@\n-one\n+two\n", b"\xef\xbb\xbftwo\n"),
    "lone-surrogate": (b"one\n", f"{HEAD}@@ -1 +1 @@\n-one\n+\ud800\n", "invalid_patch_syntax"),
    "two-entries": (
        b"one\ntwo\n",
        f"{HEAD}@@ -1 +1 @@\n-one\n+1\n{HEAD}@@ -2 +2 @@\n-two\n+2\n",
        b"1\n2\n",
    ),
    "added-twice": (
        b"one\n",
        begin("*** Add File: n", "+a", "*** Add File: n", "+b"),
        "duplicate_file_patch",
    ),
    "both-ways": (
        b"one\n",
        f"{HEAD}@@ -1 +1 @@\n-one\n+two\n{HEAD}@@ -1 +1 @@\n-one\n+six\n",
        "context_not_found",
    ),
}


@pytest.mark.requirement("apply-patch:style-of-a-file-is-kept")
@pytest.mark.parametrize("name", DIFFS)
async def test_s39_odd_bytes_are_kept_to_the_byte_or_refused(yard: Yard, name: str) -> None:
    content, patch, expected = DIFFS[name]
    (yard.root / "f").write_bytes(content)
    for _ in range(2):  # the same each time
        (yard.root / "f").write_bytes(content)
        outcome = await yard.call(ApplyPatch(), {"patch": patch})
        if isinstance(expected, bytes):
            assert isinstance(outcome, ToolOk)
            assert (yard.root / "f").read_bytes() == expected
        else:
            assert isinstance(outcome, ToolRefused)
            assert outcome.error.kind == expected
            assert (yard.root / "f").read_bytes() == content
    assert sorted(path.name for path in yard.root.iterdir()) == ["d", "f"]


GIT: Final = "diff --git a/f b/f\n"
ATTACKS: Final = {
    "up": "--- a/../../x\n+++ b/../../x\n@@ -0,0 +1 @@\n+dead\n",
    "up-new": "--- /dev/null\n+++ b/../outside/x\n@@ -0,0 +1 @@\n+dead\n",
    "absolute": "--- /dev/null\n+++ /tmp/x\n@@ -0,0 +1 @@\n+dead\n",
    "home": begin("*** Add File: ~/x", "+dead"),
    "quoted-up": '--- /dev/null\n+++ "b/\\056\\056/outside/x"\n@@ -0,0 +1 @@\n+dead\n',
    "null-written": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+1\n"
    "--- /dev/null\n+++ /dev/null\n@@\n+x\n",
    "null-inside": "--- /dev/null\n+++ b/../dev/null\n@@ -0,0 +1 @@\n+dead\n",
    "rename-out": f"{GIT}similarity index 100%\nrename from f\nrename to ../outside/f\n",
    "rename-in": f"{GIT}rename from ../outside/canary\nrename to mine\n",
    "move-out": begin("*** Update File: f", "*** Move to: ../outside/f", "@@", "-one", "+1"),
    "link-then-through": "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n"
    "@@ -0,0 +1 @@\n+../outside\n\\ No newline at end of file\n"
    "--- /dev/null\n+++ b/l/x\n@@ -0,0 +1 @@\n+dead\n",
    "through-link": "--- a/away/canary\n+++ b/away/canary\n@@ -1 +1 @@\n-alive\n+dead\n",
    "to-link": "--- a/named\n+++ b/named\n@@ -1 +1 @@\n-alive\n+dead\n",
    "set-user-id": f"{GIT}old mode 100644\nnew mode 104755\n",
    "submodule": "diff --git a/s b/s\nnew file mode 160000\n--- /dev/null\n+++ b/s\n"
    "@@ -0,0 +1 @@\n+x\n",
    "hooks": "--- /dev/null\n+++ b/.git/hooks/post-checkout\n@@ -0,0 +1 @@\n+dead\n",
    "hooks-by-case": begin("*** Add File: d/.GiT/config", "+dead"),
    "copy": f"{GIT}copy from f\ncopy to ../outside/f\n",
}  # fmt: skip


@pytest.mark.requirement("apply-patch:nothing-outside-the-root")
@pytest.mark.parametrize("name", ATTACKS)
async def test_s37_an_attack_refuses_the_whole_patch(yard: Yard, name: str) -> None:
    (yard.root / "away").symlink_to(yard.outside)
    (yard.root / "named").symlink_to(yard.outside / "canary")
    before = yard.held()
    innocent = begin("*** Add File: innocent", "+x").removesuffix("*** End Patch\n")
    attack = ATTACKS[name]
    if attack.startswith("*** Begin"):
        attack = innocent + attack.removeprefix("*** Begin Patch\n")
    else:
        attack = f"--- /dev/null\n+++ b/innocent\n@@ -0,0 +1 @@\n+x\n{attack}"
    outcome = await yard.call(ApplyPatch(), {"patch": attack})
    assert isinstance(outcome, ToolRefused), outcome
    assert outcome.error.hint
    assert yard.held() == before
    assert sorted(p.name for p in yard.root.parent.iterdir()) == ["outside", "root"]


def fifo(path: Path) -> None:
    os.mkfifo(path)


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.requirement("apply-patch:only-regular-files")
@pytest.mark.parametrize("make", [fifo, sparse, folder])
async def test_s34_what_is_no_plain_file_is_refused_without_a_wait(
    yard: Yard, make: Callable[[Path], None]
) -> None:
    make(yard.root / "odd")
    for patch in (
        "--- a/odd\n+++ b/odd\n@@ -1 +1 @@\n-a\n+b\n",
        begin("*** Add File: odd", "+a"),
        begin("*** Delete File: odd"),
        begin("*** Update File: f", "*** Move to: odd"),
    ):
        outcome = await yard.call(ApplyPatch(), {"patch": patch})
        assert isinstance(outcome, ToolRefused)
        assert outcome.error.kind == "file_refused"
    assert (yard.root / "odd").exists()


@pytest.mark.requirement("apply-patch:only-regular-files")
async def test_s34_a_hard_link_to_an_outside_file_is_cut_not_followed(yard: Yard) -> None:
    os.link(yard.outside / "canary", yard.root / "shared")
    outcome = await yard.call(
        ApplyPatch(), {"patch": "--- a/shared\n+++ b/shared\n@@ -1 +1 @@\n-alive\n+dead\n"}
    )
    assert isinstance(outcome, ToolOk)
    assert (yard.outside / "canary").read_text() == "alive"
