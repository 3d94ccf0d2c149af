"""The steps in the life of a trigger."""

import msgspec
import pytest

from holon.decide.wake.triggers import (
    Deliver,
    content_digest_of,
    creation_commit,
    decide_delivery,
    delivery_commit,
    move_commit,
    receipt_of,
    refused_commit,
    repeated,
)
from holon.model.agents import AgentStatus
from holon.model.commits import AgentAdmits, CreateTrigger, DeliverTrigger, MoveTrigger, RecordEvent
from holon.model.errors import Refusal, RefusalCode
from holon.model.wake import (
    EarlierDelivery,
    TriggerDelivery,
    TriggerStatus,
    TriggerTarget,
    WakeDisposition,
)
from tests.support.builders import MAIN, START, a_trigger

vary = msgspec.structs.replace
TRIGGER = a_trigger()
TARGET = TriggerTarget(trigger=TRIGGER, agent_status=AgentStatus.ASLEEP)
DELIVERY = TriggerDelivery(body={"status": "red"}, delivery_key="k" * 64)


def test_a_trigger_is_made_once_per_epoch() -> None:
    commit = creation_commit(TRIGGER)
    assert commit.commit_id == f"trigger:{TRIGGER.external_trigger_id}:{TRIGGER.epoch}"
    assert commit.changes == (CreateTrigger(trigger=TRIGGER),)


@pytest.mark.parametrize("status", [TriggerStatus.ACTIVE, TriggerStatus.REVOKED])
def test_a_rotation_begins_a_new_epoch_also_after_a_revocation(status: TriggerStatus) -> None:
    trigger = vary(TRIGGER, status=status)
    commit = move_commit("control:r1", trigger, TriggerStatus.ACTIVE, now=START)
    assert commit is not None
    (moved,) = commit.changes
    assert isinstance(moved, MoveTrigger)
    assert (moved.from_epoch, moved.epoch) == (trigger.epoch, trigger.epoch + 1)
    assert moved.status is TriggerStatus.ACTIVE


def test_a_revocation_keeps_the_epoch_and_happens_once() -> None:
    commit = move_commit("control:r1", TRIGGER, TriggerStatus.REVOKED, now=START)
    assert commit is not None
    (moved,) = commit.changes
    assert isinstance(moved, MoveTrigger)
    assert moved.epoch == moved.from_epoch == TRIGGER.epoch
    revoked = vary(TRIGGER, status=TriggerStatus.REVOKED)
    assert move_commit("control:r2", revoked, TriggerStatus.REVOKED, now=START) is None


def test_a_delivery_goes_by_its_name_and_needs_an_agent_that_takes_input() -> None:
    decision = decide_delivery(TARGET, DELIVERY, now=START)
    assert isinstance(decision, Deliver)
    commit = delivery_commit("name", TARGET, DELIVERY, decision)
    assert commit.commit_id == f"deliver:{TRIGGER.external_trigger_id}:name"
    assert commit.expects == (AgentAdmits(agent_id=MAIN),)
    (delivered,) = commit.changes
    assert isinstance(delivered, DeliverTrigger)
    assert delivered.delivery_key == DELIVERY.delivery_key
    assert delivered.epoch == TRIGGER.epoch


def test_a_refused_delivery_leaves_a_line_in_the_log_of_the_agent_and_nothing_else() -> None:
    commit = refused_commit("name", TRIGGER, "agent_stopped", now=START)
    (noted,) = commit.changes
    assert isinstance(noted, RecordEvent)
    assert noted.agent_id == MAIN


def test_a_repeat_gets_the_receipt_of_the_first_marked_as_one() -> None:
    digest = content_digest_of(DELIVERY)
    earlier = EarlierDelivery(disposition=WakeDisposition.PARKED, content_digest=digest)
    found = repeated(vary(TARGET, earlier=earlier), DELIVERY)
    assert found == vary(receipt_of(TRIGGER, WakeDisposition.PARKED), duplicate=True)
    assert repeated(TARGET, DELIVERY) is None


def test_a_repeat_with_another_body_is_a_conflict() -> None:
    earlier = EarlierDelivery(disposition=WakeDisposition.PARKED, content_digest="other")
    refused = repeated(vary(TARGET, earlier=earlier), DELIVERY)
    assert isinstance(refused, Refusal)
    assert refused.code is RefusalCode.IDEMPOTENCY_CONFLICT
