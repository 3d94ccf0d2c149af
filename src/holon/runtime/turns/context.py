"""Gathers what a prompt is made of.

Owns:  the reads behind a prompt, once per turn, and the budget of the model it is for.
Rule 1: reads are bounded and few: what an agent has piled up does not make its prompt slower.
Rule 2: what stands in the way of a part (guidance, skills, memory) is that part's business: its
        port answers with what there is. A prompt is never refused for want of one.
Rule 3: whether and how a fact is shown is decided in prompt/; nothing is judged here.
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
    from holon.runtime.wake.triggers import TriggerDesk

_AGENT_MAKERS: Final = frozenset({"SpawnAgent", "CreateAgent"})


class Moment(Record, frozen=True, kw_only=True):
    """The turn a prompt is for: the agent, what came in, and the turns the conversation shows."""

    agent: AgentState
    history: tuple[TurnLog, ...] = ()
    incoming: IncomingMessage | None = None
    resume_count: int = 0
    override: ModelRef | None = None


class ContextBuilder:
    """Prompts of one host.

    `triggers` gives the desk of external triggers, which a run without a service never loads; it
    is None where nothing can be delivered.
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
        triggers: "Callable[[], TriggerDesk] | None",
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

    async def assembled(self, moment: Moment) -> Assembly:
        """Return the prompt of a turn, or why there can be none.

        An agent that has no trigger yet, from before every one had, is given it here.
        """
        if self._triggers is not None:
            with suppress(RefusedError):  # archived meanwhile: the turn ends for that very reason
                await self._triggers().ensure(moment.agent.identity.agent_id)
        facts = await self.facts(moment)
        return assemble(facts, self.budget(moment.override))

    async def trigger_url(self, agent_id: AgentId) -> str | None:
        """Return the address of an agent's trigger, a secret for the request to its model."""
        return self._url_of(await self._reads.trigger_of(agent_id))

    def _url_of(self, trigger: ExternalTrigger | None) -> str | None:
        if trigger is None or self._triggers is None:
            return None
        return self._triggers().address_of(trigger)

    async def facts(self, moment: Moment) -> PromptFacts:
        """Gather the facts."""
        agent = moment.agent
        agent_id = agent.identity.agent_id
        place = await self._agent_places.current(agent_id)
        home = self._agent_places.home_of(agent_id)
        anchor = None if place.workspace_id == AGENT_HOME else place.workspace_anchor
        briefs = await self._briefs(moment)
        memory = await self._reads.prompted_memory(agent_id)
        active = await self._reads.active_skills(agent_id)
        trigger = await self._reads.trigger_of(agent_id)
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
        self, moment: Moment, memory: PromptedMemory, place: ActiveWorkspace
    ) -> tuple[EpisodeRecord, ...]:
        """Those that bear on the work, of turns the conversation no longer shows.

        They are chosen by what the lasting part of the prompt shows: it stays the same until the
        conversation lets go of more turns.
        """
        episodes = await self._reads.episodes(
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
        """Return how large a prompt may be for the model that is asked first."""
        models = self._routing
        try:
            candidate = models.find(override or models.preference.default)
        except ProviderError:
            candidate = None  # whoever asks it next says what is wrong
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
        """Templates are for an agent that can make others."""
        if not _AGENT_MAKERS.intersection(spec.name for spec in self._tools.specs):
            return ()
        return tuple(await self._templates.entries())

    async def _work(self, moment: Moment, home: str, briefs: Sequence[BriefRecord]) -> WorkFacts:
        reads, agent = self._reads, moment.agent
        agent_id, focus = agent.identity.agent_id, agent.focus.current_work_item_id
        items = await reads.open_items(agent_id, limit=PROMPT_ITEMS_READ_COUNT_MAX)
        is_all = len(items) < PROMPT_ITEMS_READ_COUNT_MAX
        count = len(items) if is_all else (await reads.work_item_counts(agent_id)).open_count
        current = next((each for each in items if each.item.id == focus), None)
        bound = None if current is None else current.item.id
        return WorkFacts(
            current=current,
            current_plan=await self._plan(current, home),
            current_trace=trace_of(agent_id, bound, moment.history, briefs),
            others=tuple(each for each in items if each is not current),
            open_count=count,
            completed=tuple(
                await reads.completed_items(agent_id, limit=PROMPT_COMPLETED_COUNT_MAX)
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
        """Results that wait; those that this turn is shown anyway are not among them."""
        found = await self._reads.unread_results(agent_id, limit=PROMPT_RESULTS_COUNT_MAX + 1)
        shown = () if incoming is None else (incoming.message, *incoming.unseen)
        task_ids = {message.task_id for message in shown}
        waiting = [task for task in found if task.id not in task_ids]
        return tuple(waiting[:PROMPT_RESULTS_COUNT_MAX])

    async def _briefs(self, moment: Moment) -> Sequence[BriefRecord]:
        """The newest briefs, reaching back a little further than the conversation."""
        limit = len(moment.history) + PROMPT_BRIEFS_COUNT_MAX
        agent_id = moment.agent.identity.agent_id
        return await self._reads.briefs(agent_id, limit=limit)


def moment_of(
    agent: AgentState, log: TurnLog, history: Sequence[TurnLog], *, override: ModelRef | None
) -> Moment:
    """Return the moment a turn begins, or is taken up again."""
    said = (entry.data for entry in log.entries)
    return Moment(
        agent=agent,
        history=tuple(history),
        incoming=next((data for data in said if isinstance(data, IncomingMessage)), None),
        resume_count=log.turn.resume_count,
        override=override,
    )


def no_prompt(problem: PinnedOverBudget) -> FailureArtifact:
    """Return how a turn ends whose prompt cannot be made to fit."""
    return over_budget(
        needed_tokens=problem.needed_tokens,
        share_tokens=problem.share_tokens,
        subject=", ".join(problem.sections),
    )


def _before(history: Sequence[TurnLog], briefs: Sequence[BriefRecord]) -> tuple[BriefRecord, ...]:
    """Those of turns the conversation does not show."""
    shown = {log.turn.turn_id for log in history}
    return tuple(b for b in briefs if b.turn_id not in shown)[-PROMPT_BRIEFS_COUNT_MAX:]


def _wake(moment: Moment) -> WakeFacts | None:
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
