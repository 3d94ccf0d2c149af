"""The agent lifecycle as a transition table.

Owns:  the identities of new agents, and which of them were made for one run; every transition
       between postures, as one table; the refusals for an agent that is unknown, archived or
       stopped.
Rule 1: a transition that is not in TRANSITIONS cannot happen.
Rule 2: stopped holds for every caller. `woken` has no row there, nor on paused: only an explicit
        resume crosses either boundary, and a stopped agent has to boot again.
Rule 3: a row may lead back to its own posture where a signal can arrive twice, after a crash or
        from two sources at once.
Rule 4: a stopped agent is refused in the same way on every surface, with the way to resume it.
Rule 5: a hint names a command and a route, both ready to use.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final

from holon.model.agents import (
    AgentIdentity,
    AgentKind,
    AgentSignal,
    AgentState,
    AgentStatus,
    IdentityStatus,
    Ownership,
    ProfilePreset,
    Visibility,
)
from holon.model.errors import ForbiddenTransitionError, Refusal, RefusalCode
from holon.model.values import AgentId, IdPrefix

# The operator may interrupt every posture that is not already down.
_INTERRUPTS: Final = {
    AgentSignal.PAUSE_REQUESTED: AgentStatus.PAUSED,
    AgentSignal.STOP_REQUESTED: AgentStatus.STOPPED,
}
TRANSITIONS: Final[Mapping[AgentStatus, Mapping[AgentSignal, AgentStatus]]] = MappingProxyType(
    {
        AgentStatus.BOOTING: {
            AgentSignal.BOOTED: AgentStatus.AWAKE_IDLE,
            **_INTERRUPTS,
        },
        AgentStatus.AWAKE_IDLE: {
            AgentSignal.WOKEN: AgentStatus.AWAKE_IDLE,
            AgentSignal.RUN_STARTED: AgentStatus.AWAKE_RUNNING,
            AgentSignal.RESTED: AgentStatus.ASLEEP,
            **_INTERRUPTS,
        },
        AgentStatus.AWAKE_RUNNING: {
            AgentSignal.RUN_STARTED: AgentStatus.AWAKE_RUNNING,  # an open turn continues
            AgentSignal.RUN_SETTLED: AgentStatus.AWAKE_IDLE,
            AgentSignal.TASK_AWAITED: AgentStatus.AWAITING_TASK,
            AgentSignal.RESTED: AgentStatus.ASLEEP,
            **_INTERRUPTS,
        },
        AgentStatus.AWAITING_TASK: {
            AgentSignal.WOKEN: AgentStatus.AWAKE_IDLE,
            AgentSignal.RUN_STARTED: AgentStatus.AWAKE_RUNNING,
            AgentSignal.RESTED: AgentStatus.ASLEEP,
            **_INTERRUPTS,
        },
        AgentStatus.ASLEEP: {
            AgentSignal.WOKEN: AgentStatus.AWAKE_IDLE,
            AgentSignal.RUN_STARTED: AgentStatus.AWAKE_RUNNING,
            AgentSignal.RESTED: AgentStatus.ASLEEP,
            **_INTERRUPTS,
        },
        AgentStatus.PAUSED: {
            AgentSignal.RESUME_REQUESTED: AgentStatus.AWAKE_IDLE,
            AgentSignal.STOP_REQUESTED: AgentStatus.STOPPED,
        },
        AgentStatus.STOPPED: {
            AgentSignal.RESUME_REQUESTED: AgentStatus.BOOTING,
        },
    }
)
_DOWN: Final = frozenset({AgentStatus.BOOTING, AgentStatus.PAUSED, AgentStatus.STOPPED})


def public_identity(agent_id: AgentId, *, now: datetime, is_default: bool) -> AgentIdentity:
    """The identity of an agent that is publicly visible and has no supervisor."""
    return AgentIdentity(
        agent_id=agent_id,
        kind=AgentKind.DEFAULT if is_default else AgentKind.NAMED,
        visibility=Visibility.PUBLIC,
        ownership=Ownership.SELF_OWNED,
        profile_preset=ProfilePreset.PUBLIC_NAMED,
        created_at=now,
    )


def is_temporary(identity: AgentIdentity) -> bool:
    """Whether an agent was made for one run, which named it itself."""
    is_private = identity.visibility is Visibility.PRIVATE
    return is_private and identity.agent_id.startswith(f"{IdPrefix.TEMPORARY_RUN}_")


def next_status(status: AgentStatus, signal: AgentSignal) -> AgentStatus:
    """Return the posture that follows, or raise ForbiddenTransitionError without such a row."""
    try:
        return TRANSITIONS[status][signal]
    except KeyError:
        raise ForbiddenTransitionError(status, signal) from None


def may_run(status: AgentStatus) -> bool:
    """Whether the scheduler may give this agent a lane."""
    return status not in _DOWN


def admits(status: AgentStatus) -> bool:
    """Whether messages may be queued for this agent. A paused one keeps them for later."""
    return status is not AgentStatus.STOPPED


def resume_path(agent_id: AgentId) -> str:
    """The route that lets a stopped or paused agent run again; it needs no body."""
    return f"/control/agents/{agent_id}/resume"


def refuse_recipient(agent: AgentState) -> Refusal | None:
    """Decline a message for an agent that takes none."""
    agent_id = agent.identity.agent_id
    if agent.identity.status is IdentityStatus.ARCHIVED:
        return refuse_archived(agent_id)
    return None if admits(agent.posture.status) else refuse_stopped(agent_id)


def refuse_unknown(agent_id: AgentId) -> Refusal:
    """Decline a request for an agent that does not exist."""
    return Refusal(
        code=RefusalCode.AGENT_NOT_FOUND,
        message=f"there is no agent {agent_id}",
        # Unauthenticated callers read this too, so it does not say how to make an agent.
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
