"""Admission: the checks on an ingress request, in order, and the envelope it becomes.

Owns:  every reason why a request for a known agent may not become a message; the envelope of an
       admitted request, and the keys under which it is queued.
Rule 1: a check takes the request and its target and returns a refusal or None.
Rule 2: CHECKS are ordered: first what can never be right, then what is too large or too many, then
        what may be right later. Sizes are those of the wire form, so that one rule fits every kind
        of body.
Rule 3: a refused request leaves no trace.
Rule 4: provenance comes from how the request arrived. What a caller claims about itself can only
        get it refused, and metadata never binds.
Rule 5: a message is bound to work, task or wait only when the runtime itself sent it.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from holon.decide.agents.lifecycle import admits, refuse_archived, refuse_stopped, refuse_unknown
from holon.decide.queue.authority import contexts_of, derive_authority, derive_trust, lowest
from holon.model.errors import Refusal, RefusalCode
from holon.model.events.reads import AdmissionTarget
from holon.model.limits import (
    IDEMPOTENCY_KEY_CHARS_MAX,
    LABEL_CHARS_MAX,
    MESSAGE_BODY_BYTES_MAX,
    MESSAGE_METADATA_BYTES_MAX,
    PUBLIC_BODY_BYTES_MAX,
    QUEUED_PER_AGENT_COUNT_MAX,
)
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    CallbackOrigin,
    ChannelOrigin,
    DeliverySurface,
    IngressRequest,
    MessageEnvelope,
    MessageKind,
    OperatorOrigin,
    Origin,
    Priority,
    SystemOrigin,
    TaskOrigin,
    TextBody,
    TimerOrigin,
    WebhookOrigin,
)
from holon.model.record import Record
from holon.model.turns.turn import TriggerKind
from holon.model.values import MessageId

# Briefs go out to the operator; no origin may send one in.
ORIGINS: Final[Mapping[MessageKind, tuple[type[Origin], ...]]] = MappingProxyType(
    {
        MessageKind.OPERATOR_PROMPT: (OperatorOrigin,),
        MessageKind.WEBHOOK_EVENT: (WebhookOrigin,),
        MessageKind.CALLBACK_EVENT: (CallbackOrigin,),
        MessageKind.CHANNEL_EVENT: (ChannelOrigin,),
        MessageKind.TIMER_TICK: (TimerOrigin,),
        MessageKind.SYSTEM_TICK: (SystemOrigin,),
        MessageKind.INTERNAL_FOLLOWUP: (SystemOrigin,),
        MessageKind.TASK_STATUS: (TaskOrigin,),
        MessageKind.TASK_RESULT: (TaskOrigin,),
        MessageKind.CONTROL: (OperatorOrigin, SystemOrigin),
        MessageKind.BRIEF_ACK: (),
        MessageKind.BRIEF_RESULT: (),
    }
)

# A callback carries an outsider's content, whichever transport delivers it.
_PUBLIC_SURFACES: Final = frozenset(
    {DeliverySurface.HTTP_PUBLIC_ENQUEUE, DeliverySurface.HTTP_WEBHOOK}
)

_TEXT_CHAR_BYTES_MAX: Final = 6  # of a character that JSON escapes
_KEY_FORM: Final = re.compile(r"[!-~]+")  # visible ASCII: what a header or a log line can hold

_Check: TypeAlias = Callable[[IngressRequest, AdmissionTarget], Refusal | None]
# A kind that is absent triggers nothing: it never starts a model turn.
TRIGGERS: Final[Mapping[MessageKind, TriggerKind]] = MappingProxyType(
    {
        MessageKind.OPERATOR_PROMPT: TriggerKind.OPERATOR_INPUT,
        MessageKind.WEBHOOK_EVENT: TriggerKind.EXTERNAL_EVENT,
        MessageKind.CALLBACK_EVENT: TriggerKind.EXTERNAL_EVENT,
        MessageKind.CHANNEL_EVENT: TriggerKind.EXTERNAL_EVENT,
        MessageKind.TIMER_TICK: TriggerKind.TIMER_FIRE,
        MessageKind.SYSTEM_TICK: TriggerKind.SYSTEM_TICK,
        MessageKind.INTERNAL_FOLLOWUP: TriggerKind.INTERNAL_FOLLOWUP,
        MessageKind.TASK_RESULT: TriggerKind.TASK_RESULT,
    }
)
BINDING_SURFACES: Final = frozenset(
    {
        DeliverySurface.RUNTIME_SYSTEM,
        DeliverySurface.TASK_REJOIN,
        DeliverySurface.TIMER_SCHEDULER,
    }
)
_DIGESTED: Final = msgspec.json.Encoder(order="deterministic")


def first_refusal(request: IngressRequest, target: AdmissionTarget) -> Refusal | None:
    """Return the first objection to the request, or nothing when it may come in."""
    for check in CHECKS:
        refusal = check(request, target)
        if refusal is not None:
            return refusal
    return None


def _check_identity(request: IngressRequest, target: AdmissionTarget) -> Refusal | None:
    if target.is_archived:
        return refuse_archived(request.agent_id)
    return None


def _check_kind(request: IngressRequest, _: AdmissionTarget) -> Refusal | None:
    if isinstance(request.origin, ORIGINS[request.kind]):
        return None
    return Refusal(
        code=RefusalCode.KIND_ORIGIN_MISMATCH,
        message=f"a message of kind {request.kind} cannot come from {_name_of(request.origin)}",
        hint="send the kind that belongs to where the message comes from",
        field="kind",
    )


def _check_door(request: IngressRequest, _: AdmissionTarget) -> Refusal | None:
    if request.admission in contexts_of(request.origin):
        return None
    return Refusal(
        code=RefusalCode.ADMISSION_MISMATCH,
        message=f"{request.admission} cannot vouch for {_name_of(request.origin)}",
        hint="use the ingress that belongs to this origin",
        field="origin",
    )


def _check_ceiling(request: IngressRequest, _: AdmissionTarget) -> Refusal | None:
    """Hold outsiders down, at their own surfaces also when a token or a secret let them in."""
    is_public = request.admission is AdmissionContext.PUBLIC_UNAUTHENTICATED
    if not is_public and request.surface not in _PUBLIC_SURFACES:
        return None
    if not isinstance(request.origin, ChannelOrigin | WebhookOrigin):
        name = _name_of(request.origin)
        return _refuse_ceiling(f"nothing here speaks as {name}", field="origin")
    if request.priority is Priority.INTERJECT:
        return _refuse_ceiling("the public cannot interject", field="priority")
    if request.claimed_trust is not None:
        return _refuse_ceiling("the public cannot choose its trust", field="trust")
    if request.claimed_authority is not None:
        return _refuse_ceiling("the public cannot choose its authority", field="authority_class")
    return _refuse_oversize(request, bytes_max=PUBLIC_BODY_BYTES_MAX)


def _check_body(request: IngressRequest, _: AdmissionTarget) -> Refusal | None:
    return _refuse_oversize(request, bytes_max=MESSAGE_BODY_BYTES_MAX)


def _check_metadata(request: IngressRequest, _: AdmissionTarget) -> Refusal | None:
    if request.metadata is None:
        return None
    size_bytes = len(msgspec.json.encode(request.metadata))
    if size_bytes <= MESSAGE_METADATA_BYTES_MAX:
        return None
    return Refusal(
        code=RefusalCode.METADATA_TOO_LARGE,
        message=f"the metadata takes {size_bytes} bytes",
        hint=f"send at most {MESSAGE_METADATA_BYTES_MAX} bytes of metadata",
        field="metadata",
    )


def _check_key(request: IngressRequest, _: AdmissionTarget) -> Refusal | None:
    return key_refusal(request.idempotency_key)


def key_refusal(key: str | None) -> Refusal | None:
    """Return why a text is no idempotency key, or None when it is one or absent."""
    if key is None or (len(key) <= IDEMPOTENCY_KEY_CHARS_MAX and _KEY_FORM.fullmatch(key)):
        return None
    return Refusal(
        code=RefusalCode.BAD_IDEMPOTENCY_KEY,
        message="the idempotency key has a form no key has",
        hint=f"use 1 to {IDEMPOTENCY_KEY_CHARS_MAX} visible ASCII characters, without spaces",
        field="idempotency_key",
    )


def _check_labels(request: IngressRequest, _: AdmissionTarget) -> Refusal | None:
    origin = request.origin
    for field in origin.__struct_fields__:
        if (refusal := _refuse_long_label(field, getattr(origin, field))) is not None:
            return refusal
    return _refuse_long_label("correlation_id", request.correlation_id) or _refuse_long_label(
        "causation_id", request.causation_id
    )


def _refuse_long_label(field: str, label: str | None) -> Refusal | None:
    if label is None or len(label) <= LABEL_CHARS_MAX:
        return None
    return Refusal(
        code=RefusalCode.LABEL_TOO_LONG,
        message=f"{field} is {len(label)} characters long",
        hint=f"use at most {LABEL_CHARS_MAX} characters",
        field=field,
    )


def _check_running(request: IngressRequest, target: AdmissionTarget) -> Refusal | None:
    if admits(target.status) or _rejoins(request):
        return None
    return refuse_stopped(request.agent_id)


def _check_room(request: IngressRequest, target: AdmissionTarget) -> Refusal | None:
    if target.queued_count < QUEUED_PER_AGENT_COUNT_MAX or _rejoins(request):
        return None
    return Refusal(
        code=RefusalCode.QUEUE_FULL,
        message=f"agent {request.agent_id} has {target.queued_count} messages waiting",
        hint="send this again later, once the agent has worked some off",
    )


def _rejoins(request: IngressRequest) -> bool:
    """Whether this is work of the agent's own coming back, which is never turned away.

    The stopped boundary refuses outside input only; a result that finds its agent stopped or
    flooded waits in the queue, since it would be lost otherwise.
    """
    return request.kind is MessageKind.TASK_RESULT


def _refuse_ceiling(message: str, *, field: str) -> Refusal:
    return Refusal(
        code=RefusalCode.PUBLIC_CEILING,
        message=message,
        hint=f"leave out {field}, or use an authenticated ingress",
        field=field,
    )


def _refuse_oversize(request: IngressRequest, *, bytes_max: int) -> Refusal | None:
    body = request.body
    if isinstance(body, TextBody) and _TEXT_CHAR_BYTES_MAX * (len(body.text) + 10) <= bytes_max:
        return None  # its size is below the bound in any encoding
    size_bytes = len(msgspec.json.encode(body))
    if size_bytes <= bytes_max:
        return None
    return Refusal(
        code=RefusalCode.BODY_TOO_LARGE,
        message=f"the body takes {size_bytes} bytes",
        hint=f"send at most {bytes_max} bytes, or a pointer to the content",
        field="body",
    )


def _name_of(origin: Origin) -> str:
    return str(origin.__struct_config__.tag)


CHECKS: Final[tuple[_Check, ...]] = (
    _check_identity,
    _check_kind,
    _check_door,
    _check_ceiling,
    _check_body,
    _check_metadata,
    _check_key,
    _check_labels,
    _check_running,
    _check_room,
)


class Admitted(Record, frozen=True, kw_only=True):
    """The request becomes this message, under these keys. A digest only goes with a key."""

    message: MessageEnvelope
    idempotency_key: str | None = None
    body_digest: str | None = None
    tick_key: str | None = None


Admission: TypeAlias = Admitted | Refusal


def decide_admission(
    request: IngressRequest,
    target: AdmissionTarget | None,
    *,
    message_id: MessageId,
    now: datetime,
) -> Admission:
    """Admit the request as a message, or refuse it. `target` is the agent it names, if any."""
    if target is None:
        return refuse_unknown(request.agent_id)
    refusal = first_refusal(request, target)
    if refusal is not None:
        return refusal
    by_arrival = derive_authority(request.origin, request.admission)
    binds = _may_bind(by_arrival, request.surface)
    authority = (
        by_arrival if request.authority_max is None else lowest((by_arrival, request.authority_max))
    )
    return Admitted(
        message=MessageEnvelope(
            id=message_id,
            agent_id=request.agent_id,
            created_at=now,
            kind=request.kind,
            origin=request.origin,
            trust=derive_trust(authority),
            authority_class=authority,
            priority=request.priority,
            body=request.body,
            delivery_surface=request.surface,
            admission_context=request.admission,
            trigger_kind=trigger_kind_of(request.kind),
            work_item_id=request.work_item_id if binds else None,
            task_id=request.task_id if binds else None,
            wait_id=request.wait_id if binds else None,
            source_refs=_source_refs_of(request, binds=binds),
            metadata=request.metadata,
            correlation_id=request.correlation_id,
            causation_id=request.causation_id,
            followup=request.followup if binds else None,
        ),
        idempotency_key=request.idempotency_key,
        body_digest=None if request.idempotency_key is None else body_digest(request),
        tick_key=request.tick_key if binds else None,
    )


def trigger_kind_of(kind: MessageKind) -> TriggerKind | None:
    """Return what a message of this kind triggers, or nothing when it never starts a turn."""
    return TRIGGERS.get(kind)


def body_digest(request: IngressRequest) -> str:
    """Return a hash of what was asked, the same for every order of the same JSON."""
    digested = (request.kind, request.origin, request.body, request.priority)
    return hashlib.sha256(_DIGESTED.encode(digested)).hexdigest()


def _may_bind(authority: AuthorityClass, surface: DeliverySurface) -> bool:
    return authority is AuthorityClass.RUNTIME_INSTRUCTION and surface in BINDING_SURFACES


def _source_refs_of(request: IngressRequest, *, binds: bool) -> dict[str, str]:
    origin = request.origin
    named = ((name, getattr(origin, name)) for name in origin.__struct_fields__)
    refs = {name: value for name, value in named if value is not None}
    if binds:
        refs.update(request.source_refs)
        if request.wait_id is not None:
            refs["wait_id"] = request.wait_id
    return refs
