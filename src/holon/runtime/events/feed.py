"""Event feed: live and durable events of one agent, or of all.

Owns:  subscriptions. The durable log is the source; commits only nudge readers to read again.
Rule 1: a reader gets what follows its cursor with no gap and no repeat.
Rule 2: a reader that is too far behind, or whose cursor was pruned, gets an error and ends; it is
        never skipped ahead. Nothing is buffered for a reader that does not read.
Rule 3: log numbers are consecutive, so a missing number was pruned. Each agent's log is pruned at
        its own position, which leaves holes anywhere: a page of all agents starts right after its
        cursor and skips no number, or the cursor is lost. A reader past a hole is not affected by
        it.
Rule 4: a commit costs one nudge per reader. Readers at the same position share one read, and a read
        that began before a commit is never served to readers nudged by that commit.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias

import anyio

from holon.model.errors import HolonError
from holon.model.events.event import AuditEvent
from holon.model.events.reads import EventQuery
from holon.model.limits import (
    EVENT_PAGE_COUNT_DEFAULT,
    FEED_LAG_EVENTS_MAX,
    FEED_PAGES_KEPT_COUNT_MAX,
)
from holon.model.lru import Lru
from holon.model.values import AgentId
from holon.ports.clock import Clock
from holon.ports.store import Store
from holon.runtime.background import Alarm

Page: TypeAlias = Sequence[AuditEvent]
GATHER_MS: Final = 10
_Place: TypeAlias = tuple[AgentId | None, int]


class CursorLostError(HolonError):
    """The events after this cursor are no longer kept, or the cursor is in the future."""

    code = "cursor_not_found"
    hint = "read the agent's current state and follow from its newest event"


class CursorAheadError(CursorLostError):
    """The cursor is newer than the log: it comes from another agent or another home."""

    code = "cursor_ahead"


class LogEpochChangedError(CursorLostError):
    """The cursor belongs to another timeline: the home was restored from a backup since."""

    code = "log_epoch_changed"


class SubscriberLaggedError(HolonError):
    """The follower is too far behind to be served live."""

    code = "subscriber_lagged"
    hint = "page through the events after your cursor, then follow again"


class EventReader:
    """One reader's place in a log."""

    def __init__(
        self,
        alarm: Alarm,
        clock: Clock,
        cursor: int,
        read: Callable[[int], Awaitable[Page]],
        *,
        is_global: bool,
    ) -> None:
        self._alarm = alarm
        self._clock = clock
        self._cursor = cursor
        self._read = read
        self._is_global = is_global
        self._is_at_end = False  # as of the last read

    async def page(self) -> Page:
        """Return the events after the cursor, maybe none; raises when the cursor is lost."""
        if self._is_at_end and not self._alarm.is_nudged:
            return ()  # nothing was committed since that read began
        page = await self._read(self._cursor)
        self._is_at_end = len(page) < EVENT_PAGE_COUNT_DEFAULT
        if page:
            self._cursor = page[-1].log_seq if self._is_global else page[-1].event_seq
        return page

    async def gather(self) -> None:
        """Wait briefly at the end of the log, so that events arrive in larger pages."""
        if self._is_at_end:
            await self._clock.sleep_for(GATHER_MS)

    async def news(self) -> None:
        """Return once there may be more events. Cancelling the wait loses nothing."""
        self._is_at_end = False  # read again after any wake-up, also `wake_all`
        await self._alarm.wait(until=None)


