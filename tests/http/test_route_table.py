"""Every row of the table: complete, closed to strangers, and closed to an agent's own commands."""

import re

import pytest

from holon.http.access import Allowed, Authorizer, Forbidden
from holon.http.exchange import Peer, RequestHead, SocketKind
from holon.http.route import Access
from holon.http.table import ROUTES
from tests.support.control_server import ControlServer

ROWS = {f"{route.method} {route.path}": route for route in ROUTES}
TOKEN_ROWS = [
    name for name, row in ROWS.items() if row.access not in (Access.OPEN, Access.CAPABILITY)
]


class _NoToken:
    def digest(self) -> bytes | None:
        return None


def test_no_two_rows_serve_the_same() -> None:
    shapes = [(route.method, re.sub(r"\{\w+\}", "{}", route.path)) for route in ROUTES]
    assert len(set(shapes)) == len(shapes)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_says_all_there_is_to_know(name: str) -> None:
    row = ROWS[name]
    assert row.summary.endswith(".")
    assert row.summary[0].isupper()
    assert row.returns is not None
    assert row.tags
    assert (row.method == "GET") == (row.access in (Access.OPEN, Access.READ))
    assert row.takes is None or row.method != "GET"


@pytest.mark.requirement("http:every-route-needs-the-token")
async def test_no_row_answers_a_stranger(server: ControlServer) -> None:
    for name in TOKEN_ROWS:
        method, path = name.split()
        answer = await server.stranger.send(method, path.format_map(_Names()))
        assert (answer.status, answer.json()["code"]) == (401, "unauthorized"), name
        assert answer.header(b"www-authenticate") == b"Bearer"


class _Names(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return "main" if name == "agent_id" else "x_1"


@pytest.mark.requirement("http:agents-commands-may-only-read")
@pytest.mark.parametrize("name", ROWS)
def test_a_command_an_agent_runs_may_read_and_no_more(name: str) -> None:
    keeper = Authorizer(owner_uid=7, token=_NoToken(), runs_for_an_agent=lambda _: True)
    peer = Peer(socket_kind=SocketKind.UNIX, address="uid:7", uid=7, pid=1)
    head = RequestHead(method="GET", path="/", query="", headers=(), peer=peer)
    verdict = keeper.authorize(ROWS[name].access, head)
    may = ROWS[name].access in (Access.OPEN, Access.READ, Access.CAPABILITY)
    assert isinstance(verdict, Allowed if may else Forbidden)
