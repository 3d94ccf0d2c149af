"""Timer routes (list, create, cancel) and the wake hint.

Owns:  the routes of timers; the control route that adds a wake hint.
Rule 1: creating and cancelling a timer changes records and creates no message.
Rule 2: a wake hint is a signal, not a message; it interrupts nothing and starts no stopped agent.
"""

from typing import Final

from holon.http.context import HttpContext, named_agent, own_timer, shown_agent
from holon.http.query import AfterQuery, after_id, next_after
from holon.http.request_headers import REPEATABLE, idempotency_key
from holon.http.route import Access, Call, Route
from holon.model.values import TimerId, parse_agent_id
from holon.model.wake import WakeHint
from holon.projections.wake import TimerView, timer_view
from holon.wire.requests import TimerRequest, WakeRequest
from holon.wire.responses import TimerAnswer, TimerPage, WakeAnswer, public_disposition


async def list_timers(context: HttpContext, call: Call) -> TimerPage:
    """Page through an agent's timers."""
    agent_id, query = await shown_agent(context, call), call.query_as(AfterQuery)
    after = after_id(query, TimerId, what="timer id")
    timers = await context.host.reads.wake.timers_page(agent_id, after=after, limit=query.limit)
    return TimerPage(
        timers=tuple(timer_view(each) for each in timers),
        limit=query.limit,
        next_after=next_after(query, [each.id for each in timers]),
    )


async def show(context: HttpContext, call: Call) -> TimerView:
    """Show one timer."""
    await shown_agent(context, call)
    return timer_view(await own_timer(context, call))


async def create(context: HttpContext, call: Call) -> TimerAnswer:
    """Arm a timer."""
    request, agent_id, key = call.body_as(TimerRequest), named_agent(call), idempotency_key(call)
    request.require_one_form()
    service = context.host.timers
    if request.expression is not None:
        timer = await service.create_cron(
            agent_id,
            expression=request.expression,
            zone=request.zone or "UTC",
            summary=request.summary,
            key=key,
        )
    else:
        timer = await service.create(
            agent_id,
            after_ms=request.duration_ms or 0,
            every_ms=request.interval_ms,
            summary=request.summary,
            key=key,
        )
    return TimerAnswer(ok=True, timer=timer_view(timer))


async def cancel(context: HttpContext, call: Call) -> TimerAnswer:
    """Cancel a timer; one that has ended stays as it is."""
    timer = await own_timer(context, call)
    await context.host.timers.cancel(timer.id)
    return TimerAnswer(ok=True, timer=timer_view(await own_timer(context, call)))


TIMER_ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    Route(
        method="GET",
        path="/agents/{agent_id}/timers",
        access=Access.READ,
        summary="The timers of an agent: active ones by due time, then ended ones.",
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
        summary="Show a timer.",
        answer=show,
        returns=TimerView,
        refusals=(404,),
        tags=("timers",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/timers",
        access=Access.CONTROL,
        summary="Set a timer for an agent. Idempotent under an Idempotency-Key.",
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
        summary="Cancel a timer; its unprocessed ticks become void.",
        answer=cancel,
        returns=TimerAnswer,
        refusals=(404, 409),
        tags=("timers",),
    ),
)


async def wake(context: HttpContext, call: Call) -> WakeAnswer:
    """Leave a hint that something changed."""
    request = call.body_as(WakeRequest)
    agent_id = parse_agent_id(call.params["agent_id"])
    now = context.clock.now()
    disposition = await context.host.wake.submit(
        WakeHint(
            agent_id=agent_id,
            source_key=f"control:{request.source or 'operator'}",
            reason=request.reason,
            created_at=now,
            updated_at=now,
            source=request.source,
            correlation_id=request.correlation_id,
            causation_id=request.causation_id,
        )
    )
    return WakeAnswer(ok=True, agent_id=agent_id, disposition=public_disposition(disposition))


WAKE_ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    Route(
        method="POST",
        path="/control/agents/{agent_id}/wake",
        access=Access.CONTROL,
        summary="Add a wake hint: signal a change to an agent without a message.",
        answer=wake,
        takes=WakeRequest,
        returns=WakeAnswer,
        refusals=(404, 409),
        tags=("agents",),
    ),
)
