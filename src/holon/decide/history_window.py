"""Which earlier turns an agent still reads in full.

Owns:  the window's start, decided when a turn ends and kept with the agent.
Rule 1: the start stays where it is while turns are added behind it, so each turn's request begins
        with the bytes of the one before. When there are too many turns, or they are too large, it
        moves far enough to last a while, and a new epoch begins.
Rule 2: turns that are let go leave a line each in the agent's recap (decide/recap).
Rule 3: a turn that let its history go while it ran stands first in the window from then on, behind
        the very recap it has shown.
Rule 4: the newest turn stays, shortened to its opening, a recap and its newest rounds if it is too
        large; only one that cannot be made small enough is let go like any other.
"""

import msgspec

from holon.decide.compaction import (
    BaselineOverBudget,
    ShownPast,
    TurnSizes,
    compact_into,
    compaction_of,
)
from holon.decide.conversation_size import bytes_of
from holon.decide.conversation_view import append_entry, conversation_of
from holon.decide.lane_commits import entry_of
from holon.decide.recap import history_recap, newest_compaction
from holon.decide.turn_replay import receipts_by_place
from holon.model.agent import AgentContext
from holon.model.compaction_limits import (
    HISTORY_BYTES_MAX,
    HISTORY_HIGH_PERCENT,
    HISTORY_LOW_PERCENT,
    HISTORY_TURNS_COUNT_MAX,
    RECAP_BYTES_MAX,
    RECAP_PERCENT,
)
from holon.model.conversation import ConversationMessage
from holon.model.limits import HISTORY_TURNS_COUNT_DEFAULT
from holon.model.record import Record
from holon.model.transcript import AssistantRound, TurnCompaction, TurnLog


class HistoryFacts(Record, frozen=True, kw_only=True):
    """An agent at the end of a turn."""

    past: ShownPast  # as the turn was shown it
    past_bytes: tuple[int, ...]  # how large each turn of it is
    ended: TurnLog  # with everything it recorded
    budget_bytes: int  # of a conversation


class TurnSize(Record, frozen=True, kw_only=True):
    """How large a turn is when it is shown."""

    turn_index: int
    shown_bytes: int


class HistoryPlan(Record, frozen=True, kw_only=True):
    """What the next turn reads of the past. Nothing: as before."""

    context: AgentContext | None = None
    compaction: TurnCompaction | None = None  # of the turn that ended


def plan_history(facts: HistoryFacts) -> HistoryPlan:
    """Say what the next turn reads of this one and of those before it."""
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
    first = first_kept([*sizes, newest], low_bytes=low, high_bytes=high)
    gone = tuple(log for log in (*shown, facts.ended) if log.turn.turn_index < first)
    return HistoryPlan(
        context=AgentContext(
            history_from_turn=first,
            compression_epoch=facts.past.context.compression_epoch + 1,
            recap=history_recap(before.recap, gone, bytes_max=_recap_bytes(facts.budget_bytes)),
        ),
        compaction=compaction,
    )


def marks(budget_bytes: int) -> tuple[int, int]:
    """Return how large earlier turns may become, and how large those that stay may be."""
    high = min(HISTORY_BYTES_MAX, budget_bytes * HISTORY_HIGH_PERCENT // 100)
    return high, high * HISTORY_LOW_PERCENT // HISTORY_HIGH_PERCENT


def first_kept(sizes: list[TurnSize], *, low_bytes: int, high_bytes: int) -> int:
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
    return compaction_of(log, chosen, state=None, past=ShownPast())


def ended_sizes(log: TurnLog, *, budget_bytes: int) -> TurnSizes:
    """Measure a turn whose rounds have all come."""
    receipts = receipts_by_place(log.calls)
    last = newest_compaction(log.entries)
    scratch: list[ConversationMessage] = []
    opening, rounds = 0, list[int]()
    for entry in log.entries:
        said = append_entry(scratch, entry.data, receipts)
        if isinstance(entry.data, AssistantRound):
            rounds.append(said)
        elif rounds:
            rounds[-1] += said
        else:
            opening += said
    return TurnSizes(
        budget_bytes=budget_bytes,
        history_bytes=0,
        opening_bytes=opening,
        round_bytes=tuple(rounds),
        through_round=0 if last is None else last.through_round,
    )


def _as_last_shown(facts: HistoryFacts) -> tuple[AgentContext, tuple[TurnLog, ...]]:
    """The window as the ended turn left it: one that was compacted has let all before it go."""
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
