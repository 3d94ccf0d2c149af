"""Read routes of turns, briefs and messages, and the prompt preview.

Owns:  the pages of briefs and turns, single briefs and messages; the preview, which sends nothing
       and changes nothing.
Rule 1: pages run from the newest backwards, so that new records do not shift a page being read.
"""

from typing import Final

from holon.http.context import HttpContext, own_brief, own_message, shown_agent
from holon.http.query import BeforeQuery, TurnsQuery
from holon.http.route import Access, Call, Route
from holon.model.events.briefs import BriefRecord
from holon.model.queue import QueueEntry
from holon.model.values import BriefId, parse_agent_id, parse_record_id
from holon.projections.turns.transcript import TranscriptPage, transcript_page
from holon.prompt.prompt_view import PromptView
from holon.wire.requests import DebugPromptRequest
from holon.wire.responses import BriefPage


async def briefs(context: HttpContext, call: Call) -> BriefPage:
    """Page through an agent's briefs."""
    agent_id, query = await shown_agent(context, call), call.query_as(BeforeQuery)
    before = None if query.before is None else parse_record_id(query.before, what="brief id")
    page = await context.host.reads.events.briefs_page(
        agent_id, before=None if before is None else BriefId(before), limit=query.limit
    )
    return BriefPage(
        briefs=tuple(page),
        limit=query.limit,
        next_before=page[-1].id if len(page) >= query.limit else None,
    )


async def brief(context: HttpContext, call: Call) -> BriefRecord:
    """Read one brief."""
    await shown_agent(context, call)
    return await own_brief(context, call)


async def transcript(context: HttpContext, call: Call) -> TranscriptPage:
    """Page through an agent's turns."""
    agent_id, query = await shown_agent(context, call), call.query_as(TurnsQuery)
    logs = await context.host.reads.turns.turns_page(
        agent_id, before_index=query.before, limit=query.limit
    )
    return transcript_page([context.host.shown(log) for log in logs], limit=query.limit)


async def message(context: HttpContext, call: Call) -> QueueEntry:
    """Read one message, and where it stands in the queue."""
    await shown_agent(context, call)
    return await own_message(context, call)


TRANSCRIPT_ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    Route(
        method="GET",
        path="/agents/{agent_id}/briefs",
        access=Access.READ,
        summary="Briefs of an agent to its operator, newest first.",
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
        summary="Show a brief.",
        answer=brief,
        returns=BriefRecord,
        refusals=(404,),
        tags=("history",),
    ),
    Route(
        method="GET",
        path="/agents/{agent_id}/transcript",
        access=Access.READ,
        summary="The transcript of an agent: turns with all recorded entries, newest first.",
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
        summary="Show a message and its queue state.",
        answer=message,
        returns=QueueEntry,
        refusals=(404,),
        tags=("history",),
    ),
)


async def debug_prompt(context: HttpContext, call: Call) -> PromptView:
    """Show the frame an agent's next request would have."""
    request = call.body_as(DebugPromptRequest)
    return await context.host.prompts.look(
        parse_agent_id(call.params["agent_id"]), text=request.text
    )


PROMPT_ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    Route(
        method="POST",
        path="/control/agents/{agent_id}/debug-prompt",
        access=Access.CONTROL,
        summary="Show the prompt an agent would get now, section by section.",
        answer=debug_prompt,
        takes=DebugPromptRequest,
        body_optional=True,
        returns=PromptView,
        refusals=(404,),
        tags=("agents",),
    ),
)
