"""Workspace routes of an agent: list, attach, leave, forget.

Owns:  the control routes of workspaces.
Rule 1: only the operator may use them. A command of an agent cannot move the agent.
"""

from typing import Final

from holon.http.context import HttpContext, named_agent
from holon.http.route import Access, Call, Route
from holon.model.values import AgentId
from holon.projections.workspaces import workspace_state_view
from holon.wire.requests import AttachRequest, DetachRequest
from holon.wire.responses import WorkspaceAnswer


async def attach(context: HttpContext, call: Call) -> WorkspaceAnswer:
    """Make a directory the place where the agent works."""
    agent_id = named_agent(call)
    await context.host.workspaces.attach(agent_id, call.body_as(AttachRequest).path)
    return await _answer(context, agent_id)


async def leave(context: HttpContext, call: Call) -> WorkspaceAnswer:
    """Bring the agent home."""
    agent_id = named_agent(call)
    await context.host.workspaces.exit(agent_id)
    return await _answer(context, agent_id)


async def detach(context: HttpContext, call: Call) -> WorkspaceAnswer:
    """Make the agent forget a workspace."""
    agent_id = named_agent(call)
    await context.host.workspaces.detach(agent_id, call.body_as(DetachRequest).workspace_id)
    return await _answer(context, agent_id)


async def _answer(context: HttpContext, agent_id: AgentId) -> WorkspaceAnswer:
    service = context.host.workspaces
    bindings = await service.bindings(agent_id)
    place = service.place_of(agent_id, bindings.active)
    return WorkspaceAnswer(
        ok=True, agent_id=agent_id, workspace=workspace_state_view(bindings, place)
    )


ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    Route(
        method="POST",
        path="/control/agents/{agent_id}/workspace/attach",
        access=Access.CONTROL,
        summary="Set the directory an agent works in, from its next command on.",
        answer=attach,
        takes=AttachRequest,
        returns=WorkspaceAnswer,
        refusals=(404, 409, 429),
        tags=("workspaces",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/workspace/exit",
        access=Access.CONTROL,
        summary="Leave the current workspace for the agent's home; it stays attached.",
        answer=leave,
        returns=WorkspaceAnswer,
        refusals=(404, 409),
        tags=("workspaces",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/workspace/detach",
        access=Access.CONTROL,
        summary="Remove a workspace the agent is not in from its list. No file is changed.",
        answer=detach,
        takes=DetachRequest,
        returns=WorkspaceAnswer,
        refusals=(404, 409),
        tags=("workspaces",),
    ),
)
