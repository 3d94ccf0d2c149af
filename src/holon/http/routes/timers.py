"""Timers: listed, armed and cancelled by an operator.

Owns:  the routes of timers.
Rule 1: arming and cancelling are control-plane mutations; neither makes a message.
"""

from typing import Final

from holon.http.idempotency import idempotency_key
from holon.http.own_records import named_agent, own_timer, shown_agent
from holon.http.page_queries import AfterQuery, after_id, next_after
from holon.http.plane import Plane
from holon.http.request_headers import REPEATABLE
from holon.http.route import Access, Call, Route
from holon.model.ids import TimerId
from holon.projections.timer_view import TimerView, timer_view
from holon.wire.control_requests import TimerRequest
from holon.wire.surface_responses import TimerAnswer, TimerPage


async def list_timers(plane: Plane, call: Call) -> TimerPage:
    """Page through an agent's timers."""
    agent_id, asked = await shown_agent(plane, call), call.asked(AfterQuery)
    after = after_id(asked, TimerId, what="timer id")
    found = await plane.host.reads.timers_page(agent_id, after=after, limit=asked.limit)
    return TimerPage(
        timers=tuple(timer_view(each) for each in found),
        limit=asked.limit,
        next_after=next_after(asked, [each.id for each in found]),
    )


async def show(plane: Plane, call: Call) -> TimerView:
    """Show one timer."""
    await shown_agent(plane, call)
    return timer_view(await own_timer(plane, call))


async def create(plane: Plane, call: Call) -> TimerAnswer:
    """Arm a timer."""
    asked, agent_id, key = call.taken(TimerRequest), named_agent(call), idempotency_key(call)
    asked.require_one_form()
    desk = plane.host.timers
    if asked.expression is not None:
        timer = await desk.create_cron(
            agent_id,
            expression=asked.expression,
            zone=asked.zone or "UTC",
            summary=asked.summary,
            key=key,
        )
    else:
        timer = await desk.create(
            agent_id,
            after_ms=asked.duration_ms or 0,
            every_ms=asked.interval_ms,
            summary=asked.summary,
            key=key,
        )
    return TimerAnswer(ok=True, timer=timer_view(timer))


async def cancel(plane: Plane, call: Call) -> TimerAnswer:
    """Cancel a timer; one that has ended stays as it is."""
    timer = await own_timer(plane, call)
    await plane.host.timers.cancel(timer.id)
    return TimerAnswer(ok=True, timer=timer_view(await own_timer(plane, call)))


ROUTES: Final[tuple[Route[Plane], ...]] = (
    Route(
        method="GET",
        path="/agents/{agent_id}/timers",
        access=Access.READ,
        summary="An agent's timers: active ones soonest first, then ended ones.",
        answer=list_timers,
        query=AfterQuery,
        returns=TimerPage,
        refusals=(404,),
        tags=("timers",),
    ),
    Route(
        method="GET",
        path="/agents/{agent_id}/timers/{timer_id}",
        access=Access.READ,
        summary="One timer.",
        answer=show,
        returns=TimerView,
        refusals=(404,),
        tags=("timers",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/timers",
        access=Access.CONTROL,
        summary="Arm a timer for an agent. Repeats safely under an Idempotency-Key.",
        answer=create,
        headers=REPEATABLE,
        takes=TimerRequest,
        returns=TimerAnswer,
        refusals=(404, 409, 429),
        tags=("timers",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/timers/{timer_id}/cancel",
        access=Access.CONTROL,
        summary="Cancel a timer; a tick of it that nobody has taken up is void.",
        answer=cancel,
        returns=TimerAnswer,
        refusals=(404, 409),
        tags=("timers",),
    ),
)
