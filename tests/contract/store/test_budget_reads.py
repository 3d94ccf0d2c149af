"""What turns used, whom a budget holds, and holds that end later than any can."""

from holon.model.agents import AgentStatus
from holon.model.limits import SELF_STARTED_HOLD_MS_MAX
from holon.ports.store import Store
from tests.contract.store.steps import held, in_status, make, queued
from tests.support.builders import (
    MAIN,
    START,
    moment,
)


async def test_a_hold_that_ends_later_than_any_can_is_void(store: Store) -> None:
    await make(store, queued("msg_1"))
    await make(store, held(until_ms=SELF_STARTED_HOLD_MS_MAX))
    slowed = await store.reads.agents.snapshot(MAIN, now=START)
    assert slowed is not None
    assert (slowed.heads, slowed.slowed_until) == ((), moment(SELF_STARTED_HOLD_MS_MAX))
    assert await store.reads.budgets.void_holds(now=START) == []
    assert await store.reads.agents.restless(now=START) == []
    back = moment(-1)
    void = await store.reads.agents.snapshot(MAIN, now=back)
    assert void is not None
    assert [head.message_id for head in void.heads] == ["msg_1"]
    assert void.slowed_until is None
    assert await store.reads.budgets.void_holds(now=back) == [MAIN]
    assert await store.reads.agents.restless(now=back) == [MAIN]
    await make(store, in_status(AgentStatus.PAUSED))
    assert await store.reads.budgets.void_holds(now=back) == []
