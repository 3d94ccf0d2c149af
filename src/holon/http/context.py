"""What handlers work with: the host and its facts, and lookups of the records a path names.

Owns:  the context handed to every handler; finding the agent of a request and its records.
Rule 1: a refused request leaves a count and nothing else.
Rule 2: a private agent is answered as an unknown one. An archived agent, including that of a past
        run, can be read by its name, because its history is kept; lists omit it.
Rule 3: a record of another agent is answered exactly as a record that does not exist.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

import anyio

from holon.adapters.system.processes import ProcessUsage, process_usage
from holon.decide.agents.lifecycle import is_temporary, refuse_unknown
from holon.decide.work.items import unknown_item
from holon.http.access import IngressLimits
from holon.http.events.frames import EventFrames
from holon.http.events.stream import TokenWatch
from holon.http.metrics import EventCounters
from holon.http.route import Call
from holon.model.agents import AgentIdentity, IdentityStatus, Visibility
from holon.model.errors import Refusal, RefusalCode, RefusedError
from holon.model.events.briefs import BriefRecord
from holon.model.limits import PROMPT_WAITS_COUNT_MAX
from holon.model.queue import QueueEntry
from holon.model.tasks import TaskRecord
from holon.model.values import (
    AgentId,
    BriefId,
    MessageId,
    TaskId,
    TimerId,
    WorkItemId,
    parse_agent_id,
    parse_record_id,
)
from holon.model.wake import TimerRecord
from holon.model.work import WorkItemRecord
from holon.ports.clock import Clock
from holon.runtime.host import Host

IdT = TypeVar("IdT", TaskId, TimerId, BriefId)
OwnedT = TypeVar("OwnedT", TaskRecord, TimerRecord, BriefRecord)


def _none_open() -> int:
    return 0


@dataclass(slots=True)
class Traffic:
    """Request and connection counts of one server; the listeners install `open_count`."""

    open_count: Callable[[], int] = _none_open
    answered: Counter[int] = field(default_factory=Counter)  # by the first digit of the status
    refusals: Counter[int] = field(default_factory=Counter)  # by status

    def take_refusals(self) -> Mapping[int, int]:
        """Return the refused requests since the last call, by status, and reset the counts."""
        counted, self.refusals = self.refusals, Counter()
        return counted


@dataclass(frozen=True, kw_only=True, slots=True)
class RuntimeFacts:
    """The identity and addresses of this runtime."""

    version: str
    pid: int
    home_dir: str
    socket_path: str
    http_addr: str
    base_url: str
    started_at: datetime
    config_fingerprint: str
    default_agent: AgentId
    workspace_dir: str | None = None
    advertise_url: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpContext:
    """Everything a handler may use."""

    host: Host
    clock: Clock
    facts: RuntimeFacts
    request_shutdown: Callable[[], None]
    outside: IngressLimits
    frames: EventFrames = field(default_factory=EventFrames)
    token_watch: TokenWatch = field(default_factory=TokenWatch)
    tally: EventCounters = field(default_factory=EventCounters)
    traffic: Traffic = field(default_factory=Traffic)
    usage: Callable[[], ProcessUsage] = process_usage
    prompt_waits: anyio.Semaphore = field(
        default_factory=lambda: anyio.Semaphore(PROMPT_WAITS_COUNT_MAX)
    )


def named_agent(call: Call) -> AgentId:
    """Return the agent id in the path; the agent may not exist."""
    return parse_agent_id(call.params["agent_id"])


async def shown_agent(context: HttpContext, call: Call) -> AgentId:
    """Return the agent of a read request; raise RefusedError if a reader may not see it."""
    agent_id = call.agent_id(context.facts.default_agent)
    agent = await context.host.reads.agents.agent(agent_id)
    if agent is None or not is_shown(agent.identity):
        raise RefusedError(refuse_unknown(agent_id))
    return agent_id


def is_shown(identity: AgentIdentity) -> bool:
    """Whether a reader may see this agent."""
    is_past_run = identity.status is IdentityStatus.ARCHIVED and is_temporary(identity)
    return identity.visibility is Visibility.PUBLIC or is_past_run


async def own_task(context: HttpContext, call: Call) -> TaskRecord:
    """The task the path names."""
    return await _own(
        call, "task", TaskId, context.host.reads.tasks.task, RefusalCode.TASK_NOT_FOUND
    )


async def own_timer(context: HttpContext, call: Call) -> TimerRecord:
    """The timer the path names."""
    return await _own(
        call, "timer", TimerId, context.host.reads.wake.timer, RefusalCode.TIMER_NOT_FOUND
    )


async def own_brief(context: HttpContext, call: Call) -> BriefRecord:
    """The brief the path names."""
    return await _own(
        call, "brief", BriefId, context.host.reads.events.brief, RefusalCode.BRIEF_NOT_FOUND
    )


async def own_work_item(context: HttpContext, call: Call) -> WorkItemRecord:
    """The work item the path names."""
    agent_id = named_agent(call)
    item_id = WorkItemId(_record_id(call, "work_item_id", "work item id"))
    item = await context.host.reads.work.work_item(item_id)
    if item is None or item.agent_id != agent_id:
        raise RefusedError(unknown_item(item_id))
    return item


async def own_message(context: HttpContext, call: Call) -> QueueEntry:
    """The message the path names."""
    agent_id = named_agent(call)
    message_id = MessageId(_record_id(call, "message_id", "message id"))
    entries = await context.host.reads.queue.messages(agent_id, [message_id])
    if not entries:
        raise _missing(RefusalCode.MESSAGE_NOT_FOUND, "message", message_id)
    return entries[0]


async def _own(
    call: Call,
    what: str,
    id_of: Callable[[str], IdT],
    read: Callable[[IdT], Awaitable[OwnedT | None]],
    missing: RefusalCode,
) -> OwnedT:
    agent_id, record_id = named_agent(call), id_of(_record_id(call, f"{what}_id", f"{what} id"))
    record = await read(record_id)
    if record is None or record.agent_id != agent_id:
        raise _missing(missing, what, str(record_id))
    return record


def _record_id(call: Call, name: str, what: str) -> str:
    return parse_record_id(call.params[name], what=what)


def _missing(code: RefusalCode, what: str, record_id: str) -> RefusedError:
    return RefusedError(
        Refusal(
            code=code,
            message=f"there is no {what} {record_id}",
            hint=f"list the agent's {what}s to find its id",
            field=f"{what}_id",
        )
    )
