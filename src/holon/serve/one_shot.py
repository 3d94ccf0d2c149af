"""`holon run`: one prompt, answered by a host that lives as long as the run.

Owns:  the origin that each `--trust` value stands for; the temporary agent of a run and the checks
       of a named one; the records a run's events refer to; the run itself, from the prompt until
       its agent rests, and its result.
Rule 1: trust is never written onto a message. A lower trust selects another origin, admitted in a
        context that authenticates that origin, and decide/queue/authority derives the rest.
Rule 2: the caller is the operator and may give a text less authority than their own, for content of
        others. Nothing here can give it more.
Rule 3: a run without an agent name gets a new private agent, without history.
Rule 4: a named agent is used as it is: a template applies to a new agent only. It is created only
        on request.
Rule 5: the temporary agent is archived at the end of its run and accepts nothing more. Its identity
        is kept; its records and home are subject to retention. While it could continue, because the
        run was stopped or waits, or a task, timer or wait is left, it is not archived, nor after
        the process was killed: a later run that names it archives it at its own end.
Rule 6: an agent that cannot answer (paused, stopped, or a child agent) is refused at once.
Rule 7: only records named by the run's own events belong to its result.
Rule 8: a turn is read only if the result needs it: for its effects or its last text.
Rule 9: a run ends when the stored state gives the agent nothing to do, so follow-ups it queued
        belong to the run, and so do background tasks unless the caller does not wait for them.
Rule 10: the prompt is admitted like any other; it does not bypass the queue.
Rule 11: the state is checked again after each event that may have ended the work. Nothing is polled
         by time.
Rule 12: a run that has used up its rounds ends at once, whatever work is left.
"""

from collections.abc import Callable, Mapping
from contextlib import aclosing
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import msgspec

