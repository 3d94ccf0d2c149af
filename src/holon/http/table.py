"""Every route there is.

Owns:  the one table. What is not in it is not served.
"""

from typing import Final

from holon.http.plane import Plane
from holon.http.route import Route
from holon.http.routes import (
    agent_control,
    agents,
    default_agent,
    documents,
    events,
    front,
    handshake,
    memory,
    metrics,
    prompts,
    public_ingress,
    runtime_control,
    skills,
    tasks,
    timers,
    transcript,
    triggers,
    wake,
    work_items,
    workspaces,
)

_WORKING: Final[tuple[Route[Plane], ...]] = (
    *front.ROUTES,
    *handshake.ROUTES,
    *runtime_control.ROUTES,
    *metrics.ROUTES,
    *agents.ROUTES,
    *transcript.ROUTES,
    *default_agent.ROUTES,
    *events.ROUTES,
    *tasks.ROUTES,
    *timers.ROUTES,
    *work_items.ROUTES,
    *memory.ROUTES,
    *agent_control.ROUTES,
    *workspaces.ROUTES,
    *skills.ROUTES,
    *prompts.ROUTES,
    *wake.ROUTES,
    *public_ingress.ROUTES,
    *triggers.ROUTES,
)

ROUTES: Final[tuple[Route[Plane], ...]] = documents.described(_WORKING)
