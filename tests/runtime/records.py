"""What a story left behind, as the reads of its store show it.

Owns:  lists of everything of one kind that is kept, of all agents unless one is named.
Rule 1: a test of the runtime asks the port, never the tables: how a record is laid out in rows is
        the business of the adapter and of its own tests.
Rule 2: what no read lists is taken from the log: which agents and messages there are, and how each
        wait ended. So these lists leave out what the log says no longer, once it was pruned.
"""

from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from holon.model.events.event import AuditEvent, MessageAdmitted
from holon.model.events.reads import AgentSnapshot
from holon.model.limits import (
    EVENT_PAGE_COUNT_MAX,
    SURFACE_PAGE_COUNT_MAX,
    SURFACE_TURNS_COUNT_MAX,
    UNSEEN_PER_AGENT_COUNT_MAX,
)
from holon.model.queue import MessageEnvelope, MessageKind, MessageState, QueueEntry
from holon.model.tasks import TaskRecord
from holon.model.turns.transcript import RecordedCall, TurnLog
from holon.model.turns.turn import TurnRecord
from holon.model.values import AgentId, TimerId, WaitId, WorkItemId
from holon.model.wake import (
    TimerRecord,
    TimerStatus,
    WaitKind,
    WaitMoved,
    WaitOpened,
    WaitRecord,
    WaitState,
    WakeHint,
)
from holon.model.work import WorkItemRecord
from holon.ports.reads import StoreReads
from tests.runtime.house import House

T = TypeVar("T")


class KeptWait(NamedTuple):
    """A wait as the log tells it, open or ended."""

    id: WaitId
    kind: WaitKind
    state: WaitState
    deadline_at: datetime | None
    work_item_id: WorkItemId | None
    source_id: str | None


def answer_of(read: Coroutine[Any, Any, T]) -> T:
    """The answer of a read, also between two lives: a database in memory never makes one wait."""
    try:
        read.send(None)
    except StopIteration as end:
        answer: T = end.value
        return answer
    raise AssertionError("a read of a database in memory waited for something")


def reads_of(house: House) -> StoreReads:
    """The reads of the store, without whatever the story put before it."""
    return house.disk.reads


def kept_log(house: House) -> list[AuditEvent]:
    """The events of all agents, in order."""
    found: list[AuditEvent] = []
    while page := answer_of(
        reads_of(house).events.log_after(
            found[-1].log_seq if found else 0, limit=EVENT_PAGE_COUNT_MAX
        )
    ):
        found.extend(page)
    return found


def agents_of(house: House) -> list[AgentId]:
    """The public agents, and those the log names."""
    reads = reads_of(house).agents
    public = answer_of(reads.public_agents(after=None, limit=SURFACE_PAGE_COUNT_MAX))
    named = [listed.agent.identity.agent_id for listed in public]
    return list(dict.fromkeys([*named, *(audit.agent_id for audit in kept_log(house))]))


def kept_messages(house: House, *, kind: MessageKind | None = None) -> list[QueueEntry]:
    """The messages that were admitted, oldest first; of one kind, if one is named."""
    admitted = [
        audit.event.message_id
        for audit in kept_log(house)
        if isinstance(audit.event, MessageAdmitted)
    ]
    found = [answer_of(reads_of(house).queue.message(message_id)) for message_id in admitted]
    entries = [entry for entry in found if entry is not None]
    return [entry for entry in entries if kind in (None, entry.message.kind)]


def queued_messages(house: House) -> list[QueueEntry]:
    """The messages that wait in the queue."""
    return [entry for entry in kept_messages(house) if entry.state is MessageState.QUEUED]


def message_states(house: House, *, kind: MessageKind | None = None) -> list[MessageState]:
    """Where the messages stand, oldest first."""
    return [entry.state for entry in kept_messages(house, kind=kind)]


def unseen_messages(house: House) -> list[MessageEnvelope]:
    """The messages no turn has shown to the model yet, oldest first of each agent."""
    reads = reads_of(house).queue
    return [
        message
        for agent_id in agents_of(house)
        for message in answer_of(reads.unseen(agent_id, limit=UNSEEN_PER_AGENT_COUNT_MAX))
    ]


def turn_logs(house: House, agent: str | None = None) -> list[TurnLog]:
    """The turns with everything recorded in them, oldest first of each agent."""
    reads = reads_of(house).turns
    found: list[TurnLog] = []
    for agent_id in agents_of(house) if agent is None else [AgentId(agent)]:
        newest_first: list[TurnLog] = []
        while page := answer_of(
            reads.turns_page(
                agent_id,
                before_index=newest_first[-1].turn.turn_index if newest_first else None,
                limit=SURFACE_TURNS_COUNT_MAX,
            )
        ):
            newest_first.extend(page)
        found.extend(reversed(newest_first))
    return found


