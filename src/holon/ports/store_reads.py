"""The queries the runtime and its surfaces need.

Contract: each call sees one consistent moment that includes every commit whose outcome was known
when the call began. Nothing here changes a row.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from holon.model.agent import AgentState
from holon.model.brief import BriefRecord
from holon.model.event import AuditEvent
from holon.model.ids import AgentId, MessageId, TaskId, TimerId, TurnId, WorkItemId
from holon.model.message import MessageEnvelope, QueueEntry
from holon.model.provenance import DeliverySurface
from holon.model.provider_attempt import TokenUsage
from holon.model.snapshot import AdmissionTarget, AgentSnapshot, DueTimer, KeyedMessage
from holon.model.task import TaskRecord
from holon.model.transcript import TurnLog
from holon.model.wait import WaitRecord
from holon.model.wake import TimerRecord
from holon.model.work_item import WorkItemRecord


class QueueReads(Protocol):
    """Messages and what scheduling needs to know about them."""

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
        """Queued interject-band messages, oldest first."""
        ...

    async def unseen(self, agent_id: AgentId, *, limit: int) -> Sequence[MessageEnvelope]:
        """Processed messages no turn has shown to the model yet, oldest first."""
        ...

    async def queued_ticks(self, agent_id: AgentId, *, timer_id: TimerId) -> Sequence[MessageId]:
        """Ticks of this timer that have not been claimed."""
        ...


class AgentReads(Protocol):
    """Agents and their scheduling facts."""

    async def agent(self, agent_id: AgentId) -> AgentState | None:
        """One agent's state."""
        ...

    async def snapshot(self, agent_id: AgentId, *, now: datetime) -> AgentSnapshot | None:
        """Everything scheduling decides on, at one moment."""
        ...

    async def restless(self, *, now: datetime) -> Sequence[AgentId]:
        """Agents some row gives a reason to look at: queue, claim, hint, or open work item."""
        ...

    async def agents_with_open_turns(self) -> Sequence[AgentId]:
        """Agents whose lane was cut off by the end of an earlier process."""
        ...


class WheelReads(Protocol):
    """What comes due."""

    async def next_due_at(self, *, after: datetime) -> datetime | None:
        """The earliest timer slot, wait deadline or activation moment later than `after`."""
        ...

    async def due_timers(self, now: datetime, *, limit: int) -> Sequence[DueTimer]:
        """Active timers of agents that are not stopped whose slot has come, earliest first."""
        ...

    async def due_waits(self, now: datetime, *, limit: int) -> Sequence[WaitRecord]:
        """Active waits whose deadline has come, earliest first; rests and rechecks have none."""
        ...

    async def due_activations(self, now: datetime, *, limit: int) -> Sequence[AgentId]:
        """Idle agents whose held-back work, or whose reminder of a blocker, has come due."""
        ...


class RecordReads(Protocol):
    """Single records and pages of them."""

    async def used_bytes(self) -> int:
        """How much of the database is in use; its file only grows when there is nothing else."""
        ...

    async def turn_log(self, turn_id: TurnId) -> TurnLog | None:
        """A turn with everything recorded in it."""
        ...

    async def recent_turns(self, agent_id: AgentId, *, limit: int) -> Sequence[TurnLog]:
        """The newest settled turns, oldest of them first."""
        ...

    async def last_reported_usage(self, agent_id: AgentId) -> TokenUsage | None:
        """What the newest settled turn used of which a provider reported tokens."""
        ...

    async def briefs(self, agent_id: AgentId, *, limit: int) -> Sequence[BriefRecord]:
        """The newest briefs, oldest of them first."""
        ...

    async def events_after(
        self, agent_id: AgentId, event_seq: int, *, limit: int
    ) -> Sequence[AuditEvent]:
        """Events that follow a sequence number, in order."""
        ...

    async def event_bounds(self, agent_id: AgentId) -> tuple[int, int]:
        """The newest pruned sequence number (0 when none was), and the newest of all."""
        ...

    async def task(self, task_id: TaskId) -> TaskRecord | None:
        """One task."""
        ...

    async def open_tasks(self) -> Sequence[TaskRecord]:
        """Tasks that have not ended, of all agents."""
        ...

    async def timer(self, timer_id: TimerId) -> TimerRecord | None:
        """One timer."""
        ...

    async def work_item(self, work_item_id: WorkItemId) -> WorkItemRecord | None:
        """One work item."""
        ...

    async def waits_on(self, source_id: str) -> Sequence[WaitRecord]:
        """Open waits that this source ends."""
        ...

    async def item_waits(self, work_item_id: WorkItemId) -> Sequence[WaitRecord]:
        """Open waits this work item owns."""
        ...


class StoreReads(QueueReads, AgentReads, WheelReads, RecordReads, Protocol):
    """Every query, as one object."""
