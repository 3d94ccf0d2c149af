"""What the audit log says about external triggers.

Owns:  the events of changes to triggers. The rules are those of decide/audit.
"""

from typing import TypeAlias, assert_never

from holon.model.commit import CreateTrigger, DeliverTrigger, MoveTrigger
from holon.model.event import Event
from holon.model.ids import AgentId
from holon.model.trigger_event import (
    CallbackDelivered,
    ExternalTriggerCreated,
    ExternalTriggerRevoked,
    ExternalTriggerRotated,
)
from holon.model.wake import TriggerDeliveryMode, TriggerStatus

TriggerChange: TypeAlias = CreateTrigger | MoveTrigger | DeliverTrigger


def trigger_event(change: TriggerChange) -> tuple[AgentId, Event]:
    """Return the one event a change to a trigger leaves, and the agent whose log it goes to."""
    match change:
        case CreateTrigger(trigger=trigger):
            return trigger.target_agent_id, ExternalTriggerCreated(
                external_trigger_id=trigger.external_trigger_id,
                delivery_mode=trigger.delivery_mode,
            )
        case MoveTrigger(status=TriggerStatus.REVOKED):
            revoked = ExternalTriggerRevoked(external_trigger_id=change.external_trigger_id)
            return change.agent_id, revoked
        case MoveTrigger():
            return change.agent_id, ExternalTriggerRotated(
                external_trigger_id=change.external_trigger_id, epoch=change.epoch
            )
        case DeliverTrigger():
            return change.hint.agent_id, _delivered(change)
        case _:
            assert_never(change)


def _delivered(change: DeliverTrigger) -> CallbackDelivered:
    hint = change.hint
    return CallbackDelivered(
        external_trigger_id=change.external_trigger_id,
        source_key=hint.source_key,
        delivery_mode=hint.delivery_mode or TriggerDeliveryMode.WAKE_HINT,
        disposition=change.disposition,
        descriptor_delivery_mode=hint.descriptor_delivery_mode,
        source=hint.source,
        resource=hint.resource,
        content_type=hint.content_type,
        correlation_id=hint.correlation_id,
        causation_id=hint.causation_id,
    )
