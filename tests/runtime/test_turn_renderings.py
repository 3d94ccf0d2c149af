"""Ended turns are rendered once, within a bound."""

import msgspec
import pytest

from holon.decide.turns.conversation import rendered_turn
from holon.model.queue import TextBody
from holon.model.turns.transcript import IncomingMessage, TurnLog
from holon.runtime.turns.conversation import TURN_BYTES_MAX, TurnRenderings
from tests.support.builders import a_message, a_turn, an_entry


def a_log(number: int, text: str = "go on") -> TurnLog:
    turn = a_turn(f"turn_{number}")
    said = IncomingMessage(message=a_message(f"msg_{number}", body=TextBody(text=text)))
    return TurnLog(turn=turn, entries=(an_entry(turn, position=0, data=said),))


def test_a_turn_is_rendered_once_and_as_it_is() -> None:
    kept, log = TurnRenderings(), a_log(1)
    first = kept.of(log)
    assert first == rendered_turn(log)
    assert kept.of(a_log(1)) is first, "the very same messages, read anew"


def test_a_turn_that_has_grown_is_rendered_anew() -> None:
    kept, log = TurnRenderings(), a_log(1)
    first = kept.of(log)
    grown = msgspec.structs.replace(log, entries=(*log.entries, *log.entries))
    assert kept.of(grown) == rendered_turn(grown) != first


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_what_was_not_asked_for_longest_goes_first(count: int) -> None:
    size = rendered_turn(a_log(0)).size_bytes
    kept = TurnRenderings(bytes_max=3 * size)
    oldest = kept.of(a_log(0))
    for number in range(1, count + 1):
        kept.of(a_log(number % 10))
    assert (kept.of(a_log(0)) is oldest) is (count < 3)


def test_small_turns_are_bounded_by_their_count() -> None:
    kept = TurnRenderings(count_max=2)
    oldest = kept.of(a_log(0))
    assert kept.of(a_log(0)) is oldest
    kept.of(a_log(1))
    assert kept.of(a_log(0)) is oldest, "two are kept"
    kept.of(a_log(2))
    second = kept.of(a_log(2))
    assert kept.of(a_log(2)) is second
    kept.of(a_log(3))
    assert kept.of(a_log(0)) is not oldest


def test_a_huge_turn_is_not_kept() -> None:
    kept, huge = TurnRenderings(), a_log(1, "x" * TURN_BYTES_MAX)
    assert kept.of(huge) is not kept.of(huge)
