"""The turn mark: which turn has the processor, readable after the process has died.

Contract:
- the last `enter` stands until `leave`, also when the process is killed in between; after a power
  cut it may be lost, since no turn causes a power cut;
- `left_by` is the mark the previous process left, and stays the same;
- each call costs at most one system call, and none raises: if a mark cannot be kept, only
  TURN_RESUMES_COUNT_MAX ends a turn that ends the process.
"""

from typing import Protocol

from holon.model.values import TurnId


class TurnMark(Protocol):
    """The mark of one home."""

    @property
    def left_by(self) -> TurnId | None:
        """The turn that had the processor when the process before this one ended, if one had."""
        ...

    def enter(self, turn_id: TurnId) -> None:
        """Mark this turn as the one that has the processor."""
        ...

    def leave(self) -> None:
        """Remove the mark."""
        ...


class NoTurnMark:
    """A turn mark that stores nothing."""

    @property
    def left_by(self) -> TurnId | None:
        """No turn is known."""
        return None

    def enter(self, turn_id: TurnId) -> None:
        """Store nothing."""

    def leave(self) -> None:
        """Nothing is stored."""
