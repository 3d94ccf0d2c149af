"""Fixtures and settings every test sees, and no others.

`tests` is one package (its root and `support` hold an `__init__.py`) collected in importlib mode,
with the project root on the path, so a test file imports its neighbours as
`tests.<folder>.<module>`.
"""

import gc
import importlib
import os
from collections.abc import Iterator
from typing import Final

import pytest
import sniffio
from hypothesis import HealthCheck, settings

# `house` gives the same examples on every run; `--hypothesis-profile=drill` searches anew.
settings.register_profile(
    "house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("drill", deadline=None, print_blob=True, max_examples=2_000)
settings.load_profile("house")

# Folders with tests that take long or mostly wait. In other folders, such a module has the marker.
LONG_FOLDERS: Final = (
    "tests/crash/",
    "tests/daemon/",
    "tests/hostile/",
    "tests/power/",
    "tests/simulation/",
    "tests/providers_over_http/",
)


# Between two searches for garbage, as a service has it. Python's 700 cost a sixth of the time.
ALLOCATIONS_COUNT: Final = 50_000


def pytest_configure(config: pytest.Config) -> None:
    """Plant the fault named by HOLON_MUTANT, so that a run can show which test sees it."""
    del config
    gc.disable()  # what is collected stays to the end: looking for garbage in it finds none
    name = os.environ.get("HOLON_MUTANT")
    if name:
        # Imported only when asked: the mutants reach into every package.
        importlib.import_module("tests.mutants.registry").plant(name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long tests in front of the others, or all workers would wait for the last of them."""
    ranks = {}
    for item in items:
        rank = next((n for n, at in enumerate(LONG_FOLDERS) if item.nodeid.startswith(at)), None)
        if rank is not None and item.get_closest_marker("quick") is None:
            item.add_marker("long")
        elif rank is None and item.get_closest_marker("long") is not None:
            rank = len(LONG_FOLDERS)
        ranks[item] = len(LONG_FOLDERS) + 1 if rank is None else rank
    items.sort(key=ranks.__getitem__)


def pytest_collection_finish() -> None:
    """Look for garbage only in what the tests make."""
    gc.freeze()
    gc.set_threshold(ALLOCATIONS_COUNT)
    gc.enable()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run every async test on asyncio, the one backend Holon supports."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def a_home_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the templates, skills and guidance of whoever runs the tests out of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("user")))
        yield


@pytest.fixture(autouse=True)
def no_loop_remembered() -> None:
    """Forget the event loop of an earlier test: a vendor's package brings one who remembers it."""
    sniffio.current_async_library_cvar.set(None)
