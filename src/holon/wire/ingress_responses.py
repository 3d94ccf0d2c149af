"""What outsiders are answered, and what the operator is shown of their addresses.

Owns:  the receipts of deliveries and wakes, and the view of an external trigger.
"""

from typing import Literal

import msgspec

from holon.model.ids import AgentId, TriggerId
from holon.model.instant import Instant
from holon.model.record import Record
from holon.model.wake import (
    ExternalTrigger,
    TriggerDeliveryMode,
    TriggerStatus,
    WakeDisposition,
)


class CallbackResult(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What became of a delivery."""

    agent_id: AgentId
    external_trigger_id: TriggerId
    disposition: WakeDisposition
    scope: Literal["agent"] = "agent"
    delivery_mode: TriggerDeliveryMode = TriggerDeliveryMode.WAKE_HINT


class CallbackAnswer(Record, frozen=True, kw_only=True):
    """The delivery is durable. `duplicate`: it already was, under its id, with this result."""

    ok: Literal[True]
    result: CallbackResult
    duplicate: bool = msgspec.field(default_factory=bool)


class WakeAnswer(Record, frozen=True, kw_only=True):
    """What became of a wake."""

    ok: Literal[True]
    agent_id: AgentId
    disposition: WakeDisposition


class ExternalTriggerView(Record, frozen=True, kw_only=True):
    """An external trigger. Its address is a secret and is shown to the operator alone."""

    external_trigger_id: TriggerId
    target_agent_id: AgentId
    delivery_mode: TriggerDeliveryMode
    status: TriggerStatus
    created_at: Instant
    delivery_count: int
    scope: Literal["agent"] = "agent"
    revoked_at: Instant | None = None
    last_delivered_at: Instant | None = None
    trigger_url: str | None = None


class TriggerListing(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The external triggers of an agent: one, or none yet."""

    agent_id: AgentId
    external_triggers: tuple[ExternalTriggerView, ...]


class TriggerAnswer(Record, frozen=True, kw_only=True):
    """The trigger as it is now."""

    ok: Literal[True]
    agent_id: AgentId
    external_trigger: ExternalTriggerView


def trigger_view(trigger: ExternalTrigger, *, trigger_url: str | None) -> ExternalTriggerView:
    """Return what may be shown of a trigger; its address is for the caller to leave out."""
    return ExternalTriggerView(
        external_trigger_id=trigger.external_trigger_id,
        target_agent_id=trigger.target_agent_id,
        delivery_mode=trigger.delivery_mode,
        status=trigger.status,
        created_at=trigger.created_at,
        delivery_count=trigger.delivery_count,
        revoked_at=trigger.revoked_at,
        last_delivered_at=trigger.last_delivered_at,
        trigger_url=trigger_url,
    )


def told(disposition: WakeDisposition) -> WakeDisposition:
    """Return a disposition as callers know it: a hint that waits is one with what waits already."""
    parked = disposition is WakeDisposition.PARKED
    return WakeDisposition.COALESCED if parked else disposition
