"""Public ingress: the enqueue routes and the generic webhook.

Owns:  how an external request becomes an ingress request.
Rule 1: the operator's token authenticates the caller, but the content remains external and keeps
        the limits of external content. A webhook sent with the token is a signal of an integration
        the operator set up; a channel message is external evidence.
Rule 2: a webhook with a valid signature under a configured secret is a signal of that integration.
        An invalid signature is refused, whatever else the request carries.
Rule 3: a source configured without a usable secret is closed, signed or not; the sender learns that
        the fault is on this side.
"""

from http import HTTPStatus
from typing import Final

from holon.decide.queue.webhook_signature import SignedHead, verified_hub_key, verified_id
from holon.decide.wake.triggers import evidence_of
from holon.http.access import HUB_SIGNATURE, signatures_of
from holon.http.context import HttpContext
from holon.http.errors import refused_reply
from holon.http.exchange import JSON_TYPE, Reply
from holon.http.request_headers import (
    CAUSATION,
    CONTENT_TYPE,
    CORRELATION,
    DELIVERED,
    REPEATABLE,
    SIGNED,
    SOURCE,
    TELLS_EVENT,
    WEBHOOK_ID,
    WEBHOOK_TIMESTAMP,
    delivery_id,
    event_label,
    idempotency_key,
    label,
)
from holon.http.route import RAW_BODY, Access, Call, CallerClass, Route
from holon.model.agents import Visibility
from holon.model.errors import Refusal, RefusalCode, RefusedError
from holon.model.limits import PUBLIC_BODY_BYTES_MAX
from holon.model.queue import (
    AdmissionContext,
    ChannelOrigin,
    DeliverySurface,
    IngressRequest,
    JsonBody,
    MessageBody,
    MessageKind,
    TextBody,
    WebhookOrigin,
)
from holon.model.values import AgentId, JsonValue, parse_agent_id
from holon.wire.requests import EnqueueRequest
from holon.wire.responses import Enqueued
from holon.wire.strict_body import decode_body

ENQUEUE_SOURCE: Final = "http"
WEBHOOK_SOURCE: Final = "generic"
GITHUB_SOURCE: Final = "github"


async def enqueue(context: HttpContext, call: Call) -> Enqueued:
    """Queue an outsider's message."""
    body = call.body_as(EnqueueRequest)
    origin = body.origin or WebhookOrigin(source=ENQUEUE_SOURCE)
    default_kind = (
        MessageKind.CHANNEL_EVENT
        if isinstance(origin, ChannelOrigin)
        else MessageKind.WEBHOOK_EVENT
    )
    request = IngressRequest(
        agent_id=call.agent_id(context.facts.default_agent),
        kind=body.kind or default_kind,
        origin=origin,
        body=body.content(),
        surface=DeliverySurface.HTTP_PUBLIC_ENQUEUE,
        admission=call.admission,
        priority=body.priority,
        idempotency_key=idempotency_key(call),
        metadata=body.metadata,
        correlation_id=body.correlation_id,
        causation_id=body.causation_id,
        claimed_trust=body.trust,
        claimed_authority=body.authority_class,
    )
    return await _admitted(context, request)


async def judge(context: HttpContext, call: Call) -> Reply | None:
    """Turn away whose signature could not hold, whatever it signs."""
    source = _source(call)
    is_signed = bool(_signatures(context, call)) or call.caller is CallerClass.SIGNER
    if context.outside.is_shut(source):
        return _shut(source, is_signed=is_signed)
    can_hold = context.outside.secret_of(source) is not None and _signatures(context, call)
    return _bad_signature() if is_signed and not can_hold else None


async def webhook(context: HttpContext, call: Call) -> Enqueued | Reply:
    """Queue what a machine outside posted."""
    source, signatures = _source(call), _signatures(context, call)
    is_signed = bool(signatures)
    if is_signed:
        secret = context.outside.secret_of(source)
        key = (
            verified_hub_key(secret, signatures, call.raw)
            if context.outside.signs_as_github(source)
            else verified_id(secret, _signed_head(call), call.raw, now=context.clock.now())
        )
        if key is None:
            return _bad_signature()
    else:
        key = delivery_id(call)
    request = IngressRequest(
        agent_id=parse_agent_id(call.params["agent_id"]),
        kind=MessageKind.WEBHOOK_EVENT,
        origin=WebhookOrigin(source=source, event_type=event_label(call)),
        body=_content(call),
        surface=DeliverySurface.HTTP_WEBHOOK,
        admission=(AdmissionContext.EXTERNAL_TRIGGER_CAPABILITY if is_signed else call.admission),
        idempotency_key=key,
        correlation_id=label(call, CORRELATION),
        causation_id=label(call, CAUSATION),
    )
    return await _admitted(context, request)


