"""What a call to an external trigger's address amounts to.

Owns:  how an address is derived, whether one opens, under which name a delivery is remembered, when
       it repeats another, and the wake hint it becomes.
Rule 1: nothing secret is kept: a secret is made of the server's key, the trigger's id, its epoch
        and its agent. The next epoch makes another, and no earlier one opens again.
Rule 2: an unknown trigger is looked at with the same work as a known one, and every miss is alike.
Rule 3: a body is opaque evidence. Nothing in it, nor in a header, chooses an agent, an authority or
        a work item; a delivery clears no blocker, resolves no wait and ends nothing.
Rule 4: a delivery never crosses the stopped boundary; whoever has the right address is told how to
        resume, as at every other door.
"""

import hashlib
import hmac
import re
from base64 import b64encode, urlsafe_b64encode
from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from holon.decide.agent_lifecycle import admits
from holon.decide.agent_refusals import refuse_stopped
from holon.decide.trigger_address import WAKE_PATH
from holon.model.agent_status import AgentStatus
from holon.model.errors import BadInputError
from holon.model.ids import AgentId, TriggerId
from holon.model.json_value import JsonValue
from holon.model.limits import (
    IDEMPOTENCY_KEY_CHARS_MAX,
    TRIGGER_SECRET_CHARS,
    WAKE_HINT_BODY_BYTES_MAX,
    WAKE_HINT_SOURCES_COUNT_MAX,
)
from holon.model.record import Record
from holon.model.refusal import Refusal, RefusalCode
from holon.model.trigger import EarlierDelivery, TriggerDelivery, TriggerTarget
from holon.model.wake import (
    ExternalTrigger,
    TriggerDeliveryMode,
    TriggerStatus,
    WakeDisposition,
    WakeHint,
)

REASON: Final = "external_trigger"

_ELIGIBLE: Final = frozenset({AgentStatus.AWAKE_IDLE, AgentStatus.ASLEEP})
_NOBODY: Final = AgentId("")  # no agent has this id
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_VISIBLE: Final = re.compile(r"[!-~]+")


class BadDeliveryIdError(BadInputError):
    """The id under which a sender repeats itself has a form no id has."""

    code = "bad_delivery_id"
    hint = f"use 1 to {IDEMPOTENCY_KEY_CHARS_MAX} visible ASCII characters, without spaces"


class Deliver(Record, frozen=True, kw_only=True):
    """Keep the hint; the agent looks at it now or when it is free."""

    hint: WakeHint
    disposition: WakeDisposition


class TurnAway(Record, frozen=True, kw_only=True):
    """Keep nothing of it. The sender gets the refusal; the log says why."""

    reason: str
    refusal: Refusal


DeliveryDecision: TypeAlias = Deliver | TurnAway


def trigger_secret(key: bytes, trigger_id: TriggerId, *, epoch: int, agent_id: AgentId) -> str:
    """Return what opens a trigger in one epoch."""
    told = "\0".join((trigger_id, str(epoch), agent_id)).encode("utf-8", "surrogatepass")
    made = hmac.digest(key, told, "sha256")
    return urlsafe_b64encode(made).decode("ascii")[:TRIGGER_SECRET_CHARS]


def trigger_path(key: bytes, trigger: ExternalTrigger) -> str:
    """Return the path under which a trigger is called."""
    secret = trigger_secret(
        key,
        trigger.external_trigger_id,
        epoch=trigger.epoch,
        agent_id=trigger.target_agent_id,
    )
    return f"{WAKE_PATH}{trigger.external_trigger_id}.{secret}"


def split_token(token: str) -> tuple[TriggerId, str]:
    """Return the id and the secret a token claims; text without a dot claims no trigger."""
    trigger_id, _, secret = token.rpartition(".")
    return TriggerId(trigger_id), secret


def opens(key: bytes, trigger_id: TriggerId, secret: str, target: TriggerTarget | None) -> bool:
    """Whether this secret opens this trigger now. A stopped agent is another question."""
    trigger = None if target is None else target.trigger
    expected = trigger_secret(
        key,
        trigger_id,
        epoch=0 if trigger is None else trigger.epoch,
        agent_id=_NOBODY if trigger is None else trigger.target_agent_id,
    )
    is_right = hmac.compare_digest(_digest(expected), _digest(secret))
    if target is None or not is_right:
        return False
    return target.trigger.status is TriggerStatus.ACTIVE and not target.is_archived


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def source_key_of(trigger_id: TriggerId, source: str | None) -> str:
    """Return the name under which hints of one source of a trigger are folded."""
    return f"trigger:{trigger_id}" if source is None else f"trigger:{trigger_id}:{source}"


