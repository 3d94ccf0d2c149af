"""Compaction: which earlier turns and rounds a model still reads in full.

Owns:  the turn-local window (how many of a turn's first rounds become a recap) and the agent's
       history window, whose start is decided when a turn ends.
Rule 1: a conversation that fits is sent as it is, so that each request begins with the one before.
Rule 2: when it does not fit, all earlier turns and the oldest rounds become recaps, enough of them
        that half of the budget is free again. Then nothing moves until it overflows once more.
Rule 3: a round is never split: a call and its result stay or go together. The newest two rounds
        stay in full wherever they fit, the newest one always; so does what the turn answers.
Rule 4: what cannot be made to fit ends the turn with a named failure. It is not tried again.
Rule 5: the decision is recorded with the turn (TurnCompaction), with the lines of the recaps:
        resuming after a crash needs no budget and no calibration to show the same bytes.
Rule 6: the start of the window stays while turns are added behind it, so each turn's request begins
        with the bytes of the one before. When the turns are too many or too large, it moves far
        enough to last a while, and a new epoch begins.
Rule 7: dropped turns leave a line each in the agent's recap (decide/turns/conversation).
Rule 8: a turn that dropped its history while it ran becomes the first of the window, behind the
        very recap it has shown.
Rule 9: the newest turn stays, shortened to its opening, a recap and its newest rounds if it is too
        large; only one that cannot be made small enough is dropped like any other.
"""

from itertools import accumulate
from typing import Final, TypeAlias

import msgspec

from holon.decide.turns.commits import entry_of
from holon.decide.turns.conversation import (
    append_entry,
    bytes_of,
    conversation_of,
    history_recap,
    newest_compaction,
    turn_recap,
)
from holon.decide.turns.replay import receipts_by_place
from holon.decide.turns.step import TurnState
from holon.model.agents import AgentContext
from holon.model.limits import HISTORY_TURNS_COUNT_DEFAULT
from holon.model.record import Record
from holon.model.turns.compaction import (
    COMPACTION_KEEP_PERCENT,
    COMPACTION_RESERVE_BYTES,
    COMPACTION_TAIL_COUNT_MIN,
    HISTORY_BYTES_MAX,
    HISTORY_HIGH_PERCENT,
    HISTORY_LOW_PERCENT,
    HISTORY_TURNS_COUNT_MAX,
    RECAP_BYTES_MAX,
    RECAP_PERCENT,
)
from holon.model.turns.conversation import ConversationMessage
from holon.model.turns.transcript import AssistantRound, TurnCompaction, TurnLog

FULL_REQUEST: Final = (
    "[Runtime: this turn has grown long, so its oldest rounds are shown to you as a recap from now"
    " on. Write a checkpoint of your work first: the aim, what is done, what you found out and"
    " decided, files and commands that matter, what is left. It will stay with you. Then go on.]"
)
DELTA_REQUEST: Final = (
    "[Runtime: more of this turn is shown to you as a recap from now on. Add to your checkpoint"
    " what is new since you wrote it, in a few lines: only that. It stays with you. Then go on.]"
)


class ShownHistory(Record, frozen=True, kw_only=True):
    """The turns before a turn, oldest first, and where they begin."""

    context: AgentContext = AgentContext()
    turns: tuple[TurnLog, ...] = ()


class TurnSizes(Record, frozen=True, kw_only=True):
    """How large the parts of a conversation are, in bytes, as they would be shown now."""

    budget_bytes: int
    history_bytes: int  # everything before the turn's own messages
    opening_bytes: int  # what the turn answers
    recap_bytes: int = 0
    round_bytes: tuple[int, ...] = ()  # of every round, with the interjections after it
    through_round: int = 0  # so many are in the recap

    @property
    def shown_bytes(self) -> int:
        """The whole conversation."""
        tail = sum(self.round_bytes[self.through_round :])
        return self.history_bytes + self.opening_bytes + self.recap_bytes + tail


