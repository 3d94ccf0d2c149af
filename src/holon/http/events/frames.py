"""Events as server-sent event frames, built once and shared by all streams.

Owns:  the lookup of the records an event refers to; the frame of an event; which agents a stream of
       all agents includes.
Rule 1: messages and turns are looked up per page, with one query per agent.
Rule 2: an event never changes, so its frame is cached; the cache is bounded.
Rule 3: an event below the requested level is skipped, but its number is sent, so that a reader
        resumes after it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import anyio

from holon.model.agents import Visibility
from holon.model.events.briefs import OperatorVisibility
from holon.model.events.event import AuditEvent, BriefCreated
from holon.model.limits import EVENT_FRAMES_KEPT_COUNT_MAX, SURFACE_PAGE_COUNT_MAX
from holon.model.lru import Lru
from holon.model.queue import MessageEnvelope
from holon.model.turns.turn import TurnRecord
from holon.model.values import AgentId, MessageId, TurnId
from holon.ports.reads import StoreReads
from holon.projections.events.envelope import (
    EventEnvelope,
    EventProjection,
    RelatedRows,
    event_envelope,
    message_of,
    turn_of,
)
from holon.projections.events.presented import (
    NOTHING_BEFORE,
    PresentationContext,
    context_at,
    is_within,
)
from holon.wire.codec import encode

_Key: TypeAlias = tuple[int, EventProjection, bool]
_SEEN_AGENTS_COUNT_MAX: Final = 65_536
_BEFORE_COUNT: Final = 128  # events before a brief that are searched for its turn
_AFTER_COUNT: Final = 16  # events that may follow a brief in its commit


async def surroundings_of(
    reads: StoreReads, events: Iterable[AuditEvent]
) -> dict[int, RelatedRows]:
    """Return the records these events refer to, by log number, if retained."""
    by_agent: defaultdict[AgentId, list[AuditEvent]] = defaultdict(list)
    for each in events:
        by_agent[each.agent_id].append(each)
    surroundings: dict[int, RelatedRows] = {}
    for agent_id, own in by_agent.items():
        surroundings.update(await _surroundings_of_agent(reads, agent_id, own))
    return surroundings


async def _surroundings_of_agent(
    reads: StoreReads, agent_id: AgentId, events: Sequence[AuditEvent]
) -> dict[int, RelatedRows]:
    turn_ids = dict.fromkeys(id_ for each in events if (id_ := turn_of(each)))
    turns = {turn.turn_id: turn for turn in await reads.turns.named(agent_id, list(turn_ids))}
    concerned = {each.log_seq: _message_concerned(each, turns) for each in events}
    message_ids = list(dict.fromkeys(id_ for id_ in concerned.values() if id_))
    messages: dict[MessageId | None, MessageEnvelope] = {}
    for start in range(0, len(message_ids), SURFACE_PAGE_COUNT_MAX):
        chunk = message_ids[start : start + SURFACE_PAGE_COUNT_MAX]
        entries = await reads.queue.messages(agent_id, chunk)
        messages.update((entry.message.id, entry.message) for entry in entries)
    surroundings: dict[int, RelatedRows] = {}
    for each in events:
        turn_id, brief, context = turn_of(each), None, NOTHING_BEFORE
        if isinstance(each.event, BriefCreated):
            brief = await reads.events.brief(each.event.brief_id)
            if each.event.visibility is None:
                context = await _context_of(reads, each)
        surroundings[each.log_seq] = RelatedRows(
            message=messages.get(concerned[each.log_seq]),
            turn=None if turn_id is None else turns.get(turn_id),
            brief=brief,
            context=context,
        )
    return surroundings


def _message_concerned(event: AuditEvent, turns: Mapping[TurnId, TurnRecord]) -> MessageId | None:
    turn_id = turn_of(event)
    turn = None if turn_id is None else turns.get(turn_id)
    return message_of(event.event) or (None if turn is None else turn.message_id)


async def _context_of(reads: StoreReads, event: AuditEvent) -> PresentationContext:
    """Derive the presentation context of an older version's brief from the events around it."""
    first = max(0, event.event_seq - _BEFORE_COUNT - 1)
    limit = _BEFORE_COUNT + _AFTER_COUNT
    return context_at(
        await reads.events.events_after(event.agent_id, first, limit=limit), event.event_seq
    )


