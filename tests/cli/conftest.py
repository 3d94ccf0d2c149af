"""A home with the checker's story in it, for the commands to look at; and a desk."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holon.adapters.sqlite.database.home_lock import database_path
from tests.adapters.sqlite.check.story import write_story
from tests.cli.operator_desk import Desk, open_desk


@pytest.fixture(scope="session")
async def told_home(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> Path:
    """A home that was closed cleanly."""
    home = tmp_path_factory.mktemp("home")
    await write_story(home)
    return home


@pytest.fixture
def home(told_home: Path, tmp_path: Path) -> Path:
    """A copy of that home which a test may damage."""
    copy = tmp_path / "home"
    database_path(copy).parent.mkdir(parents=True)
    shutil.copy(database_path(told_home), database_path(copy))
    return copy


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """An operator and a running server."""
    async with open_desk(tmp_path / "home") as found:
        yield found
