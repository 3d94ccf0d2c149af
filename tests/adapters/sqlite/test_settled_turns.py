"""What is remembered of turns: it is bounded, and only what can change no more."""

import pytest

from holon.adapters.sqlite.database.row_codec import CallRow, TurnRow
from holon.adapters.sqlite.turns import TURN_CHARS_MAX, SettledTurns
from holon.wire.codec import encode
from tests.contract.store.steps import make, make_turn
from tests.support.builders import MAIN, START, a_receipt, a_tool_call, a_turn, an_agent
from tests.support.inline_writer import InlineWriter, NoFaults
from tests.support.manual_clock import ManualClock
from tests.support.memory_store import memory_connection, memory_store


def a_row(turn_id: str) -> TurnRow:
    """A turn without anything in it."""
    return TurnRow(turn_id, "main", 1, "msg_1", 0, None, 0, None, 0, 0)


def a_call(*, input_chars: int, is_finished: bool) -> CallRow:
    """A call that says so much, and has ended or not."""
    said = '{"text": "' + (input_chars - 12) * "x" + '"}'
    if not is_finished:
        return CallRow("e", "c", "t", 0, 0, "Enqueue", said, "started", 0, None, None, None)
    receipt = encode(a_receipt(a_tool_call(a_turn()))).decode()
    return CallRow("e", "c", "t", 0, 0, "Enqueue", said, "succeeded", 0, 0, None, receipt)


def test_a_turn_is_known_once_it_was_read() -> None:
    turns = SettledTurns()
    assert turns.known("turn_1") is None
    read = turns.read(a_row("turn_1"), [], [a_call(input_chars=50, is_finished=True)])
    assert turns.known("turn_1") is read
    assert turns.known("turn_2") is None


@pytest.mark.parametrize(
    "call",
    [
        a_call(input_chars=50, is_finished=False),
        a_call(input_chars=TURN_CHARS_MAX + 1, is_finished=True),
    ],
    ids=["a call may still end", "too large"],
)
def test_a_turn_is_not_remembered_when(call: CallRow) -> None:
    turns = SettledTurns()
    assert turns.read(a_row("turn_1"), [], [call]).calls
    assert turns.known("turn_1") is None


def test_what_was_not_asked_for_longest_makes_room() -> None:
    call = a_call(input_chars=1_000, is_finished=True)
    turns = SettledTurns(chars_max=3 * (1_000 + len(call.receipt or "")))
    for n in range(3):
        turns.read(a_row(f"turn_{n}"), [], [call])
    assert turns.known("turn_0")
    turns.read(a_row("turn_3"), [], [call])
    assert [bool(turns.known(f"turn_{n}")) for n in range(4)] == [True, False, True, True]


async def test_what_is_read_of_settled_turns_is_remembered() -> None:
    shared = memory_connection()
    store = memory_store(shared, InlineWriter(shared, ManualClock(START), NoFaults()))
    await make(store, an_agent())
    await make_turn(store, 1)
    (first,) = await store.reads.turns.recent_turns(MAIN, limit=9)
    (again,) = await store.reads.turns.recent_turns(MAIN, limit=9)
    assert first is again
