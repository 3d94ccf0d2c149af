"""A place for runtimes, cleared afterwards."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.driving import Place


@pytest.fixture
def place() -> Iterator[Place]:
    """A short path (a socket's must be short), and nothing running there at the end."""
    with tempfile.TemporaryDirectory(prefix="holon-d-", ignore_cleanup_errors=True) as folder:
        found = Place(Path(folder))
        try:
            yield found
        finally:
            found.end_whatever_runs()


@pytest.fixture
def run(place: Place) -> Place:
    """A place whose run folder is there."""
    place.files.folder.mkdir(parents=True, mode=0o700)
    place.home.chmod(0o700)
    return place
