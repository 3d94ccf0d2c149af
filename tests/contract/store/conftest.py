"""The store under test: each implementation in its turn, with one agent in it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holon.ports.store import Store
from tests.contract.store.implementations import IMPLEMENTATIONS, Opener
from tests.contract.store.steps import make
from tests.support.builders import an_agent


@pytest.fixture(params=IMPLEMENTATIONS)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Open the same home as often as called, one after the other."""
    return IMPLEMENTATIONS[request.param](tmp_path)


@pytest.fixture
async def empty_store(opener: Opener) -> AsyncIterator[Store]:
    """A store with nothing in it."""
    opened = opener()
    yield opened
    await opened.close()


@pytest.fixture
async def store(empty_store: Store) -> Store:
    """A store with one sleeping agent in it."""
    await make(empty_store, an_agent())
    return empty_store
