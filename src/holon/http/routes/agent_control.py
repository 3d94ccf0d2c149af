"""Control routes of one agent: prompt, create, start, stop, pause, resume, abort, model.

Owns:  the control routes that do not concern tasks, timers or work items.
Rule 1: a prompt enters through the queue like any message; every other request here changes records
        and creates no message.
"""

from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Final

import anyio

from holon.decide.agents.lifecycle import public_identity
from holon.http.context import HttpContext, shown_agent
from holon.http.exchange import PendingReply, Reply
from holon.http.prompt_wait import awaited
from holon.http.request_headers import CLIENT_NAME, REPEATABLE, idempotency_key
from holon.http.route import Access, Call, Route
from holon.model.queue import (
    CLI_CLIENT,
    DeliverySurface,
    IngressRequest,
    MessageKind,
    OperatorOrigin,
    Priority,
    TextBody,
)
from holon.model.values import AgentId, parse_agent_id
from holon.wire.codec import encode
from holon.wire.requests import (
    AbortRequest,
    AgentAction,
    ControlRequest,
    CreateAgentRequest,
    ModelRequest,
    PromptRequest,
)
from holon.wire.responses import Done, Prompted

# Each of these has a route of its own beside the one that reads it from the body.
ACTIONS: Final[Mapping[AgentAction, str]] = {
    AgentAction.START: "Let a stopped or paused agent run again. The same as resume.",
    AgentAction.RESUME: "Let a stopped or paused agent run again.",
    AgentAction.PAUSE: "Pause an agent. It runs nothing and takes messages until it is resumed.",
    AgentAction.STOP: "Stop an agent. Its queue is kept; nothing runs until it is started.",
}


async def prompt(context: HttpContext, call: Call) -> Prompted | PendingReply:
    """Queue the operator's prompt, and wait for its end if `wait_ms` is given."""
    request = call.body_as(PromptRequest)
    wait_ms = request.wait_ms
    if wait_ms is not None:
        await shown_agent(context, call)  # what is waited for is read
    receipt = await context.host.admit(
        IngressRequest(
            agent_id=_named(call),
            kind=MessageKind.OPERATOR_PROMPT,
            origin=OperatorOrigin(),
            body=TextBody(text=request.text),
            surface=_surface(call),
            admission=call.admission,
            priority=Priority.INTERJECT if request.interject else Priority.NORMAL,
            idempotency_key=idempotency_key(call),
        )
    )
    if wait_ms is None:
        return Prompted(
            ok=True,
            agent_id=receipt.agent_id,
            message_id=receipt.message_id,
            duplicate=receipt.duplicate,
        )

    async def made(scope: anyio.CancelScope) -> Reply:
        outcome = await awaited(context, receipt, wait_ms=wait_ms, scope=scope)
        return Reply(status=HTTPStatus.OK, body=encode(outcome))

    return PendingReply(made=made)


async def create(context: HttpContext, call: Call) -> Done:
    """Create an agent."""
    request = call.body_as(CreateAgentRequest)
    agent_id = _named(call)
    is_default = agent_id == context.facts.default_agent
    await context.host.control.create_agent(
        public_identity(agent_id, now=context.clock.now(), is_default=is_default),
        template=request.template,
        key=idempotency_key(call),
    )
    return Done(ok=True, agent_id=agent_id)


async def act(context: HttpContext, call: Call, action: AgentAction) -> Done:
    """Start, stop, pause or resume an agent; start and resume are the same."""
    agent_id, agents = _named(call), context.host.control
    match action:
        case AgentAction.START | AgentAction.RESUME:
            await agents.resume(agent_id)
        case AgentAction.STOP:
            await agents.stop(agent_id)
        case AgentAction.PAUSE:
            await agents.pause(agent_id)
    return Done(ok=True, agent_id=agent_id)


async def control(context: HttpContext, call: Call) -> Done:
    """Do with an agent what the body says."""
    return await act(context, call, call.body_as(ControlRequest).action)


async def abort(context: HttpContext, call: Call) -> Done:
    """Abort the running turn, if it is the named one."""
    agent_id = _named(call)
    await context.host.control.abort_run(agent_id, run_id=call.body_as(AbortRequest).run_id)
    return Done(ok=True, agent_id=agent_id)


async def set_model(context: HttpContext, call: Call) -> Done:
    """Give the agent a model of its own."""
    agent_id, request = _named(call), call.body_as(ModelRequest)
    request.require_supported()
    await context.host.control.set_model(agent_id, request.model)
    return Done(ok=True, agent_id=agent_id)


async def clear_model(context: HttpContext, call: Call) -> Done:
    """Give the agent the runtime's model back."""
    agent_id = _named(call)
    await context.host.control.set_model(agent_id, None)
    return Done(ok=True, agent_id=agent_id)


def _surface(call: Call) -> DeliverySurface:
    """Both are the operator's alike, so that a caller gains nothing by its name."""
    from_cli = call.head.value(CLIENT_NAME.key) == CLI_CLIENT.encode()
    return DeliverySurface.CLI_PROMPT if from_cli else DeliverySurface.HTTP_CONTROL_PROMPT


def _named(call: Call) -> AgentId:
    return parse_agent_id(call.params["agent_id"])


ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    Route(
        method="POST",
        path="/control/agents/{agent_id}/prompt",
        access=Access.CONTROL,
        summary="Send a prompt to an agent; with `wait_ms`, respond once it has ended.",
        answer=prompt,
        headers=(*REPEATABLE, CLIENT_NAME),
        takes=PromptRequest,
        returns=Prompted,
        refusals=(404, 409, 429),
        tags=("agents",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/create",
        access=Access.CONTROL,
        summary="Create an agent.",
        answer=create,
        takes=CreateAgentRequest,
        body_optional=True,
        returns=Done,
        refusals=(400, 409, 429, 502, 507),
        headers=REPEATABLE,
        tags=("agents",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/control",
        access=Access.CONTROL,
        summary="Start, stop, pause or resume an agent.",
        answer=control,
        takes=ControlRequest,
        returns=Done,
        refusals=(404, 409),
        tags=("agents",),
    ),
    *(
        Route(
            method="POST",
            path=f"/control/agents/{{agent_id}}/{action.value}",
            access=Access.CONTROL,
            summary=summary,
            answer=partial(act, action=action),
            returns=Done,
            refusals=(404, 409),
            tags=("agents",),
        )
        for action, summary in ACTIONS.items()
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/current-run/abort",
        access=Access.CONTROL,
        summary="Abort the running turn; the agent stays available.",
        answer=abort,
        takes=AbortRequest,
        body_optional=True,
        returns=Done,
        refusals=(404, 409),
        tags=("agents",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/model",
        access=Access.CONTROL,
        summary="Set the model of an agent.",
        answer=set_model,
        takes=ModelRequest,
        returns=Done,
        refusals=(404,),
        tags=("agents",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/model/clear",
        access=Access.CONTROL,
        summary="Reset an agent to the runtime's model.",
        answer=clear_model,
        returns=Done,
        refusals=(404,),
        tags=("agents",),
    ),
)
