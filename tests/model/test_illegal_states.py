"""Combinations the specification forbids cannot be written down, in Python or on the wire."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from holon.model.agents import AgentStatus
from holon.model.errors import DecodeError, NotJsonError
from holon.model.events.event import AgentCreated
from holon.model.queue import BriefBody, JsonBody, MessageState, TextBody, is_contentful
from holon.model.turns.turn import (
    Closure,
    ClosureOutcome,
    Completed,
    Continuable,
    Continuation,
    Failed,
    LivenessOnly,
    Reentry,
    Waiting,
    WaitingReason,
    outcome_of,
    waiting_reason_of,
)
from holon.model.values import require_json
from holon.wire.codec import decode

SIGNAL = (
    '"work_signal":{"work_item_id":"w","status":"active","reactivation_mode":"continue_active"}'
)
REASON = '"waiting_reason":"awaiting_timer"'


@pytest.mark.requirement("wire:closure-combinations")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f'{{"outcome":"completed",{REASON}}}', id="completed with a waiting reason"),
        pytest.param(f'{{"outcome":"completed",{SIGNAL}}}', id="completed with a work signal"),
        pytest.param(f'{{"outcome":"waiting",{SIGNAL}}}', id="waiting with a work signal"),
        pytest.param('{"outcome":"continuable"}', id="continuable without a work signal"),
        pytest.param(f'{{"outcome":"continuable",{SIGNAL},{REASON}}}', id="continuable, reason"),
        pytest.param(f'{{"outcome":"failed","summary":"s",{REASON}}}', id="failed with a reason"),
        pytest.param('{"outcome":"failed"}', id="failed without saying why"),
    ],
)
def test_a_forbidden_closure_does_not_decode(text: str) -> None:
    with pytest.raises(DecodeError):
        decode(text, Closure)


@pytest.mark.requirement("wire:closure-combinations")
def test_a_liveness_only_continuation_cannot_be_model_visible() -> None:
    visible = (
        '{"kind":"liveness_only","trigger_kind":"timer_fire","prior_outcome":"waiting",'
        '"continuation_class":"local_continuation"}'
    )
    with pytest.raises(DecodeError):
        decode(visible, Continuation)
    assert "continuation_class" not in LivenessOnly.__struct_fields__
    assert "continuation_class" in Reentry.__struct_fields__


@pytest.mark.parametrize(
    ("build", "unknown"),
    [(Completed, "waiting_reason"), (Waiting, "work_signal"), (Continuable, "waiting_reason")],
)
def test_a_forbidden_closure_cannot_be_built(build: Callable[..., Any], unknown: str) -> None:
    with pytest.raises(TypeError):
        build(**{unknown: None})


def test_every_outcome_has_its_name_and_only_waiting_has_a_reason() -> None:
    waiting = Waiting(waiting_reason=WaitingReason.AWAITING_TASK_RESULT)
    assert outcome_of(waiting) is ClosureOutcome.WAITING
    assert waiting_reason_of(waiting) is WaitingReason.AWAITING_TASK_RESULT
    assert outcome_of(Completed()) is ClosureOutcome.COMPLETED
    assert outcome_of(Failed(summary="s")) is ClosureOutcome.FAILED
    assert waiting_reason_of(Completed()) is None


def test_a_record_cannot_be_changed_in_place() -> None:
    event = AgentCreated(status=AgentStatus.ASLEEP)
    with pytest.raises(AttributeError):
        event.status = AgentStatus.STOPPED  # type: ignore[misc]
    assert msgspec.structs.replace(event, status=AgentStatus.STOPPED) != event


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {1: 2}, "\ud800", b"x", {"a": ()}])
def test_json_is_checked_where_it_enters_the_model(value: Any) -> None:
    if value == {"a": ()}:
        require_json(value)  # a tuple is an array that nobody can append to
        return
    with pytest.raises(NotJsonError):
        JsonBody(value=value)


@pytest.mark.parametrize(
    ("body", "contentful"),
    [
        (TextBody(text="hello"), True),
        (TextBody(text=" \n\t"), False),
        (BriefBody(text=""), False),
        (BriefBody(text="done", title="t"), True),
        (JsonBody(value=None), True),
        (JsonBody(value={}), True),
    ],
)
def test_contentful_means_words_or_any_json(
    body: TextBody | BriefBody | JsonBody, contentful: bool
) -> None:
    assert is_contentful(body) is contentful


def test_a_message_has_two_states_before_its_end_and_four_ends() -> None:
    assert {s.value for s in MessageState if not s.is_terminal} == {"queued", "claimed"}
    assert {s.value for s in MessageState if s.is_terminal} == {
        "processed",
        "interjected",
        "aborted",
        "dropped",
    }
