"""Agent inspection: summaries of agents, and previews of their prompts.

Owns:  the reads behind an agent's summary, and the choice of the message a prompt preview is for.
Rule 1: inspection is read-only: nothing is sent and nothing is changed.
Rule 2: a preview is for the given text, else for the message of the running turn, else for the next
        queued message, else for none.
Rule 3: only the agent's own model sees the address of its trigger; a preview masks it.
Rule 4: `/status`, `/state` and AgentGet show the same summary; there is no second one.
"""

from typing import NamedTuple

import msgspec

from holon.decide.agents.lifecycle import refuse_unknown
from holon.decide.queue.next_message import pick_next
from holon.decide.turns.closure import current_closure
from holon.decide.wake.triggers import without_addresses
from holon.model.agents import AgentState, ModelChoice
from holon.model.errors import RefusedError
from holon.model.events.reads import AgentSurface, ListedAgent
from holon.model.guidance import LoadedGuidance
from holon.model.limits import TOOL_LATENCIES_SHOWN_COUNT_MAX
from holon.model.providers.models import parse_model_ref
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    MessageEnvelope,
    MessageKind,
    OperatorOrigin,
    Priority,
    TextBody,
    TrustLevel,
)
from holon.model.turns.transcript import IncomingMessage
from holon.model.turns.turn import Closure
from holon.model.values import AgentId, MessageId, parse_agent_id
from holon.model.workspaces import AGENT_HOME, ActiveWorkspace
from holon.ports.clock import Clock
from holon.ports.guidance import Instructions
from holon.ports.journal import Redactor
from holon.ports.reads import StoreReads
from holon.projections.agents.list import RuntimeModels
from holon.projections.agents.summary import AgentSummary, SummaryContext, agent_summary
from holon.prompt.frame import assemble
from holon.prompt.prompt_view import PromptView, SectionView, prompt_view
from holon.runtime.budgets import TurnGovernor
from holon.runtime.guidance.skills import SkillService
from holon.runtime.providers.routing import ModelRouting
from holon.runtime.turns.context import ContextBuilder, PromptInput, prompt_input_of
from holon.runtime.turns.conversation import TurnRenderings, read_past
from holon.runtime.workspaces.place import AgentPlaces
from holon.runtime.workspaces.service import WorkspaceService


class PromptService:
    """Previews prompts of one host's agents."""

    def __init__(
        self,
        *,
        reads: StoreReads,
        clock: Clock,
        routing: ModelRouting,
        agent_places: AgentPlaces,
        instructions: Instructions,
        context: ContextBuilder,
        renderings: TurnRenderings,
        redactor: Redactor,
    ) -> None:
        self._reads = reads
        self._clock = clock
        self._routing = routing
        self._context = context
        self._renderings = renderings
        self._redactor = redactor
        self._agent_places = agent_places
        self._instructions = instructions

    async def look(self, agent_id: AgentId, *, text: str | None = None) -> PromptView:
        """Return the prompt the agent would be given now."""
        agent = await self._reads.agents.agent(parse_agent_id(agent_id))
        if agent is None:
            raise RefusedError(refuse_unknown(agent_id))
        moment = await self._moment(agent, text)
        facts, budget = await self._context.facts(moment), self._context.budget(moment.override)
        model = moment.override or self._routing.preference.default
        view = prompt_view(
            facts,
            assemble(facts, budget),
            model=str(model),
            budget=budget,
            history=moment.history,
        )
        return msgspec.structs.replace(view, sections=tuple(map(_masked, view.sections)))

    async def guidance(self, agent_id: AgentId, place: ActiveWorkspace) -> LoadedGuidance:
        """Return the guidance an agent's prompt would have now, with unusable files reported."""
        return await self._instructions.load(
            agent_home=self._agent_places.home_of(agent_id),
            workspace_anchor=None if place.workspace_id == AGENT_HOME else place.workspace_anchor,
        )

    async def _moment(self, agent: AgentState, text: str | None) -> PromptInput:
        reads, turn_id = self._reads, agent.focus.open_turn_id
        chosen = agent.model.override_model
        override = parse_model_ref(chosen) if chosen is not None else None
        log = await reads.turns.turn_log(turn_id) if turn_id is not None else None
        past = await read_past(
            reads,
            agent.identity.agent_id,
            renderings=self._renderings,
            redact=self._redactor.redact,
        )
        if log is not None and text is None:
            return prompt_input_of(agent, log, past.turns, override=override)
        return PromptInput(
            agent=agent,
            history=past.turns,
            incoming=await self._next(agent, text),
            override=override,
        )

    async def _next(self, agent: AgentState, text: str | None) -> IncomingMessage | None:
        agent_id, reads = agent.identity.agent_id, self._reads
        if text is not None:
            return IncomingMessage(message=self._preview_message(agent_id, text))
        snapshot = await reads.agents.snapshot(agent_id, now=self._clock.now())
        pick = (
            None
            if snapshot is None
            else pick_next(snapshot.heads, passed_over=snapshot.passed_over)
        )
        entry = await reads.queue.message(pick.message_id) if pick is not None else None
        return None if entry is None else IncomingMessage(message=entry.message)

    def _preview_message(self, agent_id: AgentId, text: str) -> MessageEnvelope:
        """The text as a message the operator had just sent."""
        return MessageEnvelope(
            id=MessageId("msg_preview"),
            agent_id=agent_id,
            created_at=self._clock.now(),
            kind=MessageKind.OPERATOR_PROMPT,
            origin=OperatorOrigin(),
            trust=TrustLevel.TRUSTED_OPERATOR,
            authority_class=AuthorityClass.OPERATOR_INSTRUCTION,
            priority=Priority.NORMAL,
            body=TextBody(text=text),
            delivery_surface=DeliverySurface.HTTP_CONTROL_PROMPT,
            admission_context=AdmissionContext.CONTROL_AUTHENTICATED,
        )


