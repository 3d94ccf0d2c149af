"""Fixtures of the crash tests."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.served_host import ServedHost

StartHost = Callable[..., ServedHost]


@pytest.fixture
def start_host(tmp_path: Path) -> Iterator[StartHost]:
    """Start hosts that are gone when the test is; their model says what a script says."""
    started: list[ServedHost] = []

    def start(home: Path, *, script: object = None, **how: object) -> ServedHost:
        written = tmp_path / f"{home.name}.script.yaml"
        if script is not None or not written.exists():
            written.write_text(json.dumps(script or {"rules": []}), encoding="utf-8")
        environ = {"HOLON_MODEL": f"scripted/{written}"}
        host = ServedHost(home, environ=environ, **how)  # type: ignore[arg-type]  # as they come
        started.append(host)
        return host

    yield start
    for host in started:
        host.kill()
