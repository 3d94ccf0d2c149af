"""An agent and its home come into being together, or neither does."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio
import pytest

from holon.adapters.sqlite.store import open_store
from holon.adapters.system.clock import SystemClock
from holon.adapters.system.ids import TimeOrderedIds
from holon.decide.agents.lifecycle import public_identity
from holon.model.agents import DEFAULT_TEMPLATE, BadTemplateError
from holon.model.errors import (
    BadIdError,
    HolonError,
    RefusalCode,
    RefusedError,
    StoreBrokenError,
    StoreFullError,
)
from holon.model.values import AgentId
from holon.ports.agents import AgentHomeError, HomeOccupiedError, NoHomes
from holon.runtime.agents.provisioning import AgentProvisioner
from tests.support.builders import an_identity
from tests.support.fault_store import DiskFault, FaultStore
from tests.support.hosts import a_host
from tests.support.scripted_provider import Script, ScriptedProvider
from tests.support.single_model import SingleModel

ADA = AgentId("ada")
AT = datetime(2026, 4, 22, 12, tzinfo=UTC)


@dataclass
class Homes(NoHomes):
    """Homes of no disk, which remember what was asked of them."""

    made: list[tuple[str, str | None]] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    completed: list[tuple[str, str | None]] = field(default_factory=list)
    left: tuple[AgentId, ...] = ()
    problem: HolonError | None = None
    unsettled: HolonError | None = None
    hold: anyio.Event | None = None

    async def make(self, agent_id: AgentId, *, template: str | None, at: datetime) -> None:
        assert at.tzinfo is not None
        if self.hold is not None:
            await self.hold.wait()
        if self.problem is not None and template is not None:
            raise self.problem
        self.made.append((agent_id, template))

    async def keep(self, agent_id: AgentId) -> None:
        self._require_room()
        self.settled.append(f"keep {agent_id}")

    async def discard(self, agent_id: AgentId) -> None:
        self._require_room()
        self.settled.append(f"discard {agent_id}")

    def _require_room(self) -> None:
        if self.unsettled is not None:
            raise self.unsettled

    async def provisional(self) -> Sequence[AgentId]:
        if self.unsettled is not None and not self.left:
            raise self.unsettled
        return self.left

    async def complete(self, agent_id: AgentId, *, template: str | None) -> None:
        if self.problem is not None:
            raise self.problem
        self.completed.append((agent_id, template))


@dataclass
class Ward:
    """Where agents are born."""

    homes: Homes
    store: FaultStore
    provisioner: AgentProvisioner

    async def is_there(self, agent_id: AgentId = ADA) -> bool:
        return await self.store.reads.agents.agent(agent_id) is not None


@asynccontextmanager
async def open_ward(home: Path) -> AsyncIterator[Ward]:
    clock, homes = SystemClock(), Homes()
    inner = open_store(home)
    store = FaultStore(inner, clock)
    host = a_host(
        store=store,
        clock=clock,
        ids=TimeOrderedIds(),
        models=SingleModel(ScriptedProvider(Script(), clock)),
        homes=homes,
    )
    try:
        yield Ward(homes, store, host.provisioner)
    finally:
        await inner.close()


@pytest.mark.requirement("agent-init:birth-establishes-an-identity-root")
async def test_the_home_is_made_before_the_identity_and_kept_after(tmp_path: Path) -> None:
    async with open_ward(tmp_path) as ward:
        await ward.provisioner.create(an_identity(ADA), template="ops")
        assert (ward.homes.made, ward.homes.settled) == ([("ada", "ops")], ["keep ada"])
        assert await ward.is_there()


async def test_what_can_be_refused_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    async with open_ward(tmp_path) as ward:
        await ward.provisioner.create(an_identity(ADA))
        with pytest.raises(RefusedError, match="already an agent"):
            await ward.provisioner.create(an_identity(ADA), template="ops")
        with pytest.raises(BadIdError):
            await ward.provisioner.create(an_identity("../x"), template="ops")
        assert ward.homes.made == [("ada", None)]


@pytest.mark.requirement("agent-init:fails-closed")
async def test_a_home_that_cannot_be_made_makes_no_agent(tmp_path: Path) -> None:
    async with open_ward(tmp_path) as ward:
        ward.homes.problem = BadTemplateError("no such template")
        with pytest.raises(BadTemplateError):
            await ward.provisioner.create(an_identity(ADA), template="ops")
        assert not await ward.is_there()
        ward.homes.problem = None
        await ward.provisioner.create(an_identity(ADA), template="ops")
        assert await ward.is_there()


@pytest.mark.requirement("agent-init:fails-closed")
@pytest.mark.parametrize(
    ("fault", "error", "settled"),
    [
        (DiskFault.FULL, StoreFullError, ["discard ada"]),
        (DiskFault.BROKEN_AND_LOST, StoreBrokenError, []),
        (DiskFault.BROKEN_BUT_KEPT, StoreBrokenError, []),
    ],
)
async def test_a_commit_that_fails_takes_the_home_with_it_unless_nobody_knows(
    tmp_path: Path, fault: DiskFault, error: type[Exception], settled: list[str]
) -> None:
    async with open_ward(tmp_path) as ward:
        ward.store.fault = fault
        with pytest.raises(error):
            await ward.provisioner.create(an_identity(ADA))
        assert ward.homes.settled == settled


async def test_a_start_settles_the_births_an_earlier_process_left(tmp_path: Path) -> None:
    async with open_ward(tmp_path) as ward:
        await ward.provisioner.create(an_identity(ADA))
        ward.homes.settled.clear()
        ward.homes.left = (ADA, AgentId("unborn"))
        await ward.provisioner.settle()
        assert ward.homes.settled == ["keep ada", "discard unborn"]


@pytest.mark.parametrize("left", [(), (ADA, AgentId("unborn"))], ids=["unread", "unsettled"])
async def test_births_that_cannot_be_settled_end_no_start(
    tmp_path: Path, left: tuple[AgentId, ...]
) -> None:
    async with open_ward(tmp_path) as ward:
        await ward.provisioner.create(an_identity(ADA))
        ward.homes.left, ward.homes.unsettled = left, AgentHomeError("no way in")
        await ward.provisioner.settle()
        assert await ward.is_there()


async def test_a_birth_whose_agent_is_durable_does_not_fail_for_its_home(tmp_path: Path) -> None:
    async with open_ward(tmp_path) as ward:
        ward.homes.unsettled = AgentHomeError("no way in")
        await ward.provisioner.create(an_identity(ADA))
        assert await ward.is_there()


async def test_one_birth_of_a_name_at_a_time(tmp_path: Path) -> None:
    async with open_ward(tmp_path) as ward:
        ward.homes.hold = anyio.Event()
        with anyio.fail_after(20):
            async with anyio.create_task_group() as both:
                both.start_soon(ward.provisioner.create, an_identity(ADA))
                await anyio.wait_all_tasks_blocked()
                while not ward.provisioner._in_progress:
                    await anyio.lowlevel.checkpoint()
                with pytest.raises(RefusedError):
                    await ward.provisioner.create(an_identity(ADA))
                ward.homes.hold.set()
        assert (ward.homes.made, ward.homes.settled) == ([("ada", None)], ["keep ada"])


@pytest.mark.requirement("agent-init:default-agent-gets-missing-guidance")
async def test_the_default_agent_is_made_from_the_default_template_once(tmp_path: Path) -> None:
    async with open_ward(tmp_path) as ward:
        await ward.provisioner.ensure(ADA)
        await ward.provisioner.ensure(ADA)
        assert ward.homes.made == [("ada", DEFAULT_TEMPLATE)]
        assert ward.homes.completed == [("ada", DEFAULT_TEMPLATE)]


@pytest.mark.parametrize("problem", [BadTemplateError("edited away"), HomeOccupiedError("there")])
async def test_a_template_that_cannot_be_used_does_not_stop_a_service(
    tmp_path: Path, problem: HolonError
) -> None:
    async with open_ward(tmp_path) as ward:
        ward.homes.problem = problem
        await ward.provisioner.ensure(ADA)
        assert ward.homes.made == [("ada", None)]
        assert await ward.is_there()
        await ward.provisioner.ensure(ADA)


@pytest.mark.requirement("agent-init:guidance-is-not-policy")
async def test_a_template_changes_nothing_about_who_an_agent_is(tmp_path: Path) -> None:
    async with open_ward(tmp_path) as ward:
        names = [AgentId("plain"), AgentId("made")]
        for name, template in zip(names, (None, "ops"), strict=True):
            identity = public_identity(name, now=AT, is_default=False)
            await ward.provisioner.create(identity, template=template)
        plain, made = [await ward.store.reads.agents.agent(name) for name in names]
        assert plain is not None
        assert made is not None
        assert plain.identity.profile_preset == made.identity.profile_preset
        assert plain.posture == made.posture


async def test_a_birth_asked_for_again_under_its_key_is_the_birth_there_was(tmp_path: Path) -> None:
    async with open_ward(tmp_path) as ward:
        first = public_identity(ADA, now=AT, is_default=False)
        again = public_identity(ADA, now=AT.replace(hour=13), is_default=False)
        await ward.provisioner.create(first, template="a", key="k")
        await ward.provisioner.create(again, template="a", key="k")
        for template, key in (("b", "k"), ("a", "other"), ("a", None), (None, "k")):
            with pytest.raises(RefusedError) as refused:
                await ward.provisioner.create(again, template=template, key=key)
            assert refused.value.refusal.code is RefusalCode.AGENT_EXISTS
        assert ward.homes.made == [(ADA, "a")]
        found = await ward.store.reads.agents.agent(ADA)
        assert found is not None
        assert found.identity.created_at == AT


async def test_a_repeat_waits_for_the_birth_that_is_under_way(tmp_path: Path) -> None:
    async with open_ward(tmp_path) as ward:
        identity = public_identity(ADA, now=AT, is_default=False)
        ward.homes.hold = anyio.Event()
        async with anyio.create_task_group() as asking:
            for _ in range(3):
                asking.start_soon(partial(ward.provisioner.create, identity, key="k"))
            await anyio.wait_all_tasks_blocked()
            ward.homes.hold.set()
        assert ward.homes.made == [(ADA, None)]
