"""The log in memory is the log on disk."""

from holon.model.commits import AppendTranscript, StartToolCall
from holon.model.turns.transcript import RecordedCall, TurnLog
from holon.runtime.turns.log import LiveLog
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, run_house
from tests.runtime.records import open_turns
from tests.support.builders import (
    MAIN,
    a_commit,
    a_receipt,
    a_round,
    a_tool_call,
    a_turn,
    an_agent,
    an_entry,
)

TURN = a_turn()
CALLS = [a_tool_call(TURN, position=n) for n in range(2)]


def _log() -> LiveLog:
    live = LiveLog(TurnLog(turn=TURN))
    entry = an_entry(TURN, position=0, data=a_round())
    started = (StartToolCall(call=call) for call in CALLS)
    live.absorb(a_commit("round:turn_1:1", AppendTranscript(entry=entry), *started, an_agent()))
    return live


def test_a_commit_is_taken_over_as_far_as_it_concerns_the_turn() -> None:
    live = _log()
    assert live.next_position == 1
    assert live.log.calls == tuple(RecordedCall(call=call) for call in CALLS)
    assert live.unanswered(1) == CALLS
    assert live.unanswered(2) == []


def test_receipts_come_in_the_order_of_their_calls() -> None:
    live = _log()
    for call in reversed(CALLS):
        live.finish(call.effect_id, a_receipt(call))
    assert [receipt.call_id for receipt in live.receipts(1)] == ["call_0", "call_1"]
    assert live.unanswered(1) == []


def test_an_empty_log_begins_at_the_beginning() -> None:
    assert LiveLog(TurnLog(turn=TURN)).next_position == 0


def test_what_the_driver_kept_in_memory_is_what_a_restart_would_read() -> None:
    logs: list[TurnLog] = []

    async def story(house: House) -> None:
        await house.prompt("go")
        await house.rest(100)
        [turn] = open_turns(house)
        on_disk = await house.store.reads.turns.turn_log(turn.turn_id)
        assert on_disk is not None
        logs.append(on_disk)
        sent = house.model.requests[-1].conversation
        await house.restart()
        await house.rest(100)
        assert house.model.requests[-1].conversation == sent
        assert house.model.requests[-1].agent_id == MAIN

    run_house(story, script=[rule("go", calls("Imagine"), says("done", after_ms=60_000))])
    assert len(logs[0].entries) == 2
