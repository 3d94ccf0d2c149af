"""Agents as readers see them: the list, the summary and the bootstrap.

Owns:  the inspection routes of agents, and which models there are.
Rule 1: the list is narrow, the status is the summary, the state is what a projection starts from;
        they are not interchangeable.
Rule 2: what the state says of the agent is the very status.
Rule 3: the list costs one look for all its agents, and one more for each that could be waiting.
"""

from typing import Final

from anyio.lowlevel import checkpoint

from holon.decide.agent_refusals import refuse_unknown
from holon.decide.closure import current_closure
from holon.http.own_records import is_shown
from holon.http.page_queries import AfterQuery
from holon.http.plane import Plane
from holon.http.route import Access, Call, Route
from holon.model.agent import AgentState
from holon.model.closure import Closure
from holon.model.ids import parse_agent_id
from holon.model.limits import TOOL_LATENCIES_SHOWN_COUNT_MAX
from holon.model.model_ref import parse_model_ref
from holon.model.refusal import RefusedError
from holon.model.surface import AgentSurface, ListedAgent
from holon.model.workspace import ActiveWorkspace
from holon.projections.agent_list import AgentListEntry, RuntimeModels, agent_list_entry, could_wait
from holon.projections.agent_state_view import AgentStateSnapshot, agent_state_snapshot
from holon.projections.agent_summary import AgentSummary, Surroundings, agent_summary
from holon.wire.control_responses import ModelListing


async def list_agents(plane: Plane, call: Call) -> tuple[AgentListEntry, ...]:
    """List the public agents that are in use."""
    asked = call.asked(AfterQuery)
    after = None if asked.after is None else parse_agent_id(asked.after)
    found = await plane.host.reads.public_agents(after=after, limit=asked.limit)
    models = _models(plane)
    entries: list[AgentListEntry] = []
    for each in found:
        closure, place = None, _place(plane, each)
        if could_wait(each):
            closure = await _closure(plane, each)
            await checkpoint()  # there may be many, and reads keep the loop
        entry = agent_list_entry(each, models, closure=closure, workspace=place)
        entries.append(entry)
    return tuple(entries)


async def status(plane: Plane, call: Call) -> AgentSummary:
    """Sum an agent up."""
    surface, around = await _looked_at(plane, call)
    return agent_summary(surface, around)


async def state(plane: Plane, call: Call) -> AgentStateSnapshot:
    """Give everything a projection of an agent starts from."""
    surface, around = await _looked_at(plane, call)
    return agent_state_snapshot(surface, around)


async def models(plane: Plane, call: Call) -> ModelListing:
    """Name the models agents are given."""
    del call
    preference = plane.host.preference
    return ModelListing(
        default_model=str(preference.default),
        fallback_models=tuple(str(each) for each in preference.fallbacks),
    )


async def _looked_at(plane: Plane, call: Call) -> tuple[AgentSurface, Surroundings]:
    agent_id = call.agent_id(plane.facts.default_agent)
    surface = await plane.host.reads.agent_surface(agent_id)
    if surface is None or not is_shown(surface.listed.agent.identity):
        raise RefusedError(refuse_unknown(agent_id))
    trigger = await plane.host.reads.trigger_of(agent_id)
    agent, place = surface.listed.agent, _place(plane, surface.listed)
    latencies = await plane.host.reads.tool_latencies(
        agent_id, limit=TOOL_LATENCIES_SHOWN_COUNT_MAX
    )
    around = Surroundings(
        closure=await _closure(plane, surface.listed),
        models=_models(plane),
        workspace=place,
        profile=plane.host.workspaces.profile,
        triggers=() if trigger is None else (trigger,),
        trigger_base_url=plane.facts.base_url,
        withheld_tools=_withheld(plane, agent),
        latencies=tuple(latencies),
        pace=await plane.host.pace.pace_of(agent),
        guidance=await plane.host.prompts.guidance(agent_id, place),
        skills=await plane.host.skills.summed(agent, place),
    )
    return surface, around


def _withheld(plane: Plane, agent: AgentState) -> tuple[str, ...]:
    """The tools the agent's model is not given."""
    chosen = agent.model.override_model
    ref = plane.host.preference.default if chosen is None else parse_model_ref(chosen)
    return plane.host.withheld_tools(ref)


async def _closure(plane: Plane, listed: ListedAgent) -> Closure | None:
    agent_id = listed.agent.identity.agent_id
    snapshot = await plane.host.reads.snapshot(agent_id, now=plane.clock.now())
    return None if snapshot is None else current_closure(snapshot)


def _models(plane: Plane) -> RuntimeModels:
    preference = plane.host.preference
    fallbacks = tuple(str(each) for each in preference.fallbacks)
    return RuntimeModels(default=str(preference.default), fallbacks=fallbacks)


def _place(plane: Plane, listed: ListedAgent) -> ActiveWorkspace:
    return plane.host.workspaces.place_of(listed.agent.identity.agent_id, listed.workspace)


ROUTES: Final[tuple[Route[Plane], ...]] = (
    Route(
        method="GET",
        path="/agents/list",
        access=Access.READ,
        summary="List the public agents by id, to choose one.",
        answer=list_agents,
        query=AfterQuery,
        returns=tuple[AgentListEntry, ...],
        tags=("agents",),
    ),
    Route(
        method="GET",
        path="/agents/{agent_id}/status",
        access=Access.READ,
        summary="Sum an agent up.",
        answer=status,
        returns=AgentSummary,
        refusals=(404,),
        tags=("agents",),
    ),
    Route(
        method="GET",
        path="/agents/{agent_id}/state",
        access=Access.READ,
        summary="Everything a projection of an agent starts from, and the event to go on after.",
        answer=state,
        returns=AgentStateSnapshot,
        refusals=(404,),
        tags=("agents",),
    ),
    Route(
        method="GET",
        path="/models",
        access=Access.READ,
        summary="The runtime's model, and the ones it falls back to.",
        answer=models,
        returns=ModelListing,
        tags=("runtime",),
    ),
)
