"""A host in one's own process, on a real home."""

from pathlib import Path

import pytest

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.system.clock import SystemClock
from holon.decide.agents.lifecycle import public_identity
from holon.model.agents import AgentIdentity
from holon.model.errors import HomeInUseError
from holon.model.events.event import BriefCreated, MessageProcessingStarted
from holon.model.queue import (
    AdmissionContext,
    DeliverySurface,
    IngressRequest,
    MessageKind,
    OperatorOrigin,
    TextBody,
)
from holon.model.values import AgentId, MessageId
from holon.runtime.host import Host
from holon.serve.compose import open_host
from tests.support.scripted_provider import Script, ScriptedProvider, ScriptedRound, ScriptedRule
from tests.support.single_model import SingleModel

MAIN = AgentId("main")


def a_model(*rules: ScriptedRule) -> SingleModel:
    return SingleModel(ScriptedProvider(Script(rules=rules), SystemClock()))


def an_agent() -> AgentIdentity:
    return public_identity(MAIN, now=SystemClock().now(), is_default=True)


async def prompt(host: Host, text: str) -> MessageId:
    receipt = await host.admit(
        IngressRequest(
            agent_id=MAIN,
            kind=MessageKind.OPERATOR_PROMPT,
            origin=OperatorOrigin(),
            body=TextBody(text=text),
            surface=DeliverySurface.CLI_PROMPT,
            admission=AdmissionContext.LOCAL_PROCESS,
        )
    )
    return receipt.message_id


async def until_told(host: Host, kind: type, *, after: int = 0) -> int:
    async for event in host.events.follow(MAIN, after=after):
        if isinstance(event.event, kind):
            return event.event_seq
    raise AssertionError("the feed ended")


async def test_a_prompt_becomes_a_brief_and_the_home_is_sound_afterwards(tmp_path: Path) -> None:
    async with open_host(tmp_path, a_model()) as host:
        await host.control.create_agent(an_agent())
        await prompt(host, "hello")
        seen = await until_told(host, BriefCreated)
    async with open_host(tmp_path, a_model()) as host:
        await prompt(host, "hello again")
        await until_told(host, BriefCreated, after=seen)
    report = check_database(database_path(tmp_path))
    assert report.violations == ()
    assert report.counts["turns"] == 2


@pytest.mark.requirement("runtime:admitted-means-durable")
async def test_what_waits_behind_a_turn_outlives_an_end_in_good_order(tmp_path: Path) -> None:
    slow = ScriptedRule(when="slow", rounds=(ScriptedRound(text="done", after_ms=3_600_000),))
    async with open_host(tmp_path, a_model(slow)) as host:
        await host.control.create_agent(an_agent())
        sent = [await prompt(host, "slow")]
        await until_told(host, MessageProcessingStarted)
        sent += [await prompt(host, f"n {number}") for number in range(9)]
    async with open_host(tmp_path, a_model()) as host:
        sent.append(await prompt(host, "last"))
        answered = list[str | None]()
        async for audit in host.events.follow(MAIN, after=0):
            if isinstance(audit.event, BriefCreated):
                answered.append(audit.event.related_message_id)
            if sent[-1] in answered:
                break
        assert answered == sent


async def test_a_home_that_is_in_use_is_refused(tmp_path: Path) -> None:
    async with open_host(tmp_path, a_model()):
        with pytest.raises(HomeInUseError):
            async with open_host(tmp_path, a_model()):
                pass
