"""Reading single records and pages of them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import apsw

from holon.adapters.sqlite.error_mapping import running_errors
from holon.adapters.sqlite.read_session import ReadSession
from holon.adapters.sqlite.row_codec import (
    BRIEFS,
    ITEMS,
    USAGES,
    CallRow,
    EntryRow,
    EventRow,
    TaskRow,
    TimerRow,
    TurnRow,
    WaitRow,
    audit_event,
    task_record,
    timer_record,
    wait_record,
)
from holon.adapters.sqlite.settled_turns import SettledTurns, turn_log
from holon.adapters.sqlite.statements import Row
from holon.model.brief import BriefRecord
from holon.model.event import AuditEvent
from holon.model.ids import AgentId, TaskId, TimerId, TurnId, WorkItemId
from holon.model.limits import SURFACE_USAGE_TURNS_COUNT_MAX
from holon.model.provider_attempt import TokenUsage
from holon.model.task import TaskRecord
from holon.model.transcript import TurnLog
from holon.model.wait import WaitRecord
from holon.model.wake import TimerRecord
from holon.model.work_item import WorkItemRecord

_OfTurn = TypeVar("_OfTurn", EntryRow, CallRow)


class _TurnPlace(NamedTuple):
    turn_id: str
    turn_index: int


class SqliteRecordReads(ReadSession):
    """The records' part of the port."""

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self._settled = SettledTurns()

    async def used_bytes(self) -> int:
        """How much of the database is in use; its file only grows when there is nothing else."""
        pragma = self._statements.connection.pragma
        with running_errors():
            pages, free, size = map(pragma, ("page_count", "freelist_count", "page_size"))
        return (int(str(pages)) - int(str(free))) * int(str(size))

    async def turn_log(self, turn_id: TurnId) -> TurnLog | None:
        """A turn with everything recorded in it."""
        with self._moment():
            found = self._one("turn", (turn_id,))
            return None if found is None else self._log_of(found)

    async def recent_turns(
        self, agent_id: AgentId, *, limit: int, from_turn: int = 0
    ) -> Sequence[TurnLog]:
        """The newest settled turns, none before `from_turn`, oldest of them first."""
        with self._moment():
            asked = (agent_id, limit, from_turn)
            newest_first = [_TurnPlace._make(row) for row in self._all("recent", asked)]
            logs = {place.turn_id: self._settled.known(place.turn_id) for place in newest_first}
            unread = [place.turn_index for place in newest_first if logs[place.turn_id] is None]
            if unread:
                logs |= self._read_since(agent_id, unread[-1])
        return [log for log in reversed(logs.values()) if log is not None]

    def _read_since(self, agent_id: AgentId, turn_index: int) -> dict[str, TurnLog]:
        """Read settled turns: three queries, however many there are."""
        since = (agent_id, turn_index)
        entries = _by_turn(map(EntryRow._make, self._all("recent_entries", since)))
        calls = _by_turn(map(CallRow._make, self._all("recent_calls", since)))
        turns = map(TurnRow._make, self._all("recent_turns", since))
        return {
            row.turn_id: self._settled.read(row, entries[row.turn_id], calls[row.turn_id])
            for row in turns
        }

    def _log_of(self, found: Row) -> TurnLog:
        row = TurnRow._make(found)
        entries = [EntryRow._make(each) for each in self._all("entries", (row.turn_id,))]
        calls = [CallRow._make(each) for each in self._all("calls", (row.turn_id,))]
        return turn_log(row, entries, calls)

    async def last_reported_usage(self, agent_id: AgentId) -> TokenUsage | None:
        """What the newest turn used, of the last settled ones that reported any tokens."""
        found = self._one("last_reported_usage", (agent_id, SURFACE_USAGE_TURNS_COUNT_MAX))
        return None if found is None else USAGES.decode(str(found[0]))

    async def briefs(self, agent_id: AgentId, *, limit: int) -> Sequence[BriefRecord]:
        """The newest briefs, oldest of them first."""
        return [BRIEFS.decode(str(row[0])) for row in self._all("briefs", (agent_id, limit))]

    async def events_after(
        self, agent_id: AgentId, event_seq: int, *, limit: int
    ) -> Sequence[AuditEvent]:
        """Events that follow a sequence number, in order."""
        found = self._all("events_after", (agent_id, event_seq, limit))
        return [audit_event(EventRow._make(row), agent_id=agent_id) for row in found]

    async def event_bounds(self, agent_id: AgentId) -> tuple[int, int]:
        """The newest pruned sequence number (0 when none was), and the newest of all."""
        match self._one("event_bounds", (agent_id,)):
            case (int() as floor, int() as newest):
                return floor, newest
            case _:
                return 0, 0

    async def task(self, task_id: TaskId) -> TaskRecord | None:
        """One task."""
        found = self._one("task", (task_id,))
        return None if found is None else task_record(TaskRow._make(found))

    async def open_tasks(self) -> Sequence[TaskRecord]:
        """Tasks that have not ended, of all agents."""
        return [task_record(TaskRow._make(row)) for row in self._all("open_tasks")]

    async def timer(self, timer_id: TimerId) -> TimerRecord | None:
        """One timer."""
        found = self._one("timer", (timer_id,))
        return None if found is None else timer_record(TimerRow._make(found))

    async def work_item(self, work_item_id: WorkItemId) -> WorkItemRecord | None:
        """One work item."""
        found = self._one("work_item", (work_item_id,))
        return None if found is None else ITEMS.decode(str(found[0]))

    async def waits_on(self, source_id: str) -> Sequence[WaitRecord]:
        """Open waits that this source ends."""
        return self._waits("waits_on", source_id)

    async def item_waits(self, work_item_id: WorkItemId) -> Sequence[WaitRecord]:
        """Open waits this work item owns."""
        return self._waits("item_waits", work_item_id)

    def _waits(self, name: str, key: str) -> list[WaitRecord]:
        return [wait_record(WaitRow._make(row)) for row in self._all(name, (key,))]


def _by_turn(rows: Iterable[_OfTurn]) -> defaultdict[str, list[_OfTurn]]:
    found: defaultdict[str, list[_OfTurn]] = defaultdict(list)
    for row in rows:
        found[row.turn_id].append(row)
    return found