class EventFeed:
    """Live events of all agents."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._followers: dict[AgentId | None, set[Alarm]] = {}
        self._looking = anyio.Lock(fast_acquire=True)
        self._commit_count = 0
        self._kept: Lru[_Place, Page] = Lru(FEED_PAGES_KEPT_COUNT_MAX)

    @property
    def follower_count(self) -> int:
        """The number of open readers."""
        return sum(len(alarms) for alarms in self._followers.values())

    def commit_applied(self, touched: Collection[AgentId]) -> None:
        """Nudge the readers of these agents, and those of all agents."""
        self._commit_count += 1
        self._kept.clear()
        for place in (None, *touched):
            for alarm in self._followers.get(place, ()):
                alarm.nudge()

    def wake_all(self) -> None:
        """Wake every reader without a commit."""
        for alarms in self._followers.values():
            for alarm in alarms:
                alarm.nudge()

    @contextmanager
    def reader(self, agent_id: AgentId, *, after: int) -> Iterator[EventReader]:
        """Read the events of one agent that follow a sequence number."""

        async def read(cursor: int) -> Page:
            return await self._shared((agent_id, cursor), self._agent_page)

        with self._following(agent_id) as alarm:
            yield EventReader(alarm, self._clock, after, read, is_global=False)

    @contextmanager
    def log_reader(self, *, after: int) -> Iterator[EventReader]:
        """Read the events of all agents that follow a log number."""

        async def read(cursor: int) -> Page:
            return await self._shared((None, cursor), self._log_page)

        with self._following(None) as alarm:
            yield EventReader(alarm, self._clock, after, read, is_global=True)

    async def require_log_kept(self, cursor: int) -> None:
        """Raise when the events of all agents cannot be followed from this log number."""
        await self._shared((None, cursor), self._log_page)

    async def follow(self, agent_id: AgentId, *, after: int) -> AsyncGenerator[AuditEvent, None]:
        """Yield every event of an agent after a sequence number, for as long as it is read."""
        with self.reader(agent_id, after=after) as reader:
            while True:
                page = await reader.page()
                for event in page:
                    yield event
                if not page:
                    await reader.news()

    @contextmanager
    def _following(self, place: AgentId | None) -> Iterator[Alarm]:
        alarm = Alarm(self._clock)
        self._followers.setdefault(place, set()).add(alarm)
        try:
            yield alarm
        finally:
            self._followers[place].discard(alarm)
            if not self._followers[place]:
                del self._followers[place]

    async def _shared(self, place: _Place, read: Callable[[_Place], Awaitable[Page]]) -> Page:
        async with self._looking:
            cached = self._kept.get(place)
            if cached is not None:
                return cached
            begun_at = self._commit_count
            page = await read(place)
            if begun_at == self._commit_count:
                self._kept.put(place, page)
            return page

    async def _agent_page(self, place: _Place) -> Page:
        agent_id, cursor = place
        assert agent_id is not None
        query = EventQuery(after_seq=cursor, limit=EVENT_PAGE_COUNT_DEFAULT)
        found = await self._store.reads.events.events_page(agent_id, query)
        require_kept(agent_id, cursor, floor=found.floor_seq, newest=found.last_seq)
        require_near(cursor, found.last_seq)
        return found.events

    async def _log_page(self, place: _Place) -> Page:
        _, cursor = place
        newest = await self._store.reads.events.last_log_seq()
        require_kept(None, cursor, floor=0, newest=newest)
        require_near(cursor, newest)
        page = await self._store.reads.events.log_after(cursor, limit=EVENT_PAGE_COUNT_DEFAULT)
        if page and page[-1].log_seq - cursor != len(page):
            raise CursorLostError(f"some of what follows event {cursor} of all agents was pruned")
        return page


def require_kept(agent_id: AgentId | None, cursor: int, *, floor: int, newest: int) -> None:
    """Raise when the events after a cursor are unavailable: pruned, or in the future."""
    whose = "of all agents" if agent_id is None else f"of {agent_id}"
    if cursor > newest:
        raise CursorAheadError(f"event {cursor} {whose} has not happened: the newest is {newest}")
    if cursor < floor:
        raise CursorLostError(f"what follows event {cursor} {whose} is kept only after {floor}")


def require_epoch(asked: str | None, current: str | None) -> None:
    """Raise when a cursor belongs to another timeline than the current log."""
    if asked is not None and asked != current:
        raise LogEpochChangedError(
            "the events after this cursor are of another timeline: the home was restored since",
            hint="read the agent's current state and its newest event, and follow from there with"
            f" event_log_epoch={current}",
        )


def require_near(cursor: int, newest: int) -> None:
    """Raise when a cursor is too far behind to be followed live."""
    if newest - cursor > FEED_LAG_EVENTS_MAX:
        raise SubscriberLaggedError(f"{newest - cursor} events behind")
