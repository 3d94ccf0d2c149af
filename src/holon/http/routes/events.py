"""Event routes: pages in both directions, and streams.

Owns:  the routes of the event log.
Rule 1: replay is history: nothing read here can be sent back as input.
Rule 2: a cursor that is older than the oldest event, or newer than the newest, is refused with its
        own code and never silently moved. So is a cursor of another epoch after a restore, if the
        reader names the epoch.
"""

from typing import Final

from holon.http.context import HttpContext, shown_agent
from holon.http.events.frames import surroundings_of
from holon.http.events.stream import EventStream, resumed_after
from holon.http.exchange import StreamReply
from holon.http.query import EventsQuery, StreamQuery
from holon.http.request_headers import RESUMABLE
from holon.http.route import Access, Call, Route
from holon.model.events.reads import EventOrder, EventQuery
from holon.projections.events.envelope import EventEnvelope, EventPage, event_page
from holon.runtime.events.feed import Page, require_epoch, require_kept, require_near

_STREAM_MEDIA: Final = "text/event-stream"


async def page(context: HttpContext, call: Call) -> EventPage:
    """Page through an agent's events."""
    agent_id, asked = await shown_agent(context, call), call.query_as(EventsQuery)
    upwards = EventOrder.DESC if asked.after_seq is None else EventOrder.ASC
    event_query = EventQuery(
        after_seq=asked.after_seq,
        before_seq=asked.before_seq,
        order=asked.order or upwards,
        limit=asked.limit,
    )
    reads = context.host.reads
    epoch = await reads.events.log_epoch()
    require_epoch(asked.event_log_epoch, epoch)
    events = await reads.events.events_page(agent_id, event_query)
    if asked.after_seq is not None:
        require_kept(agent_id, asked.after_seq, floor=events.floor_seq, newest=events.last_seq)
    if asked.before_seq is not None:
        require_kept(agent_id, asked.before_seq, floor=0, newest=events.last_seq + 1)
    return event_page(
        events,
        event_query,
        projection=asked.projection,
        related=await surroundings_of(reads, events.events),
        max_level=asked.max_level,
        epoch=epoch,
    )


async def stream(context: HttpContext, call: Call) -> StreamReply:
    """Follow one agent."""
    agent_id, query = await shown_agent(context, call), call.query_as(StreamQuery)
    floor, newest = await context.host.reads.events.event_bounds(agent_id)
    after = await _resumed(context, call, query)
    if after is not None:
        require_kept(agent_id, after, floor=floor, newest=newest)
        require_near(after, newest)

    async def framed(page: Page) -> bytes:
        return await context.frames.of_agent(
            context.host.reads, page, query.projection, query.max_level
        )

    opened = context.host.events.reader(agent_id, after=newest if after is None else after)
    made = EventStream(opened=opened, framed=framed, call=call, watch=context.token_watch)
    return StreamReply(chunks=made.chunks())


async def stream_all(context: HttpContext, call: Call) -> StreamReply:
    """Follow every public agent."""
    query = call.query_as(StreamQuery)
    newest = await context.host.reads.events.last_log_seq()
    after = await _resumed(context, call, query)
    if after is not None:
        await context.host.events.require_log_kept(after)

    async def framed(page: Page) -> bytes:
        return await context.frames.of_all(
            context.host.reads, page, query.projection, query.max_level
        )

    opened = context.host.events.log_reader(after=newest if after is None else after)
    made = EventStream(opened=opened, framed=framed, call=call, watch=context.token_watch)
    return StreamReply(chunks=made.chunks())


async def _resumed(context: HttpContext, call: Call, query: StreamQuery) -> int | None:
    """Return where the reader resumes; raises for a cursor of another epoch."""
    cursor = resumed_after(call, query)
    require_epoch(cursor.epoch, await context.host.reads.events.log_epoch())
    return cursor.after


ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    Route(
        method="GET",
        path="/agents/{agent_id}/events",
        access=Access.READ,
        summary="A page of an agent's events, in either direction.",
        answer=page,
        query=EventsQuery,
        returns=EventPage,
        refusals=(404, 409),
        tags=("events",),
    ),
    Route(
        method="GET",
        path="/agents/{agent_id}/events/stream",
        access=Access.READ,
        summary="The event stream of an agent. Resume with Last-Event-ID.",
        answer=stream,
        headers=RESUMABLE,
        query=StreamQuery,
        returns=EventEnvelope,
        media=_STREAM_MEDIA,
        refusals=(404, 409),
        tags=("events",),
    ),
    Route(
        method="GET",
        path="/events/stream",
        access=Access.READ,
        summary="The event stream of all public agents; ids are numbers of the whole log.",
        answer=stream_all,
        headers=RESUMABLE,
        query=StreamQuery,
        returns=EventEnvelope,
        media=_STREAM_MEDIA,
        refusals=(404, 409),
        tags=("events",),
    ),
)
