"""Waking an agent by hand.

Owns:  the control route that leaves a wake hint.
Rule 1: a wake is a signal, not a message; it interrupts nothing and starts no stopped agent.
"""

from typing import Final

from holon.http.plane import Plane
from holon.http.route import Access, Call, Route
from holon.model.ids import parse_agent_id
from holon.model.wake import WakeHint
from holon.wire.ingress_requests import WakeRequest
from holon.wire.ingress_responses import WakeAnswer, told


async def wake(plane: Plane, call: Call) -> WakeAnswer:
    """Leave a hint that something changed."""
    asked = call.taken(WakeRequest)
    agent_id = parse_agent_id(call.params["agent_id"])
    now = plane.clock.now()
    disposition = await plane.host.wake.submit(
        WakeHint(
            agent_id=agent_id,
            source_key=f"control:{asked.source or 'operator'}",
            reason=asked.reason,
            created_at=now,
            updated_at=now,
            source=asked.source,
            correlation_id=asked.correlation_id,
            causation_id=asked.causation_id,
        )
    )
    return WakeAnswer(ok=True, agent_id=agent_id, disposition=told(disposition))


ROUTES: Final[tuple[Route[Plane], ...]] = (
    Route(
        method="POST",
        path="/control/agents/{agent_id}/wake",
        access=Access.CONTROL,
        summary="Tell an agent that something changed, without saying anything to it.",
        answer=wake,
        takes=WakeRequest,
        returns=WakeAnswer,
        refusals=(404, 409),
        tags=("agents",),
    ),
)
