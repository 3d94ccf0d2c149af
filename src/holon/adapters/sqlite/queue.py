"""The message queue: the rows of `messages`.

Owns:  the queue reads; queue, claim, defer, settle and show messages; the fence a claim raises on
       its agent.
Rule 1: a reused idempotency key is found by its unique index, not by a lookup beforehand, so the
        common case pays nothing for it.
"""

from collections.abc import Sequence
from typing import TypeAlias, assert_never

import apsw

from holon.adapters.sqlite.database.error_mapping import ConstraintNames
from holon.adapters.sqlite.database.row_codec import (
    ENVELOPES,
    encode,
    origin_kind,
)
from holon.adapters.sqlite.database.statements import (
    ChangeRefusedError,
    ReadSession,
    Row,
    Statements,
    Value,
    named_queries,
    number,
)
from holon.model.agents import AgentStatus
from holon.model.commits import (
    ClaimMessage,
    DeferMessage,
    KeyAlreadyUsed,
    MarkSeen,
    QueueMessage,
    ReleaseDeferred,
    SettleMessage,
)
from holon.model.events.reads import (
    AdmissionTarget,
    KeyedMessage,
)
from holon.model.limits import (
    SURFACE_PAGE_COUNT_MAX,
)
from holon.model.queue import (
    DeliverySurface,
    MessageEnvelope,
    MessageState,
    QueueEntry,
    TimerOrigin,
)
from holon.model.values import (
    AgentId,
    MessageId,
    TimerId,
    to_micros,
)

MessageChange: TypeAlias = (
    QueueMessage | ClaimMessage | DeferMessage | ReleaseDeferred | SettleMessage | MarkSeen
)
_MISSING = "messages_row_missing"


class SqliteQueueReads(ReadSession):
    """Messages, queued and settled."""

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

    async def messages(
        self, agent_id: AgentId, message_ids: Sequence[MessageId]
    ) -> Sequence[QueueEntry]:
        """Those of the named messages that are kept and are this agent's, in the order asked."""
        with self._moment():
            asked = message_ids[:SURFACE_PAGE_COUNT_MAX]
            found = [self._one("message", (message_id,)) for message_id in asked]
        entries = (queue_entry(row) for row in found if row is not None)
        return [entry for entry in entries if entry.message.agent_id == agent_id]

    async def followup_count(self, root_id: MessageId) -> int:
        """How many follow-ups of one chain are known."""
        found = self._one("followup_count", (root_id,))
        assert found is not None, "counts are always one row"
        return number(found[0])

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


class KeyUsedError(Exception):
    """The idempotency key belongs to an earlier message. Never leaves the writer."""

    def __init__(self, outcome: KeyAlreadyUsed) -> None:
        super().__init__(outcome.message_id)
        self.outcome = outcome


class MessageChanges:
    """Writes what changes about messages."""

    def __init__(self, statements: Statements, names: ConstraintNames) -> None:
        self._statements = statements
        self._names = names
        self._sql = named_queries("messages")
        self._agent_sql = named_queries("agents")

    def write(self, change: MessageChange, *, at: int) -> None:
        """Write one change; `at` is the moment of its commit."""
        match change:
            case QueueMessage():
                self._queue(change)
            case ClaimMessage():
                self._claim(change)
            case DeferMessage():
                until = to_micros(change.until)
                self._update("defer_message", (change.message_id, change.agent_id, until))
            case ReleaseDeferred(agent_id=agent_id):
                self._statements.run(self._sql["release_deferred"], (agent_id,))
            case SettleMessage():
                self._settle(change, at=at)
            case MarkSeen(agent_id=agent_id, message_ids=message_ids):
                for message_id in message_ids:
                    self._update("mark_seen", (message_id, agent_id))
            case _:
                assert_never(change)

    def _update(self, name: str, parameters: tuple[str | int | None, ...]) -> None:
        self._statements.change_one(self._sql[name], parameters, missing=_MISSING)

    def queue_all(self, changes: Sequence[QueueMessage]) -> None:
        """Queue messages in order; raises apsw.ConstraintError when one of them may not come in."""
        self._statements.insert(self._sql["queue_message"], [_row_of(change) for change in changes])

    def _queue(self, change: QueueMessage) -> None:
        try:
            self._statements.run(self._sql["queue_message"], _row_of(change))
        except apsw.ConstraintError as error:
            if self._names.name_of(error) == "messages_idempotency_key":
                raise KeyUsedError(self._key_owner(change)) from error
            raise

    def _key_owner(self, change: QueueMessage) -> KeyAlreadyUsed:
        message = change.message
        owner = self._statements.row(
            self._sql["key_owner"],
            (message.agent_id, message.delivery_surface.value, change.idempotency_key),
        )
        if owner is None:
            raise ChangeRefusedError("messages_idempotency_key")
        message_id, digest = owner
        return KeyAlreadyUsed(
            message_id=MessageId(str(message_id)), same_body=digest == change.body_digest
        )

    def _claim(self, change: ClaimMessage) -> None:
        self._update("claim_message", (change.message_id, change.agent_id, change.generation))
        self._statements.change_one(
            self._agent_sql["hold_lane"],
            (change.agent_id, change.generation, change.passed_over),
            missing="agents_row_missing",
        )

    def _settle(self, change: SettleMessage, *, at: int) -> None:
        if not change.state.is_terminal:
            raise ChangeRefusedError("messages_settle_to_a_terminal_state")
        self._update(
            "settle_message",
            (
                change.message_id,
                change.agent_id,
                change.state.value,
                at,
                change.reason,
                int(change.unseen),
            ),
        )
        if change.passed_over is not None:
            self._statements.change_one(
                self._agent_sql["count_passed_over"],
                (change.agent_id, change.passed_over),
                missing="agents_row_missing",
            )


def _row_of(change: QueueMessage) -> tuple[Value, ...]:
    message = change.message
    origin = message.origin
    return (
        message.id,
        message.agent_id,
        MessageState.QUEUED,
        message.priority.band,
        message.kind,
        origin_kind(origin),
        message.trust,
        message.authority_class,
        message.admission_context,
        message.delivery_surface,
        change.idempotency_key,
        change.body_digest,
        change.tick_key,
        origin.timer_id if isinstance(origin, TimerOrigin) else None,
        message.wait_id,
        to_micros(message.created_at),
        encode(message),
    )
