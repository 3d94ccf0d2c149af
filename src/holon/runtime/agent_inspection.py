"""Looking at an agent: the one summary that operators and the agent itself are shown.

Owns:  what is read for a summary, and where it is put together.
Rule 1: `/status`, `/state` and AgentGet show the same summary; there is no second one.
Rule 2: nothing is changed by a look.
"""

from typing import NamedTuple

from holon.decide.closure import current_closure
from holon.model.agent import AgentState, ModelChoice
from holon.model.closure import Closure
from holon.model.ids import AgentId
from holon.model.limits import TOOL_LATENCIES_SHOWN_COUNT_MAX
from holon.model.model_ref import parse_model_ref
from holon.model.surface import AgentSurface, ListedAgent
from holon.model.workspace import ActiveWorkspace
from holon.ports.clock import Clock
from holon.ports.store_reads import StoreReads
from holon.projections.agent_list import RuntimeModels
from holon.projections.agent_summary import AgentSummary, Surroundings, agent_summary
from holon.runtime.model_routing import ModelRouting
from holon.runtime.pace_desk import PaceDesk
from holon.runtime.prompt_desk import PromptDesk
from holon.runtime.skill_desk import SkillDesk
from holon.runtime.workspace_desk import WorkspaceDesk


class Inspected(NamedTuple):
    """An agent's rows, and what is shown beside them."""

    surface: AgentSurface
    around: Surroundings


class AgentInspection:
    """Looks at the agents of one host."""

    def __init__(
        self,
        *,
        reads: StoreReads,
        clock: Clock,
        routing: ModelRouting,
        pace: PaceDesk,
        prompts: PromptDesk,
        skills: SkillDesk,
        workspaces: WorkspaceDesk,
        trigger_base_url: str | None,
    ) -> None:
        self._reads = reads
        self._clock = clock
        self._routing = routing
        self._trigger_base_url = trigger_base_url
        self._pace = pace
        self._prompts = prompts
        self._skills = skills
        self._workspaces = workspaces

    async def summary(self, agent_id: AgentId) -> AgentSummary | None:
        """Sum an agent up; nothing when there is none of that name."""
        found = await self.look(agent_id)
        return None if found is None else agent_summary(found.surface, found.around)

    async def look(self, agent_id: AgentId) -> Inspected | None:
        """Read everything a summary is made of."""
        reads = self._reads
        surface = await reads.agent_surface(agent_id)
        if surface is None:
            return None
        agent, place = surface.listed.agent, self.place_of(surface.listed)
        trigger = await reads.trigger_of(agent_id)
        latencies = await reads.tool_latencies(agent_id, limit=TOOL_LATENCIES_SHOWN_COUNT_MAX)
        around = Surroundings(
            closure=await self.closure_of(surface.listed),
            models=self.models,
            workspace=place,
            profile=self._workspaces.profile,
            triggers=() if trigger is None else (trigger,),
            trigger_base_url=self._trigger_base_url,
            withheld_tools=self._withheld(agent),
            latencies=tuple(latencies),
            pace=await self._pace.pace_of(agent),
            guidance=await self._prompts.guidance(agent_id, place),
            skills=await self._skills.summed(agent, place),
        )
        return Inspected(surface, around)

    async def closure_of(self, listed: ListedAgent) -> Closure | None:
        """What has come of an agent's work, as its rows stand."""
        agent_id, now = listed.agent.identity.agent_id, self._clock.now()
        snapshot = await self._reads.snapshot(agent_id, now=now)
        return None if snapshot is None else current_closure(snapshot)

    def place_of(self, listed: ListedAgent) -> ActiveWorkspace:
        """Where an agent works."""
        return self._workspaces.place_of(listed.agent.identity.agent_id, listed.workspace)

    @property
    def models(self) -> RuntimeModels:
        """The models agents without a choice of their own are given."""
        first, *others = self._routing.configured(ModelChoice())
        return RuntimeModels(default=str(first), fallbacks=tuple(map(str, others)))

    def _withheld(self, agent: AgentState) -> tuple[str, ...]:
        """The tools the agent's model is not given."""
        chosen, default = agent.model.override_model, self._routing.preference.default
        ref = default if chosen is None else parse_model_ref(chosen)
        return self._routing.withheld_from(ref)
