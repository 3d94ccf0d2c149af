"""The queries the runtime and its surfaces need: one protocol per room.

Contract (kept by tests/contract/store, run against every implementation):
- a read includes every commit whose outcome was known when the call began;
- a page or list is never longer than its limit or its bound, and a limit below 1 gives nothing;
  a page continues after the record its cursor names, and a cursor that names no record of the agent
  raises UnknownCursorError;
- within a priority band, messages are served in the order they were admitted in;
- `wake.due_timers` and `wake.due_waits` read on from a place without leaving one out or giving one
  twice, however many share its moment;
- `memory.prompted_memory` is what the prompt shows, and which revision that is;
- `memory.episodes` are finished stretches of work, newest first;
- `memory.changed_sources`: a record of the kinds in model/memory/index has one row from the commit
  that first wrote it; each change gives the row a new, higher number. A pruned record is returned
  once more, empty. A record is worth the least its turns were shown, for ever.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from holon.model.agents import AgentContext, AgentIdentity, AgentState
from holon.model.budgets import UsageStep
from holon.model.errors import BadInputError
from holon.model.events.briefs import BriefRecord
from holon.model.events.event import AuditEvent
from holon.model.events.reads import (
    ActivityCounts,
    AdmissionTarget,
    AgentSnapshot,
    AgentSurface,
    DueTimer,
    EventQuery,
    EventSlice,
    KeyedMessage,
    ListedAgent,
    RuntimeCensus,
    WeighedItem,
)
from holon.model.guidance import SkillActivation
from holon.model.memory.index import MemoryKind, MemorySource, SourcePage
from holon.model.memory.records import EpisodeRecord, PromptedMemory, RememberedPlace, WorkingMemory
from holon.model.queue import DeliverySurface, MessageEnvelope, QueueEntry
from holon.model.tasks import TaskRecord
from holon.model.turns.tools import ToolLatency
from holon.model.turns.transcript import TurnLog
from holon.model.turns.turn import TurnRecord
from holon.model.values import (
    AgentId,
    BriefId,
    MessageId,
    TaskId,
    TimerId,
    TriggerId,
    TurnId,
    WorkItemId,
)
from holon.model.wake import ExternalTrigger, TimerRecord, TriggerTarget, WaitRecord
from holon.model.work import WorkItemCounts, WorkItemRecord
from holon.model.workspaces import ActiveWorkspace, WorkspaceBindings, WorkspaceOccupancy


class UnknownCursorError(BadInputError):
    """A page was asked for after a record that is not there, or is another agent's."""

    code = "unknown_cursor"
    hint = "start again from the first page"


class DuePlace(NamedTuple):
    """How far a list of what is due was read: up to this one, or to the end of its moment."""

    moment: datetime
    id: str | None = None


class AgentReads(Protocol):
    """Agents, and the facts scheduling and surfaces need of them."""

    async def agent(self, agent_id: AgentId) -> AgentState | None:
        """One agent's state."""
        ...

    async def agent_context(self, agent_id: AgentId) -> AgentContext:
        """Where the agent's history begins, and what is left of the turns before."""
        ...

    async def snapshot(self, agent_id: AgentId, *, now: datetime) -> AgentSnapshot | None:
        """Everything scheduling decides on, at one moment."""
        ...

    async def restless(self, *, now: datetime) -> Sequence[AgentId]:
        """Agents some row gives a reason to look at: queue, claim, hint, or open work item."""
        ...

    async def archived_without_history(
        self, agent_ids: Sequence[AgentId]
    ) -> Sequence[AgentIdentity]:
        """Those of these agents that are archived and of whose doings no row is left."""
        ...

    async def agent_count(self, *, limit: int) -> int:
        """How many agents there are; counting stops at `limit`."""
        ...

    async def public_agents(self, *, after: AgentId | None, limit: int) -> Sequence[ListedAgent]:
        """Public agents that are in use, by id, following `after`; private ones are left out."""
        ...

    async def agent_surface(self, agent_id: AgentId) -> AgentSurface | None:
        """Everything any surface shows of one agent, at one moment."""
        ...

    async def census(self) -> RuntimeCensus:
        """How many agents of each status there are, and how much is kept."""
        ...

    async def runtime_activity(self) -> ActivityCounts:
        """What goes on in the whole runtime."""
        ...