class Fits(Record, tag=True, frozen=True, kw_only=True):
    """Send the conversation as it is."""


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
    """Decide whether the conversation may be sent, and if not, how it is made to fit."""
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
        bytes_left = sizes.budget_bytes - base - tails[cut]
        if cut >= sizes.through_round and bytes_left >= 0:
            return Compact(through_round=cut, recap_bytes_max=min(share, bytes_left // 2))
    return BaselineOverBudget(
        needed_bytes=base + tails[max(0, count - 1)], budget_bytes=sizes.budget_bytes
    )


def compaction_of(
    log: TurnLog, chosen: Compact, *, state: TurnState | None, past: ShownHistory
) -> TurnCompaction:
    """Return the record of a compaction. A turn that continues is asked for a checkpoint."""
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
    last: TurnCompaction | None, past: ShownHistory, *, bytes_max: int
) -> tuple[str, ...]:
    """The earlier turns are dropped once; later compactions of the turn keep those lines."""
    if last is not None:
        return history_recap(last.history, (), bytes_max=bytes_max)
    return history_recap(past.context.recap, past.turns, bytes_max=bytes_max)


def _tails(round_bytes: tuple[int, ...]) -> list[int]:
    """The size from each round to the end; 0 behind the last."""
    return [*reversed(list(accumulate(reversed(round_bytes), initial=0)))]


class HistoryFacts(Record, frozen=True, kw_only=True):
    """An agent at the end of a turn."""

    past: ShownHistory  # as the turn was shown it
    past_bytes: tuple[int, ...]  # the size of each turn in it
    ended: TurnLog  # with everything it recorded
    budget_bytes: int  # of a conversation


class TurnSize(Record, frozen=True, kw_only=True):
    """The size of a turn when it is shown."""

    turn_index: int
    shown_bytes: int


class HistoryPlan(Record, frozen=True, kw_only=True):
    """What the next turn reads of the past. Nothing: as before."""

    context: AgentContext | None = None
    compaction: TurnCompaction | None = None  # of the turn that ended


def plan_history(facts: HistoryFacts) -> HistoryPlan:
    """Decide what the next turn reads of this one and of those before it."""
    before, shown = _as_last_shown(facts)
    high, low = marks(facts.budget_bytes)
    newest = _size_of(facts.ended)
    sizes = [
        TurnSize(turn_index=log.turn.turn_index, shown_bytes=size)
        for log, size in zip(shown, facts.past_bytes, strict=False)
    ]
    if len(sizes) + 1 < HISTORY_TURNS_COUNT_MAX and _sum([*sizes, newest]) <= high:
        return HistoryPlan(context=before if before != facts.past.context else None)
    compaction = shorter(facts.ended, keep_bytes=low) if newest.shown_bytes > low else None
    if compaction is not None:
        newest = _size_of(_with(facts.ended, compaction))
    first = first_kept_turn([*sizes, newest], low_bytes=low, high_bytes=high)
    dropped = tuple(log for log in (*shown, facts.ended) if log.turn.turn_index < first)
    return HistoryPlan(
        context=AgentContext(
            history_from_turn=first,
            compression_epoch=facts.past.context.compression_epoch + 1,
            recap=history_recap(before.recap, dropped, bytes_max=_recap_bytes(facts.budget_bytes)),
        ),
        compaction=compaction,
    )


def marks(budget_bytes: int) -> tuple[int, int]:
    """Return how large earlier turns may become, and how large those that stay may be."""
    high = min(HISTORY_BYTES_MAX, budget_bytes * HISTORY_HIGH_PERCENT // 100)
    return high, high * HISTORY_LOW_PERCENT // HISTORY_HIGH_PERCENT


def first_kept_turn(sizes: list[TurnSize], *, low_bytes: int, high_bytes: int) -> int:
    """Return the first turn that stays: few enough, and small enough together."""
    newest = sizes[-1]
    if newest.shown_bytes > high_bytes:
        return newest.turn_index + 1
    kept, total = [newest], newest.shown_bytes
    for each in reversed(sizes[:-1]):
        total += each.shown_bytes
        if len(kept) == HISTORY_TURNS_COUNT_DEFAULT or total > low_bytes:
            break
        kept.append(each)
    return kept[-1].turn_index


def shorter(log: TurnLog, *, keep_bytes: int) -> TurnCompaction | None:
    """Return how an ended turn is shown in so many bytes, if that makes it smaller."""
    sizes = ended_sizes(log, budget_bytes=keep_bytes)
    chosen = compact_into(sizes, keep_bytes=keep_bytes)
    if isinstance(chosen, BaselineOverBudget) or chosen.through_round <= sizes.through_round:
        return None
    return compaction_of(log, chosen, state=None, past=ShownHistory())


def ended_sizes(log: TurnLog, *, budget_bytes: int) -> TurnSizes:
    """Measure a turn whose rounds have all come."""
    receipts = receipts_by_place(log.calls)
    last = newest_compaction(log.entries)
    scratch: list[ConversationMessage] = []
    opening, rounds = 0, list[int]()
    for entry in log.entries:
        size_bytes = append_entry(scratch, entry.data, receipts)
        if isinstance(entry.data, AssistantRound):
            rounds.append(size_bytes)
        elif rounds:
            rounds[-1] += size_bytes
        else:
            opening += size_bytes
    return TurnSizes(
        budget_bytes=budget_bytes,
        history_bytes=0,
        opening_bytes=opening,
        round_bytes=tuple(rounds),
        through_round=0 if last is None else last.through_round,
    )


def _as_last_shown(facts: HistoryFacts) -> tuple[AgentContext, tuple[TurnLog, ...]]:
    """The window as the ended turn left it: a compacted turn has dropped all turns before it."""
    let_go = newest_compaction(facts.ended.entries)
    if let_go is None:
        return facts.past.context, facts.past.turns
    moved = AgentContext(
        history_from_turn=facts.ended.turn.turn_index,
        compression_epoch=facts.past.context.compression_epoch + 1,
        recap=let_go.history,
    )
    return moved, ()


def _size_of(log: TurnLog) -> TurnSize:
    return TurnSize(turn_index=log.turn.turn_index, shown_bytes=bytes_of(conversation_of([log])))


def _sum(sizes: list[TurnSize]) -> int:
    return sum(each.shown_bytes for each in sizes)


def _recap_bytes(budget_bytes: int) -> int:
    return min(RECAP_BYTES_MAX, budget_bytes * RECAP_PERCENT // 100)


def _with(log: TurnLog, compaction: TurnCompaction) -> TurnLog:
    place = len(log.entries)
    at = log.entries[-1].created_at if log.entries else log.turn.opened_at
    entry = entry_of(log.turn, position=place, at=at, data=compaction)
    return msgspec.structs.replace(log, entries=(*log.entries, entry))
