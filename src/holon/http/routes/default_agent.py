"""The default agent's reads, on paths that name no agent.

Owns:  the aliases. Each is the row of a named agent's route under a shorter path.
"""

from dataclasses import replace
from typing import Final

from holon.http.plane import Plane
from holon.http.route import Route
from holon.http.routes import agents, transcript

_PREFIX: Final = "/agents/{agent_id}"
_ALIASED: Final = frozenset(
    f"{_PREFIX}/{name}" for name in ("status", "state", "briefs", "transcript")
)

ROUTES: Final[tuple[Route[Plane], ...]] = tuple(
    replace(
        route,
        path=route.path.removeprefix(_PREFIX),
        summary=f"Of the default agent: {route.summary[0].lower()}{route.summary[1:]}",
    )
    for route in (*agents.ROUTES, *transcript.ROUTES)
    if route.path in _ALIASED
)
