"""Prompt context: gather the facts a turn's prompt is built from.

Owns:  the reads behind a prompt, once per turn, and the token budget of its model.
Rule 1: reads are bounded and few: an agent's accumulated history does not slow its prompt down.
Rule 2: problems with one part (guidance, skills, memory) are handled by its port, which returns
        what is available. A prompt is never refused because one part is missing.
Rule 3: whether and how a fact is shown is decided in prompt/, not here.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from holon.decide.memory.episodes import relevant_episodes
from holon.decide.queue.admission import trigger_kind_of
from holon.decide.turns.failures import over_budget
from holon.model.agents import AgentKind, AgentState, TemplateEntry
from holon.model.errors import RefusedError
from holon.model.events.briefs import BriefRecord, FailureArtifact
from holon.model.events.reads import WeighedItem
from holon.model.limits import (
    PROMPT_BRIEFS_COUNT_MAX,
    PROMPT_COMPLETED_COUNT_MAX,
    PROMPT_EPISODES_COUNT_MAX,
    PROMPT_ITEMS_READ_COUNT_MAX,
    PROMPT_RESULTS_COUNT_MAX,
)
from holon.model.memory.records import (
    EPISODE_CANDIDATES_COUNT,
    EpisodeRecord,
    PromptedMemory,
    WorkingMemory,
)
from holon.model.providers.attempts import ProviderError
from holon.model.providers.models import ModelRef
from holon.model.record import Record
from holon.model.tasks import TaskRecord
from holon.model.turns.transcript import IncomingMessage, TurnLog
from holon.model.turns.turn import ENDED_WELL, outcome_of, waiting_reason_of
from holon.model.values import AgentId
from holon.model.wake import ExternalTrigger
from holon.model.work import PlanArtifact
from holon.model.workspaces import AGENT_HOME, ActiveWorkspace, ExecutionPolicy, ExecutionSnapshot
from holon.ports.agents import TemplateCatalog
from holon.ports.clock import Clock
from holon.ports.guidance import Instructions, SkillCatalogs
from holon.ports.reads import StoreReads
from holon.ports.tasks import Shell
from holon.ports.workspaces import Files
from holon.prompt.facts import PromptFacts, WakeFacts, WorkFacts
from holon.prompt.frame import Assembly, assemble
from holon.prompt.planner import PinnedOverBudget, PromptBudget, budget_of
from holon.prompt.work import trace_of
from holon.runtime.providers.routing import ModelRouting
from holon.runtime.turns.conversation import TokenCalibrations
from holon.runtime.workspaces.place import AgentPlaces, profile_of
from holon.tools.registry import ToolRegistry
from holon.tools.work.items import look_at_plan

if TYPE_CHECKING:
    from holon.runtime.wake.triggers import TriggerService

_AGENT_MAKERS: Final = frozenset({"SpawnAgent", "CreateAgent"})


class PromptInput(Record, frozen=True, kw_only=True):
    """What a prompt is for: the agent, the incoming message, and the turns shown before it."""

    agent: AgentState
    history: tuple[TurnLog, ...] = ()
    incoming: IncomingMessage | None = None
    resume_count: int = 0
    override: ModelRef | None = None


class ContextBuilder:
    """Gathers prompt facts for one host.

    `triggers` returns the service of external triggers, which a one-shot run never loads; it
    is None where no delivery is possible.
    """

    def __init__(
        self,
        *,
        reads: StoreReads,
        clock: Clock,
        routing: ModelRouting,
        tools: ToolRegistry,
        agent_places: AgentPlaces,
        shell: Shell,
        files: Files,
        instructions: Instructions,
        skills: SkillCatalogs,
        templates: TemplateCatalog,
        calibrations: TokenCalibrations,
        triggers: "Callable[[], TriggerService] | None",
    ) -> None:
        self._reads = reads
        self._clock = clock
        self._routing = routing
        self._tools = tools
        self._agent_places = agent_places
        self._shell = shell
        self._files = files
        self._instructions = instructions
        self._skills = skills
        self._templates = templates
        self._calibrations = calibrations
        self._triggers = triggers

    async def assembled(self, moment: PromptInput) -> Assembly:
        """Return the prompt of a turn, or the reason why it cannot be built.

        An agent created before every agent had a trigger is given one here.
        """
        if self._triggers is not None:
            with suppress(RefusedError):  # archived concurrently: its turn is fenced anyway
                await self._triggers().ensure(moment.agent.identity.agent_id)
        facts = await self.facts(moment)
        return assemble(facts, self.budget(moment.override))

    async def trigger_url(self, agent_id: AgentId) -> str | None:
        """Return the address of an agent's trigger: a secret that only its model may see."""
        return self._url_of(await self._reads.wake.trigger_of(agent_id))

    def _url_of(self, trigger: ExternalTrigger | None) -> str | None:
        if trigger is None or self._triggers is None:
            return None
        return self._triggers().address_of(trigger)

    async def facts(self, moment: PromptInput) -> PromptFacts:
        """Gather the facts of a prompt."""
        agent = moment.agent
        agent_id = agent.identity.agent_id
        place = await self._agent_places.current(agent_id)
        home = self._agent_places.home_of(agent_id)
        anchor = None if place.workspace_id == AGENT_HOME else place.workspace_anchor
        briefs = await self._briefs(moment)
        memory = await self._reads.memory.prompted_memory(agent_id)
        active = await self._reads.guidance.active_skills(agent_id)
        trigger = await self._reads.wake.trigger_of(agent_id)
        return PromptFacts(
            identity=agent.identity,
            tools=self._tools.offered,
            execution=self._execution(place),
            agent_home=home,
            trigger=trigger,
            trigger_url=self._url_of(trigger),
            guidance=await self._instructions.load(agent_home=home, workspace_anchor=anchor),
            skills=await self._skills.catalog(
                agent_home=home,
                workspace_anchor=anchor,
                with_user_scope=agent.identity.kind is AgentKind.DEFAULT,
            ),
            active_skills=tuple(active),
            templates=await self._template_entries(),
            memory=memory,
            episodes=await self._episodes(moment, memory, place),
            work=await self._work(moment, home, briefs),
            results=await self._results(agent_id, moment.incoming),
            briefs=_before(moment.history, briefs),
            wake=_wake(moment),
            current_input=moment.incoming,
        )

    async def _episodes(
        self, moment: PromptInput, memory: PromptedMemory, place: ActiveWorkspace
    ) -> tuple[EpisodeRecord, ...]:
        """Relevant episodes of turns the conversation no longer shows.

        They are selected by the lasting part of the prompt, so the selection stays the same until
        the conversation drops more turns.
        """
        episodes = await self._reads.memory.episodes(
            moment.agent.identity.agent_id,
            limit=EPISODE_CANDIDATES_COUNT,
            before_turn=moment.history[0].turn.turn_index if moment.history else None,
        )
        base = memory.base or WorkingMemory()
        return relevant_episodes(
            episodes,
            work_item_id=base.current_work_item_id,
            workspace_id=None if place.workspace_id == AGENT_HOME else place.workspace_id,
            files=base.working_set_files,
            limit=PROMPT_EPISODES_COUNT_MAX,
        )

    def budget(self, override: ModelRef | None) -> PromptBudget:
        """Return the token budget of a prompt for the first model."""
        models = self._routing
        try:
            candidate = models.find(override or models.preference.default)
        except ProviderError:
            candidate = None  # the next request to it reports what is wrong
        tools_bytes = self._tools.offered.size_bytes
        if candidate is None:
            return budget_of(None, tools_bytes=tools_bytes)
        return budget_of(
            candidate.prompt_tokens_max,
            tools_bytes=tools_bytes,
            calibration=self._calibrations.of(str(candidate.model_ref)),
        )

    def _execution(self, place: ActiveWorkspace) -> ExecutionSnapshot:
        return ExecutionSnapshot(
            profile=profile_of(self._shell),
            policy=ExecutionPolicy(),
            workspace_id=place.workspace_id,
            workspace_anchor=place.workspace_anchor,
            execution_root=place.execution_root,
            cwd=place.cwd,
            execution_root_id=place.execution_root_id,
            projection_kind=place.projection_kind,
        )

    async def _template_entries(self) -> tuple[TemplateEntry, ...]:
        """Templates, for an agent that can create others."""
        if not _AGENT_MAKERS.intersection(spec.name for spec in self._tools.specs):
            return ()
        return tuple(await self._templates.entries())

    async def _work(
        self, moment: PromptInput, home: str, briefs: Sequence[BriefRecord]
    ) -> WorkFacts:
        reads, agent = self._reads, moment.agent
        agent_id, focus = agent.identity.agent_id, agent.focus.current_work_item_id
        items = await reads.work.open_items(agent_id, limit=PROMPT_ITEMS_READ_COUNT_MAX)
        is_all = len(items) < PROMPT_ITEMS_READ_COUNT_MAX
        count = len(items) if is_all else (await reads.work.work_item_counts(agent_id)).open_count
        current = next((each for each in items if each.item.id == focus), None)
        bound = None if current is None else current.item.id
        return WorkFacts(
            current=current,
            current_plan=await self._plan(current, home),
            current_trace=trace_of(agent_id, bound, moment.history, briefs),
            others=tuple(each for each in items if each is not current),
            open_count=count,
            completed=tuple(
                await reads.work.completed_items(agent_id, limit=PROMPT_COMPLETED_COUNT_MAX)
            ),
        )

    async def _plan(self, current: WeighedItem | None, home: str) -> PlanArtifact | None:
        if current is None:
            return None
        look = await look_at_plan(current.item, self._files, agent_home=home, now=self._clock.now())
        return look.artifact

    async def _results(
        self, agent_id: AgentId, incoming: IncomingMessage | None
    ) -> tuple[TaskRecord, ...]:
        """Unread results, except those this turn's input already contains."""
        found = await self._reads.tasks.unread_results(agent_id, limit=PROMPT_RESULTS_COUNT_MAX + 1)
        shown = () if incoming is None else (incoming.message, *incoming.unseen)
        task_ids = {message.task_id for message in shown}
        unread = [task for task in found if task.id not in task_ids]
        return tuple(unread[:PROMPT_RESULTS_COUNT_MAX])

    async def _briefs(self, moment: PromptInput) -> Sequence[BriefRecord]:
        """The newest briefs, reaching back a little further than the conversation."""
        limit = len(moment.history) + PROMPT_BRIEFS_COUNT_MAX
        agent_id = moment.agent.identity.agent_id
        return await self._reads.events.briefs(agent_id, limit=limit)


