"""A store from its opening to its end: what it keeps, and what it still takes."""

from collections.abc import Collection

import pytest

from holon.decide.events.audit import audited
from holon.model.commits import Applied
from holon.model.errors import StoreClosedError
from holon.model.values import AgentId
from holon.ports.store import Store
from tests.contract.store.implementations import Opener
from tests.contract.store.steps import OTHER, make, noted, queued
from tests.support.builders import MAIN, START, a_commit, a_message, an_admission, an_agent


async def test_a_store_that_is_well_has_no_problems_and_may_be_looked_at(store: Store) -> None:
    assert list(store.problems) == []
    await store.look()
    await make(store, noted())
    await store.look()
    assert list(store.problems) == []


async def test_closing_finishes_what_was_submitted_and_takes_nothing_more(opener: Opener) -> None:
    store = opener()
    tickets = [
        store.submit(audited(commit))
        for commit in (a_commit("birth", an_agent()), an_admission(a_message()))
    ]
    await store.close()
    assert [await ticket.outcome() for ticket in tickets] == [Applied()] * 2
    late = audited(a_commit("late", an_agent("late")))
    with pytest.raises(StoreClosedError):
        store.submit(late)
    with pytest.raises(StoreClosedError):
        await store.apply(late)
    await store.close()  # closing twice is closing once


async def test_what_was_applied_is_there_when_the_home_is_opened_again(opener: Opener) -> None:
    first = opener()
    birth = audited(a_commit("birth", an_agent()))
    await first.apply(birth)
    await make(first, queued("msg_1"))
    before = await first.reads.agents.snapshot(MAIN, now=START)
    await first.close()
    again = opener()
    assert await again.reads.agents.snapshot(MAIN, now=START) == before
    assert await again.apply(birth) == Applied(replayed=True)
    await again.close()


async def test_an_outcome_may_be_asked_for_more_than_once(store: Store) -> None:
    ticket = store.submit(audited(an_admission(a_message())))
    assert await ticket.outcome() == Applied()
    assert await ticket.outcome() == Applied()


async def test_reading_touches_no_agent(store: Store) -> None:
    told: list[Collection[AgentId]] = []
    store.observe(told.append)
    first = await store.reads.agents.snapshot(MAIN, now=START)
    assert await store.reads.agents.snapshot(MAIN, now=START) == first
    assert told == []


async def test_every_observer_is_told_of_every_agent_that_was_touched(store: Store) -> None:
    told: list[set[AgentId]] = [set(), set()]
    for each in told:
        store.observe(each.update)
    await make(store, an_agent(OTHER))
    await make(store, noted(), noted(OTHER))
    assert told == [{MAIN, OTHER}] * 2