class _Frame(NamedTuple):
    number: int
    visibility: OperatorVisibility
    wire: bytes


class EventFrames:
    """The frames of one server."""

    def __init__(self) -> None:
        self._kept: Lru[_Key, _Frame] = Lru(EVENT_FRAMES_KEPT_COUNT_MAX)
        self._seen: Lru[AgentId, bool] = Lru(_SEEN_AGENTS_COUNT_MAX)
        self._making = anyio.Lock()

    async def of_agent(
        self,
        reads: StoreReads,
        events: Sequence[AuditEvent],
        projection: EventProjection,
        max_level: OperatorVisibility = OperatorVisibility.TRACE,
    ) -> bytes:
        """Return frames whose id is the agent's sequence number."""
        frames = await self._frames(reads, events, projection, by_log=False)
        return _within(max_level, frames)

    async def of_all(
        self,
        reads: StoreReads,
        events: Sequence[AuditEvent],
        projection: EventProjection,
        max_level: OperatorVisibility = OperatorVisibility.TRACE,
    ) -> bytes:
        """Return frames whose id is the log's number, of public agents only."""
        public = [each for each in events if await self._is_public(reads, each.agent_id)]
        return _within(max_level, await self._frames(reads, public, projection, by_log=True))

    async def _frames(
        self,
        reads: StoreReads,
        events: Sequence[AuditEvent],
        projection: EventProjection,
        *,
        by_log: bool,
    ) -> list[_Frame]:
        async with self._making:  # who comes second finds what the first one made
            keys = [(each.log_seq, projection, by_log) for each in events]
            kept = {key: frame for key in keys if (frame := self._kept.peek(key)) is not None}
            new = [each for each, key in zip(events, keys, strict=True) if key not in kept]
            around = await surroundings_of(reads, new)
            epoch = await reads.events.log_epoch()
            made = {
                each.log_seq: _frame(
                    each,
                    event_envelope(
                        each, projection=projection, related=around[each.log_seq], epoch=epoch
                    ),
                    by_log=by_log,
                )
                for each in new
            }
            for log_seq, frame in made.items():
                self._kept.put((log_seq, projection, by_log), frame)
            return [made.get(key[0]) or kept[key] for key in keys]

    async def _is_public(self, reads: StoreReads, agent_id: AgentId) -> bool:
        seen = self._seen.peek(agent_id)
        if seen is None:
            agent = await reads.agents.agent(agent_id)
            seen = agent is not None and agent.identity.visibility is Visibility.PUBLIC
            self._seen.put(agent_id, seen)
        return seen


def _frame(event: AuditEvent, envelope: EventEnvelope, *, by_log: bool) -> _Frame:
    number = event.log_seq if by_log else event.event_seq
    wire = (number, envelope.type.encode(), encode(envelope))
    return _Frame(number, envelope.visibility, b"id: %d\nevent: %s\ndata: %s\n\n" % wire)


def _within(max_level: OperatorVisibility, frames: Sequence[_Frame]) -> bytes:
    """Return what concerns the operator at least so much, and how far that reaches.

    A frame with an id and no data is no event, yet a reader that comes back goes on after it.
    """
    shown = [frame for frame in frames if is_within(max_level, frame.visibility)]
    wire = b"".join(frame.wire for frame in shown)
    if frames and (not shown or shown[-1] is not frames[-1]):
        wire += b"id: %d\n\n" % frames[-1].number
    return wire
