"""Turns with everything recorded in them, newest first or in the order they happened."""

from holon.decide.events.audit import audited
from holon.model.commits import (
    AppendTranscript,
    Applied,
    ConstraintRefused,
    FinishToolCall,
    OpenTurn,
    QueueMessage,
    SetAgentStatus,
    StartToolCall,
)
from holon.model.turns.tools import ToolCallState, ToolLatency
from holon.model.turns.transcript import TurnLog
from holon.model.values import TurnId
from holon.ports.store import Store
from tests.contract.store.steps import OTHER, claimed, make, make_turn, open_turn, queued, with_
from tests.support.builders import (
    MAIN,
    a_commit,
    a_message,
    a_receipt,
    a_round,
    a_tool_call,
    a_turn,
    an_admission,
    an_agent,
    an_entry,
)


async def test_an_agent_never_has_two_open_turns(store: Store) -> None:
    for name in ("msg_1", "msg_2"):
        await store.apply(audited(an_admission(a_message(name))))
    assert await store.apply(audited(a_commit("first", OpenTurn(turn=a_turn())))) == Applied()
    second = OpenTurn(turn=a_turn("turn_2", message_id="msg_2", index=2))
    outcome = await store.apply(audited(a_commit("second", second)))
    assert outcome == ConstraintRefused(constraint="turns_one_open_per_agent")


async def test_a_turn_comes_back_as_it_was_written(store: Store) -> None:
    await store.apply(audited(an_admission(a_message())))
    turn = a_turn()
    entries = [an_entry(turn, position=n, data=a_round(n + 1)) for n in range(2)]
    await store.apply(
        audited(
            a_commit(
                "claim",
                claimed("msg_1"),
                SetAgentStatus(agent_id=MAIN, status=an_agent().status, reason="turn 1"),
                OpenTurn(turn=turn),
                *(AppendTranscript(entry=entry) for entry in entries),
            )
        )
    )
    log = await store.reads.turns.turn_log(turn.turn_id)
    assert log is not None
    assert log.turn == turn
    assert list(log.entries) == entries
    state = await store.reads.agents.agent(MAIN)
    assert state is not None
    assert state.focus.open_turn_id == turn.turn_id


async def test_a_turn_log_joins_calls_with_their_receipts(store: Store) -> None:
    turn = a_turn()
    first, second = a_tool_call(turn, position=0), a_tool_call(turn, position=1)
    finished = FinishToolCall(
        agent_id=MAIN,
        turn_id=turn.turn_id,
        effect_id=first.effect_id,
        tool_name=first.name,
        state=ToolCallState.SUCCEEDED,
        receipt=a_receipt(first),
    )
    await make(store, queued("msg_1"))
    await make(store, claimed("msg_1"), OpenTurn(turn=turn))
    entry = an_entry(turn, position=0, data=a_round())
    await make(
        store, AppendTranscript(entry=entry), StartToolCall(call=first), StartToolCall(call=second)
    )
    await make(store, finished)
    log = await store.reads.turns.turn_log(turn.turn_id)
    assert log is not None
    assert log.entries == (entry,)
    assert [call.receipt for call in log.calls] == [a_receipt(first), None]
    assert log.calls[0].call.state is ToolCallState.SUCCEEDED
    assert log.calls[0].call.input == first.input
    assert await store.reads.turns.agents_with_open_turns() == [MAIN]
    assert await store.reads.turns.recent_turns(MAIN, limit=5) == [], (
        "only settled turns are history"
    )


async def test_recent_turns_are_the_newest_in_the_order_they_happened(store: Store) -> None:
    for n in range(1, 5):
        await make_turn(store, n)
    logs = await store.reads.turns.recent_turns(MAIN, limit=2)
    assert [log.turn.turn_index for log in logs] == [3, 4]
    since = await store.reads.turns.recent_turns(MAIN, limit=9, from_turn=2)
    assert [log.turn.turn_index for log in since] == [2, 3, 4]


async def test_a_turn_that_was_read_before_is_found_with_those_that_came_since(
    store: Store,
) -> None:
    seen = list[TurnLog]()
    for n in range(1, 4):
        await make_turn(store, n)
        seen = list(await store.reads.turns.recent_turns(MAIN, limit=9))
        assert [log.turn.turn_index for log in seen] == list(range(1, n + 1))
    one_by_one = [await store.reads.turns.turn_log(log.turn.turn_id) for log in seen]
    assert seen == one_by_one


async def test_turns_are_paged_newest_first_with_the_open_one(store: Store) -> None:
    turn = a_turn()
    await make(store, an_agent(OTHER), QueueMessage(message=a_message()))
    await make(
        store,
        claimed("msg_1"),
        OpenTurn(turn=turn),
        AppendTranscript(entry=an_entry(turn, position=0, data=a_round())),
    )
    (log,) = await store.reads.turns.turns_page(MAIN, before_index=None, limit=5)
    assert log.turn.turn_id == turn.turn_id
    assert len(log.entries) == 1
    asked = [TurnId("turn_9"), turn.turn_id]
    assert await store.reads.turns.named(MAIN, asked) == [turn]
    assert await store.reads.turns.named(OTHER, asked) == []
    assert await store.reads.turns.turns_page(MAIN, before_index=1, limit=5) == []


async def test_how_long_calls_took_is_added_up_by_tool(store: Store) -> None:
    turn = await open_turn(store, 1)
    for position, (name, duration_ms) in enumerate((("B", 5), ("A", 30), ("A", 10), ("A", None))):
        call = with_(a_tool_call(turn, position=position), name=name)
        done = FinishToolCall(
            agent_id=MAIN,
            turn_id=turn.turn_id,
            effect_id=call.effect_id,
            tool_name=name,
            state=ToolCallState.SUCCEEDED,
            receipt=a_receipt(call),
            duration_ms=duration_ms,
        )
        await make(store, StartToolCall(call=call))
        await make(store, done)
    assert list(await store.reads.turns.tool_latencies(MAIN, limit=9)) == [
        ToolLatency(tool_name="A", call_count=2, total_ms=40, max_ms=30, last_ms=10),
        ToolLatency(tool_name="B", call_count=1, total_ms=5, max_ms=5, last_ms=5),
    ]
    assert len(await store.reads.turns.tool_latencies(MAIN, limit=1)) == 1
    assert list(await store.reads.turns.tool_latencies(OTHER, limit=9)) == []
