"""What a call to a trigger's address amounts to: the secret, the miss, and the hint."""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from typing import Any

import msgspec
import pytest

from holon.decide.agents.lifecycle import refuse_stopped
from holon.decide.wake.triggers import (
    BadDeliveryIdError,
    Deliver,
    RejectDelivery,
    decide_delivery,
    delivery_key_of,
    opens,
    split_token,
    trigger_path,
    trigger_secret,
)
from holon.model.agents import AgentStatus
from holon.model.limits import WAKE_HINT_SOURCES_COUNT_MAX
from holon.model.values import AgentId, TriggerId
from holon.model.wake import (
    TriggerDelivery,
    TriggerDeliveryMode,
    TriggerStatus,
    TriggerTarget,
    WakeDisposition,
)
from tests.support.builders import MAIN, START, a_trigger

KEY = b"k" * 32
ID = a_trigger().external_trigger_id


def a_target(**more: Any) -> TriggerTarget:
    return TriggerTarget(**{"trigger": a_trigger(), "agent_status": AgentStatus.ASLEEP, **more})


def secret(epoch: int = 1, agent_id: AgentId = MAIN, key: bytes = KEY) -> str:
    return trigger_secret(key, ID, epoch=epoch, agent_id=agent_id)


def test_a_secret_is_the_whole_digest_in_url_safe_base64() -> None:
    made = hmac.new(KEY, b"trig_1\x001\x00main", hashlib.sha256).digest()
    assert secret() == urlsafe_b64encode(made).decode().rstrip("=")
    assert len(secret()) == 43
    assert split_token(f"{ID}.{secret()}") == (ID, secret())
    assert trigger_path(KEY, a_trigger()) == f"/callbacks/wake/{ID}.{secret()}"


def test_no_two_parts_of_a_secret_can_be_shifted_into_each_other() -> None:
    one = trigger_secret(KEY, TriggerId("trig_1"), epoch=11, agent_id=AgentId("a"))
    other = trigger_secret(KEY, TriggerId("trig_11"), epoch=1, agent_id=AgentId("a"))
    assert one != other


MISSES: dict[str, tuple[TriggerTarget | None, str]] = {
    "no such trigger": (None, secret()),
    "the phantom's own secret": (None, secret(epoch=0, agent_id=AgentId(""))),
    "another epoch": (a_target(), secret(epoch=2)),
    "another agent": (a_target(), secret(agent_id=AgentId("other"))),
    "another key": (a_target(), secret(key=b"j" * 32)),
    "nothing": (a_target(), ""),
    "not ASCII": (a_target(), "é" * 43),
    "a lone surrogate": (a_target(), "\ud800" * 43),
    "revoked": (
        a_target(trigger=msgspec.structs.replace(a_trigger(), status=TriggerStatus.REVOKED)),
        secret(),
    ),
    "archived": (a_target(is_archived=True), secret()),
}


@pytest.mark.parametrize("name", MISSES)
def test_nothing_but_the_right_secret_opens_an_active_trigger(name: str) -> None:
    target, offered = MISSES[name]
    assert not opens(KEY, ID, offered, target)
    assert opens(KEY, ID, secret(), a_target())


SAME = {
    "quotes": ("abc", '"abc"'),
    "blanks": ("abc", " abc\t"),
    "a UUID's case": (
        "72D3162E-CC78-11E3-81AB-4C9367DC0958",
        "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_spellings_of_one_id_are_one(name: str) -> None:
    one, other = SAME[name]
    assert delivery_key_of(one) == delivery_key_of(other)


def test_ids_that_differ_stay_apart() -> None:
    assert len({delivery_key_of(each) for each in ("abc", "Abc", "abd")}) == 3


@pytest.mark.parametrize("bad", ["", '""', "a b", "é", "x" * 201, "a\x00"])
def test_what_is_no_id_is_refused(bad: str) -> None:
    with pytest.raises(BadDeliveryIdError):
        delivery_key_of(bad)


DISPOSITIONS: dict[str, tuple[TriggerTarget, WakeDisposition]] = {
    "asleep": (a_target(), WakeDisposition.TRIGGERED),
    "idle": (a_target(agent_status=AgentStatus.AWAKE_IDLE), WakeDisposition.TRIGGERED),
    "in a turn": (a_target(agent_status=AgentStatus.AWAKE_RUNNING), WakeDisposition.PARKED),
    "paused": (a_target(agent_status=AgentStatus.PAUSED), WakeDisposition.PARKED),
    "something waits": (a_target(queued_count=1), WakeDisposition.PARKED),
    "its source waits": (a_target(is_parked=True, parked_count=1), WakeDisposition.COALESCED),
}


@pytest.mark.requirement("triggers:coalesce")
@pytest.mark.parametrize("name", DISPOSITIONS)
def test_what_becomes_of_a_delivery_depends_on_what_the_agent_does(name: str) -> None:
    target, expected = DISPOSITIONS[name]
    decided = decide_delivery(target, TriggerDelivery(), now=START)
    assert isinstance(decided, Deliver)
    assert decided.disposition is expected


@pytest.mark.requirement("triggers:stopped")
def test_a_stopped_agent_takes_nothing_and_says_how_to_resume_it() -> None:
    target = a_target(agent_status=AgentStatus.STOPPED)
    decided = decide_delivery(target, TriggerDelivery(), now=START)
    assert decided == RejectDelivery(reason="agent_stopped", refusal=refuse_stopped(MAIN))


@pytest.mark.requirement("triggers:clears-nothing")
def test_a_hint_of_a_delivery_is_bound_to_no_wait() -> None:
    decided = decide_delivery(a_target(), TriggerDelivery(body="done!"), now=START)
    assert isinstance(decided, Deliver)
    assert decided.hint.wait_id is None


@pytest.mark.parametrize("crowd", [WAKE_HINT_SOURCES_COUNT_MAX - 1, WAKE_HINT_SOURCES_COUNT_MAX])
def test_a_new_source_in_a_crowd_shares_the_triggers_own_place(crowd: int) -> None:
    delivery = TriggerDelivery(source="ci")
    decided = decide_delivery(a_target(parked_count=crowd), delivery, now=START)
    assert isinstance(decided, Deliver)
    has_room = crowd < WAKE_HINT_SOURCES_COUNT_MAX
    assert decided.hint.source_key == f"trigger:{ID}{':ci' if has_room else ''}"
    assert decided.hint.source == "ci"


@pytest.mark.requirement("triggers:legacy-enqueue")
def test_an_older_descriptor_is_mapped_and_marked() -> None:
    older = TriggerDeliveryMode.ENQUEUE_MESSAGE
    trigger = msgspec.structs.replace(a_trigger(), delivery_mode=older)
    decided = decide_delivery(a_target(trigger=trigger), TriggerDelivery(), now=START)
    assert isinstance(decided, Deliver)
    assert decided.hint.delivery_mode is TriggerDeliveryMode.WAKE_HINT
    assert decided.hint.descriptor_delivery_mode is older