async def _admitted(context: HttpContext, request: IngressRequest) -> Enqueued:
    await _require_public(context, request.agent_id)
    receipt = await context.host.admit(request)
    return Enqueued(
        ok=True,
        agent_id=receipt.agent_id,
        message_id=receipt.message_id,
        duplicate=receipt.duplicate,
    )


async def _require_public(context: HttpContext, agent_id: AgentId) -> None:
    """Keep outsiders away from agents that belong to others; an unknown one is the door's."""
    agent = await context.host.reads.agents.agent(agent_id)
    if agent is not None and agent.identity.visibility is not Visibility.PUBLIC:
        raise RefusedError(
            Refusal(
                code=RefusalCode.PUBLIC_CEILING,
                message=f"agent {agent_id} takes nothing from the public",
                hint="address a public agent",
                field="agent_id",
            )
        )


def _source(call: Call) -> str:
    """Identify GitHub by its signature header: it cannot send our source header."""
    unnamed = GITHUB_SOURCE if call.head.values(HUB_SIGNATURE) else WEBHOOK_SOURCE
    return label(call, SOURCE) or unnamed


def _signatures(context: HttpContext, call: Call) -> tuple[bytes, ...]:
    """The signatures of the form the source was set up for; one under each name are two."""
    if context.outside.signs_as_github(_source(call)):
        return tuple(call.head.values(HUB_SIGNATURE))
    return signatures_of(call.head)


def _signed_head(call: Call) -> SignedHead:
    head = call.head
    return SignedHead(
        signatures=signatures_of(head),
        ids=tuple(head.values(WEBHOOK_ID.key)),
        timestamps=tuple(head.values(WEBHOOK_TIMESTAMP.key)),
    )


def _content(call: Call) -> MessageBody:
    """Keep declared JSON as JSON and text as text; encode any other body."""
    media = (label(call, CONTENT_TYPE) or "").partition(";")[0].strip().lower()
    if media == JSON_TYPE.decode() or media.endswith("+json"):
        value: JsonValue = decode_body(call.raw, object)
        return JsonBody(value=value)
    evidence = evidence_of(call.raw)
    return (
        TextBody(text=evidence or "")
        if isinstance(evidence, str | None)
        else JsonBody(value=evidence)
    )


def _bad_signature() -> Reply:
    return refused_reply(
        HTTPStatus.UNAUTHORIZED,
        "bad_signature",
        "the signature does not hold",
        hint="sign id, timestamp and body as they are sent, with this source's secret, just now",
    )


def _shut(source: str, *, is_signed: bool) -> Reply:
    """Refuse a closed source: 401 for a signed request, 403 for one with the token."""
    return refused_reply(
        HTTPStatus.UNAUTHORIZED if is_signed else HTTPStatus.FORBIDDEN,
        "webhook_disabled",
        f"webhooks of {source} are shut: their secret is missing",
        hint=f"give webhooks.{source} a secret, or remove it from the configuration",
    )


ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    Route(
        method="POST",
        path="/agents/{agent_id}/enqueue",
        access=Access.INGRESS,
        summary="Queue an external message for an agent; that of a webhook is a signal.",
        answer=enqueue,
        headers=REPEATABLE,
        takes=EnqueueRequest,
        returns=Enqueued,
        refusals=(403, 404, 409),
        tags=("ingress",),
    ),
    Route(
        method="POST",
        path="/enqueue",
        access=Access.INGRESS,
        summary="Queue an external message for the default agent, as for a named one.",
        answer=enqueue,
        headers=REPEATABLE,
        takes=EnqueueRequest,
        returns=Enqueued,
        refusals=(403, 404, 409),
        tags=("ingress",),
    ),
    Route(
        method="POST",
        path="/webhooks/generic/{agent_id}",
        access=Access.SIGNED,
        summary="Queue the body of a webhook as a signal of its integration.",
        answer=webhook,
        gate=judge,
        headers=(*DELIVERED, *TELLS_EVENT, *SIGNED),
        takes=RAW_BODY,
        body_bytes_max=PUBLIC_BODY_BYTES_MAX,
        returns=Enqueued,
        refusals=(403, 404, 409),
        tags=("ingress",),
    ),
)
