"""External trigger routes: deliveries to a trigger's address, and its management.

Owns:  the callback routes, and listing, issuing, rotating and revoking of triggers.
Rule 1: every unknown address is answered like an unknown path, byte for byte.
Rule 2: a repeated delivery is answered before the rate limit is applied, so that a retry is never
        told to wait.
Rule 3: the address is checked before the body is read: unauthenticated peers store nothing.
Rule 4: a delivery to a stopped agent is refused like a prompt to it, with the way to resume it. The
        refusals are recorded at most at the rate limit.
Rule 5: the runtime issues every agent's trigger; reading issues none. Only the operator sees the
        address.
"""

from typing import Final

from holon.decide.agents.lifecycle import admits, refuse_stopped
from holon.http.access import has_body
from holon.http.app import too_many
from holon.http.context import HttpContext
from holon.http.errors import nothing_here
from holon.http.exchange import Reply
from holon.http.request_headers import DELIVERED, RESOURCE_NAME, read_delivery
from holon.http.route import RAW_BODY, Access, Call, CallerClass, Route
from holon.model.errors import RefusedError
from holon.model.limits import TRIGGER_BODY_BYTES_MAX
from holon.model.values import AgentId, parse_agent_id
from holon.model.wake import ExternalTrigger, TriggerDeliveryMode, TriggerReceipt, TriggerTarget
from holon.wire.responses import (
    CallbackAnswer,
    CallbackResult,
    ExternalTriggerView,
    TriggerAnswer,
    TriggerListing,
    public_disposition,
    trigger_view,
)


async def wake(context: HttpContext, call: Call) -> CallbackAnswer | Reply:
    """Take a delivery in."""
    return await _deliver(context, call, TriggerDeliveryMode.WAKE_HINT)


async def enqueue(context: HttpContext, call: Call) -> CallbackAnswer | Reply:
    """Take a delivery in at an older address; it wakes, as all do, and is marked."""
    return await _deliver(context, call, TriggerDeliveryMode.ENQUEUE_MESSAGE)


async def judge_wake(context: HttpContext, call: Call) -> Reply | None:
    """Judge an address before its body."""
    return await _judge(context, call, TriggerDeliveryMode.WAKE_HINT)


async def judge_enqueue(context: HttpContext, call: Call) -> Reply | None:
    """Judge an older address before its body."""
    return await _judge(context, call, TriggerDeliveryMode.ENQUEUE_MESSAGE)


async def _judge(context: HttpContext, call: Call, mode: TriggerDeliveryMode) -> Reply | None:
    """Refuse a body that would not be stored.

    At an address that opens nothing it is as if nothing were served there; a stopped agent is
    refused by its name.
    """
    if not has_body(call.head):
        return None  # the delivery itself is as quickly judged
    service, token = context.host.triggers, call.params["token"]
    delivery = read_delivery(call, addressed_mode=mode)
    target = await service.open(token, delivery)
    if target is None:
        return nothing_here()
    if admits(target.agent_status) or target.earlier is not None:
        return None  # whether it repeats an earlier one, the body says
    if context.outside.delivery_wait_s(target.trigger.external_trigger_id) is None:
        await service.deliver(token, delivery, target)  # refuses it, and the agent's log says so
    raise _stopped(target)


async def _deliver(
    context: HttpContext, call: Call, mode: TriggerDeliveryMode
) -> CallbackAnswer | Reply:
    service, token = context.host.triggers, call.params["token"]
    delivery = read_delivery(call, addressed_mode=mode)
    target = await service.open(token, delivery)
    if target is None:
        return nothing_here()
    earlier = await service.earlier(token, delivery, target)
    if earlier is not None:
        return _answer(earlier)
    wait_s = context.outside.delivery_wait_s(target.trigger.external_trigger_id)
    if wait_s is not None:
        if not admits(target.agent_status):
            raise _stopped(target)  # waiting would not help
        return too_many(wait_s)
    receipt = await service.deliver(token, delivery, target)
    return nothing_here() if receipt is None else _answer(receipt)


def _stopped(target: TriggerTarget) -> RefusedError:
    return RefusedError(refuse_stopped(target.trigger.target_agent_id))


