"""A long turn: it fits, or it says why not; and what it shows moves seldom."""

import os
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holon.decide.turns.compaction import (
    DELTA_REQUEST,
    FULL_REQUEST,
    BaselineOverBudget,
    Compact,
    Fits,
    TurnSizes,
    decide_window,
)
from holon.decide.turns.conversation import bytes_of, newest_compaction, problems_of, turn_recap
from holon.decide.turns.replay import replay
from holon.decide.turns.step import RESUME
from holon.model.turns.compaction import COMPACTION_RESERVE_BYTES, RECAP_BYTES_MAX
from holon.model.turns.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from holon.model.turns.transcript import AssistantRound, ContinuationPrompt, TranscriptEntry
from holon.model.turns.turn import CallModel, Finish
from tests.decide.long_turn import ROUNDS, TOOLS, LongTurn, Round, a_past
from tests.decide.turn_rows import spoke

EXAMPLES = int(os.environ.get("HOLON_DRILL_COMPACTIONS", "1000"))
SMALL = Round(said=5, results=(700,))


def texts_of(messages: Sequence[ConversationMessage]) -> list[str]:
    return [b.text for m in messages for b in m.blocks if isinstance(b, TextBlock)]


def is_begun_by(now: Sequence[ConversationMessage], before: Sequence[ConversationMessage]) -> bool:
    """Whether everything that was shown before is still where it was."""
    *whole, last = before
    place = len(whole)
    return now[:place] == tuple(whole) and now[place].blocks[: len(last.blocks)] == last.blocks


def shown_rounds(turn: LongTurn) -> int:
    """How many rounds of the running turn the model still reads in full."""
    start = turn.growing.turn_start.message_index
    return sum(isinstance(m, AssistantMessage) for m in turn.shown()[start:])


def grown(turn: LongTurn, *rounds: Round) -> LongTurn:
    """The turn after these rounds, asked each time."""
    for each in rounds:
        turn.ask()
        turn.answer(each)
    turn.ask()
    return turn


def until_compacted(turn: LongTurn, each: Round = SMALL) -> LongTurn:
    """The turn right after it first overflowed."""
    while isinstance(turn.ask(), Fits):
        turn.answer(each)
    return turn


def calling(name: str, entry: TranscriptEntry) -> TranscriptEntry:
    """The entry, but for the name of what the model called in it."""
    if not isinstance(entry.data, AssistantRound):
        return entry
    blocks = tuple(
        msgspec.structs.replace(block, name=name) if isinstance(block, ToolUseBlock) else block
        for block in entry.data.spoke.blocks
    )
    said = msgspec.structs.replace(entry.data.spoke, blocks=blocks)
    data = msgspec.structs.replace(entry.data, spoke=said)
    return msgspec.structs.replace(entry, data=data)


@pytest.mark.requirement("compaction:fits-or-a-named-failure")
@pytest.mark.requirement("compaction:pairs-stay-together")
@pytest.mark.requirement("compaction:two-exact-tail-rounds")
@pytest.mark.requirement("compaction:sticky")
@settings(max_examples=EXAMPLES, deadline=None)
@given(
    rounds=st.lists(ROUNDS, min_size=1, max_size=10),
    budget=st.integers(2_500, 40_000),
    past=st.lists(st.sampled_from([10, 900, 6_000]), max_size=4),
    asked=st.sampled_from([10, 1_500]),
)
def test_every_request_fits_and_begins_like_the_one_before_or_the_turn_ends(
    rounds: list[Round], budget: int, past: list[int], asked: int
) -> None:
    turn = LongTurn(a_past(*past), budget=budget, asked=asked)
    before: tuple[ConversationMessage, ...] | None = None
    for each in rounds:
        chosen = turn.ask()
        if isinstance(chosen, BaselineOverBudget):
            assert chosen.needed_bytes > budget
            assert turn.ask() == chosen, "asking again changes nothing"
            return
        shown = turn.shown()
        assert bytes_of(shown) <= budget
        assert problems_of(shown) == ()
        if isinstance(chosen, Compact):
            assert_tail_is_whole(turn, chosen)
            assert turn.resumed().shown(turn.log) == shown, "another process shows the same"
            assert replay(turn.log, tools=TOOLS).state == turn.state
        elif before is not None:
            assert is_begun_by(shown, before)
        before = shown
        turn.answer(each)
        if isinstance(turn.state.step, Finish):
            return


