"""Reading messages and queues."""

from collections.abc import Sequence

from holon.adapters.sqlite.read_session import ReadSession
from holon.adapters.sqlite.row_codec import ENVELOPES
from holon.adapters.sqlite.statements import Row
from holon.model.agent_status import AgentStatus
from holon.model.ids import AgentId, MessageId, TimerId
from holon.model.message import MessageEnvelope, MessageState, QueueEntry
from holon.model.provenance import DeliverySurface
from holon.model.snapshot import AdmissionTarget, KeyedMessage


class SqliteQueueReads(ReadSession):
    """The queue's part of the port."""

    async def admission_target(self, agent_id: AgentId) -> AdmissionTarget | None:
        """What the door needs to know, or nothing when there is no such agent."""
        found = self._one("admission_target", (agent_id,))
        if found is None:
            return None
        status, archived, queued_count = found
        assert isinstance(queued_count, int), "a trigger counts"
        return AdmissionTarget(
            status=AgentStatus(str(status)), is_archived=bool(archived), queued_count=queued_count
        )

    async def message(self, message_id: MessageId) -> QueueEntry | None:
        """One message and its state."""
        found = self._one("message", (message_id,))
        return None if found is None else queue_entry(found)

    async def keyed(
        self, agent_id: AgentId, surface: DeliverySurface, key: str
    ) -> KeyedMessage | None:
        """The message an idempotency key belongs to."""
        found = self._one("keyed", (agent_id, surface.value, key))
        if found is None:
            return None
        return KeyedMessage(message_id=MessageId(str(found[0])), body_digest=str(found[1]))

    async def interjections(self, agent_id: AgentId, *, limit: int) -> Sequence[MessageEnvelope]:
        """Queued prompts of the operator in the interject band, oldest first."""
        return self._envelopes("interjections", agent_id, limit)

    async def unseen(self, agent_id: AgentId, *, limit: int) -> Sequence[MessageEnvelope]:
        """Processed messages no turn has shown to the model yet, oldest first."""
        return self._envelopes("unseen", agent_id, limit)

    async def crowded(self, *, kept: int) -> Sequence[AgentId]:
        """Agents in use that more than so many messages wait to be shown to."""
        return [AgentId(str(row[0])) for row in self._all("crowded", (kept,))]

    async def oldest_unseen(
        self, agent_id: AgentId, *, kept: int, limit: int
    ) -> Sequence[MessageId]:
        """What waits to be shown beyond the newest so many, oldest first. No results of tasks."""
        found = self._all("oldest_unseen", (agent_id, kept, limit))
        return [MessageId(str(row[0])) for row in found]

    async def queued_ticks(self, agent_id: AgentId, *, timer_id: TimerId) -> Sequence[MessageId]:
        """Ticks of this timer that have not been claimed."""
        return [MessageId(str(row[0])) for row in self._all("queued_ticks", (agent_id, timer_id))]

    def _envelopes(self, name: str, agent_id: AgentId, limit: int) -> list[MessageEnvelope]:
        return [ENVELOPES.decode(str(row[0])) for row in self._all(name, (agent_id, limit))]


def queue_entry(found: Row) -> QueueEntry:
    """Return the message a row of the `message` query tells of."""
    seq, state, envelope, reason, was_put_off = found
    assert isinstance(seq, int), "seq is the row's number"
    return QueueEntry(
        seq=seq,
        state=MessageState(str(state)),
        message=ENVELOPES.decode(str(envelope)),
        settled_reason=None if reason is None else str(reason),
        was_put_off=bool(was_put_off),
    )
