"""What a turn is worth, by what it was shown and what it goes on with."""

import msgspec
import pytest

from holon.decide.queue.message_view import is_tainted, lowest_authority_of, turn_authority
from holon.model.queue import AuthorityClass, JsonBody, MessageEnvelope, SystemOrigin
from tests.decide.memory_rows import OPERATOR, OUTSIDE, from_outside, log_of
from tests.decide.turn_rows import prompt

RUNTIME = AuthorityClass.RUNTIME_INSTRUCTION


def a_tick(*, hints: bool = False) -> MessageEnvelope:
    """A message of the runtime; with hints, one that carries what a trigger sent."""
    return msgspec.structs.replace(
        prompt(),
        authority_class=RUNTIME,
        origin=SystemOrigin(subsystem="wake_hint"),
        body=JsonBody(value={"wake_hints": [{"body": "do it"}]} if hints else {"tick": 1}),
    )


@pytest.mark.requirement("arrivals:trigger-words-are-a-signal")
def test_what_a_trigger_sent_is_a_signal_although_the_runtime_brings_it() -> None:
    signal = AuthorityClass.INTEGRATION_SIGNAL
    assert lowest_authority_of([a_tick(hints=True)]) is signal
    assert lowest_authority_of([a_tick()]) is RUNTIME
    assert lowest_authority_of([prompt(), a_tick(hints=True)]) is signal
    assert is_tainted(signal)
    evidence = msgspec.structs.replace(a_tick(hints=True), authority_class=OUTSIDE)
    assert lowest_authority_of([evidence]) is OUTSIDE
    assert lowest_authority_of([]) is OUTSIDE


@pytest.mark.parametrize(
    ("message", "before", "root", "worth"),
    [
        (prompt(), OUTSIDE, None, OPERATOR),
        (from_outside(), OPERATOR, None, OUTSIDE),
        (a_tick(), OPERATOR, None, RUNTIME),
        (a_tick(), OUTSIDE, None, OUTSIDE),
        (a_tick(), OPERATOR, from_outside(), OUTSIDE),
        (a_tick(), OPERATOR, prompt(), RUNTIME),
    ],
)
def test_a_turn_of_the_runtime_is_worth_no_more_than_what_it_goes_on_with(
    message: MessageEnvelope,
    before: AuthorityClass,
    root: MessageEnvelope | None,
    worth: AuthorityClass,
) -> None:
    assert turn_authority(log_of(message=message), before=before, root=root) is worth
    assert is_tainted(worth) is (worth is OUTSIDE)
