"""AGENTS.md from three places, whatever is in its place."""

import os
from pathlib import Path

import pytest

from holon.adapters.files.instructions import InstructionFiles
from holon.model.guidance import InstructionKind, InstructionSource, LoadedGuidance
from holon.model.limits import INSTRUCTIONS_BYTES_MAX


class Places:
    """A person's home, an agent's home and a workspace."""

    def __init__(self, root: Path) -> None:
        self.user, self.agent, self.anchor = root / "user", root / "agent", root / "site"
        for folder in (self.user / ".agents", self.agent, self.anchor):
            folder.mkdir(parents=True)

    async def load(self, *, anchored: bool = True) -> LoadedGuidance:
        return await InstructionFiles(self.user).load(
            agent_home=str(self.agent), workspace_anchor=str(self.anchor) if anchored else None
        )


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def texts(guidance: LoadedGuidance) -> list[tuple[str, str]]:
    return [(file.source.value, file.text) for file in guidance.files]


@pytest.mark.requirement("instructions:agent-and-workspace-roots")
async def test_guidance_comes_in_the_order_user_agent_workspace(places: Places) -> None:
    (places.anchor / "AGENTS.md").write_text("site")
    (places.agent / "AGENTS.md").write_text("agent")
    (places.user / ".agents" / "AGENTS.md").write_text("user")
    (places.user / ".agents" / "CLAUDE.md").write_text("not read")
    (places.agent / "CLAUDE.md").write_text("not read")
    found = await places.load()
    assert texts(found) == [("user_global", "user"), ("agent", "agent"), ("workspace", "site")]
    assert found.problems == ()
    assert texts(await places.load(anchored=False)) == [("user_global", "user"), ("agent", "agent")]


async def test_nothing_is_no_problem(places: Places) -> None:
    (places.agent / "CLAUDE.md").write_text("only a workspace may have this")
    assert await places.load() == LoadedGuidance()
    nowhere = InstructionFiles(None)
    assert await nowhere.load(agent_home="/no/such", workspace_anchor=None) == LoadedGuidance()


FORMS = {
    "a byte order mark": ("\ufeff# Rules\n", "# Rules\n"),
    "Windows line ends": ("# Rules\r\n\r\n- one\r\n", "# Rules\n\n- one\n"),
    "line ends of old": ("# Rules\r\r- one\r", "# Rules\n\n- one\n"),
    "a head of another tool": ("---\ntrigger: always_on\n---\n# Rules\n", None),
    "marks of a generator": ("<!-- BEGIN rules -->\n# Rules\n<!-- END rules -->\n", None),
    "a reference to another file": ("@docs/style.md\n\nSee [setup](docs/setup.md).\n", None),
    "tags": ("<rules>\nRun `make check`.\n</rules>\n", None),
    "no heading": ("- Keep it short.\n- 短く\n", None),
    "nothing": ("", None),
}


@pytest.mark.requirement("instructions:agent-and-workspace-roots")
@pytest.mark.parametrize(("content", "text"), FORMS.values(), ids=FORMS.keys())
async def test_guidance_that_others_wrote_is_read_as_it_is(
    places: Places, content: str, text: str | None
) -> None:
    (places.anchor / "AGENTS.md").write_bytes(content.encode())
    found = await places.load()
    assert texts(found) == [("workspace", content if text is None else text)]
    assert found.problems == ()


@pytest.mark.requirement("instructions:claude-md-fallback")
async def test_claude_md_counts_where_a_workspace_has_no_agents_md(places: Places) -> None:
    (places.anchor / "CLAUDE.md").write_text("claude")
    [found] = (await places.load()).files
    assert (found.source, found.kind) == (InstructionSource.WORKSPACE, InstructionKind.CLAUDE_MD)
    (places.anchor / "AGENTS.md").write_text("")
    [found] = (await places.load()).files
    assert (found.kind, found.text) == (InstructionKind.AGENTS_MD, "")
    (places.anchor / "AGENTS.md").write_bytes(b"\xff\xfe not text")
    broken = await places.load()
    assert broken.files == ()
    assert "not UTF-8" in broken.problems[0]


