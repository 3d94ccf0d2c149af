"""The story as a file, told once and copied for each test."""

import shutil
from pathlib import Path

import pytest

from tests.adapters.sqlite.check.story import write_story


@pytest.fixture(scope="session")
async def told(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> Path:
    """A closed database with the whole story in it."""
    return await write_story(tmp_path_factory.mktemp("story"))


@pytest.fixture
def database(told: Path, tmp_path: Path) -> Path:
    """A copy of the story that a test may damage."""
    copy = tmp_path / "state" / told.name
    copy.parent.mkdir()
    shutil.copy(told, copy)
    return copy
