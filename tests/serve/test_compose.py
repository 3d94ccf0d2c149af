"""A host in one's own process, on a real home."""

from pathlib import Path

import pytest

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.home_lock import database_path
from holon.adapters.system.clock import SystemClock
from holon.model.agent import AgentIdentity, AgentKind, Ownership, ProfilePreset, Visibility
from holon.model.errors import HomeInUseError
from holon.model.event import BriefCreated
from holon.model.ids import AgentId
from holon.model.ingress import IngressRequest
from holon.model.message import MessageKind, TextBody
from holon.model.provenance import AdmissionContext, DeliverySurface, OperatorOrigin
from holon.runtime.host import Host
from holon.serve.compose import open_host
from holon.testing.scripted_provider import Script, ScriptedProvider
from holon.testing.single_model import SingleModel

MAIN = AgentId("main")


def a_model() -> SingleModel:
    return SingleModel(ScriptedProvider(Script(), SystemClock()))


async def prompt(host: Host, text: str) -> None:
    await host.admit(
        IngressRequest(
            agent_id=MAIN,
            kind=MessageKind.OPERATOR_PROMPT,
            origin=OperatorOrigin(),
            body=TextBody(text=text),
            surface=DeliverySurface.CLI_PROMPT,
            admission=AdmissionContext.LOCAL_PROCESS,
        )
    )


async def until_brief(host: Host, *, after: int = 0) -> int:
    async for event in host.events.follow(MAIN, after=after):
        if isinstance(event.event, BriefCreated):
            return event.event_seq
    raise AssertionError("the feed ended")


async def test_a_prompt_becomes_a_brief_and_the_home_is_sound_afterwards(tmp_path: Path) -> None:
    identity = AgentIdentity(
        agent_id=MAIN,
        kind=AgentKind.DEFAULT,
        visibility=Visibility.PUBLIC,
        ownership=Ownership.SELF_OWNED,
        profile_preset=ProfilePreset.PUBLIC_NAMED,
        created_at=SystemClock().now(),
    )
    async with open_host(tmp_path, a_model()) as host:
        await host.control.create_agent(identity)
        await prompt(host, "hello")
        seen = await until_brief(host)
    async with open_host(tmp_path, a_model()) as host:
        await prompt(host, "hello again")
        await until_brief(host, after=seen)
    report = check_database(database_path(tmp_path))
    assert report.violations == ()
    assert report.counts["turns"] == 2


async def test_a_home_that_is_in_use_is_refused(tmp_path: Path) -> None:
    async with open_host(tmp_path, a_model()):
        with pytest.raises(HomeInUseError):
            async with open_host(tmp_path, a_model()):
                pass
