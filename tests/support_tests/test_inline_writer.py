"""The writer of the simulation: real SQL in real groups, without a thread."""

from collections.abc import Collection, Coroutine
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from holon.adapters.sqlite.writer.commit_writer import Result
from holon.decide.events.audit import audited
from holon.model.commits import Applied, AuditedCommit, ConstraintRefused
from holon.model.errors import StoreBrokenError, StoreFullError
from holon.model.values import AgentId
from tests.support.builders import a_commit, an_agent
from tests.support.database_oracle import agent_names
from tests.support.inline_writer import InlineWriter, NoFaults
from tests.support.manual_clock import DAWN, ManualClock
from tests.support.memory_store import memory_connection
from tests.support.sim_loop import SimLoop


class Faults(NoFaults):
    """Faults a test turns on."""

    delay = 0
    full = False
    broken = False

    def delay_ms(self) -> int:
        return self.delay

    def is_full(self) -> bool:
        return self.full

    def breaks(self) -> bool:
        return self.broken


class Desk:
    """A writer with everything around it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.faults = Faults()
        self.connection = memory_connection()
        self.writer = InlineWriter(self.connection, self.clock, self.faults)
        self.groups: list[list[str]] = []
        self.told: list[list[AgentId]] = []
        self.writer.on_group = self._note
        self.writer.observe(self._hear)

    def _note(self, commits: list[AuditedCommit], results: list[Result]) -> None:
        assert len(commits) == len(results)
        self.groups.append([commit.commit_id for commit in commits])

    def _hear(self, touched: Collection[AgentId]) -> None:
        self.told.append(list(touched))

    def agents(self) -> int:
        """How many agents are durable."""
        count = len(agent_names(self.connection))
        return int(str(count))

    def run(self, scene: Coroutine[Any, Any, None]) -> None:
        """Run a scene on virtual time."""
        SimLoop(self.clock, Random(0)).run_life(scene)


def test_commits_submitted_together_are_one_group_and_observers_hear_once() -> None:
    desk = Desk()

    async def scene() -> None:
        tickets = [desk.writer.submit(audited(a_commit(f"c:{n}", an_agent(n)))) for n in ("b", "a")]
        assert [await ticket.outcome() for ticket in tickets] == [Applied(), Applied()]
        assert await desk.writer.submit(audited(a_commit("c:a"))).outcome() == Applied(
            replayed=True
        )

    desk.run(scene())
    assert desk.groups == [["c:b", "c:a"], ["c:a"]]
    assert desk.told == [["a", "b"]]


def test_a_refused_commit_does_not_spoil_its_group() -> None:
    desk = Desk()

    async def scene() -> None:
        first = desk.writer.submit(audited(a_commit("c:1", an_agent("a"))))
        twice = desk.writer.submit(audited(a_commit("c:2", an_agent("a"))))
        other = desk.writer.submit(audited(a_commit("c:3", an_agent("b"))))
        assert await first.outcome() == Applied()
        assert isinstance(await twice.outcome(), ConstraintRefused)
        assert await other.outcome() == Applied()

    desk.run(scene())
    assert desk.agents() == 2


def test_a_slow_disk_makes_everybody_behind_it_wait() -> None:
    desk = Desk()
    desk.faults.delay = 5_000

    async def scene() -> None:
        first = desk.writer.submit(audited(a_commit("c:1", an_agent("a"))))
        await desk.clock.sleep_until(DAWN + timedelta(seconds=1))
        second = desk.writer.submit(audited(a_commit("c:2", an_agent("b"))))
        assert desk.agents() == 0
        await first.outcome()
        await second.outcome()

    desk.run(scene())
    assert desk.clock.now() == DAWN + timedelta(seconds=5)


def test_a_full_disk_writes_nothing_and_may_be_tried_again() -> None:
    desk = Desk()
    desk.faults.full = True

    async def scene() -> None:
        with pytest.raises(StoreFullError):
            await desk.writer.submit(audited(a_commit("c:1", an_agent("a")))).outcome()
        assert desk.agents() == 0
        desk.faults.full = False
        assert (
            await desk.writer.submit(audited(a_commit("c:1", an_agent("a")))).outcome() == Applied()
        )

    desk.run(scene())


def test_a_broken_disk_tells_nobody_what_it_kept() -> None:
    desk = Desk()
    desk.faults.broken = True

    async def scene() -> None:
        with pytest.raises(StoreBrokenError):
            await desk.writer.submit(audited(a_commit("c:1", an_agent("a")))).outcome()

    desk.run(scene())
    assert desk.agents() == 1
    assert desk.told == []


def test_maintenance_runs_between_groups() -> None:
    desk = Desk()

    async def scene() -> None:
        assert await desk.writer.run(desk.agents) == 0
        await desk.writer.close()

    desk.run(scene())
