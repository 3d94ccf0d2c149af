"""A store that crashes around one chosen commit, on the chosen side."""

from random import Random

import apsw
import pytest

from holon.decide.events.audit import audited
from holon.model.commits import Applied
from holon.model.events.retention import RetentionPolicy
from tests.support.builders import START, a_commit, an_agent
from tests.support.crash_store import CrashPlan, CrashStore, Side, die
from tests.support.database_oracle import agent_names
from tests.support.inline_writer import InlineWriter, NoFaults
from tests.support.manual_clock import ManualClock
from tests.support.memory_store import memory_connection, memory_store
from tests.support.sim_loop import SimLoop, SimulatedCrash

NAMES = ("a", "b", "c")


def live(connection: apsw.Connection, plan: CrashPlan, *, submit: bool = False) -> list[str]:
    """Create three agents in one life; return the ones the life heard of."""
    heard: list[str] = []
    clock = ManualClock()

    async def life() -> None:
        inner = memory_store(connection, InlineWriter(connection, clock, NoFaults()))
        store = CrashStore(inner, plan)
        for name in NAMES:
            commit = a_commit(f"create:{name}", an_agent(name))
            if submit:
                outcome = await store.submit(audited(commit)).outcome()
            else:
                outcome = await store.apply(audited(commit))
            assert isinstance(outcome, Applied)
            heard.append(name)
        await store.prune(RetentionPolicy(), now=START)
        await store.close()

    SimLoop(clock, Random(0)).run_life(life())
    return heard


def durable(connection: apsw.Connection) -> list[str]:
    """The agents that are on record."""
    return agent_names(connection)


@pytest.mark.parametrize("submit", [False, True], ids=["apply", "submit"])
@pytest.mark.parametrize("at", [2, "create:b"])
@pytest.mark.parametrize(("side", "kept"), [(Side.BEFORE, ["a"]), (Side.AFTER, ["a", "b"])])
def test_the_process_dies_on_the_chosen_side_of_the_chosen_commit(
    at: int | str, side: Side, kept: list[str], submit: bool
) -> None:
    connection, plan = memory_connection(), CrashPlan(at, side)
    with pytest.raises(SimulatedCrash):
        live(connection, plan, submit=submit)
    assert durable(connection) == kept
    assert plan.has_struck


def test_a_plan_strikes_once_and_counts_over_lives() -> None:
    connection, plan = memory_connection(), CrashPlan("create:", Side.BEFORE)
    with pytest.raises(SimulatedCrash):
        live(connection, plan)
    assert live(connection, plan) == list(NAMES)
    assert plan.commit_ids == ["create:a", "create:a", "create:b", "create:c"]


def test_a_plan_that_names_nothing_kills_nobody() -> None:
    connection, plan = memory_connection(), CrashPlan("settle:", Side.AFTER)
    assert live(connection, plan) == list(NAMES)
    assert not plan.has_struck


async def test_on_an_ordinary_loop_dying_is_an_exception() -> None:
    with pytest.raises(SimulatedCrash, match="now"):
        die("now")
