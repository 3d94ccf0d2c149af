"""Reading turns with everything recorded in them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import apsw

from holon.adapters.sqlite.read_session import ReadSession
from holon.adapters.sqlite.row_codec import CallRow, EntryRow, TurnRow
from holon.adapters.sqlite.settled_turns import SettledTurns, turn_log
from holon.adapters.sqlite.statements import Row
from holon.model.ids import AgentId, TurnId
from holon.model.transcript import TurnLog

_OfTurn = TypeVar("_OfTurn", EntryRow, CallRow)


class _TurnPlace(NamedTuple):
    turn_id: str
    turn_index: int


class SqliteTurnReads(ReadSession):
    """The turns' part of the port."""

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self._settled = SettledTurns()

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


def _by_turn(rows: Iterable[_OfTurn]) -> defaultdict[str, list[_OfTurn]]:
    found: defaultdict[str, list[_OfTurn]] = defaultdict(list)
    for row in rows:
        found[row.turn_id].append(row)
    return found
