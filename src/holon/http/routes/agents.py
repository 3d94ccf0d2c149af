"""Read routes of agents: list, summary and state, and the available models.

Owns:  the inspection routes, and their aliases under a shorter path for the default agent.
Rule 1: list (narrow), status (summary) and state (start of a projection) are distinct views and not
        interchangeable.
Rule 2: the agent in the state is exactly the status.
Rule 3: the list costs one query for all agents, and one more per agent that may be waiting.
"""

from dataclasses import replace
from typing import Final

from anyio.lowlevel import checkpoint

from holon.decide.agents.lifecycle import refuse_unknown
from holon.http.context import HttpContext, is_shown
from holon.http.query import AfterQuery
from holon.http.route import Access, Call, Route
from holon.http.routes import turns
from holon.model.errors import RefusedError
from holon.model.values import parse_agent_id
from holon.projections.agents.list import AgentListEntry, agent_list_entry, could_wait
from holon.projections.agents.state import AgentStateSnapshot, agent_state_snapshot
from holon.projections.agents.summary import AgentSummary, agent_summary
from holon.runtime.agents.inspection import InspectedAgent
from holon.wire.responses import ModelListing

_PREFIX: Final = "/agents/{agent_id}"
_ALIASED: Final = frozenset(
    f"{_PREFIX}/{name}" for name in ("status", "state", "briefs", "transcript")
)


async def list_agents(context: HttpContext, call: Call) -> tuple[AgentListEntry, ...]:
    """List the public agents that are in use."""
    query = call.query_as(AfterQuery)
    after = None if query.after is None else parse_agent_id(query.after)
    agents = await context.host.reads.agents.public_agents(after=after, limit=query.limit)
    inspection = context.host.inspection
    entries: list[AgentListEntry] = []
    for each in agents:
        closure, place = None, inspection.place_of(each)
        if could_wait(each):
            closure = await inspection.closure_of(each)
            await checkpoint()  # there may be many, and reads keep the loop
        entry = agent_list_entry(each, inspection.models, closure=closure, workspace=place)
        entries.append(entry)
    return tuple(entries)


async def status(context: HttpContext, call: Call) -> AgentSummary:
    """The summary of an agent."""
    surface, around = await _looked_at(context, call)
    return agent_summary(surface, around)


async def state(context: HttpContext, call: Call) -> AgentStateSnapshot:
    """Give everything a projection of an agent starts from."""
    surface, around = await _looked_at(context, call)
    return agent_state_snapshot(surface, around)


async def models(context: HttpContext, call: Call) -> ModelListing:
    """Name the models agents are given."""
    del call
    known = context.host.inspection.models
    return ModelListing(default_model=known.default, fallback_models=known.fallbacks)


async def _looked_at(context: HttpContext, call: Call) -> InspectedAgent:
    agent_id = call.agent_id(context.facts.default_agent)
    inspected = await context.host.inspection.look(agent_id)
    if inspected is None or not is_shown(inspected.surface.listed.agent.identity):
        raise RefusedError(refuse_unknown(agent_id))
    return inspected


AGENT_ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    Route(
        method="GET",
        path="/agents/list",
        access=Access.READ,
        summary="List the public agents by id.",
        answer=list_agents,
        query=AfterQuery,
        returns=tuple[AgentListEntry, ...],
        tags=("agents",),
    ),
    Route(
        method="GET",
        path="/agents/{agent_id}/status",
        access=Access.READ,
        summary="The summary of an agent.",
        answer=status,
        returns=AgentSummary,
        refusals=(404,),
        tags=("agents",),
    ),
    Route(
        method="GET",
        path="/agents/{agent_id}/state",
        access=Access.READ,
        summary="The state a projection of an agent starts from, and the event to resume after.",
        answer=state,
        returns=AgentStateSnapshot,
        refusals=(404,),
        tags=("agents",),
    ),
    Route(
        method="GET",
        path="/models",
        access=Access.READ,
        summary="The runtime's default model and its fallbacks.",
        answer=models,
        returns=ModelListing,
        tags=("runtime",),
    ),
)


DEFAULT_AGENT_ROUTES: Final[tuple[Route[HttpContext], ...]] = tuple(
    replace(
        route,
        path=route.path.removeprefix(_PREFIX),
        summary=f"Of the default agent: {route.summary[0].lower()}{route.summary[1:]}",
    )
    for route in (*AGENT_ROUTES, *turns.TRANSCRIPT_ROUTES)
    if route.path in _ALIASED
)
