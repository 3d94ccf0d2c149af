"""After the commit: events to whoever follows an agent.

Owns:  subscriptions. The durable log is the source; commits only nudge readers to look again.
Rule 1: a follower sees cursor+1, cursor+2 … with no gap and no repeat.
Rule 2: a follower that falls too far behind, or whose cursor was pruned, is told so and ends; it is
        never skipped ahead. Nothing is buffered for a follower that does not read.
"""

from collections.abc import AsyncGenerator, Collection

from holon.model.errors import HolonError
from holon.model.event import AuditEvent
from holon.model.ids import AgentId
from holon.model.limits import EVENT_PAGE_COUNT_DEFAULT, FEED_LAG_EVENTS_MAX
from holon.ports.clock import Clock
from holon.ports.store import Store
from holon.runtime.alarm import Alarm


class CursorLostError(HolonError):
    """The events after this cursor are no longer kept, or the cursor is in the future."""

    code = "cursor_not_found"
    hint = "read the agent's current state and follow from its newest event"


class SubscriberLaggedError(HolonError):
    """The follower is too far behind to be served live."""

    code = "subscriber_lagged"
    hint = "page through the events after your cursor, then follow again"


class EventFeed:
    """Live events of all agents."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._followers: dict[AgentId, set[Alarm]] = {}

    def commit_applied(self, touched: Collection[AgentId]) -> None:
        """Nudge the followers of these agents."""
        for agent_id in touched:
            for alarm in self._followers.get(agent_id, ()):
                alarm.nudge()

    async def follow(self, agent_id: AgentId, *, after: int) -> AsyncGenerator[AuditEvent, None]:
        """Yield every event of an agent after a sequence number, for as long as it is read."""
        alarm = Alarm(self._clock)
        self._followers.setdefault(agent_id, set()).add(alarm)
        try:
            cursor = after
            while True:
                for event in await self._next_page(agent_id, cursor):
                    cursor = event.event_seq
                    yield event
                if (await self._store.reads.event_bounds(agent_id))[1] == cursor:
                    await alarm.wait(until=None)
        finally:
            self._followers[agent_id].discard(alarm)
            if not self._followers[agent_id]:
                del self._followers[agent_id]

    async def _next_page(self, agent_id: AgentId, cursor: int) -> list[AuditEvent]:
        floor, newest = await self._store.reads.event_bounds(agent_id)
        if cursor < floor or cursor > newest:
            raise CursorLostError(
                f"event {cursor} of {agent_id} is not between {floor} and {newest}"
            )
        if newest - cursor > FEED_LAG_EVENTS_MAX:
            raise SubscriberLaggedError(f"{newest - cursor} events behind on {agent_id}")
        page = await self._store.reads.events_after(
            agent_id, cursor, limit=EVENT_PAGE_COUNT_DEFAULT
        )
        return list(page)
