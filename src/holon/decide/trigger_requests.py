"""External triggers: the commits that make, move and deliver to them.

Owns:  each durable step in the life of a trigger, and the receipt of a delivery.
Rule 1: a rotation begins a new epoch, also after the trigger was revoked: every older address is
        void. Revoking what is revoked changes nothing.
Rule 2: a delivery that repeats another gets that one's receipt, marked as a repeat. With another
        body it is a conflict.
Rule 3: a delivery goes by its key, so that a repeat which overtook it is the same commit.
"""

from datetime import datetime

import msgspec

from holon.decide.trigger_delivery import Deliver, content_digest_of, refuse_other_content
from holon.model.commit import Commit, CreateTrigger, DeliverTrigger, MoveTrigger, RecordEvent
from holon.model.expectation import AgentAdmits
from holon.model.refusal import Refusal
from holon.model.trigger import TriggerDelivery, TriggerReceipt, TriggerTarget
from holon.model.trigger_event import CallbackRefused
from holon.model.wake import ExternalTrigger, TriggerStatus, WakeDisposition


def creation_commit(trigger: ExternalTrigger) -> Commit:
    """Give an agent its trigger."""
    return Commit(
        commit_id=f"trigger:{trigger.external_trigger_id}:{trigger.epoch}",
        at=trigger.created_at,
        changes=(CreateTrigger(trigger=trigger),),
    )


def move_commit(
    commit_id: str, trigger: ExternalTrigger, status: TriggerStatus, *, now: datetime
) -> Commit | None:
    """Rotate (ACTIVE) or revoke a trigger; nothing when it is revoked already."""
    if status is TriggerStatus.REVOKED and trigger.status is status:
        return None
    moved = MoveTrigger(
        agent_id=trigger.target_agent_id,
        external_trigger_id=trigger.external_trigger_id,
        from_epoch=trigger.epoch,
        epoch=trigger.epoch + (status is TriggerStatus.ACTIVE),
        status=status,
    )
    return Commit(commit_id=commit_id, at=now, changes=(moved,))


def delivery_commit(
    name: str, target: TriggerTarget, delivery: TriggerDelivery, decision: Deliver
) -> Commit:
    """Park the hint of a delivery; `name` is the key it goes by, or a fresh id."""
    trigger, hint = target.trigger, decision.hint
    delivered = DeliverTrigger(
        hint=hint,
        external_trigger_id=trigger.external_trigger_id,
        epoch=trigger.epoch,
        disposition=decision.disposition,
        delivery_key=delivery.delivery_key,
        content_digest=content_digest_of(delivery),
    )
    return Commit(
        commit_id=f"deliver:{trigger.external_trigger_id}:{name}",
        at=hint.updated_at,
        changes=(delivered,),
        expects=(AgentAdmits(agent_id=hint.agent_id),),
    )


def refused_commit(name: str, trigger: ExternalTrigger, reason: str, *, now: datetime) -> Commit:
    """Record in the log of the agent that a delivery was refused, and why."""
    event = CallbackRefused(external_trigger_id=trigger.external_trigger_id, reason=reason)
    return Commit(
        commit_id=f"deliver:{name}",
        at=now,
        changes=(RecordEvent(agent_id=trigger.target_agent_id, event=event),),
    )


def repeated(target: TriggerTarget, delivery: TriggerDelivery) -> TriggerReceipt | Refusal | None:
    """Return the receipt of the delivery that this one repeats, if it repeats one."""
    if target.earlier is None:
        return None
    refusal = refuse_other_content(target.earlier, delivery)
    if refusal is not None:
        return refusal
    receipt = receipt_of(target.trigger, target.earlier.disposition)
    return msgspec.structs.replace(receipt, duplicate=True)


def receipt_of(trigger: ExternalTrigger, disposition: WakeDisposition) -> TriggerReceipt:
    """Return what the sender of a delivery gets."""
    return TriggerReceipt(
        agent_id=trigger.target_agent_id,
        external_trigger_id=trigger.external_trigger_id,
        disposition=disposition,
    )
