"""Paths to rows."""

import pytest

from holon.http.app import MethodNotAllowed, RouteMatch, RouteNotFound, RouteTable
from holon.http.route import Access, Call, Route


async def nothing(context: None, call: Call) -> None:
    """Do nothing."""


def row(method: str, path: str) -> Route[None]:
    return Route(
        method=method, path=path, access=Access.READ, summary="", answer=nothing, returns=None
    )


TABLE = RouteTable(
    [
        row("GET", "/"),
        row("GET", "/status"),
        row("GET", "/agents/list"),
        row("GET", "/agents/{agent_id}/status"),
        row("POST", "/agents/{agent_id}/status"),
        row("POST", "/control/agents/{agent_id}/tasks/{task_id}/stop"),
    ]
)


@pytest.mark.parametrize(
    ("method", "path", "params"),
    [
        ("GET", "/", {}),
        ("GET", "/status", {}),
        ("GET", "/api/status", {}),
        ("GET", "/agents/list", {}),
        ("GET", "/agents/main/status", {"agent_id": "main"}),
        ("GET", "/api/agents/main/status", {"agent_id": "main"}),
        ("POST", "/control/agents/a/tasks/t/stop", {"agent_id": "a", "task_id": "t"}),
    ],
)
def test_a_path_finds_its_row(method: str, path: str, params: dict[str, str]) -> None:
    found = TABLE.find(method, path)
    assert isinstance(found, RouteMatch)
    assert found.params == params


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/nothing",
        "/status/",
        "//status",
        "/agents//status",
        "/agents/main/status/",
        "/api",
        "/api/api/status",
        "/API/status",
        "/STATUS",
        "/agents/main",
    ],
)
def test_what_is_only_nearly_a_path_is_none(path: str) -> None:
    assert TABLE.find("GET", path) == RouteNotFound()


@pytest.mark.parametrize("method", ["HEAD", "TRACE", "PUT", "DELETE", "get", "OPTIONS"])
def test_a_method_that_does_not_exist_is_told_which_do(method: str) -> None:
    assert TABLE.find(method, "/agents/main/status") == MethodNotAllowed(("GET", "POST"))
