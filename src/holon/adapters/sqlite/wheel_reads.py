"""Reading what comes due.

Owns:  nothing but order: every query walks a partial index from its early end.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from holon.adapters.sqlite.read_session import ReadSession
from holon.adapters.sqlite.row_codec import TimerRow, WaitRow, timer_record, wait_record
from holon.adapters.sqlite.statements import Row
from holon.model.ids import AgentId, TimerId
from holon.model.instant import from_micros, to_micros
from holon.model.limits import BUDGET_WINDOW_MS, USAGE_STEP_MS
from holon.model.snapshot import DueTimer
from holon.model.wait import WaitRecord
from holon.model.wake import TimerRecord
from holon.ports.store_reads import DuePlace

_LONGEST_HOLD: Final = timedelta(milliseconds=BUDGET_WINDOW_MS + USAGE_STEP_MS)


class SqliteWheelReads(ReadSession):
    """The wheel's part of the port."""

    async def next_due_at(self, *, after: datetime) -> datetime | None:
        """The earliest timer slot, wait deadline or activation moment later than `after`."""
        found = self._one("next_due", (to_micros(after),))
        moment = None if found is None else found[0]
        return from_micros(moment) if isinstance(moment, int) else None

    async def is_anything_due(self, now: datetime) -> bool:
        """Whether a timer, wait or activation may have come due. One look, and mostly the last."""
        found = self._one("anything_due", (to_micros(now), to_micros(now + _LONGEST_HOLD)))
        return found is not None and bool(found[0])

    async def due_timers(
        self, now: datetime, *, limit: int, after: DuePlace | None = None
    ) -> Sequence[DueTimer]:
        """Active timers of agents that are not stopped whose slot has come, earliest first."""
        return _due_timers(self._all("due_timers", (to_micros(now), limit, *_place(after))))

    async def due_timers_of(
        self, agent_id: AgentId, now: datetime, *, limit: int
    ) -> Sequence[DueTimer]:
        """The same of one agent."""
        return _due_timers(self._all("due_timers_of", (agent_id, to_micros(now), limit)))

    async def settled_by(self, moment: datetime) -> datetime | None:
        """When the newest message that was settled by that moment was; None without one."""
        found = self._one("settled_by", (to_micros(moment),))
        settled_at = None if found is None else found[0]
        return from_micros(settled_at) if isinstance(settled_at, int) else None

    async def logged_since(self) -> datetime | None:
        """When the first event that is still in the log happened; None when there is none."""
        found = self._one("logged_since", ())
        created_at = None if found is None else found[0]
        return from_micros(created_at) if isinstance(created_at, int) else None

    async def timers_ahead(
        self, now: datetime, *, limit: int, after: TimerId | None = None
    ) -> Sequence[TimerRecord]:
        """Active timers that were armed or fired last at a moment later than `now`, by their id."""
        second = f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
        found = self._all("timers_ahead", (to_micros(now), second, limit, after or ""))
        return [timer_record(TimerRow._make(row)) for row in found]

    async def due_waits(
        self, now: datetime, *, limit: int, after: DuePlace | None = None
    ) -> Sequence[WaitRecord]:
        """Active waits of agents that are not stopped whose deadline has come, earliest first."""
        found = self._all("due_waits", (to_micros(now), limit, *_place(after)))
        return [wait_record(WaitRow._make(row)) for row in found]

    async def due_waits_of(
        self, agent_id: AgentId, now: datetime, *, limit: int
    ) -> Sequence[WaitRecord]:
        """The same of one agent."""
        found = self._all("due_waits_of", (agent_id, to_micros(now), limit))
        return [wait_record(WaitRow._make(row)) for row in found]

    async def due_activations(
        self, now: datetime, *, limit: int, since: datetime | None = None
    ) -> Sequence[AgentId]:
        """Idle agents whose work was held back until a moment that has come."""
        longest = to_micros(now + _LONGEST_HOLD)
        earliest = -1 if since is None else to_micros(since)
        found = self._all("due_activations", (to_micros(now), limit, longest, earliest))
        return [AgentId(str(row[0])) for row in found]


def _place(after: DuePlace | None) -> tuple[int, str | None]:
    if after is None:
        return -1, None
    moment = to_micros(after.moment)
    return (moment + 1, None) if after.id is None else (moment, after.id)


def _due_timers(found: Sequence[Row]) -> list[DueTimer]:
    return [
        DueTimer(timer=timer_record(TimerRow._make(columns)), tick_pending=bool(tick_pending))
        for *columns, tick_pending in found
    ]
