"""The decision at the door: may this request become a message, and which one.

Owns:  how an admitted request is turned into an envelope, and under which keys it is queued.
Rule 1: a refused request leaves no trace; the reasons to refuse are in decide/admission_checks.
Rule 2: provenance comes from how the request arrived. What a caller claims about itself can only
        get it refused, and metadata never binds.
Rule 3: a message is bound to work, task or wait only when the runtime itself sent it.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from holon.decide.admission_checks import first_refusal
from holon.decide.agent_refusals import refuse_unknown
from holon.decide.authority import derive_authority, derive_trust, lowest
from holon.model.continuation import TriggerKind
from holon.model.ids import MessageId
from holon.model.ingress import IngressRequest
from holon.model.message import MessageEnvelope, MessageKind
from holon.model.provenance import AuthorityClass, DeliverySurface
from holon.model.record import Record
from holon.model.refusal import Refusal
from holon.model.snapshot import AdmissionTarget

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
    """Admit the request as a message, or say why not. `target` is the agent it names, if any."""
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
    asked = (request.kind, request.origin, request.body, request.priority)
    return hashlib.sha256(_DIGESTED.encode(asked)).hexdigest()


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
