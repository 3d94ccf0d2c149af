"""The refusals that concern the agent a request names, worded once.

Owns:  what a caller is told when that agent is unknown, archived or stopped.
Rule 1: a stopped agent is refused the same way at every door, and always with the way to resume it.
Rule 2: a hint names a command and a route, both as they can be used at once.
"""

from holon.decide.agent_lifecycle import admits
from holon.model.agent import AgentState, IdentityStatus
from holon.model.ids import AgentId
from holon.model.refusal import Refusal, RefusalCode


def resume_path(agent_id: AgentId) -> str:
    """The route that lets a stopped or paused agent run again; it needs no body."""
    return f"/control/agents/{agent_id}/resume"


def refuse_addressee(agent: AgentState) -> Refusal | None:
    """Decline what is meant for an agent that takes nothing."""
    agent_id = agent.identity.agent_id
    if agent.identity.status is IdentityStatus.ARCHIVED:
        return refuse_archived(agent_id)
    return None if admits(agent.posture.status) else refuse_stopped(agent_id)


def refuse_unknown(agent_id: AgentId) -> Refusal:
    """There is no such agent."""
    return Refusal(
        code=RefusalCode.AGENT_NOT_FOUND,
        message=f"there is no agent {agent_id}",
        # Models and strangers read this as well, so it does not say how to make an agent.
        hint="check the agent id: `holon agent list` (GET /agents/list) names those there are",
        field="agent_id",
    )


def refuse_archived(agent_id: AgentId) -> Refusal:
    """The agent is kept for its history only."""
    return Refusal(
        code=RefusalCode.AGENT_ARCHIVED,
        message=f"agent {agent_id} is archived and takes no more input",
        hint="address an active agent: `holon agent list` (GET /agents/list) names them",
        field="agent_id",
    )


def refuse_stopped(agent_id: AgentId) -> Refusal:
    """The agent is stopped, and neither a message nor a wake starts it again."""
    return Refusal(
        code=RefusalCode.AGENT_STOPPED,
        message=f"agent {agent_id} is stopped; neither a message nor a wake starts it again",
        hint=(
            f"resume it with `holon agent resume {agent_id}` (POST {resume_path(agent_id)}),"
            " then send this again"
        ),
        resume_path=resume_path(agent_id),
    )
