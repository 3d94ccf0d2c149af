"""Turns that have ended, as they were read before.

Owns:  remembering what rows of a settled turn mean, since each next turn of an agent reads the same
       ones again.
Rule 1: nothing of a settled turn changes once all its calls have ended: what was read then holds.
        Retention removes a turn as a whole, and nobody asks for it again.
Rule 2: what is kept is bounded by its size; what was not asked for longest goes first.
"""

from collections.abc import Sequence
from typing import Final

from holon.adapters.sqlite.row_codec import (
    CallRow,
    EntryRow,
    TurnRow,
    recorded_call,
    transcript_entry,
    turn_record,
)
from holon.model.limits import MIB
from holon.model.lru import Lru
from holon.model.transcript import TurnLog

KEPT_CHARS_MAX: Final = 2 * MIB
TURN_CHARS_MAX: Final = KEPT_CHARS_MAX // 64  # a larger one is read each time


class SettledTurns:
    """Remembers turns of one store."""

    def __init__(self, *, chars_max: int = KEPT_CHARS_MAX) -> None:
        self._kept: Lru[str, TurnLog] = Lru(size_max=chars_max)

    def known(self, turn_id: str) -> TurnLog | None:
        """A turn that was read before."""
        return self._kept.get(turn_id)

    def read(self, row: TurnRow, entries: Sequence[EntryRow], calls: Sequence[CallRow]) -> TurnLog:
        """Return what rows mean, and remember it."""
        log = turn_log(row, entries, calls)
        chars = _chars_of(row, entries, calls)
        if chars <= TURN_CHARS_MAX and all(call.finished_at is not None for call in calls):
            self._kept.put(row.turn_id, log, chars)
        return log


def turn_log(row: TurnRow, entries: Sequence[EntryRow], calls: Sequence[CallRow]) -> TurnLog:
    """Return what the rows of a turn mean."""
    turn = turn_record(row)
    return TurnLog(
        turn=turn,
        entries=tuple(transcript_entry(each, agent_id=turn.agent_id) for each in entries),
        calls=tuple(recorded_call(each, agent_id=turn.agent_id) for each in calls),
    )


def _chars_of(row: TurnRow, entries: Sequence[EntryRow], calls: Sequence[CallRow]) -> int:
    return (
        len(row.terminal or "")
        + sum(len(entry.data) for entry in entries)
        + sum(len(call.input) + len(call.receipt or "") for call in calls)
    )
