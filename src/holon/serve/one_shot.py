"""`holon run`: one prompt, answered by a host that lives as long as the answer takes.

Owns:  the life of a one-shot run: an agent, a prompt, and the wait until the agent rests.
Rule 1: a run is over when the agent is at rest again, so what it enqueued for itself is part of it.
Rule 2: the prompt is admitted like any other; nothing here bypasses the queue.
"""

from contextlib import aclosing

from holon.model.agent import AgentIdentity, AgentKind, Ownership, ProfilePreset, Visibility
from holon.model.agent_status import AgentStatus
from holon.model.event import AgentStateChanged, Event
from holon.model.ids import AgentId
from holon.model.ingress import IngressRequest
from holon.model.message import MessageKind, TextBody
from holon.model.provenance import AdmissionContext, DeliverySurface, OperatorOrigin
from holon.ports.clock import Clock
from holon.projections.run_result import RunResult, run_result
from holon.runtime.host import Host

_AT_REST = frozenset(
    {AgentStatus.ASLEEP, AgentStatus.AWAITING_TASK, AgentStatus.PAUSED, AgentStatus.STOPPED}
)


async def run_once(host: Host, clock: Clock, *, agent_id: AgentId, text: str) -> RunResult:
    """Put the prompt to the agent, creating it if need be, and return what came of it."""
    reads = host.reads
    if await reads.agent(agent_id) is None:
        await host.control.create_agent(_one_shot_identity(agent_id, clock))
    _, after = await reads.event_bounds(agent_id)
    await host.admit(
        IngressRequest(
            agent_id=agent_id,
            kind=MessageKind.OPERATOR_PROMPT,
            origin=OperatorOrigin(),
            body=TextBody(text=text),
            surface=DeliverySurface.RUN_ONCE,
            admission=AdmissionContext.LOCAL_PROCESS,
        )
    )
    told = await _until_at_rest(host, agent_id, after=after)
    briefs = await reads.briefs(agent_id, limit=1)
    return run_result(agent_id, told, briefs[-1] if briefs else None)


async def _until_at_rest(host: Host, agent_id: AgentId, *, after: int) -> list[Event]:
    """Read the agent's log until it has run and lies down again."""
    told: list[Event] = []
    ran = False
    async with aclosing(host.events.follow(agent_id, after=after)) as events:
        async for audit in events:
            told.append(audit.event)
            if isinstance(audit.event, AgentStateChanged):
                if ran and audit.event.status in _AT_REST:
                    break
                ran = ran or audit.event.status is AgentStatus.AWAKE_RUNNING
    return told


def _one_shot_identity(agent_id: AgentId, clock: Clock) -> AgentIdentity:
    return AgentIdentity(
        agent_id=agent_id,
        kind=AgentKind.NAMED,
        visibility=Visibility.PUBLIC,
        ownership=Ownership.SELF_OWNED,
        profile_preset=ProfilePreset.PUBLIC_NAMED,
        created_at=clock.now(),
    )
