"""When a running turn no longer fits, and what of it stays.

Owns:  the turn-local window: how many of a turn's first rounds are shown as a recap.
Rule 1: a conversation that fits is sent as it is, so that each request begins with the one before.
Rule 2: when it does not fit, all earlier turns and the oldest rounds become recaps, enough of them
        that half of the budget is free again. Then nothing moves until it overflows once more.
Rule 3: a round is never split: a call and its result stay or go together. The newest two rounds
        stay in full wherever they fit, the newest one always; so does what the turn answers.
Rule 4: what cannot be made to fit ends the turn with a name. It is not tried again.
Rule 5: what was decided is recorded with the turn (TurnCompaction), the lines of the recaps too:
        going on after a crash needs no budget and no calibration to show the same bytes.
"""

from itertools import accumulate
from typing import Final, TypeAlias

from holon.decide.recap import history_recap, newest_compaction, turn_recap
from holon.decide.turn_step import TurnState
from holon.model.agent import AgentContext
from holon.model.compaction_limits import (
    COMPACTION_KEEP_PERCENT,
    COMPACTION_RESERVE_BYTES,
    COMPACTION_TAIL_COUNT_MIN,
    RECAP_BYTES_MAX,
    RECAP_PERCENT,
)
from holon.model.record import Record
from holon.model.transcript import TurnCompaction, TurnLog

FULL_REQUEST: Final = (
    "[Runtime: this turn has grown long, so its oldest rounds are shown to you as a recap from now"
    " on. Write a checkpoint of your work first: the aim, what is done, what you found out and"
    " decided, files and commands that matter, what is left. It will stay with you. Then go on.]"
)
DELTA_REQUEST: Final = (
    "[Runtime: more of this turn is shown to you as a recap from now on. Add to your checkpoint"
    " what is new since you wrote it, in a few lines: only that. It stays with you. Then go on.]"
)


class ShownPast(Record, frozen=True, kw_only=True):
    """The turns before a turn, oldest first, and where they begin."""

    context: AgentContext = AgentContext()
    turns: tuple[TurnLog, ...] = ()


class TurnSizes(Record, frozen=True, kw_only=True):
    """How large the parts of a conversation are, in bytes, as they would be shown now."""

    budget_bytes: int
    history_bytes: int  # everything in front of the turn's own words
    opening_bytes: int  # what the turn answers
    recap_bytes: int = 0
    round_bytes: tuple[int, ...] = ()  # of every round, with what was said after it
    through_round: int = 0  # so many are in the recap

    @property
    def shown_bytes(self) -> int:
        """The whole conversation."""
        tail = sum(self.round_bytes[self.through_round :])
        return self.history_bytes + self.opening_bytes + self.recap_bytes + tail


class Fits(Record, tag=True, frozen=True, kw_only=True):
    """Send it as it is."""


class Compact(Record, tag=True, frozen=True, kw_only=True):
    """Show the rounds so far as a recap, and the earlier turns too, each in so many bytes."""

    through_round: int
    recap_bytes_max: int


class BaselineOverBudget(Record, tag=True, frozen=True, kw_only=True):
    """What must be shown is already too much."""

    needed_bytes: int
    budget_bytes: int


WindowDecision: TypeAlias = Fits | Compact | BaselineOverBudget


def decide_window(sizes: TurnSizes) -> WindowDecision:
    """Say whether the conversation may be sent, and if not, how it is made to fit."""
    if sizes.shown_bytes <= sizes.budget_bytes:
        return Fits()
    return compact_into(sizes, keep_bytes=sizes.budget_bytes * COMPACTION_KEEP_PERCENT // 100)


def compact_into(sizes: TurnSizes, *, keep_bytes: int) -> Compact | BaselineOverBudget:
    """Choose the rounds that stay, so that everything has so many bytes, if that can be."""
    share = min(RECAP_BYTES_MAX, sizes.budget_bytes * RECAP_PERCENT // 100)
    tails = _tails(sizes.round_bytes)
    base = sizes.opening_bytes + COMPACTION_RESERVE_BYTES
    count = len(sizes.round_bytes)
    two_left = max(0, count - COMPACTION_TAIL_COUNT_MIN)
    for cut in range(sizes.through_round, two_left + 1):
        if base + 2 * share + tails[cut] <= keep_bytes:
            return Compact(through_round=cut, recap_bytes_max=share)
    for cut in (two_left, max(0, count - 1)):
        room = sizes.budget_bytes - base - tails[cut]
        if cut >= sizes.through_round and room >= 0:
            return Compact(through_round=cut, recap_bytes_max=min(share, room // 2))
    return BaselineOverBudget(
        needed_bytes=base + tails[max(0, count - 1)], budget_bytes=sizes.budget_bytes
    )


def compaction_of(
    log: TurnLog, chosen: Compact, *, state: TurnState | None, past: ShownPast
) -> TurnCompaction:
    """Return the record of a compaction. A turn that goes on is asked for a checkpoint."""
    last = newest_compaction(log.entries)
    bytes_max = chosen.recap_bytes_max
    moved = chosen.through_round > (0 if last is None else last.through_round)
    asks = state is not None and moved and not state.checkpoint_due
    delta = asks and state is not None and state.checkpoint_anchor == state.anchor
    return TurnCompaction(
        through_round=chosen.through_round,
        generation=1 if last is None else last.generation + 1,
        history=_history_lines(last, past, bytes_max=bytes_max),
        recap=turn_recap(log, through_round=chosen.through_round, bytes_max=bytes_max),
        request=(DELTA_REQUEST if delta else FULL_REQUEST) if asks else None,
        delta=delta,
    )


def _history_lines(
    last: TurnCompaction | None, past: ShownPast, *, bytes_max: int
) -> tuple[str, ...]:
    """The earlier turns are let go once; later compactions of the turn keep those lines."""
    if last is not None:
        return history_recap(last.history, (), bytes_max=bytes_max)
    return history_recap(past.context.recap, past.turns, bytes_max=bytes_max)


def _tails(round_bytes: tuple[int, ...]) -> list[int]:
    """How much there is from each round on; nothing behind the last."""
    return [*reversed(list(accumulate(reversed(round_bytes), initial=0)))]