def delivery_key_of(delivery_id: str) -> str:
    """Return the digest under which a delivery is remembered; raises BadDeliveryIdError.

    Two spellings of one id are one: quotes around it do not count, nor does the case of a UUID.
    """
    plain = delivery_id.strip(" \t").removeprefix('"').removesuffix('"')
    if len(plain) > IDEMPOTENCY_KEY_CHARS_MAX or _VISIBLE.fullmatch(plain) is None:
        raise BadDeliveryIdError("the delivery id cannot be read")
    canonical = plain.lower() if _UUID.fullmatch(plain) else plain
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def content_digest_of(delivery: TriggerDelivery) -> str | None:
    """Return the digest by which a repeat is known; nothing for what cannot be repeated.

    Only the body counts: what a sender tells about itself may change from one try to the next. The
    key is part of it, so that equal bodies cannot be told from their digests.
    """
    if delivery.delivery_key is None:
        return None
    told = delivery.delivery_key.encode("ascii") + b"\0" + msgspec.json.encode(delivery.body)
    return hashlib.sha256(told).hexdigest()


def refuse_other_content(earlier: EarlierDelivery, delivery: TriggerDelivery) -> Refusal | None:
    """Refuse a delivery that has the key of another and not its body."""
    known = earlier.content_digest
    if known is None or known == content_digest_of(delivery):
        return None
    return Refusal(
        code=RefusalCode.IDEMPOTENCY_CONFLICT,
        message="this delivery id already went with another body",
        hint="give each delivery an id of its own; repeat one with its own body",
        field="idempotency_key",
    )


def evidence_of(raw: bytes) -> JsonValue:
    """Return a body as it may be kept: text as it came, anything else in base64."""
    if not raw:
        return None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": b64encode(raw).decode("ascii")}
    if len(msgspec.json.encode(text)) > WAKE_HINT_BODY_BYTES_MAX:  # all control characters
        return {"base64": b64encode(raw).decode("ascii")}
    return text


def decide_delivery(
    target: TriggerTarget, delivery: TriggerDelivery, *, now: datetime
) -> DeliveryDecision:
    """Say what becomes of a delivery whose address was right."""
    trigger = target.trigger
    if not admits(target.agent_status):
        refusal = refuse_stopped(trigger.target_agent_id)
        return TurnAway(reason="agent_stopped", refusal=refusal)
    crowded = not target.is_parked and target.parked_count >= WAKE_HINT_SOURCES_COUNT_MAX
    source = None if crowded else delivery.source
    hint = WakeHint(
        agent_id=trigger.target_agent_id,
        source_key=source_key_of(trigger.external_trigger_id, source),
        reason=REASON,
        created_at=now,
        updated_at=now,
        source=delivery.source,
        resource=delivery.resource,
        external_trigger_id=trigger.external_trigger_id,
        delivery_mode=TriggerDeliveryMode.WAKE_HINT,
        descriptor_delivery_mode=_mode_asked(trigger, delivery),
        body=delivery.body,
        content_type=delivery.content_type if delivery.body is not None else None,
        correlation_id=delivery.correlation_id,
        causation_id=delivery.causation_id,
    )
    return Deliver(hint=hint, disposition=_disposition(target))


def _mode_asked(trigger: ExternalTrigger, delivery: TriggerDelivery) -> TriggerDeliveryMode | None:
    """The older mode, when the address or the descriptor still names it."""
    asked = (trigger.delivery_mode, delivery.addressed_mode)
    older = TriggerDeliveryMode.ENQUEUE_MESSAGE
    return older if older in asked else None


def _disposition(target: TriggerTarget) -> WakeDisposition:
    if target.is_parked:
        return WakeDisposition.COALESCED
    if target.queued_count or target.agent_status not in _ELIGIBLE:
        return WakeDisposition.PARKED
    return WakeDisposition.TRIGGERED
