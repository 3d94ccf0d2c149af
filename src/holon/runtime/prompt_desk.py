"""A look at the prompt an agent would be given now.

Owns:  which message the look is for, and the look itself. Nothing is sent and nothing is changed.
Rule 1: it is for the words it was given; else for the message of the running turn; else for the
        next one in the queue; else for none.
Rule 2: the address of the agent's trigger is shown to its model alone; here it is masked.
"""

import msgspec

from holon.decide.agent_refusals import refuse_unknown
from holon.decide.pick_next import pick_next
from holon.decide.trigger_address import without_addresses
from holon.model.agent import AgentState
from holon.model.ids import AgentId, MessageId, parse_agent_id
from holon.model.instructions import LoadedGuidance
from holon.model.message import MessageEnvelope, MessageKind, Priority, TextBody
from holon.model.model_ref import parse_model_ref
from holon.model.provenance import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    OperatorOrigin,
    TrustLevel,
)
from holon.model.refusal import RefusedError
from holon.model.transcript import IncomingMessage
from holon.model.workspace import AGENT_HOME, ActiveWorkspace
from holon.ports.clock import Clock
from holon.ports.instructions import Instructions
from holon.ports.redactor import Redactor
from holon.ports.store_reads import StoreReads
from holon.prompt.frame import assemble
from holon.prompt.prompt_view import PromptView, SectionView, prompt_view
from holon.runtime.context_builder import ContextBuilder, Moment, moment_of
from holon.runtime.conversation_room import read_past
from holon.runtime.execution_place import AgentPlaces
from holon.runtime.model_routing import ModelRouting
from holon.runtime.turn_renderings import TurnRenderings


class PromptDesk:
    """Looks at prompts of one host."""

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
        """Return the prompt as it would be now."""
        agent = await self._reads.agent(parse_agent_id(agent_id))
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
        """Return the guidance an agent's prompt would have now, and what cannot be used."""
        return await self._instructions.load(
            agent_home=self._agent_places.home_of(agent_id),
            workspace_anchor=None if place.workspace_id == AGENT_HOME else place.workspace_anchor,
        )

    async def _moment(self, agent: AgentState, text: str | None) -> Moment:
        reads, turn_id = self._reads, agent.focus.open_turn_id
        chosen = agent.model.override_model
        override = parse_model_ref(chosen) if chosen is not None else None
        log = await reads.turn_log(turn_id) if turn_id is not None else None
        past = await read_past(
            reads,
            agent.identity.agent_id,
            renderings=self._renderings,
            redact=self._redactor.redact,
        )
        if log is not None and text is None:
            return moment_of(agent, log, past.turns, override=override)
        return Moment(
            agent=agent,
            history=past.turns,
            incoming=await self._next(agent, text),
            override=override,
        )

    async def _next(self, agent: AgentState, text: str | None) -> IncomingMessage | None:
        agent_id, reads = agent.identity.agent_id, self._reads
        if text is not None:
            return IncomingMessage(message=self._said(agent_id, text))
        snapshot = await reads.snapshot(agent_id, now=self._clock.now())
        pick = (
            None
            if snapshot is None
            else pick_next(snapshot.heads, passed_over=snapshot.passed_over)
        )
        entry = await reads.message(pick.message_id) if pick is not None else None
        return None if entry is None else IncomingMessage(message=entry.message)

    def _said(self, agent_id: AgentId, text: str) -> MessageEnvelope:
        """The words as if the operator had just said them."""
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
