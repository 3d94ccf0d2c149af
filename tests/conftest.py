"""Fixtures and settings every test sees, and no others.

`tests` is one package (only its root holds an `__init__.py`) collected in importlib mode with the
project root on the path, so a test file imports its neighbours as `tests.<folder>.<module>`.
"""

import importlib
import os
from collections.abc import Iterator

import pytest
import sniffio
from hypothesis import HealthCheck, settings

# `house` gives the same examples on every run; `--hypothesis-profile=drill` searches anew.
settings.register_profile(
    "house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("drill", deadline=None, print_blob=True, max_examples=2_000)
settings.load_profile("house")


def pytest_configure(config: pytest.Config) -> None:
    """Plant the fault named by HOLON_MUTANT, so that a run can show which test sees it."""
    del config
    name = os.environ.get("HOLON_MUTANT")
    if name:
        # Imported only when asked: the mutants reach into every package.
        importlib.import_module("tests.mutants.registry").plant(name)


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
