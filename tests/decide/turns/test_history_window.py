"""The past an agent reads: let go seldom, in one piece, and never without a trace."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holon.decide.turns.compaction import HistoryFacts, ShownHistory, marks, plan_history
from holon.decide.turns.conversation import (
    append_recap,
    append_turn,
    bytes_of,
    conversation_of,
    problems_of,
    turn_line,
)
from holon.model.agents import AgentContext
from holon.model.limits import HISTORY_TURNS_COUNT_DEFAULT
from holon.model.queue import AuthorityClass
from holon.model.turns.compaction import HISTORY_TURNS_COUNT_MAX
from holon.model.turns.conversation import ConversationMessage
from holon.model.turns.transcript import IncomingMessage, TurnLog
from holon.model.turns.turn import TerminalKind
from tests.decide.long_turn import LongTurn, Round, a_past, ended, plain_turn, turn_of, with_entry
from tests.decide.turn_rows import opened_log, prompt

EXAMPLES = int(os.environ.get("HOLON_DRILL_PASTS", "100"))
BUDGET = 100_000


def after(past: ShownHistory, log: TurnLog, *, budget: int = BUDGET) -> ShownHistory:
    """What the next turn reads, once this one is over."""
    sizes = tuple(bytes_of(conversation_of([each])) for each in past.turns)
    facts = HistoryFacts(past=past, past_bytes=sizes, ended=log, budget_bytes=budget)
    plan = plan_history(facts)
    if plan.compaction is not None:
        log = with_entry(log, plan.compaction)
    context = plan.context or past.context
    kept = [each for each in past.turns if each.turn.turn_index >= context.history_from_turn]
    if log.turn.turn_index >= context.history_from_turn:
        kept.append(log)
    return ShownHistory(context=context, turns=tuple(kept))


def shown(past: ShownHistory, *following: TurnLog) -> list[ConversationMessage]:
    """What a request begins with: what is left of the turns that were let go, and the others."""
    messages: list[ConversationMessage] = []
    logs = (*past.turns, *following)
    if logs:
        append_recap(messages, logs[0].turn.agent_id, past.context)
    for log in logs:
        append_turn(messages, log)
    return messages


@pytest.mark.requirement("compaction:history-moves-by-epochs")
@settings(max_examples=EXAMPLES, deadline=None)
@given(sizes=st.lists(st.sampled_from([10, 200, 4_000, 30_000, 90_000]), max_size=30))
def test_between_two_epochs_every_past_begins_with_the_one_before(sizes: list[int]) -> None:
    past = ShownHistory()
    high, _ = marks(BUDGET)
    for index, size in enumerate(sizes, 1):
        found = after(past, plain_turn(index, asked=size))
        before, now = past.context, found.context
        assert now.compression_epoch - before.compression_epoch in (0, 1)
        assert now.history_from_turn >= before.history_from_turn
        if now.compression_epoch == before.compression_epoch:
            assert now == before
            assert shown(found)[: len(shown(past))] == shown(past)
        assert len(found.turns) < HISTORY_TURNS_COUNT_MAX
        assert sum(bytes_of(conversation_of([each])) for each in found.turns) <= high
        assert problems_of(shown(found, opened_log())) == ()
        past = found


@pytest.mark.requirement("compaction:history-moves-by-epochs")
def test_short_turns_are_let_go_by_the_dozen() -> None:
    past, moves = ShownHistory(), []
    for index in range(1, 61):
        found = after(past, plain_turn(index))
        if found.context != past.context:
            moves.append((index, len(found.turns)))
        past = found
    assert moves == [(24, 12), (36, 12), (48, 12), (60, 12)]
    assert HISTORY_TURNS_COUNT_DEFAULT == 12


@pytest.mark.requirement("compaction:recap-keeps-labels")
def test_turns_that_are_let_go_leave_a_line_with_their_label() -> None:
    past = ShownHistory()
    for index in range(1, 25):
        past = after(past, plain_turn(index, asked=3, said=4))
    lines = past.context.recap
    assert len(lines) == 12
    assert lines[0] == (
        'turn 1, completed, 1 rounds; operator_prompt (operator_instruction) "aaa";'
        ' you said last "bbbb"'
    )
    assert "Those before turn 13" in shown(past)[0].blocks[0].text  # type: ignore[union-attr]


@pytest.mark.requirement("compaction:recap-keeps-labels")
def test_words_from_outside_stay_evidence_in_a_recap() -> None:
    message = prompt()
    outside = type(message)(
        **{
            name: getattr(message, name)
            for name in message.__struct_fields__
            if name != "authority_class"
        },
        authority_class=AuthorityClass.EXTERNAL_EVIDENCE,
    )
    log = with_entry(TurnLog(turn=turn_of(2)), IncomingMessage(message=outside))
    assert "(external_evidence)" in turn_line(ended(log, TerminalKind.ABORTED))
    assert "aborted" in turn_line(ended(log, TerminalKind.ABORTED))


@pytest.mark.requirement("compaction:history-let-go-in-a-turn-stays-gone")
def test_the_turn_after_a_compacted_one_begins_with_the_very_same_bytes() -> None:
    turn = LongTurn(a_past(900, 900, last=39), budget=60_000)
    turn.ask()
    while turn.log.entries[-1].data.__class__.__name__ != "TurnCompaction":
        turn.answer(Round(said=5, results=(3_000,)))
        turn.ask()
    before = turn.shown()
    found = after(turn.past, turn.log, budget=BUDGET)
    assert found.context.history_from_turn == 40
    messages: list[ConversationMessage] = list(shown(found))
    assert messages[: len(before) - 1] == list(before[:-1])


@pytest.mark.requirement("compaction:newest-turn-stays")
def test_a_long_turn_is_remembered_by_its_opening_a_recap_and_its_newest_rounds() -> None:
    turn = LongTurn(a_past(900, last=39), budget=400_000)
    for _ in range(20):
        turn.answer(Round(said=5, results=(4_000,)))
    found = after(turn.past, turn.log)
    *_, kept = found.turns
    messages: list[ConversationMessage] = []
    size = append_turn(messages, kept)
    assert size <= marks(BUDGET)[1]
    assert len(messages) >= 5, "the opening and at least two rounds with their results"
    texts = "".join(getattr(b, "text", "") for b in messages[0].blocks)
    assert "qqqqqqqqqq" in texts
    assert "a recap of this turn" in texts
    assert found.context.compression_epoch == 1


def test_a_turn_whose_opening_is_too_large_is_let_go_at_once() -> None:
    found = after(a_past(10, last=39), plain_turn(40, asked=90_000))
    assert found.turns == ()
    assert found.context.history_from_turn == 41
    assert [line.split(",")[0] for line in found.context.recap] == ["turn 39", "turn 40"]


def test_a_recap_that_was_shortened_counts_what_it_left_out() -> None:
    context = AgentContext(history_from_turn=30, compression_epoch=4, recap=("x" * 5_000,) * 3)
    past = ShownHistory(context=context, turns=a_past(*[10] * 10, last=39).turns)
    found = after(past, plain_turn(40, asked=90_000))
    assert found.context.compression_epoch == 5
    assert found.context.recap[0].endswith("earlier lines are left out)")
    assert found.context.recap[-1].startswith("turn 40")
