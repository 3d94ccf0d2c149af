"""Events as frames of a stream, made once for all who read them.

Owns:  the look-up of provenance, the frame of an event, and which agents a reader of all sees.
Rule 1: messages are looked up a page at a time, one look per agent.
Rule 2: an event never changes, so its frame is kept for the next reader; how many is bounded.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import anyio

from holon.model.agent import Visibility
from holon.model.event import AuditEvent
from holon.model.ids import AgentId, MessageId
from holon.model.limits import EVENT_FRAMES_KEPT_COUNT_MAX
from holon.model.message import MessageEnvelope
from holon.ports.store_reads import StoreReads
from holon.projections.event_envelope import (
    EventEnvelope,
    EventProjection,
    event_envelope,
    message_of,
)
from holon.wire.codec import encode

_Key: TypeAlias = tuple[int, EventProjection, bool]
_SEEN_AGENTS_COUNT_MAX: Final = 65_536


async def messages_of(
    reads: StoreReads, events: Iterable[AuditEvent]
) -> dict[MessageId, MessageEnvelope]:
    """Return the messages these events are about, as far as they are kept."""
    named: defaultdict[AgentId, dict[MessageId, None]] = defaultdict(dict)
    for each in events:
        message_id = message_of(each.event)
        if message_id is not None:
            named[each.agent_id][message_id] = None
    found: dict[MessageId, MessageEnvelope] = {}
    for agent_id, message_ids in named.items():
        entries = await reads.messages(agent_id, list(message_ids))
        found.update((entry.message.id, entry.message) for entry in entries)
    return found


class EventFrames:
    """The frames of one server."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, bytes] = OrderedDict()
        self._seen: dict[AgentId, bool] = {}
        self._making = anyio.Lock()

    async def of_agent(
        self, reads: StoreReads, events: Sequence[AuditEvent], projection: EventProjection
    ) -> bytes:
        """Return frames whose id is the agent's sequence number."""
        return b"".join(await self._frames(reads, events, projection, by_log=False))

    async def of_all(
        self, reads: StoreReads, events: Sequence[AuditEvent], projection: EventProjection
    ) -> bytes:
        """Return frames whose id is the log's number, of public agents only."""
        public = [each for each in events if await self._is_public(reads, each.agent_id)]
        return b"".join(await self._frames(reads, public, projection, by_log=True))

    async def _frames(
        self,
        reads: StoreReads,
        events: Sequence[AuditEvent],
        projection: EventProjection,
        *,
        by_log: bool,
    ) -> list[bytes]:
        async with self._making:  # who comes second finds what the first one made
            keys = [(each.log_seq, projection, by_log) for each in events]
            new = [each for each, key in zip(events, keys, strict=True) if key not in self._kept]
            messages = await messages_of(reads, new)
            epoch = await reads.log_epoch()
            made = {
                each.log_seq: _frame(
                    each,
                    event_envelope(
                        each,
                        projection=projection,
                        message=messages.get(MessageId(message_of(each.event) or "")),
                        epoch=epoch,
                    ),
                    by_log=by_log,
                )
                for each in new
            }
            frames = [made.get(key[0]) or self._kept[key] for key in keys]
            for log_seq, frame in made.items():
                self._kept[log_seq, projection, by_log] = frame
            while len(self._kept) > EVENT_FRAMES_KEPT_COUNT_MAX:
                self._kept.popitem(last=False)
            return frames

    async def _is_public(self, reads: StoreReads, agent_id: AgentId) -> bool:
        seen = self._seen.get(agent_id)
        if seen is None:
            agent = await reads.agent(agent_id)
            seen = agent is not None and agent.identity.visibility is Visibility.PUBLIC
            if len(self._seen) >= _SEEN_AGENTS_COUNT_MAX:
                self._seen.clear()
            self._seen[agent_id] = seen
        return seen


def _frame(event: AuditEvent, envelope: EventEnvelope, *, by_log: bool) -> bytes:
    number = event.log_seq if by_log else event.event_seq
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (number, envelope.type.encode(), encode(envelope))
