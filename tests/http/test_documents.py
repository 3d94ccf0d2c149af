"""The surface about itself, over a real server."""

from holon.http.table import ROUTES
from tests.support.control_server import ControlServer


async def test_the_server_describes_every_route_it_has(server: ControlServer) -> None:
    told = (await server.operator.get("/openapi.json")).json()
    assert told["openapi"] == "3.1.0"
    assert told["info"]["version"] == server.context.facts.version
    described = {(method.upper(), path) for path, rows in told["paths"].items() for method in rows}
    assert described == {(route.method, route.path) for route in ROUTES}
    assert (await server.stranger.get("/openapi.json")).status == 401