class QueueReads(Protocol):
    """Messages, queued and settled."""

    async def admission_target(self, agent_id: AgentId) -> AdmissionTarget | None:
        """What the door needs to know, or nothing when there is no such agent."""
        ...

    async def message(self, message_id: MessageId) -> QueueEntry | None:
        """One message and its state."""
        ...

    async def keyed(
        self, agent_id: AgentId, surface: DeliverySurface, key: str
    ) -> KeyedMessage | None:
        """The message an idempotency key belongs to."""
        ...

    async def interjections(self, agent_id: AgentId, *, limit: int) -> Sequence[MessageEnvelope]:
        """Queued prompts of the operator in the interject band, oldest first."""
        ...

    async def unseen(self, agent_id: AgentId, *, limit: int) -> Sequence[MessageEnvelope]:
        """Processed messages no turn has shown to the model yet, oldest first."""
        ...

    async def crowded(self, *, kept: int) -> Sequence[AgentId]:
        """Agents in use that more than so many messages wait to be shown to."""
        ...

    async def oldest_unseen(
        self, agent_id: AgentId, *, kept: int, limit: int
    ) -> Sequence[MessageId]:
        """What waits to be shown beyond the newest so many, oldest first. No results of tasks."""
        ...

    async def queued_ticks(self, agent_id: AgentId, *, timer_id: TimerId) -> Sequence[MessageId]:
        """Ticks of this timer that have not been claimed."""
        ...

    async def messages(
        self, agent_id: AgentId, message_ids: Sequence[MessageId]
    ) -> Sequence[QueueEntry]:
        """Those of the named messages that are kept and are this agent's, in the order asked."""
        ...

    async def followup_count(self, root_id: MessageId) -> int:
        """How many follow-ups of one chain are known."""
        ...


class TurnReads(Protocol):
    """Turns with what was recorded in them."""

    async def turn_log(self, turn_id: TurnId) -> TurnLog | None:
        """A turn with everything recorded in it."""
        ...

    async def recent_turns(
        self, agent_id: AgentId, *, limit: int, from_turn: int = 0
    ) -> Sequence[TurnLog]:
        """The newest settled turns, none before `from_turn`, oldest of them first."""
        ...

    async def named(self, agent_id: AgentId, turn_ids: Sequence[TurnId]) -> Sequence[TurnRecord]:
        """Those of the named turns that are kept and are this agent's, without what they hold."""
        ...

    async def turns_page(
        self, agent_id: AgentId, *, before_index: int | None, limit: int
    ) -> Sequence[TurnLog]:
        """Turns with everything recorded in them, newest first, the open one included."""
        ...

    async def agents_with_open_turns(self) -> Sequence[AgentId]:
        """Agents whose lane was cut off by the end of an earlier process."""
        ...

    async def tool_latencies(self, agent_id: AgentId, *, limit: int) -> Sequence[ToolLatency]:
        """How long the agent's calls took, by tool."""
        ...


class WorkReads(Protocol):
    """Work items."""

    async def work_item(self, work_item_id: WorkItemId) -> WorkItemRecord | None:
        """One work item."""
        ...

    async def open_items(self, agent_id: AgentId, *, limit: int) -> Sequence[WeighedItem]:
        """The current item, then the other open ones, oldest first, each with its open waits."""
        ...

    async def completed_items(self, agent_id: AgentId, *, limit: int) -> Sequence[WorkItemRecord]:
        """Completed items, newest first."""
        ...

    async def work_item_counts(self, agent_id: AgentId) -> WorkItemCounts:
        """How many items the agent has open, and how many completed ones are kept."""
        ...

    async def work_items_page(
        self, agent_id: AgentId, *, after: WorkItemId | None, limit: int
    ) -> Sequence[WeighedItem]:
        """Items: the current one, queued and waiting ones oldest first, completed newest first."""
        ...


class TaskReads(Protocol):
    """Background tasks."""

    async def task(self, task_id: TaskId) -> TaskRecord | None:
        """One task."""
        ...

    async def open_tasks(self) -> Sequence[TaskRecord]:
        """Tasks that have not ended, of all agents."""
        ...

    async def ended_tasks(self, agent_id: AgentId, *, limit: int) -> Sequence[TaskRecord]:
        """Tasks of the agent that have ended, newest first."""
        ...

    async def unread_tasks(self) -> Sequence[TaskRecord]:
        """Tasks of all agents that have ended and whose result no turn has taken in yet."""
        ...

    async def unread_results(self, agent_id: AgentId, *, limit: int) -> Sequence[TaskRecord]:
        """Ended tasks of the agent whose result no turn has taken in yet, newest first."""
        ...

    async def tasks_page(
        self, agent_id: AgentId, *, after: TaskId | None, limit: int
    ) -> Sequence[TaskRecord]:
        """Tasks of an agent: open ones first, each group by its newest movement."""
        ...


