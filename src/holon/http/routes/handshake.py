"""Hello, and what a client may expect.

Owns:  the handshake. It tells a stranger how to come in, and nothing about who lives here.
"""

from typing import Final

from holon.http.exchange import Door
from holon.http.plane import Plane
from holon.http.route import Access, Call, Route
from holon.wire.control_responses import AuthFacts, Handshake, HandshakeRuntime, Protocol

CAPABILITIES: Final = (
    "agents.list",
    "agents.state",
    "agents.events",
    "agents.control",
    "tui.remote",
)


async def handshake(plane: Plane, call: Call) -> Handshake:
    """Introduce the server."""
    local = call.head.peer.door is Door.UNIX
    facts = plane.facts
    return Handshake(
        ok=True,
        protocol=Protocol(name="holon-control", version=1),
        auth=AuthFacts(mode="local" if local else "bearer", required=not local),
        capabilities=CAPABILITIES,
        version=facts.version,
        runtime=HandshakeRuntime(
            default_agent=facts.default_agent,
            workspace_dir=facts.workspace_dir,
            home_dir=facts.home_dir,
            listen=facts.http_addr,
            advertise_url=facts.advertise_url,
        )
        if local
        else None,
    )


ROUTES: Final[tuple[Route[Plane], ...]] = (
    Route(
        method="GET",
        path="/handshake",
        access=Access.OPEN,
        summary="Say hello: which protocol, and what it takes to be let in.",
        answer=handshake,
        returns=Handshake,
        tags=("runtime",),
    ),
)
