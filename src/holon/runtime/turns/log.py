"""The running turn's log, and the writer that makes it durable.

Owns:  the log in memory, equal to what the turn's commits recorded (a restart reads the same from
       the store); how a lane writes: waiting on a full disk, never past its fence, and with at most
       one commit in flight while the provider is already called.
Rule 1: a refused commit means that the lane is fenced (LaneFencedError): stop and write nothing
        more.
Rule 2: the commit in flight has completed before the next one of its turn is written.
"""

from holon.decide.events.audit import audited
from holon.model.commits import (
    AppendTranscript,
    Applied,
    Commit,
    CommitOutcome,
    FinishToolCall,
    OpenTurn,
    StartToolCall,
)
from holon.model.errors import HolonError, StoreFullError
from holon.model.turns.tools import ToolCallRecord
from holon.model.turns.transcript import RecordedCall, TranscriptEntry, TurnLog
from holon.model.turns.turn import ToolReceipt
from holon.ports.clock import Clock
from holon.ports.failpoint import Failpoint, Failpoints
from holon.ports.store import Store, Ticket
from holon.runtime.commits import apply_patiently


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


class LaneFencedError(HolonError):
    """Someone else owns the agent now; this lane must stop."""

    code = "lane_fenced"


class TurnWriter:
    """Writes for one turn."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        failpoints: Failpoints,
    ) -> None:
        self._store = store
        self._clock = clock
        self._failpoints = failpoints
        self._in_flight: tuple[Ticket, Commit] | None = None

    async def try_apply(self, commit: Commit) -> CommitOutcome:
        """Apply a commit that may be refused for a reason other than the fence."""
        return await apply_patiently(self._store, commit, clock=self._clock)

    async def apply(self, commit: Commit) -> None:
        """Apply a commit, or stop the lane."""
        _require_applied(await self.try_apply(commit), commit)

    def submit(self, commit: Commit) -> bool:
        """Let a commit travel while the turn goes on; False when the writer is swamped."""
        try:
            self._in_flight = (self._store.submit(audited(commit)), commit)
        except StoreFullError:
            return False
        return True

    async def wait_in_flight(self) -> None:
        """Wait for the commit that is still travelling, if one is."""
        if self._in_flight is None:
            return
        ticket, commit = self._in_flight
        self._in_flight = None
        try:
            outcome = await ticket.outcome()
        except StoreFullError:
            outcome = await self.try_apply(commit)
        await self._failpoints.reach(Failpoint.TOOL_AFTER_DONE)
        _require_applied(outcome, commit)


def _require_applied(outcome: CommitOutcome, commit: Commit) -> None:
    if not isinstance(outcome, Applied):
        raise LaneFencedError(f"{commit.commit_id} was refused: {outcome}")
