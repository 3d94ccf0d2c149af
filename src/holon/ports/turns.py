"""Which turn has the processor, told so that it is known after the process is gone.

Contract:
- what `enter` said last stands until `leave`, also when the process is killed in between; after a
  power cut it may be lost, since no turn is to blame for one;
- `left_by` tells what the process before this one had said and not taken back, and stays the same;
- neither costs more than a system call, and none of them raises: a mark that cannot be kept is
  missing, and then only TURN_RESUMES_COUNT_MAX ends a turn that ends the process.
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
        """Say that this turn has the processor."""
        ...

    def leave(self) -> None:
        """Say that no turn has it any more."""
        ...


class NoTurnMark:
    """Nothing is told, and nothing was."""

    @property
    def left_by(self) -> TurnId | None:
        """No turn is known."""
        return None

    def enter(self, turn_id: TurnId) -> None:
        """Nothing is told."""

    def leave(self) -> None:
        """Nothing was told."""
