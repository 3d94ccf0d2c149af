"""Every failpoint is a place some run comes by: a name nobody reaches proves nothing."""

from datetime import datetime
from random import Random

import anyio
import apsw
import pytest

from holon.adapters.sqlite.writer.commit_writer import Result
from holon.model.agents import AgentIdentity, AgentKind, Ownership, ProfilePreset, Visibility
from holon.model.commits import AuditedCommit
from holon.model.limits import RETENTION_INTERVAL_MS
from holon.model.queue import (
    AdmissionContext,
    DeliverySurface,
    IngressRequest,
    MessageKind,
    OperatorOrigin,
    TextBody,
)
from holon.model.values import AgentId, later
from holon.model.wake import WakeHint
from holon.ports.failpoint import Failpoint
from holon.runtime.host import Host
from holon.runtime.tasks.commands import CommandRequest
from tests.support.armed_failpoints import ArmedFailpoints
from tests.support.hosts import a_host
from tests.support.inline_writer import InlineWriter, NoFaults
from tests.support.manual_clock import ManualClock
from tests.support.memory_store import memory_connection, memory_store
from tests.support.scripted_provider import (
    Script,
    ScriptedCall,
    ScriptedProvider,
    ScriptedRound,
    ScriptedRule,
)
from tests.support.scripted_shell import NamedPlaces, ScriptedShell
from tests.support.sequential_ids import SequentialIds
from tests.support.sim_loop import SimLoop, SimulatedCrash
from tests.support.single_model import SingleModel

ADA = AgentId("ada")
SCRIPT = Script(
    rules=(
        ScriptedRule(
            when="plan",
            rounds=(
                ScriptedRound(calls=(ScriptedCall(name="Enqueue", input={"text": "monday"}),)),
                ScriptedRound(text="Planned."),
            ),
        ),
    )
)


class Story:
    """Two lives of one host: the first dies in mid-turn, the second does everything there is."""

    def __init__(self) -> None:
        self.failpoints = ArmedFailpoints({})
        self._clock = ManualClock()
        self._ids = SequentialIds()
        self._connection: apsw.Connection = memory_connection()
        self._dies_after: str | None = "round:"

    def live_once(self) -> None:
        loop = SimLoop(self._clock, Random(0))
        loop.run_life(self._live())

    def _die(self, commits: list[AuditedCommit], results: list[Result]) -> None:
        del results
        if self._dies_after and any(c.commit_id.startswith(self._dies_after) for c in commits):
            self._dies_after = None
            raise SimulatedCrash("in mid-turn")

    async def _live(self) -> None:
        writer = InlineWriter(self._connection, self._clock, NoFaults())
        writer.on_group = self._die
        host = a_host(
            store=memory_store(self._connection, writer),
            clock=self._clock,
            ids=self._ids,
            models=SingleModel(ScriptedProvider(SCRIPT, self._clock)),
            failpoints=self.failpoints,
            shell=ScriptedShell(self._clock),
            places=NamedPlaces(),
            home="/home",
        )
        async with anyio.create_task_group() as life:
            life.start_soon(host.run)
            await host.wait_ready()
            await self._do_everything(host)
            life.cancel_scope.cancel()

    async def _do_everything(self, host: Host) -> None:
        now = self._clock.now()
        if self._dies_after is not None:
            await host.control.create_agent(_identity(now=now))
        await host.admit(_prompt("plan the week"))
        await host.commands.start(ADA, CommandRequest(cmd="make"))
        await host.timers.create(ADA, after_ms=1_000)
        hint = WakeHint(
            agent_id=ADA, source_key="ci", reason="changed", created_at=now, updated_at=now
        )
        await self._clock.sleep_until(later(now, by_ms=5_000))
        await host.wake.submit(hint)
        await self._clock.sleep_until(later(now, by_ms=RETENTION_INTERVAL_MS + 1_000))


def _identity(*, now: datetime) -> AgentIdentity:
    return AgentIdentity(
        agent_id=ADA,
        kind=AgentKind.NAMED,
        visibility=Visibility.PUBLIC,
        ownership=Ownership.SELF_OWNED,
        profile_preset=ProfilePreset.PUBLIC_NAMED,
        created_at=now,
    )


def _prompt(text: str) -> IngressRequest:
    return IngressRequest(
        agent_id=ADA,
        kind=MessageKind.OPERATOR_PROMPT,
        origin=OperatorOrigin(),
        body=TextBody(text=text),
        surface=DeliverySurface.CLI_PROMPT,
        admission=AdmissionContext.LOCAL_PROCESS,
    )


def test_every_failpoint_is_reached_by_one_death_and_one_ordinary_day() -> None:
    story = Story()
    with pytest.raises(SimulatedCrash):
        story.live_once()
    story.live_once()
    unreached = [point.value for point in Failpoint if not story.failpoints.visits[point]]
    assert unreached == []
