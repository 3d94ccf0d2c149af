"""External triggers: addresses, deliveries and lifecycle.

Owns:  the form of an address, its mask, and the one place in a conversation where it is filled in;
       deriving and verifying an address; the key of a delivery, repeats, and the wake hint it
       becomes; each durable step of a trigger, and the receipt of a delivery.
Rule 1: an address is a capability secret. It is derived from the server's key each time it is
        needed and is part of no record: the result of AgentGet holds a mask, and only the request
        to the model has the address in its place.
Rule 2: what is stored or shown of an agent's calls has the mask instead of any address.
Rule 3: no secret is stored: a secret is derived from the server's key, the trigger's id, its epoch
        and its agent. The next epoch derives another, and no earlier one verifies again.
Rule 4: an unknown trigger costs the same work as a known one, and every miss looks alike.
Rule 5: a body is opaque evidence. Nothing in it, nor in a header, chooses an agent, an authority or
        a work item; a delivery clears no blocker, resolves no wait and ends nothing.
Rule 6: a delivery never crosses the stopped boundary; a sender with the right address gets the way
        to resume, as on every other surface.
Rule 7: a rotation begins a new epoch, also after the trigger was revoked: every older address is
        void. Revoking a revoked trigger changes nothing.
Rule 8: a delivery that repeats another gets the first receipt, marked as a repeat. With another
        body it is a conflict.
Rule 9: a commit is named by the delivery's key, so that a repeat that overtakes the first delivery
        is the same commit.
"""

import hashlib
import hmac
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from holon.decide.agents.lifecycle import admits, refuse_stopped
from holon.decide.text.secrets import SecretMatcher, SecretShape
from holon.model.agents import AgentStatus
from holon.model.commits import (
    AgentAdmits,
    Commit,
    CreateTrigger,
    DeliverTrigger,
    MoveTrigger,
    RecordEvent,
)
from holon.model.errors import BadInputError, Refusal, RefusalCode
from holon.model.limits import (
    ID_CHARS_MAX,
    IDEMPOTENCY_KEY_CHARS_MAX,
    TRIGGER_SECRET_CHARS,
    WAKE_HINT_BODY_BYTES_MAX,
    WAKE_HINT_SOURCES_COUNT_MAX,
)
from holon.model.record import Record
from holon.model.turns.transcript import RecordedCall, TurnLog
from holon.model.values import AgentId, IdPrefix, JsonValue, TriggerId
from holon.model.wake import (
    CallbackRefused,
    EarlierDelivery,
    ExternalTrigger,
    TriggerDelivery,
    TriggerDeliveryMode,
    TriggerReceipt,
    TriggerStatus,
    TriggerTarget,
    WakeDisposition,
    WakeHint,
)

WAKE_PATH: Final = "/callbacks/wake/"
WARNING: Final = (
    "This address is a capability secret: any holder of it can wake you. Do not repeat, store or"
    " forward it, unless the current task is explicitly configuring an external system to wake you."
)
DESCRIBES: Final = "AgentGet"  # the tool whose result has the address
MARK: Final = "[secret:external_trigger_url]"
# The one field that is filled in. The same text written by the agent is not that field: inside
# of a JSON string, its quotes are escaped.
_FIELD: Final = '"trigger_url":'
_MARKED_FIELD: Final = f'{_FIELD}"{MARK}"'

_TRIGGER_MARK: Final = f"{IdPrefix.TRIGGER.value}_"
TRIGGER_SHAPE: Final = SecretShape(
    name="trigger",
    looks_like=re.compile(
        rf"{_TRIGGER_MARK}[a-z0-9]{{1,{ID_CHARS_MAX}}}\.[A-Za-z0-9_-]{{{TRIGGER_SECRET_CHARS}}}"
    ),
    mark=_TRIGGER_MARK,
    chars_max=len(_TRIGGER_MARK) + ID_CHARS_MAX + 1 + TRIGGER_SECRET_CHARS,
)
without_addresses: Final = SecretMatcher((), shapes=(TRIGGER_SHAPE,)).redact
REASON: Final = "external_trigger"
_ELIGIBLE: Final = frozenset({AgentStatus.AWAKE_IDLE, AgentStatus.ASLEEP})
_NO_AGENT: Final = AgentId("")  # no agent has this id
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_VISIBLE: Final = re.compile(r"[!-~]+")


def default_trigger(trigger_id: TriggerId, agent_id: AgentId, *, now: datetime) -> ExternalTrigger:
    """Return the trigger every agent begins with."""
    return ExternalTrigger(
        external_trigger_id=trigger_id,
        target_agent_id=agent_id,
        delivery_mode=TriggerDeliveryMode.WAKE_HINT,
        status=TriggerStatus.ACTIVE,
        created_at=now,
    )


def masked_url(trigger: ExternalTrigger, base_url: str | None) -> str | None:
    """Return the address of an active trigger without what opens it."""
    if base_url is None or trigger.status is not TriggerStatus.ACTIVE:
        return None
    return f"{base_url.rstrip('/')}{WAKE_PATH}{trigger.external_trigger_id}.***"