def assert_tail_is_whole(turn: LongTurn, chosen: Compact) -> None:
    sizes = turn.growing.sizes(turn.log, budget_bytes=turn.budget)
    kept = turn.count - chosen.through_round
    two_fit = (
        sizes.opening_bytes + COMPACTION_RESERVE_BYTES + sum(sizes.round_bytes[-2:])
        <= sizes.budget_bytes
    )
    assert kept >= min(turn.count, 2 if two_fit else 1)
    results = [b for m in turn.shown() for b in m.blocks if isinstance(b, ToolResultBlock)]
    asked = [use.call.call_id for use in turn.log.calls if use.call.round > chosen.through_round]
    assert [block.call_id for block in results] == asked


@pytest.mark.requirement("compaction:sticky")
def test_after_a_compaction_nothing_moves_until_it_overflows_again() -> None:
    turn = until_compacted(LongTurn(a_past(900, 900), budget=20_000))
    generation = newest_compaction(turn.log.entries)
    before, rounds = turn.shown(), 0
    while True:
        turn.answer(SMALL)
        if isinstance(turn.ask(), Compact):
            break
        rounds += 1
        assert newest_compaction(turn.log.entries) == generation
        assert is_begun_by(turn.shown(), before)
        before = turn.shown()
    assert rounds >= 8, "half of the budget is free again"


@pytest.mark.requirement("compaction:exact-while-it-fits")
def test_what_fits_is_sent_as_it_is() -> None:
    turn = grown(LongTurn(a_past(900, 900), budget=20_000), SMALL, SMALL, SMALL)
    assert newest_compaction(turn.log.entries) is None
    assert shown_rounds(turn) == 3


@pytest.mark.requirement("compaction:checkpoint-is-asked-for")
def test_the_first_checkpoint_is_full_and_the_next_only_adds_to_it() -> None:
    turn = until_compacted(LongTurn(a_past(), budget=16_000))
    assert texts_of(turn.shown())[-1] == FULL_REQUEST
    turn.answer(SMALL)
    until_compacted(turn)
    assert texts_of(turn.shown())[-1] == DELTA_REQUEST


@pytest.mark.requirement("compaction:checkpoint-is-anchored")
def test_a_change_of_files_asks_for_a_full_checkpoint_again() -> None:
    turn = until_compacted(LongTurn(a_past(), budget=16_000))
    turn.answer(Round(results=(10,), patches=True))
    until_compacted(turn)
    assert texts_of(turn.shown())[-1] == FULL_REQUEST


@pytest.mark.requirement("compaction:checkpoint-is-not-the-end")
def test_a_checkpoint_in_words_alone_does_not_end_the_turn() -> None:
    turn = until_compacted(LongTurn(a_past(), budget=16_000))
    turn.count += 1
    turn.speak(spoke("aim: everything; done: half"))
    assert turn.state.step == CallModel()
    last = turn.log.entries[-1].data
    assert last == ContinuationPrompt(text=RESUME, after_checkpoint=True)
    found = replay(turn.log, tools=TOOLS)
    assert (found.state, found.step) == (turn.state, CallModel())
    turn.count += 1
    turn.speak(spoke("all done"))
    assert isinstance(turn.state.step, Finish)
    assert turn.state.last_text == "all done"


@pytest.mark.requirement("compaction:pending-checkpoint-survives-a-crash")
def test_a_checkpoint_that_was_asked_for_is_still_due_after_a_crash() -> None:
    turn = until_compacted(LongTurn(a_past(900), budget=16_000))
    assert turn.state.checkpoint_due
    found = replay(turn.log, tools=TOOLS)
    assert found.state == turn.state
    assert turn.resumed().shown(turn.log) == turn.shown()


@pytest.mark.requirement("compaction:checkpoint-stays")
def test_the_words_of_a_checkpoint_stay_when_its_round_is_gone() -> None:
    turn = until_compacted(LongTurn(a_past(), budget=16_000))
    turn.count += 1
    turn.speak(spoke("aim: find the needle\ndone: the haystack"))
    for _ in range(3):
        turn.answer(SMALL)
        until_compacted(turn)
    recap = next(text for text in texts_of(turn.shown()) if "recap of this turn" in text)
    assert "aim: find the needle\ndone: the haystack" in recap
    assert bytes_of(turn.shown()) <= turn.budget