class WakeReads(Protocol):
    """What wakes agents: timers, waits and external triggers."""

    async def next_due_at(self, *, after: datetime) -> datetime | None:
        """The earliest timer slot, wait deadline or activation moment later than `after`."""
        ...

    async def is_anything_due(self, now: datetime) -> bool:
        """Whether the looks below may find something: false only when none of them would."""
        ...

    async def due_timers(
        self, now: datetime, *, limit: int, after: DuePlace | None = None
    ) -> Sequence[DueTimer]:
        """Active timers of agents that are not stopped whose slot has come, earliest first."""
        ...

    async def due_timers_of(
        self, agent_id: AgentId, now: datetime, *, limit: int
    ) -> Sequence[DueTimer]:
        """The same of one agent; nothing while it is stopped."""
        ...

    async def timers_ahead(
        self, now: datetime, *, limit: int, after: TimerId | None = None
    ) -> Sequence[TimerRecord]:
        """Active timers that were armed or fired last at a moment that is still to come.

        A clock that was set back leaves them. In the order of their ids, from `after` on; one that
        was armed within the second that runs may be among them.
        """
        ...

    async def due_waits(
        self, now: datetime, *, limit: int, after: DuePlace | None = None
    ) -> Sequence[WaitRecord]:
        """Active waits whose deadline has come, earliest first; rests and rechecks have none."""
        ...

    async def due_waits_of(
        self, agent_id: AgentId, now: datetime, *, limit: int
    ) -> Sequence[WaitRecord]:
        """The same of one agent; nothing while it is stopped."""
        ...

    async def due_activations(
        self, now: datetime, *, limit: int, since: datetime | None = None
    ) -> Sequence[AgentId]:
        """Idle agents whose held-back work, or whose reminder of a blocker, has come due.

        With `since`, only those whose moment is later than that. An agent is not among them while a
        message of its queue waits for a moment to come: it is offered no work until then.
        """
        ...

    async def timer(self, timer_id: TimerId) -> TimerRecord | None:
        """One timer."""
        ...

    async def waits_on(self, source_id: str) -> Sequence[WaitRecord]:
        """Open waits that this source ends."""
        ...

    async def item_waits(self, work_item_id: WorkItemId) -> Sequence[WaitRecord]:
        """Open waits this work item owns."""
        ...

    async def timers_page(
        self, agent_id: AgentId, *, after: TimerId | None, limit: int
    ) -> Sequence[TimerRecord]:
        """Timers of an agent: active ones, soonest first; then ended ones, newest first."""
        ...

    async def trigger_of(self, agent_id: AgentId) -> ExternalTrigger | None:
        """The external trigger of an agent, whatever its status."""
        ...

    async def trigger_target(
        self, trigger_id: TriggerId, *, source_key: str, delivery_key: str | None
    ) -> TriggerTarget | None:
        """A trigger and its agent, as far as one delivery needs them."""
        ...


class MemoryReads(Protocol):
    """What agents remember, and the records memory search is made of."""

    async def remembered(self, agent_id: AgentId) -> RememberedPlace:
        """Everything kept of an agent's memory, and the workspace it is in."""
        ...

    async def working_memory(self, agent_id: AgentId) -> WorkingMemory:
        """What the agent is in the middle of."""
        ...

    async def prompted_memory(self, agent_id: AgentId) -> PromptedMemory:
        """What the agent's next prompt shows of its working memory."""
        ...

    async def episodes(
        self, agent_id: AgentId, *, limit: int, before_turn: int | None = None
    ) -> Sequence[EpisodeRecord]:
        """Finished episodes, newest first; those that ended before a turn, if one is named."""
        ...

    async def newest_episode_agents(self, *, limit: int) -> Sequence[AgentId]:
        """Agents to whom the newest episodes of all belong."""
        ...

    async def changed_sources(self, agent_id: AgentId, *, after_seq: int, limit: int) -> SourcePage:
        """Records of an agent that were written after a change, in the order of the last one."""
        ...

    async def named_sources(
        self, agent_id: AgentId, named: Sequence[tuple[MemoryKind, str]]
    ) -> Sequence[MemorySource]:
        """These records of an agent, as far as there are such."""
        ...