@pytest.mark.requirement("instructions:not-from-cwd")
@pytest.mark.requirement("instructions:not-switched-by-a-worktree")
async def test_neither_a_shells_directory_nor_a_worktree_is_looked_at(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worktree = tmp_path / ".holon-worktrees-site" / "branch"
    below = places.anchor / "src"
    for folder in (worktree, below):
        folder.mkdir(parents=True)
        (folder / "AGENTS.md").write_text("elsewhere")
    (places.anchor / "AGENTS.md").write_text("site")
    for folder in (worktree, below):
        monkeypatch.chdir(folder)
        assert texts(await places.load()) == [("workspace", "site")]
        assert texts(await places.load(anchored=False)) == []


async def test_an_agent_at_home_is_told_once(places: Places) -> None:
    (places.agent / "AGENTS.md").write_text("agent")
    home = str(places.agent)
    found = await InstructionFiles(places.user).load(agent_home=home, workspace_anchor=f"{home}/")
    assert texts(found) == [("agent", "agent")]


@pytest.mark.requirement("agent-init:edits-count-from-the-next-prompt")
async def test_an_edit_counts_the_next_time(places: Places) -> None:
    instructions = InstructionFiles(places.user)
    told = []
    for text in ("first", "second"):
        (places.agent / "AGENTS.md").write_text(text)
        [file] = (
            await instructions.load(agent_home=str(places.agent), workspace_anchor=None)
        ).files
        told.append((file.text, file.sha256))
    assert [text for text, _ in told] == ["first", "second"]
    assert told[0][1] != told[1][1]


async def test_metadata_says_where_it_came_from(places: Places) -> None:
    (places.agent / "AGENTS.md").write_bytes(b"\xef\xbb\xbfh\xc3\xa9")
    [file] = (await places.load()).files
    assert (file.path, file.bytes, file.text) == (str(places.agent / "AGENTS.md"), 6, "hé")
    assert len(file.sha256) == 64


@pytest.mark.requirement("instructions:a-bad-file-is-told")
async def test_a_huge_file_is_cut_and_said_to_be(places: Places) -> None:
    (places.anchor / "AGENTS.md").write_text("é" * 2_500_000 + "x")
    found = await places.load()
    [file] = found.files
    assert (file.truncated, file.bytes) == (True, 5_000_001)
    assert len(file.text.encode()) <= INSTRUCTIONS_BYTES_MAX
    assert set(file.text) == {"é"}
    assert "only its first" in found.problems[0]


@pytest.mark.requirement("instructions:a-bad-file-is-told")
@pytest.mark.parametrize("where", ["agent", "anchor"])
async def test_what_is_no_text_file_is_told_and_left_out(places: Places, where: str) -> None:
    folder: Path = getattr(places, where)
    path, secret = folder / "AGENTS.md", folder.parent / "secret"
    secret.write_text("TOP SECRET")
    said = []
    path.mkdir()
    said.append(await places.load())
    path.rmdir()
    os.mkfifo(path)
    said.append(await places.load())
    path.unlink()
    path.write_bytes(b"caf\xe9")
    said.append(await places.load())
    for target in (secret, "../secret", "AGENTS.md", "/nowhere", "/dev/zero"):
        path.unlink()
        path.symlink_to(target)
        said.append(await places.load())
    assert [found.files for found in said] == [()] * 8
    assert all(len(found.problems) == 1 and str(path) in found.problems[0] for found in said)
    words = ["directory", "plain file", "UTF-8", "leads out", "leads out"]
    for found, word in zip(said, words, strict=False):
        assert word in found.problems[0]


async def test_a_link_inside_a_workspace_is_followed(places: Places) -> None:
    (places.anchor / "CLAUDE.md").write_text("claude")
    (places.anchor / "AGENTS.md").symlink_to("CLAUDE.md")
    [file] = (await places.load()).files
    assert (file.kind, file.text) == (InstructionKind.AGENTS_MD, "claude")


async def test_the_users_own_file_may_be_a_link_to_anywhere(places: Places, tmp_path: Path) -> None:
    (tmp_path / "dotfiles.md").write_text("mine")
    (places.user / ".agents" / "AGENTS.md").symlink_to(tmp_path / "dotfiles.md")
    assert texts(await places.load()) == [("user_global", "mine")]
