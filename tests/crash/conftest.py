"""Fixtures of the crash tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holon.testing.host_client import HostClient

StartHost = Callable[..., HostClient]


@pytest.fixture
def start_host() -> Iterator[StartHost]:
    """Start hosts that are gone when the test is."""
    started: list[HostClient] = []

    def start(home: Path, **how: object) -> HostClient:
        host = HostClient(home, **how)  # type: ignore[arg-type]  # passed on as they come
        started.append(host)
        return host

    yield start
    for host in started:
        host.kill()
