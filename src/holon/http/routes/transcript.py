"""What happened to an agent, for reading: briefs, turns and messages.

Owns:  the pages of briefs and turns, and single briefs and messages.
Rule 1: pages run from the newest backwards, so that new records never shift a page being read.
"""

from typing import Final

from holon.http.own_records import own_brief, own_message, shown_agent
from holon.http.page_queries import BeforeQuery, TurnsQuery
from holon.http.plane import Plane
from holon.http.route import Access, Call, Route
from holon.model.brief import BriefRecord
from holon.model.ids import BriefId, parse_record_id
from holon.model.message import QueueEntry
from holon.projections.transcript_view import TranscriptPage, transcript_page
from holon.wire.surface_responses import BriefPage


async def briefs(plane: Plane, call: Call) -> BriefPage:
    """Page through an agent's briefs."""
    agent_id, asked = await shown_agent(plane, call), call.asked(BeforeQuery)
    before = None if asked.before is None else parse_record_id(asked.before, what="brief id")
    found = await plane.host.reads.briefs_page(
        agent_id, before=None if before is None else BriefId(before), limit=asked.limit
    )
    return BriefPage(
        briefs=tuple(found),
        limit=asked.limit,
        next_before=found[-1].id if len(found) >= asked.limit else None,
    )


async def brief(plane: Plane, call: Call) -> BriefRecord:
    """Read one brief."""
    await shown_agent(plane, call)
    return await own_brief(plane, call)


async def transcript(plane: Plane, call: Call) -> TranscriptPage:
    """Page through an agent's turns."""
    agent_id, asked = await shown_agent(plane, call), call.asked(TurnsQuery)
    logs = await plane.host.reads.turns_page(agent_id, before_index=asked.before, limit=asked.limit)
    return transcript_page([plane.host.shown(log) for log in logs], limit=asked.limit)


async def message(plane: Plane, call: Call) -> QueueEntry:
    """Read one message, and where it stands in the queue."""
    await shown_agent(plane, call)
    return await own_message(plane, call)


ROUTES: Final[tuple[Route[Plane], ...]] = (
    Route(
        method="GET",
        path="/agents/{agent_id}/briefs",
        access=Access.READ,
        summary="What an agent told its operator, newest first.",
        answer=briefs,
        query=BeforeQuery,
        returns=BriefPage,
        refusals=(404,),
        tags=("history",),
    ),
    Route(
        method="GET",
        path="/agents/{agent_id}/briefs/{brief_id}",
        access=Access.READ,
        summary="One brief.",
        answer=brief,
        returns=BriefRecord,
        refusals=(404,),
        tags=("history",),
    ),
    Route(
        method="GET",
        path="/agents/{agent_id}/transcript",
        access=Access.READ,
        summary="An agent's turns with everything recorded in them, newest first.",
        answer=transcript,
        query=TurnsQuery,
        returns=TranscriptPage,
        refusals=(404,),
        tags=("history",),
    ),
    Route(
        method="GET",
        path="/agents/{agent_id}/messages/{message_id}",
        access=Access.READ,
        summary="One message, and where it stands in the queue.",
        answer=message,
        returns=QueueEntry,
        refusals=(404,),
        tags=("history",),
    ),
)
