"""Makes a running turn's commits durable, one of them while the turn goes on.

Owns:  how a lane writes: patiently on a full disk, never past its fence, and with at most one
       commit travelling while the provider is already asked.
Rule 1: a refused commit means the lane is stale (LaneFencedError): stop, touch nothing more.
Rule 2: the travelling commit has landed before the next one of its turn is written.
"""

from holon.decide.audit import audited
from holon.model.commit import Commit
from holon.model.errors import HolonError, StoreFullError
from holon.model.expectation import Applied, CommitOutcome
from holon.ports.clock import Clock
from holon.ports.failpoint import Failpoint, Failpoints
from holon.ports.store import Store, Ticket
from holon.runtime.decided_commit import apply_patiently


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
        self._travelling: tuple[Ticket, Commit] | None = None

    async def try_apply(self, commit: Commit) -> CommitOutcome:
        """Apply a commit that may be refused for a reason other than the fence."""
        return await apply_patiently(self._store, commit, clock=self._clock)

    async def apply(self, commit: Commit) -> None:
        """Apply a commit, or stop the lane."""
        _require_applied(await self.try_apply(commit), commit)

    def send_off(self, commit: Commit) -> bool:
        """Let a commit travel while the turn goes on; False when the writer is swamped."""
        try:
            self._travelling = (self._store.submit(audited(commit)), commit)
        except StoreFullError:
            return False
        return True

    async def land(self) -> None:
        """Wait for the commit that is still travelling, if one is."""
        if self._travelling is None:
            return
        ticket, commit = self._travelling
        self._travelling = None
        try:
            outcome = await ticket.outcome()
        except StoreFullError:
            outcome = await self.try_apply(commit)
        await self._failpoints.reach(Failpoint.TOOL_AFTER_DONE)
        _require_applied(outcome, commit)


def _require_applied(outcome: CommitOutcome, commit: Commit) -> None:
    if not isinstance(outcome, Applied):
        raise LaneFencedError(f"{commit.commit_id} was refused: {outcome}")
