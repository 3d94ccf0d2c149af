"""What tests over a real server share."""

from collections.abc import Sequence

import anyio
import msgspec

from holon.decide.agents.lifecycle import public_identity
from holon.model.agents import Visibility
from holon.model.events.event import BriefCreated, Event
from holon.model.values import AgentId
from holon.runtime.host import Host
from tests.support.control_server import MAIN, ControlServer

PATIENCE_S = 20


async def events_of(host: Host, agent_id: AgentId = MAIN) -> Sequence[Event]:
    """Everything an agent's log says so far."""
    return [one.event for one in await host.reads.events.events_after(agent_id, 0, limit=512)]


async def until_event(host: Host, kind: type, *, agent_id: AgentId = MAIN) -> Event:
    """The first event of a kind, once it is there."""
    with anyio.fail_after(PATIENCE_S):
        async for one in host.events.follow(agent_id, after=0):
            if isinstance(one.event, kind):
                return one.event
    raise AssertionError("the feed ended")


async def make_agent(server: ControlServer, name: str, *, private: bool = False) -> AgentId:
    """Bring another agent into being."""
    made = public_identity(AgentId(name), now=server.context.clock.now(), is_default=False)
    if private:
        made = msgspec.structs.replace(made, visibility=Visibility.PRIVATE)
    await server.host.control.create_agent(made)
    return AgentId(name)


async def settled(server: ControlServer, text: str = "hello", *, agent_id: AgentId = MAIN) -> str:
    """Say something, wait for the brief that answers it, and return the message's id."""
    asked = await server.operator.post(f"/control/agents/{agent_id}/prompt", {"text": text})
    assert asked.status == 200, asked.body
    message_id = str(asked.json()["message_id"])
    with anyio.fail_after(PATIENCE_S):
        async for one in server.host.events.follow(agent_id, after=0):
            told = one.event
            if isinstance(told, BriefCreated) and told.related_message_id == message_id:
                return message_id
    raise AssertionError("the feed ended")
