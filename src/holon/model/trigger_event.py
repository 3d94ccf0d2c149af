"""The runtime events about external triggers: made, rotated, revoked, used.

Owns:  what the audit log can say about capabilities. The rules are those of model/event; besides,
       no event holds a secret or an address that carries one.
"""

from holon.model.ids import TriggerId
from holon.model.record import Record
from holon.model.wake import TriggerDeliveryMode, WakeDisposition


class ExternalTriggerCreated(
    Record, tag_field="kind", tag="external_trigger_created", frozen=True, kw_only=True
):
    """An agent was given its trigger."""

    external_trigger_id: TriggerId
    delivery_mode: TriggerDeliveryMode


class ExternalTriggerRotated(
    Record, tag_field="kind", tag="external_trigger_rotated", frozen=True, kw_only=True
):
    """The trigger goes by a new address; every earlier one is void."""

    external_trigger_id: TriggerId
    epoch: int


class ExternalTriggerRevoked(
    Record, tag_field="kind", tag="external_trigger_revoked", frozen=True, kw_only=True
):
    """The trigger opens nothing until it is rotated."""

    external_trigger_id: TriggerId


class CallbackDelivered(
    Record, tag_field="kind", tag="callback_delivered", frozen=True, kw_only=True
):
    """An outside system used the trigger; an older mode it asked for is named beside ours."""

    external_trigger_id: TriggerId
    source_key: str
    delivery_mode: TriggerDeliveryMode
    disposition: WakeDisposition
    descriptor_delivery_mode: TriggerDeliveryMode | None = None
    source: str | None = None
    resource: str | None = None
    content_type: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None


class CallbackRefused(Record, tag_field="kind", tag="callback_refused", frozen=True, kw_only=True):
    """A delivery with the right address was turned away; its sender was told why."""

    external_trigger_id: TriggerId
    reason: str