def descriptor(trigger: ExternalTrigger | None, *, has_deliveries: bool) -> JsonValue:
    """Describe an active trigger to its agent, with the mark where the address belongs.

    A host that takes no deliveries has no address, and so nothing to describe.
    """
    if trigger is None or not has_deliveries or trigger.status is not TriggerStatus.ACTIVE:
        return None
    return {
        "external_trigger_id": trigger.external_trigger_id,
        "trigger_url": MARK,
        "target_agent_id": trigger.target_agent_id,
        "delivery_mode": trigger.delivery_mode.value,
        "status": trigger.status.value,
        "warning": WARNING,
    }


def has_address(value: JsonValue) -> bool:
    """Whether a value contains the address of a trigger."""
    text = msgspec.json.encode(value).decode()
    return without_addresses(text) != text


def value_without_addresses(value: JsonValue) -> JsonValue:
    """Return the same JSON without any address; values that have none come back as they are."""
    match value:
        case str():
            return without_addresses(value)
        case list():
            return [value_without_addresses(each) for each in value]
        case dict():
            return {
                without_addresses(name): value_without_addresses(each)
                for name, each in value.items()
            }
        case _:
            return value


def log_with_address(log: TurnLog, url: str | None) -> TurnLog:
    """Return a turn as its agent reads it, with its address in the calls that requested it."""
    if url is None or not any(_is_marked(each) for each in log.calls):
        return log
    return msgspec.structs.replace(log, calls=_filled_in(log.calls, url))


def _filled_in(calls: Sequence[RecordedCall], url: str) -> tuple[RecordedCall, ...]:
    return tuple(_with_address(each, url) for each in calls)


def _with_address(recorded: RecordedCall, url: str) -> RecordedCall:
    receipt = recorded.receipt
    if receipt is None or not _is_marked(recorded):
        return recorded
    written = msgspec.json.encode(url).decode()
    content = receipt.content.replace(_MARKED_FIELD, _FIELD + written)
    return msgspec.structs.replace(
        recorded, receipt=msgspec.structs.replace(receipt, content=content)
    )


def _is_marked(recorded: RecordedCall) -> bool:
    receipt = recorded.receipt
    return receipt is not None and receipt.name == DESCRIBES and _MARKED_FIELD in receipt.content


class BadDeliveryIdError(BadInputError):
    """The id under which a sender repeats itself has a form no id has."""

    code = "bad_delivery_id"
    hint = f"use 1 to {IDEMPOTENCY_KEY_CHARS_MAX} visible ASCII characters, without spaces"


class Deliver(Record, frozen=True, kw_only=True):
    """Keep the hint; the agent sees it now or when it is free."""

    hint: WakeHint
    disposition: WakeDisposition


class RejectDelivery(Record, frozen=True, kw_only=True):
    """Keep nothing of it. The sender gets the refusal; the log records the reason."""

    reason: str
    refusal: Refusal


DeliveryDecision: TypeAlias = Deliver | RejectDelivery


def trigger_secret(key: bytes, trigger_id: TriggerId, *, epoch: int, agent_id: AgentId) -> str:
    """Return what opens a trigger in one epoch."""
    derived_from = "\0".join((trigger_id, str(epoch), agent_id)).encode("utf-8", "surrogatepass")
    made = hmac.digest(key, derived_from, "sha256")
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
        agent_id=_NO_AGENT if trigger is None else trigger.target_agent_id,
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

    Only the body counts: a sender's metadata may change from one try to the next. The
    key is part of it, so that equal bodies cannot be recognized by their digests.
    """
    if delivery.delivery_key is None:
        return None
    digested = delivery.delivery_key.encode("ascii") + b"\0" + msgspec.json.encode(delivery.body)
    return hashlib.sha256(digested).hexdigest()


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
    """Decide on a delivery whose address was verified."""
    trigger = target.trigger
    if not admits(target.agent_status):
        refusal = refuse_stopped(trigger.target_agent_id)
        return RejectDelivery(reason="agent_stopped", refusal=refusal)
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
        descriptor_delivery_mode=_requested_mode(trigger, delivery),
        body=delivery.body,
        content_type=delivery.content_type if delivery.body is not None else None,
        correlation_id=delivery.correlation_id,
        causation_id=delivery.causation_id,
    )
    return Deliver(hint=hint, disposition=_disposition(target))


def _requested_mode(
    trigger: ExternalTrigger, delivery: TriggerDelivery
) -> TriggerDeliveryMode | None:
    """The older mode, when the address or the descriptor still names it."""
    requested = (trigger.delivery_mode, delivery.addressed_mode)
    older = TriggerDeliveryMode.ENQUEUE_MESSAGE
    return older if older in requested else None


def _disposition(target: TriggerTarget) -> WakeDisposition:
    if target.is_parked:
        return WakeDisposition.COALESCED
    if target.queued_count or target.agent_status not in _ELIGIBLE:
        return WakeDisposition.PARKED
    return WakeDisposition.TRIGGERED


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
    """Rotate (ACTIVE) or revoke a trigger; None when it is revoked already."""
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