def kept_turns(house: House, agent: str | None = None) -> list[TurnRecord]:
    """The turns, the open one included, oldest first of each agent."""
    return [log.turn for log in turn_logs(house, agent)]


def open_turns(house: House) -> list[TurnRecord]:
    """The turns that have not settled."""
    return [turn for turn in kept_turns(house) if turn.terminal is None]


def kept_calls(house: House) -> list[RecordedCall]:
    """The tool calls of all turns, in the order they were begun."""
    found = [recorded for log in turn_logs(house) for recorded in log.calls]
    return sorted(found, key=lambda recorded: recorded.call.started_at)


def call_states(house: House) -> list[str]:
    """Where the tool calls of all turns stand."""
    return [recorded.call.state for recorded in kept_calls(house)]


def kept_waits(house: House) -> list[KeptWait]:
    """The waits that were opened, in that order, each as it stands."""
    found: dict[WaitId, KeptWait] = {}
    for audit in kept_log(house):
        match audit.event:
            case WaitOpened() as opened:
                found[opened.wait_id] = KeptWait(
                    opened.wait_id,
                    opened.wait_kind,
                    WaitState.ACTIVE,
                    opened.deadline_at,
                    opened.work_item_id,
                    opened.source_id,
                )
            case WaitMoved(wait_id=wait_id, state=state) if wait_id in found:
                found[wait_id] = found[wait_id]._replace(state=state)
            case _:
                pass
    return list(found.values())


def wait_states(house: House) -> list[tuple[str, str]]:
    """What is or was waited for, and where each wait stands, in the order they were opened."""
    return [(wait.kind, wait.state) for wait in kept_waits(house)]


def active_waits(house: House) -> list[WaitRecord]:
    """The waits nothing has ended or triggered yet."""
    snapshots = _snapshots(house)
    waits = [wait for snapshot in snapshots for wait in snapshot.waits]
    return [wait for wait in waits if wait.state is WaitState.ACTIVE]


def kept_timers(house: House) -> list[TimerRecord]:
    """The timers: of each agent the active ones, soonest first, then ended ones, newest first."""
    reads = reads_of(house).wake
    found: list[TimerRecord] = []
    for agent_id in agents_of(house):
        after: TimerId | None = None
        while page := answer_of(
            reads.timers_page(agent_id, after=after, limit=SURFACE_PAGE_COUNT_MAX)
        ):
            found.extend(page)
            after = page[-1].id
    return found


def active_timers(house: House) -> list[TimerRecord]:
    """The timers that will fire."""
    return [timer for timer in kept_timers(house) if timer.status is TimerStatus.ACTIVE]


def kept_items(house: House) -> list[WorkItemRecord]:
    """The work items, oldest first."""
    reads = reads_of(house).work
    found: list[WorkItemRecord] = []
    for agent_id in agents_of(house):
        after: WorkItemId | None = None
        while page := answer_of(
            reads.work_items_page(agent_id, after=after, limit=SURFACE_PAGE_COUNT_MAX)
        ):
            found.extend(weighed.item for weighed in page)
            after = page[-1].item.id
    return sorted(found, key=lambda item: item.created_at)


def kept_tasks(house: House) -> list[TaskRecord]:
    """The background tasks, oldest first."""
    reads = reads_of(house).tasks
    found: Sequence[TaskRecord] = [
        task
        for agent_id in agents_of(house)
        for task in answer_of(reads.tasks_page(agent_id, after=None, limit=SURFACE_PAGE_COUNT_MAX))
    ]
    return sorted(found, key=lambda task: task.created_at)


def held_until(house: House) -> list[datetime]:
    """Until when the agents with a message that is held back before its first turn wait for it."""
    found = [snapshot.slowed_until for snapshot in _snapshots(house)]
    return [until for until in found if until is not None]


def kept_hints(house: House) -> list[WakeHint]:
    """The wake hints that are parked."""
    return [hint for snapshot in _snapshots(house) for hint in snapshot.hints]


def _snapshots(house: House) -> list[AgentSnapshot]:
    reads, now = reads_of(house).agents, house.clock.now()
    found = [answer_of(reads.snapshot(agent_id, now=now)) for agent_id in agents_of(house)]
    return [snapshot for snapshot in found if snapshot is not None]
