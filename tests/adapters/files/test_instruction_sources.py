"""Looks at files that instruct an agent, as they really lie on a disk."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import anyio.to_thread
import pytest

from holon.adapters.files.instructions import FileInstructionSources


def put(home: Path, path: str, text: str) -> str:
    file = home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return hashlib.sha256(text.encode()).hexdigest()


async def test_every_source_has_its_digest_and_other_files_have_none(tmp_path: Path) -> None:
    skill = "---\nname: roofs\ndescription: Mend roofs.\n---\n"
    expected = {
        path: put(tmp_path, path, text)
        for path, text in {
            "AGENTS.md": "Be kind.",
            "memory/self.md": "I like boats.",
            "memory/operator.md": "Likes tea.",
            "skills/roofs/SKILL.md": skill,
        }.items()
    }
    put(tmp_path, "notes/today.md", "nothing")
    assert await FileInstructionSources().digests(str(tmp_path)) == expected


async def test_a_change_is_seen_even_when_its_writer_sets_the_clock_back(tmp_path: Path) -> None:
    sources = FileInstructionSources()
    first = put(tmp_path, "AGENTS.md", "Be kind.")
    facts = (tmp_path / "AGENTS.md").stat()
    assert await sources.digests(str(tmp_path)) == {"AGENTS.md": first}
    other = put(tmp_path, "AGENTS.md", "Be mean.")
    os.utime(tmp_path / "AGENTS.md", ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert await sources.digests(str(tmp_path)) == {"AGENTS.md": other}


async def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").mkdir()
    (tmp_path / "memory").mkdir()
    os.mkfifo(tmp_path / "memory" / "self.md")
    (tmp_path / "memory" / "operator.md").symlink_to("nowhere")
    sources = FileInstructionSources()
    assert await sources.digests(str(tmp_path)) == {}
    assert await sources.digests(str(tmp_path / "missing")) == {}


async def test_a_home_with_many_folders_is_looked_at_by_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("few", "many"):
        put(tmp_path / name, "AGENTS.md", "Be kind.")
    for number in range(50):
        (tmp_path / "many" / "skills" / f"no-skill-{number}").mkdir(parents=True)
    sources = FileInstructionSources()
    asked: list[str] = []
    honest = anyio.to_thread.run_sync

    async def counted(look: Callable[[str], object], below: str) -> object:
        asked.append(Path(below).name)
        return await honest(look, below)

    monkeypatch.setattr(anyio.to_thread, "run_sync", counted)
    for _ in range(3):
        for name in ("few", "many"):
            assert set(await sources.digests(str(tmp_path / name))) == {"AGENTS.md"}
    assert asked == ["few", "many", "many", "many"]