class WorkspaceReads(Protocol):
    """Where agents work."""

    async def active_workspace(self, agent_id: AgentId) -> ActiveWorkspace | None:
        """The workspace an agent is in; nothing when it is at home."""
        ...

    async def workspace_bindings(self, agent_id: AgentId) -> WorkspaceBindings:
        """The workspaces of an agent, and how it is in one of them."""
        ...

    async def root_occupants(
        self, execution_root_id: str, *, limit: int
    ) -> Sequence[WorkspaceOccupancy]:
        """Who is under an execution root now."""
        ...


class SkillReads(Protocol):
    """The skills agents use."""

    async def active_skills(self, agent_id: AgentId) -> Sequence[SkillActivation]:
        """The skills an agent uses, each once, in order of activation."""
        ...

    async def activations_of(
        self, agent_id: AgentId, entrypoint_path: str
    ) -> Sequence[SkillActivation]:
        """How one skill is in use, by each of the reasons it has."""
        ...

    async def has_skills_to_restore(self) -> bool:
        """Whether some session_active skill was made so by a process and not restored since."""
        ...


class BudgetReads(Protocol):
    """What turns used, and whom a budget holds."""

    async def usage(self, agent_id: AgentId | None, *, since: datetime) -> Sequence[UsageStep]:
        """What the turns of one agent, or of all, used since a moment, oldest first."""
        ...

    async def is_anybody_held(self) -> bool:
        """Whether a used-up budget holds some agent."""
        ...

    async def void_holds(self, *, now: datetime) -> Sequence[AgentId]:
        """Agents with a message whose hold ends later than any can: the clock was set back."""
        ...


class EventReads(Protocol):
    """The audit log, briefs, and how far back the log reaches."""

    async def briefs_page(
        self, agent_id: AgentId, *, before: BriefId | None, limit: int
    ) -> Sequence[BriefRecord]:
        """Briefs of an agent, newest first."""
        ...

    async def brief(self, brief_id: BriefId) -> BriefRecord | None:
        """One brief."""
        ...

    async def briefs(self, agent_id: AgentId, *, limit: int) -> Sequence[BriefRecord]:
        """The newest briefs, oldest of them first."""
        ...

    async def last_failure(self) -> BriefRecord | None:
        """The newest brief of a failed turn whose agent has completed none since."""
        ...

    async def events_page(self, agent_id: AgentId, query: EventQuery) -> EventSlice:
        """Events of an agent in either direction, and how far its log reaches."""
        ...

    async def events_after(
        self, agent_id: AgentId, event_seq: int, *, limit: int
    ) -> Sequence[AuditEvent]:
        """Events that follow a sequence number, in order."""
        ...

    async def event_bounds(self, agent_id: AgentId) -> tuple[int, int]:
        """The newest pruned sequence number (0 when none was), and the newest of all."""
        ...

    async def log_after(self, log_seq: int, *, limit: int) -> Sequence[AuditEvent]:
        """Events of all agents after a number, in order. A number left out was pruned."""
        ...

    async def log_epoch(self) -> str | None:
        """The timeline the numbers of the log belong to, where they can belong to another one."""
        ...

    async def last_log_seq(self) -> int:
        """The number of the newest event of all, 0 when there is none."""
        ...

    async def used_bytes(self) -> int:
        """How much of the database is in use; its file only grows when there is nothing else."""
        ...

    async def settled_by(self, moment: datetime) -> datetime | None:
        """When the newest message that was settled by that moment was; None without one."""
        ...

    async def logged_since(self) -> datetime | None:
        """When the first event that is still in the log happened; None when there is none."""
        ...


class StoreReads(Protocol):
    """The reads of a store, by room."""

    @property
    def agents(self) -> AgentReads:
        """Agents, and the facts scheduling and surfaces need of them."""
        ...

    @property
    def queue(self) -> QueueReads:
        """Messages, queued and settled."""
        ...

    @property
    def turns(self) -> TurnReads:
        """Turns with what was recorded in them."""
        ...

    @property
    def work(self) -> WorkReads:
        """Work items."""
        ...

    @property
    def tasks(self) -> TaskReads:
        """Background tasks."""
        ...

    @property
    def wake(self) -> WakeReads:
        """What wakes agents: timers, waits and external triggers."""
        ...

    @property
    def memory(self) -> MemoryReads:
        """What agents remember, and the records memory search is made of."""
        ...

    @property
    def workspaces(self) -> WorkspaceReads:
        """Where agents work."""
        ...

    @property
    def guidance(self) -> SkillReads:
        """The skills agents use."""
        ...

    @property
    def budgets(self) -> BudgetReads:
        """What turns used, and whom a budget holds."""
        ...

    @property
    def events(self) -> EventReads:
        """The audit log, briefs, and how far back the log reaches."""
        ...
