"""The running turn's log in memory, kept equal to what its commits made durable.

Owns:  appending what a commit recorded. A restart would read the same log from the store.
"""

from holon.model.commit import AppendTranscript, Commit, FinishToolCall, OpenTurn, StartToolCall
from holon.model.tool import ToolCallRecord
from holon.model.transcript import RecordedCall, TranscriptEntry, TurnLog
from holon.model.turn import ToolReceipt


def opened_log(commit: Commit) -> TurnLog:
    """Return the log of the turn this commit opened, as it has left it."""
    (turn,) = (each.turn for each in commit.changes if isinstance(each, OpenTurn))
    written = (each.entry for each in commit.changes if isinstance(each, AppendTranscript))
    return TurnLog(turn=turn, entries=tuple(written))


class LiveLog:
    """A turn log that grows."""

    def __init__(self, log: TurnLog) -> None:
        self.turn = log.turn
        self._entries = list(log.entries)
        self._calls = list(log.calls)

    @property
    def log(self) -> TurnLog:
        """The log as it stands."""
        return TurnLog(turn=self.turn, entries=tuple(self._entries), calls=tuple(self._calls))

    @property
    def next_position(self) -> int:
        """Where the next transcript entry goes."""
        return self._entries[-1].position + 1 if self._entries else 0

    def absorb(self, commit: Commit) -> None:
        """Take over what a durable commit recorded about this turn."""
        for change in commit.changes:
            match change:
                case AppendTranscript(entry=entry):
                    self.append(entry)
                case StartToolCall(call=call):
                    self._calls.append(RecordedCall(call=call))
                case FinishToolCall(effect_id=effect_id, receipt=receipt):
                    self.finish(effect_id, receipt)
                case _:
                    continue

    def append(self, entry: TranscriptEntry) -> None:
        """Add one transcript entry."""
        self._entries.append(entry)

    def finish(self, effect_id: str, receipt: ToolReceipt) -> None:
        """Give a call its receipt; it is among the newest."""
        for index in reversed(range(len(self._calls))):
            call = self._calls[index].call
            if call.effect_id == effect_id:
                self._calls[index] = RecordedCall(call=call, receipt=receipt)
                return

    def unanswered(self, round_number: int) -> list[ToolCallRecord]:
        """The calls of a round that have no receipt yet, in order."""
        return [each.call for each in self._of_round(round_number) if each.receipt is None]

    def receipts(self, round_number: int) -> tuple[ToolReceipt, ...]:
        """The receipts of a round, in call order."""
        found = (each.receipt for each in self._of_round(round_number))
        return tuple(receipt for receipt in found if receipt is not None)

    def _of_round(self, round_number: int) -> list[RecordedCall]:
        """The calls of a round. Rounds follow each other, so the newest is at the end."""
        begin = len(self._calls)
        while begin > 0 and self._calls[begin - 1].call.round >= round_number:
            begin -= 1
        return [each for each in self._calls[begin:] if each.call.round == round_number]
