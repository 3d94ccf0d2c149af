"""A store whose disk fails on demand, and works otherwise."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random

import apsw
import pytest

from holon.decide.events.audit import audited
from holon.model.commits import Applied
from holon.model.errors import StoreBrokenError, StoreBusyError, StoreError, StoreFullError
from holon.model.events.retention import RetentionPolicy
from tests.support.builders import MAIN, START, a_commit, an_agent
from tests.support.database_oracle import agent_names
from tests.support.fault_store import DiskFault, FaultStore
from tests.support.inline_writer import InlineWriter, NoFaults
from tests.support.manual_clock import DAWN, ManualClock
from tests.support.memory_store import memory_connection, memory_store
from tests.support.sim_loop import SimLoop

CREATE = a_commit("create:main", an_agent())


def run(act: Callable[[FaultStore, apsw.Connection], Awaitable[None]]) -> ManualClock:
    """Run a scene on virtual time and return its clock."""
    clock = ManualClock()

    async def life() -> None:
        connection = memory_connection()
        writer = InlineWriter(connection, clock, NoFaults())
        await act(FaultStore(memory_store(connection, writer), clock), connection)

    SimLoop(clock, Random(0)).run_life(life())
    return clock


def agents(connection: apsw.Connection) -> int:
    """How many agents are on record."""
    return len(agent_names(connection))


@pytest.mark.parametrize(
    ("fault", "error", "kept"),
    [
        (DiskFault.FULL, StoreFullError, 0),
        (DiskFault.SWAMPED, StoreBusyError, 0),
        (DiskFault.BROKEN_AND_LOST, StoreBrokenError, 0),
        (DiskFault.BROKEN_BUT_KEPT, StoreBrokenError, 1),
    ],
)
def test_a_fault_raises_what_it_should_and_keeps_what_it_says(
    fault: DiskFault, error: type[StoreError], kept: int
) -> None:
    async def act(store: FaultStore, connection: apsw.Connection) -> None:
        store.fault = fault
        with pytest.raises(error):
            await store.apply(audited(CREATE))
        assert agents(connection) == kept
        with pytest.raises(error):
            await store.prune(RetentionPolicy(), now=START)
        store.fault = DiskFault.NONE
        assert await store.apply(audited(CREATE)) == Applied(replayed=bool(kept))
        await store.prune(RetentionPolicy(), now=START)
        assert store.refused_count == 1
        assert await store.reads.agents.agent(MAIN) is not None
        await store.close()

    run(act)


def test_a_fault_may_be_limited_to_some_commits() -> None:
    async def act(store: FaultStore, connection: apsw.Connection) -> None:
        store.fault, store.only = DiskFault.FULL, "settle:"
        await store.apply(audited(CREATE))
        await store.prune(RetentionPolicy(), now=START)
        with pytest.raises(StoreFullError):
            await store.apply(audited(a_commit("settle:msg_1")))

    run(act)


def test_a_delay_holds_back_the_answer_and_not_the_write() -> None:
    async def act(store: FaultStore, connection: apsw.Connection) -> None:
        told: list[int] = []
        store.observe(lambda touched: told.append(len(touched)))
        store.delay_ms = 3_000
        await store.apply(audited(CREATE))
        assert told == [1]

    assert run(act).now() == DAWN + timedelta(seconds=3)
