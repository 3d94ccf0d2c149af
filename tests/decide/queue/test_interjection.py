"""Who may speak into a running turn: every combination, exactly one of them."""

import itertools

import msgspec
import pytest

from holon.decide.queue.message_view import render_message
from holon.decide.queue.next_message import Interject, LeaveQueued, decide_interjection
from holon.model.queue import MessageKind, OperatorOrigin, Priority, TrustLevel
from holon.model.turns.turn import SafePoint
from tests.decide.sample_rows import ORIGINS
from tests.decide.turn_rows import prompt


@pytest.mark.requirement("turn:only-trusted-operator-interjects")
def test_only_the_trusted_operator_in_the_interject_band_enters_a_turn() -> None:
    choices = itertools.product(MessageKind, ORIGINS, TrustLevel, Priority, SafePoint)
    for kind, origin, trust, priority, point in choices:
        message = msgspec.structs.replace(
            prompt(), kind=kind, origin=origin, trust=trust, priority=priority
        )
        allowed = (
            kind == "operator_prompt"
            and isinstance(origin, OperatorOrigin)
            and trust == "trusted_operator"
            and priority == "interject"
        )
        decision = decide_interjection(message, point)
        assert isinstance(decision, Interject) is allowed


@pytest.mark.parametrize(
    ("reason", "changed"),
    [
        ("priority_not_interject", {"priority": Priority.NEXT}),
        ("not_an_operator_prompt", {"kind": MessageKind.CONTROL}),
        ("origin_not_operator", {"origin": ORIGINS[1]}),
        ("not_trusted_as_operator", {"trust": TrustLevel.TRUSTED_INTEGRATION}),
    ],
)
def test_a_message_that_stays_queued_says_why(reason: str, changed: dict[str, object]) -> None:
    message = msgspec.structs.replace(prompt(), **changed)
    decision = decide_interjection(message, SafePoint.AFTER_TOOL_RESULTS)
    assert decision == LeaveQueued(reason=reason)


@pytest.mark.requirement("turn:prompt-keeps-provenance")
@pytest.mark.parametrize("point", SafePoint)
def test_what_enters_carries_its_provenance_and_its_place(point: SafePoint) -> None:
    decision = decide_interjection(prompt(), point)
    assert decision == Interject(text=render_message(prompt()), point=point)
    assert "authority: operator_instruction" in render_message(prompt())