from holon.decide.agents.lifecycle import is_temporary, may_run
from holon.decide.turns.closure import closure_facts, derive_closure
from holon.decide.turns.failures import ROUND_LIMIT, run_round_limit
from holon.decide.wake.activation import Rest, RestUntil, StayInactive, decide_activation
from holon.model.agents import (
    AgentIdentity,
    AgentKind,
    AgentState,
    IdentityStatus,
    Ownership,
    ProfilePreset,
    Visibility,
)
from holon.model.errors import BadInputError
from holon.model.events.briefs import BriefRecord, FailureArtifact
from holon.model.events.event import (
    AssistantRoundRecorded,
    AuditEvent,
    BriefCreated,
    ContinuationResolved,
    Event,
    MessageAdmitted,
    MessageProcessingStarted,
    ProviderRoundCompleted,
    RuntimeErrorRecorded,
    TaskCreated,
    TaskStatusUpdated,
    ToolExecuted,
    ToolExecutionFailed,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from holon.model.limits import EVENT_PAGE_COUNT_DEFAULT, RUN_BRIEFS_READ_COUNT_MAX
from holon.model.queue import (
    AdmissionContext,
    ChannelOrigin,
    DeliverySurface,
    IngressRequest,
    MessageKind,
    OperatorOrigin,
    Origin,
    SystemOrigin,
    TextBody,
    TrustLevel,
    WebhookOrigin,
)
from holon.model.values import AgentId, IdPrefix, TaskId, TurnId, parse_agent_id
from holon.model.work import WorkItemRecord, WorkItemState, WorkItemWritten
from holon.ports.clock import Clock, IdSource
from holon.ports.reads import StoreReads
from holon.projections.turns.run_result import RunFacts, RunResult, run_result
from holon.runtime.host import Host

SOURCE: Final = "holon_run"
_WITH_EFFECTS: Final = frozenset({"ApplyPatch", "ExecCommand", "ExecCommandBatch"})
EventListener: TypeAlias = Callable[[Event], None]

# With these a turn is under way: no need to look whether the agent rests.
_BUSY: Final = (
    MessageAdmitted,
    MessageProcessingStarted,
    ContinuationResolved,
    TurnStarted,
    AssistantRoundRecorded,
    ProviderRoundCompleted,
    ToolStarted,
    ToolExecuted,
    ToolExecutionFailed,
    TurnEnded,
)


class _IngressChannel(NamedTuple):
    kind: MessageKind
    origin: Origin
    admission: AdmissionContext


ENTRANCES: Final[Mapping[TrustLevel, _IngressChannel]] = MappingProxyType(
    {
        TrustLevel.TRUSTED_OPERATOR: _IngressChannel(
            MessageKind.OPERATOR_PROMPT, OperatorOrigin(), AdmissionContext.LOCAL_PROCESS
        ),
        # The run is the process that owns the runtime, so it may speak as a part of it.
        TrustLevel.TRUSTED_SYSTEM: _IngressChannel(
            MessageKind.INTERNAL_FOLLOWUP,
            SystemOrigin(subsystem=SOURCE),
            AdmissionContext.RUNTIME_OWNED,
        ),
        TrustLevel.TRUSTED_INTEGRATION: _IngressChannel(
            MessageKind.WEBHOOK_EVENT,
            WebhookOrigin(source=SOURCE),
            AdmissionContext.LOCAL_PROCESS,
        ),
        TrustLevel.UNTRUSTED_EXTERNAL: _IngressChannel(
            MessageKind.CHANNEL_EVENT,
            ChannelOrigin(channel_id=SOURCE),
            AdmissionContext.LOCAL_PROCESS,
        ),
    }
)


def run_request(agent_id: AgentId, text: str, *, trust: TrustLevel) -> IngressRequest:
    """Return the ingress request of the text with this trust level."""
    entrance = ENTRANCES[trust]
    return IngressRequest(
        agent_id=agent_id,
        kind=entrance.kind,
        origin=entrance.origin,
        body=TextBody(text=text),
        surface=DeliverySurface.RUN_ONCE,
        admission=entrance.admission,
    )


class AgentNotUsableError(BadInputError):
    """The named agent cannot be prompted."""

    code = "agent_not_usable"


async def temporary_agent(host: Host, clock: Clock, ids: IdSource) -> AgentId:
    """Create the temporary agent of a run."""
    agent_id = parse_agent_id(ids.fresh(IdPrefix.TEMPORARY_RUN))
    await host.control.create_agent(_identity(agent_id, clock, Visibility.PRIVATE))
    return agent_id


async def archive_temporary(host: Host, agent_id: AgentId) -> bool:
    """Archive the temporary agent of a completed run if it has no work left."""
    state = await host.reads.agents.agent(agent_id)
    if state is None or not is_temporary(state.identity):
        return False
    return await host.control.archive(agent_id, reason="its run is over")


async def named_agent(
    host: Host, clock: Clock, agent_id: AgentId, *, create: bool, template: str | None = None
) -> AgentId:
    """Return the named agent, created from the template if missing and requested."""
    state = await host.reads.agents.agent(agent_id)
    if state is None and create:
        identity = _identity(agent_id, clock, Visibility.PUBLIC)
        await host.control.create_agent(identity, template=template)
        return agent_id
    _require_usable(agent_id, state)
    return agent_id


def _require_usable(agent_id: AgentId, state: AgentState | None) -> None:
    if state is None:
        raise AgentNotUsableError(
            f"there is no agent {agent_id}",
            hint="check the name with `holon agent list`, or add --create-agent to make it",
        )
    if state.identity.ownership is not Ownership.SELF_OWNED:
        raise AgentNotUsableError(
            f"agent {agent_id} belongs to another agent", hint="ask the agent it belongs to"
        )
    if state.identity.status is IdentityStatus.ARCHIVED:
        raise AgentNotUsableError(
            f"agent {agent_id} is archived",
            hint="choose another agent; one that you name with --agent and --create-agent lasts",
        )
    if not may_run(state.posture.status):
        raise AgentNotUsableError(
            f"agent {agent_id} is {state.posture.status}",
            hint=(
                f"resume it first with `holon agent resume {agent_id}`; where no runtime serves"
                " this home, `holon daemon start` starts one"
            ),
        )


def _identity(agent_id: AgentId, clock: Clock, visibility: Visibility) -> AgentIdentity:
    return AgentIdentity(
        agent_id=agent_id,
        kind=AgentKind.NAMED,
        visibility=visibility,
        ownership=Ownership.SELF_OWNED,
        profile_preset=ProfilePreset.PUBLIC_NAMED,
        created_at=clock.now(),
    )


async def gather_facts(
    reads: StoreReads, agent_id: AgentId, told: tuple[Event, ...], *, now: datetime
) -> RunFacts:
    """Read the records a run's events refer to."""
    snapshot = await reads.agents.snapshot(agent_id, now=now)
    turns = [await reads.turns.turn_log(turn_id) for turn_id in _turn_ids(told)]
    tasks = [await reads.tasks.task(task_id) for task_id in _task_ids(told)]
    return RunFacts(
        agent_id=agent_id,
        events=told,
        closure=None if snapshot is None else derive_closure(closure_facts(snapshot)),
        briefs=await _briefs(reads, agent_id, told),
        turns=tuple(log for log in turns if log is not None),
        tasks=tuple(task for task in tasks if task is not None),
        completed=await _completed(reads, told),
    )


def _turn_ids(told: tuple[Event, ...]) -> list[TurnId]:
    ended = [event.turn_id for event in told if isinstance(event, TurnEnded)]
    acted = {
        event.turn_id
        for event in told
        if isinstance(event, ToolStarted) and event.tool_name in _WITH_EFFECTS
    }
    return [turn_id for turn_id in ended if turn_id in acted or turn_id == ended[-1]]


def _task_ids(told: tuple[Event, ...]) -> list[TaskId]:
    moved = (e.task_id for e in told if isinstance(e, TaskCreated | TaskStatusUpdated))
    return list(dict.fromkeys(moved))


async def _briefs(
    reads: StoreReads, agent_id: AgentId, told: tuple[Event, ...]
) -> tuple[BriefRecord, ...]:
    made = {event.brief_id for event in told if isinstance(event, BriefCreated)}
    if not made:
        return ()
    newest = await reads.events.briefs(agent_id, limit=min(len(made), RUN_BRIEFS_READ_COUNT_MAX))
    return tuple(brief for brief in newest if brief.id in made)


async def _completed(reads: StoreReads, told: tuple[Event, ...]) -> tuple[WorkItemRecord, ...]:
    done = dict.fromkeys(
        event.work_item_id
        for event in told
        if isinstance(event, WorkItemWritten) and event.state is WorkItemState.COMPLETED
    )
    items = [await reads.work.work_item(work_item_id) for work_item_id in done]
    return tuple(item for item in items if item is not None)


def ignore_event(event: Event) -> None:
    """Ignore an event."""


class RoundLimit(msgspec.Struct, kw_only=True):
    """The round limit of a run."""

    rounds_max: int | None
    used_count: int = 0

    def gate(self, agent_id: AgentId) -> FailureArtifact | None:
        """Count one round, or return the failure if none is left."""
        if self.rounds_max is not None and self.used_count >= self.rounds_max:
            return run_round_limit(self.rounds_max)
        self.used_count += 1
        return None


class OneShot:
    """A run of one agent."""

    def __init__(
        self, host: Host, clock: Clock, agent_id: AgentId, *, listener: EventListener = ignore_event
    ) -> None:
        self._host = host
        self._clock = clock
        self._agent_id = agent_id
        self._listener = listener
        self._told: list[Event] = []
        self._cursor = 0
        self._used_up = False

    async def ask(self, request: IngressRequest) -> None:
        """Admit the prompt; later events of the agent belong to the run."""
        _, self._cursor = await self._host.reads.events.event_bounds(self._agent_id)
        await self._host.admit(request)

    async def rest(self, *, wait_for_tasks: bool) -> None:
        """Return once the agent has nothing left to do."""
        following = self._host.events.follow(self._agent_id, after=self._cursor)
        async with aclosing(following) as events:
            async for audit in events:
                self._take(audit)
                if self._used_up:
                    return
                if not isinstance(audit.event, _BUSY) and await self._rests(wait_for_tasks):
                    return

    async def result(self) -> RunResult:
        """Return the result of the run so far."""
        reads = self._host.reads
        while page := await reads.events.events_after(
            self._agent_id, self._cursor, limit=EVENT_PAGE_COUNT_DEFAULT
        ):
            for audit in page:
                self._take(audit)
        told = tuple(self._told)
        facts = await gather_facts(reads, self._agent_id, told, now=self._clock.now())
        result = run_result(facts)
        shown = tuple(self._host.shown_view(task) for task in result.tasks)
        return msgspec.structs.replace(result, tasks=shown)

    def _take(self, audit: AuditEvent) -> None:
        self._cursor = audit.event_seq
        self._told.append(audit.event)
        match audit.event:
            case RuntimeErrorRecorded(failure=FailureArtifact(kind=kind)) if kind == ROUND_LIMIT:
                self._used_up = True
            case _:
                pass
        self._listener(audit.event)

    async def _rests(self, wait_for_tasks: bool) -> bool:
        reads, now = self._host.reads, self._clock.now()
        snapshot = await reads.agents.snapshot(self._agent_id, now=now)
        if snapshot is None:
            return True
        if not isinstance(decide_activation(snapshot, now=now), Rest | RestUntil | StayInactive):
            return False
        if not wait_for_tasks:
            return True
        return all(task.agent_id != self._agent_id for task in await reads.tasks.open_tasks())


async def run_once(
    host: Host,
    clock: Clock,
    *,
    agent_id: AgentId,
    text: str,
    trust: TrustLevel = TrustLevel.TRUSTED_OPERATOR,
    wait_for_tasks: bool = True,
) -> RunResult:
    """Prompt the agent, creating it if needed, and return the result."""
    await named_agent(host, clock, agent_id, create=True)
    run = OneShot(host, clock, agent_id)
    await run.ask(run_request(agent_id, text, trust=trust))
    await run.rest(wait_for_tasks=wait_for_tasks)
    return await run.result()
