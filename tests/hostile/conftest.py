"""Worlds for services, and what some of them need."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.served import World, may_have_own_disk, own_disk
from tests.hostile.system_library import build_system_library


@pytest.fixture
def folder() -> Iterator[Path]:
    """An ordinary folder with a gate for commands in it."""
    with tempfile.TemporaryDirectory(prefix="holon-e-", ignore_cleanup_errors=True) as name:
        found = Path(name)
        os.mkfifo(found / "gate")
        yield found
        # A command that outlived its service may still wait there.
        os.close(os.open(found / "gate", os.O_RDWR | os.O_NONBLOCK))


@pytest.fixture
def world(folder: Path) -> World:
    """A world without malice."""
    return World(folder=folder, home=folder / "home")


@pytest.fixture
def small_disk(folder: Path) -> World:
    """A home on a disk of its own, of 8 MB."""
    require_own_disk()
    disk = folder / "disk"
    return World(folder=folder, home=disk / "home", before=own_disk(disk))


@pytest.fixture
def switches(folder: Path) -> Path:
    """The folder whose files turn a loaded system library against a service."""
    made = folder / "switches"
    made.mkdir()
    return made


@pytest.fixture(scope="session")
def hostile_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is loaded into a process so that its system calls can be turned against it."""
    library = build_system_library(tmp_path_factory.mktemp("world"))
    if library is None:
        pytest.skip("this machine has no C compiler to make a hostile system with")
    return library


def require_own_disk() -> None:
    """Skip where no user namespaces are to be had."""
    if not may_have_own_disk():
        pytest.skip("this machine permits no unprivileged mount namespace")