def _answer(receipt: TriggerReceipt) -> CallbackAnswer:
    return CallbackAnswer(
        ok=True,
        result=CallbackResult(
            agent_id=receipt.agent_id,
            external_trigger_id=receipt.external_trigger_id,
            disposition=public_disposition(receipt.disposition),
        ),
        duplicate=receipt.duplicate,
    )


async def show(context: HttpContext, call: Call) -> TriggerListing:
    """Show the trigger of an agent; its address to the operator alone."""
    agent_id = _named(call)
    trigger = await context.host.triggers.of(agent_id)
    may_see_url = call.caller is CallerClass.OPERATOR
    views = () if trigger is None else (_view(context, trigger, may_see_url=may_see_url),)
    return TriggerListing(agent_id=agent_id, external_triggers=views)


async def give(context: HttpContext, call: Call) -> TriggerAnswer:
    """Give the agent its trigger, unless it has it already."""
    agent_id = _named(call)
    trigger = await context.host.triggers.ensure(agent_id)
    view = _view(context, trigger, may_see_url=True)
    return TriggerAnswer(ok=True, agent_id=agent_id, external_trigger=view)


async def rotate(context: HttpContext, call: Call) -> TriggerAnswer:
    """Give the trigger a new address."""
    agent_id = _named(call)
    trigger = await context.host.triggers.rotate(agent_id)
    view = _view(context, trigger, may_see_url=True)
    return TriggerAnswer(ok=True, agent_id=agent_id, external_trigger=view)


async def revoke(context: HttpContext, call: Call) -> TriggerAnswer:
    """Take the address back."""
    agent_id = _named(call)
    trigger = await context.host.triggers.revoke(agent_id)
    view = _view(context, trigger, may_see_url=True)
    return TriggerAnswer(ok=True, agent_id=agent_id, external_trigger=view)


def _view(
    context: HttpContext, trigger: ExternalTrigger, *, may_see_url: bool
) -> ExternalTriggerView:
    url = context.host.triggers.url_of(trigger) if may_see_url else None
    return trigger_view(trigger, trigger_url=url)


def _named(call: Call) -> AgentId:
    return parse_agent_id(call.params["agent_id"])


ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    Route(
        method="POST",
        path="/callbacks/wake/{token}",
        access=Access.CAPABILITY,
        summary="Wake the agent of this address. Any body is stored as evidence.",
        answer=wake,
        gate=judge_wake,
        headers=(*DELIVERED, RESOURCE_NAME),
        takes=RAW_BODY,
        body_bytes_max=TRIGGER_BODY_BYTES_MAX,
        body_optional=True,
        returns=CallbackAnswer,
        refusals=(404, 409, 429),
        tags=("triggers",),
    ),
    Route(
        method="POST",
        path="/callbacks/enqueue/{token}",
        access=Access.CAPABILITY,
        summary="A deprecated form of the wake address; the agent's log records its use.",
        answer=enqueue,
        gate=judge_enqueue,
        headers=(*DELIVERED, RESOURCE_NAME),
        takes=RAW_BODY,
        body_bytes_max=TRIGGER_BODY_BYTES_MAX,
        body_optional=True,
        returns=CallbackAnswer,
        refusals=(404, 409, 429),
        tags=("triggers",),
    ),
    Route(
        method="GET",
        path="/agents/{agent_id}/external-triggers",
        access=Access.READ,
        summary="Show an agent's external trigger, if any; its address to the operator only.",
        answer=show,
        returns=TriggerListing,
        refusals=(404,),
        tags=("triggers",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/external-trigger",
        access=Access.CONTROL,
        summary="Issue an agent's external trigger, unless it has one, and show its address.",
        answer=give,
        returns=TriggerAnswer,
        refusals=(404,),
        tags=("triggers",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/external-trigger/rotate",
        access=Access.CONTROL,
        summary="Rotate an agent's trigger to a new address; earlier ones become invalid.",
        answer=rotate,
        returns=TriggerAnswer,
        refusals=(404,),
        tags=("triggers",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/external-trigger/revoke",
        access=Access.CONTROL,
        summary="Revoke the address of an agent's trigger until it is rotated.",
        answer=revoke,
        returns=TriggerAnswer,
        refusals=(404,),
        tags=("triggers",),
    ),
)