def prompt_input_of(
    agent: AgentState, log: TurnLog, history: Sequence[TurnLog], *, override: ModelRef | None
) -> PromptInput:
    """Return the prompt input of a turn that begins or resumes."""
    entries = (entry.data for entry in log.entries)
    return PromptInput(
        agent=agent,
        history=tuple(history),
        incoming=next((data for data in entries if isinstance(data, IncomingMessage)), None),
        resume_count=log.turn.resume_count,
        override=override,
    )


def no_prompt(problem: PinnedOverBudget) -> FailureArtifact:
    """Return the failure of a turn whose prompt does not fit."""
    return over_budget(
        needed_tokens=problem.needed_tokens,
        share_tokens=problem.share_tokens,
        subject=", ".join(problem.sections),
    )


def _before(history: Sequence[TurnLog], briefs: Sequence[BriefRecord]) -> tuple[BriefRecord, ...]:
    """Briefs of turns the conversation does not show."""
    shown = {log.turn.turn_id for log in history}
    return tuple(b for b in briefs if b.turn_id not in shown)[-PROMPT_BRIEFS_COUNT_MAX:]


def _wake(moment: PromptInput) -> WakeFacts | None:
    if moment.incoming is None:
        return None
    agent, message = moment.agent, moment.incoming.message
    closure, terminal = agent.last_closure, agent.last_terminal
    has_failed = terminal is not None and terminal.kind not in ENDED_WELL
    return WakeFacts(
        trigger_kind=message.trigger_kind or trigger_kind_of(message.kind),
        prior_outcome=None if closure is None else outcome_of(closure),
        prior_waiting_reason=None if closure is None else waiting_reason_of(closure),
        last_failure=(terminal.reason or terminal.kind.value) if terminal and has_failed else None,
        resume_count=moment.resume_count,
    )
