"""Who a one-shot run asks.

Owns:  the agent made for one run, the named agent, and when a named one may be made.
Rule 1: a run that names nobody gets an agent of its own: private, and nobody else's past.
Rule 2: a named agent is used as it is: a template is for a new one. It comes into being only when
        that was asked for.
Rule 3: the agent made for a run is archived when the run is over, for good: it takes nothing more.
        Its identity stays; its rows and its home stay until retention lets them go. As long as it
        could go on, because the run was stopped or waits, or a task, a timer or a wait is left, it
        stays in use. So it does when the process was killed: a run that goes on with it by its name
        archives it at its own end.
Rule 4: an agent that could not answer (paused, stopped, someone's child) is refused at once.
"""

from holon.decide.agent_identity import is_temporary
from holon.decide.agent_lifecycle import may_run
from holon.model.agent import (
    AgentIdentity,
    AgentKind,
    AgentState,
    IdentityStatus,
    Ownership,
    ProfilePreset,
    Visibility,
)
from holon.model.errors import BadInputError
from holon.model.ids import AgentId, IdPrefix, parse_agent_id
from holon.ports.clock import Clock
from holon.ports.id_source import IdSource
from holon.runtime.host import Host


class AgentNotUsableError(BadInputError):
    """The agent a run names cannot be asked."""

    code = "agent_not_usable"


async def temporary_agent(host: Host, clock: Clock, ids: IdSource) -> AgentId:
    """Make the agent of a run that names none."""
    agent_id = parse_agent_id(ids.fresh(IdPrefix.TEMPORARY_RUN))
    await host.control.create_agent(_identity(agent_id, clock, Visibility.PRIVATE))
    return agent_id


async def archive_temporary(host: Host, agent_id: AgentId) -> bool:
    """Archive the agent of a run that is over, if it was made for one and has nothing left."""
    state = await host.reads.agent(agent_id)
    if state is None or not is_temporary(state.identity):
        return False
    return await host.control.archive(agent_id, reason="its run is over")


async def named_agent(
    host: Host, clock: Clock, agent_id: AgentId, *, create: bool, template: str | None = None
) -> AgentId:
    """Return the agent of this name, made from the template if it may be and is not there."""
    state = await host.reads.agent(agent_id)
    if state is None and create:
        identity = _identity(agent_id, clock, Visibility.PUBLIC)
        await host.control.create_agent(identity, template=template)
        return agent_id
    _require_usable(agent_id, state)
    return agent_id


def _require_usable(agent_id: AgentId, state: AgentState | None) -> None:
    if state is None:
        raise AgentNotUsableError(
            f"there is no agent {agent_id}",
            hint="check the name with `holon agent list`, or add --create-agent to make it",
        )
    if state.identity.ownership is not Ownership.SELF_OWNED:
        raise AgentNotUsableError(
            f"agent {agent_id} belongs to another agent", hint="ask the agent it belongs to"
        )
    if state.identity.status is IdentityStatus.ARCHIVED:
        raise AgentNotUsableError(
            f"agent {agent_id} is archived",
            hint="choose another agent; one that you name with --agent and --create-agent lasts",
        )
    if not may_run(state.posture.status):
        raise AgentNotUsableError(
            f"agent {agent_id} is {state.posture.status}",
            hint=(
                f"resume it first with `holon agent resume {agent_id}`; where no runtime serves"
                " this home, `holon daemon start` starts one"
            ),
        )


def _identity(agent_id: AgentId, clock: Clock, visibility: Visibility) -> AgentIdentity:
    return AgentIdentity(
        agent_id=agent_id,
        kind=AgentKind.NAMED,
        visibility=visibility,
        ownership=Ownership.SELF_OWNED,
        profile_preset=ProfilePreset.PUBLIC_NAMED,
        created_at=clock.now(),
    )