def _masked(section: SectionView) -> SectionView:
    text = None if section.text is None else without_addresses(section.text)
    return msgspec.structs.replace(section, text=text)


class InspectedAgent(NamedTuple):
    """An agent's rows, and the context its summary needs."""

    surface: AgentSurface
    context: SummaryContext


class AgentInspection:
    """Summarises the agents of one host."""

    def __init__(
        self,
        *,
        reads: StoreReads,
        clock: Clock,
        routing: ModelRouting,
        governor: TurnGovernor,
        prompts: PromptService,
        skills: SkillService,
        workspaces: WorkspaceService,
        trigger_base_url: str | None,
    ) -> None:
        self._reads = reads
        self._clock = clock
        self._routing = routing
        self._trigger_base_url = trigger_base_url
        self._governor = governor
        self._prompts = prompts
        self._skills = skills
        self._workspaces = workspaces

    async def summary(self, agent_id: AgentId) -> AgentSummary | None:
        """Return an agent's summary; None for an unknown agent."""
        inspected = await self.look(agent_id)
        if inspected is None:
            return None
        return agent_summary(inspected.surface, inspected.context)

    async def look(self, agent_id: AgentId) -> InspectedAgent | None:
        """Read the inputs of a summary; None for an unknown agent."""
        reads = self._reads
        surface = await reads.agents.agent_surface(agent_id)
        if surface is None:
            return None
        agent, place = surface.listed.agent, self.place_of(surface.listed)
        trigger = await reads.wake.trigger_of(agent_id)
        latencies = await reads.turns.tool_latencies(agent_id, limit=TOOL_LATENCIES_SHOWN_COUNT_MAX)
        context = SummaryContext(
            closure=await self.closure_of(surface.listed),
            models=self.models,
            workspace=place,
            profile=self._workspaces.profile,
            triggers=() if trigger is None else (trigger,),
            trigger_base_url=self._trigger_base_url,
            withheld_tools=self._withheld(agent),
            latencies=tuple(latencies),
            pace=await self._governor.rate_limits_of(agent),
            guidance=await self._prompts.guidance(agent_id, place),
            skills=await self._skills.summed(agent, place),
        )
        return InspectedAgent(surface, context)

    async def closure_of(self, listed: ListedAgent) -> Closure | None:
        """The closure derived from an agent's current rows."""
        agent_id, now = listed.agent.identity.agent_id, self._clock.now()
        snapshot = await self._reads.agents.snapshot(agent_id, now=now)
        return None if snapshot is None else current_closure(snapshot)

    def place_of(self, listed: ListedAgent) -> ActiveWorkspace:
        """The workspace an agent works in."""
        return self._workspaces.place_of(listed.agent.identity.agent_id, listed.workspace)

    @property
    def models(self) -> RuntimeModels:
        """The models of agents without an override."""
        first, *others = self._routing.configured(ModelChoice())
        return RuntimeModels(default=str(first), fallbacks=tuple(map(str, others)))

    def _withheld(self, agent: AgentState) -> tuple[str, ...]:
        """The tools withheld from the agent's model."""
        chosen, default = agent.model.override_model, self._routing.preference.default
        ref = default if chosen is None else parse_model_ref(chosen)
        return self._routing.withheld_from(ref)
