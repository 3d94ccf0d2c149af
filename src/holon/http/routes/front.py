"""The front door: what is behind it, for whoever knocks without knowing.

Owns:  the root. It tells a stranger no more than the handshake does.
"""

from typing import Final

from holon.http.plane import Plane
from holon.http.route import Access, Call, Route
from holon.wire.control_responses import Front, FrontLinks


async def front(plane: Plane, call: Call) -> Front:
    """Say what this is, and where to go on."""
    del call
    links = FrontLinks(handshake="/handshake", openapi="/openapi.json")
    return Front(ok=True, name="holon", version=plane.facts.version, links=links)


ROUTES: Final[tuple[Route[Plane], ...]] = (
    Route(
        method="GET",
        path="/",
        access=Access.OPEN,
        summary="Say what is served here, and where to go on.",
        answer=front,
        returns=Front,
        tags=("runtime",),
    ),
)