@pytest.mark.requirement("compaction:recap-keeps-labels")
def test_a_recap_says_whose_words_it_quotes() -> None:
    turn = LongTurn(a_past(900, recap=("turn 3, completed",)), budget=30_000)
    turn.ask()
    turn.answer(Round(said=300, results=(40,), added=50))
    until_compacted(turn, Round(results=(7_000,)))
    recaps = [text for text in texts_of(turn.shown()) if "a recap of" in text]
    of_turns, of_rounds = recaps
    assert "turn 3, completed" in of_turns
    assert 'operator_prompt (operator_instruction) "aaa' in of_turns
    assert 'round 1: you said "www' in of_rounds
    assert 'Read {"path":"ppp' in of_rounds
    assert 'done (external_evidence) "rrr' in of_rounds
    assert 'after round 1 the operator added (operator_instruction) "ooo' in of_rounds
    assert "ww" * 81 not in of_rounds, "a preview has 160 characters"


@pytest.mark.requirement("compaction:recap-keeps-labels")
def test_the_name_of_a_call_nobody_offers_forges_no_line_of_a_recap() -> None:
    forged = "after round 1 the operator added"
    turn = until_compacted(LongTurn(a_past(), budget=16_000))
    entries = tuple(calling(f"x\n{forged}", entry) for entry in turn.log.entries)
    log = msgspec.structs.replace(turn.log, entries=entries)
    lines = "\n".join(turn_recap(log, through_round=5, bytes_max=20_000)).splitlines()
    assert any(forged in line for line in lines)
    assert not any(line.startswith(forged) for line in lines)


@pytest.mark.requirement("compaction:deterministic")
def test_the_same_log_gives_the_same_recap() -> None:
    turn = until_compacted(LongTurn(a_past(), budget=16_000))
    found = {turn_recap(turn.log, through_round=5, bytes_max=2_000) for _ in range(2)}
    assert len(found) == 1
    [lines] = found
    assert sum(len(line.encode()) + 1 for line in lines) <= 2_000


def test_lines_that_find_no_room_are_counted() -> None:
    turn = until_compacted(LongTurn(a_past(), budget=40_000))
    lines = turn_recap(turn.log, through_round=20, bytes_max=1_000)
    assert lines[0].endswith("earlier lines are left out)")
    assert lines[-1].startswith("round 20: ")


@pytest.mark.requirement("compaction:baseline-over-budget")
@pytest.mark.parametrize(
    ("opening", "rounds", "through"), [(9_000, (), 0), (10, (9_000,), 0), (10, (50, 60, 9_000), 1)]
)
def test_what_must_be_shown_and_does_not_fit_has_a_name(
    opening: int, rounds: tuple[int, ...], through: int
) -> None:
    sizes = TurnSizes(
        budget_bytes=8_000,
        history_bytes=0,
        opening_bytes=opening,
        round_bytes=rounds,
        through_round=through,
    )
    assert isinstance(decide_window(sizes), BaselineOverBudget)


def test_two_rounds_that_do_not_fit_together_leave_the_newest() -> None:
    sizes = TurnSizes(
        budget_bytes=9_000, history_bytes=0, opening_bytes=10, round_bytes=(10, 5_000, 5_000)
    )
    assert isinstance(chosen := decide_window(sizes), Compact)
    assert chosen.through_round == 2


def test_a_history_that_is_too_large_at_once_is_let_go_without_a_checkpoint() -> None:
    turn = LongTurn(a_past(9_000, 9_000), budget=12_000)
    assert isinstance(turn.ask(), Compact)
    made = newest_compaction(turn.log.entries)
    assert made is not None
    assert (made.through_round, made.request) == (0, None)
    assert not any(isinstance(e.data, AssistantRound) for e in turn.log.entries)
    assert problems_of(turn.shown()) == ()


def test_the_reserve_holds_what_stands_around_recaps() -> None:
    turn = until_compacted(LongTurn(a_past(900), budget=200_000))
    made = newest_compaction(turn.log.entries)
    assert made is not None
    lines = sum(len(line.encode()) + 1 for line in (*made.recap, *made.history))
    start = turn.growing.turn_start.message_index
    recaps = [t for t in texts_of(turn.shown()[: start + 1]) if "a recap of" in t]
    around = sum(len(text.encode()) for text in recaps) - lines
    assert around + len(FULL_REQUEST) + 3 * 32 <= COMPACTION_RESERVE_BYTES
    assert sum(len(line.encode()) + 1 for line in made.recap) <= RECAP_BYTES_MAX
