"""A server for each test that asks for one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.control_server import ControlServer, control_server


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlServer]:
    """A server with everything as it is by default."""
    async with control_server(tmp_path / "home") as running:
        yield running
