"""`holon run`: one prompt, answered by a host that lives as long as the answer takes.

Owns:  the life of a one-shot run: a prompt, the wait until its agent rests, and what came of it.
Rule 1: a run is over when the rows give the agent nothing more to do, so what it enqueued for
        itself is part of it, and so are its background tasks unless the caller will not wait.
Rule 2: the prompt is admitted like any other; nothing here bypasses the queue.
Rule 3: the rows are looked at again for each event that may have brought the agent to rest. No time
        passes for its own sake.
Rule 4: a run that used up its rounds is over at once, whatever else the agent could do.
"""

from collections.abc import Callable
from contextlib import aclosing
from typing import Final, TypeAlias

import msgspec

from holon.decide.activation import Rest, RestUntil, StayDown, decide_activation
from holon.decide.failure_artifact import ROUND_LIMIT, run_round_limit
from holon.model.brief import FailureArtifact
from holon.model.event import (
    AssistantRoundRecorded,
    AuditEvent,
    ContinuationResolved,
    Event,
    MessageAdmitted,
    MessageProcessingStarted,
    ProviderRoundCompleted,
    RuntimeErrorRecorded,
    ToolExecuted,
    ToolExecutionFailed,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from holon.model.ids import AgentId
from holon.model.ingress import IngressRequest
from holon.model.limits import EVENT_PAGE_COUNT_DEFAULT
from holon.model.provenance import TrustLevel
from holon.ports.clock import Clock
from holon.projections.run_result import RunResult, run_result
from holon.runtime.host import Host
from holon.serve.run_agents import named_agent
from holon.serve.run_door import run_request
from holon.serve.run_ending import gather_facts

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


def unheard(event: Event) -> None:
    """Ignore what the run tells."""


class RoundAllowance(msgspec.Struct, kw_only=True):
    """How many rounds a run may ask a model for; each asking uses one up."""

    rounds_max: int | None
    used_count: int = 0

    def gate(self, agent_id: AgentId) -> FailureArtifact | None:
        """Take one round, or say that there is none left."""
        if self.rounds_max is not None and self.used_count >= self.rounds_max:
            return run_round_limit(self.rounds_max)
        self.used_count += 1
        return None


class OneShot:
    """One run of one agent."""

    def __init__(
        self, host: Host, clock: Clock, agent_id: AgentId, *, listener: EventListener = unheard
    ) -> None:
        self._host = host
        self._clock = clock
        self._agent_id = agent_id
        self._listener = listener
        self._told: list[Event] = []
        self._cursor = 0
        self._used_up = False

    async def ask(self, request: IngressRequest) -> None:
        """Put the prompt to the agent; what its log gains from here on belongs to the run."""
        _, self._cursor = await self._host.reads.event_bounds(self._agent_id)
        await self._host.admit(request)

    async def rest(self, *, wait_for_tasks: bool) -> None:
        """Return once the agent has nothing more to do."""
        following = self._host.events.follow(self._agent_id, after=self._cursor)
        async with aclosing(following) as events:
            async for audit in events:
                self._take(audit)
                if self._used_up:
                    return
                if not isinstance(audit.event, _BUSY) and await self._rests(wait_for_tasks):
                    return

    async def result(self) -> RunResult:
        """Sum up the run as far as it went."""
        reads = self._host.reads
        while page := await reads.events_after(
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
        snapshot = await reads.snapshot(self._agent_id, now=now)
        if snapshot is None:
            return True
        if not isinstance(decide_activation(snapshot, now=now), Rest | RestUntil | StayDown):
            return False
        if not wait_for_tasks:
            return True
        return all(task.agent_id != self._agent_id for task in await reads.open_tasks())


async def run_once(
    host: Host,
    clock: Clock,
    *,
    agent_id: AgentId,
    text: str,
    trust: TrustLevel = TrustLevel.TRUSTED_OPERATOR,
    wait_for_tasks: bool = True,
) -> RunResult:
    """Put the prompt to the agent, creating it if need be, and return what came of it."""
    await named_agent(host, clock, agent_id, create=True)
    run = OneShot(host, clock, agent_id)
    await run.ask(run_request(agent_id, text, trust=trust))
    await run.rest(wait_for_tasks=wait_for_tasks)
    return await run.result()
