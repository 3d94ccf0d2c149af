"""Makes sure that the agent nobody has to name exists.

Owns:  the birth of the default agent when a service starts.
"""

from holon.decide.agent_identity import public_identity
from holon.model.ids import AgentId
from holon.ports.clock import Clock
from holon.runtime.host import Host


async def ensure_agent(host: Host, agent_id: AgentId, clock: Clock) -> None:
    """Create the default agent, unless it is there."""
    if await host.reads.agent(agent_id) is None:
        await host.control.create_agent(public_identity(agent_id, now=clock.now(), is_default=True))
