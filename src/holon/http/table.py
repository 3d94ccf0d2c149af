"""The route table.

Owns:  every route of the service. A route that is not in it is not served.
"""

from typing import Final

from holon.http.context import HttpContext
from holon.http.route import Route
from holon.http.routes import (
    agent_control,
    agents,
    events,
    guidance,
    memory,
    metrics,
    queue,
    runtime,
    tasks,
    triggers,
    turns,
    wake,
    work,
    workspaces,
)

_WORKING: Final[tuple[Route[HttpContext], ...]] = (
    *runtime.FRONT_ROUTES,
    *runtime.HANDSHAKE_ROUTES,
    *runtime.RUNTIME_CONTROL_ROUTES,
    *metrics.ROUTES,
    *agents.AGENT_ROUTES,
    *turns.TRANSCRIPT_ROUTES,
    *agents.DEFAULT_AGENT_ROUTES,
    *events.ROUTES,
    *tasks.ROUTES,
    *wake.TIMER_ROUTES,
    *work.ROUTES,
    *memory.ROUTES,
    *agent_control.ROUTES,
    *workspaces.ROUTES,
    *guidance.ROUTES,
    *turns.PROMPT_ROUTES,
    *wake.WAKE_ROUTES,
    *queue.ROUTES,
    *triggers.ROUTES,
)

ROUTES: Final[tuple[Route[HttpContext], ...]] = runtime.described(_WORKING)
