"""Directories by their real names."""

import os
from pathlib import Path

import pytest

from holon.adapters.system.directories import SystemPlaces
from holon.ports.workspaces import DirectoryRefusedError


async def test_a_directory_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    home = tmp_path / "agents" / "main"
    await SystemPlaces().ensure(str(home))
    (home / "kept").write_text("x")
    await SystemPlaces().ensure(str(home))
    assert (home / "kept").exists()
    assert home.stat().st_mode & 0o777 == 0o700


async def test_what_stands_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "agents").write_text("a file")
    with pytest.raises(DirectoryRefusedError):
        await SystemPlaces().ensure(str(tmp_path / "agents" / "main"))


async def test_a_path_is_what_it_leads_to(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "link").symlink_to(inside)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    places = SystemPlaces()
    real = str(inside.resolve())
    assert await places.resolved(str(tmp_path / "link")) == real
    assert await places.resolved(str(tmp_path / "link" / ".." / "inside")) == real
    for name in ("loop", "file", "pipe", "nowhere", "file/x", "a\0b"):
        assert await places.resolved(f"{tmp_path}/{name}") is None
