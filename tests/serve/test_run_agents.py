"""Whom a run asks."""

from pathlib import Path

import msgspec
import pytest

from holon.adapters.system.clock import SystemClock
from holon.adapters.system.ids import TimeOrderedIds
from holon.model.agents import AgentKind, Ownership, Visibility
from holon.model.values import AgentId
from holon.serve.compose import open_host
from holon.serve.one_shot import AgentNotUsableError, named_agent, temporary_agent
from tests.serve.test_compose import a_model
from tests.support.builders import an_identity

ADA = AgentId("ada")


@pytest.mark.requirement("run-once:temporary-agent")
async def test_a_temporary_agent_is_private_and_its_own(tmp_path: Path) -> None:
    async with open_host(tmp_path, a_model()) as host:
        agent_id = await temporary_agent(host, SystemClock(), TimeOrderedIds())
        state = await host.reads.agents.agent(agent_id)
    assert state is not None
    assert agent_id.startswith("tmp_run_")
    identity = state.identity
    assert (identity.visibility, identity.ownership) == (Visibility.PRIVATE, Ownership.SELF_OWNED)


@pytest.mark.requirement("run-once:named-agent")
async def test_a_named_agent_is_made_once_and_public(tmp_path: Path) -> None:
    clock = SystemClock()
    async with open_host(tmp_path, a_model()) as host:
        with pytest.raises(AgentNotUsableError) as refused:
            await named_agent(host, clock, ADA, create=False)
        assert "--create-agent" in str(refused.value.hint)
        assert await host.reads.agents.agent(ADA) is None
        for create in (True, True, False):
            assert await named_agent(host, clock, ADA, create=create) == ADA
        state = await host.reads.agents.agent(ADA)
    assert state is not None
    assert state.identity.visibility is Visibility.PUBLIC


async def test_an_agent_that_could_not_answer_is_refused(tmp_path: Path) -> None:
    clock = SystemClock()
    child = msgspec.structs.replace(
        an_identity("kid"), kind=AgentKind.CHILD, ownership=Ownership.PARENT_SUPERVISED
    )
    async with open_host(tmp_path, a_model()) as host:
        await host.control.create_agent(child)
        with pytest.raises(AgentNotUsableError, match="belongs to another"):
            await named_agent(host, clock, AgentId("kid"), create=True)
        await named_agent(host, clock, ADA, create=True)
        await host.control.pause(ADA)
        with pytest.raises(AgentNotUsableError, match="paused"):
            await named_agent(host, clock, ADA, create=True)
