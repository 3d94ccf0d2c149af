"""Skill routes of an agent: list, install, uninstall.

Owns:  the routes of skills.
Rule 1: only the operator may change skills. A command of an agent cannot install one here.
"""

from typing import Final

from holon.http.context import HttpContext, named_agent, shown_agent
from holon.http.route import Access, Call, Route
from holon.projections.guidance import AgentSkillsView
from holon.wire.responses import InstallSkillRequest, SkillReceipt, UninstallSkillRequest


async def show(context: HttpContext, call: Call) -> AgentSkillsView:
    """What an agent may discover, uses, and was given."""
    return await context.host.skills.look(await shown_agent(context, call))


async def install(context: HttpContext, call: Call) -> SkillReceipt:
    """Put a skill into the agent's home."""
    agent_id, request = named_agent(call), call.body_as(InstallSkillRequest)
    kind = None if request.kind is None else request.kind.value
    made = await context.host.skills.install(
        agent_id, request.name, kind=kind, copies=request.copy, force=request.force
    )
    return SkillReceipt(
        ok=True,
        agent_id=agent_id,
        name=made.name,
        path=made.path,
        source_kind=made.kind,
        source=made.source,
    )


async def uninstall(context: HttpContext, call: Call) -> SkillReceipt:
    """Take a skill out of the agent's home."""
    agent_id, request = named_agent(call), call.body_as(UninstallSkillRequest)
    gone = await context.host.skills.uninstall(agent_id, request.name, force=request.force)
    return SkillReceipt(
        ok=True,
        agent_id=agent_id,
        name=gone.name,
        path=gone.path,
        source_kind=gone.kind,
        source=gone.source,
    )


ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    Route(
        method="GET",
        path="/agents/{agent_id}/skills",
        access=Access.READ,
        summary="The skills available to an agent, its active ones, and its installed ones.",
        answer=show,
        returns=AgentSkillsView,
        refusals=(404,),
        tags=("skills",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/skills/install",
        access=Access.CONTROL,
        summary="Install a skill into an agent's home, completely or not at all.",
        answer=install,
        takes=InstallSkillRequest,
        returns=SkillReceipt,
        refusals=(404, 409, 502),
        tags=("skills",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/skills/uninstall",
        access=Access.CONTROL,
        summary="Remove a skill from an agent's home; of a linked one only the link.",
        answer=uninstall,
        takes=UninstallSkillRequest,
        returns=SkillReceipt,
        refusals=(404, 409),
        tags=("skills",),
    ),
)
