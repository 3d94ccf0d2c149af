"""What turns used, whom a budget holds, and holds that end later than any can."""

from holon.model.agents import AgentStatus
from holon.model.budgets import BudgetHold, BudgetMeasure, BudgetScope, PauseTurns, UnpauseTurns
from holon.model.commits import Change, OpenTurn, QueueMessage
from holon.model.limits import SELF_STARTED_HOLD_MS_MAX, USAGE_STEP_MS
from holon.model.providers.attempts import TokenUsage
from holon.ports.store import Store
from tests.contract.store.steps import (
    HOUR,
    OTHER,
    claimed,
    ended,
    held,
    in_status,
    make,
    open_turn,
    queued,
    settled,
    with_,
)
from tests.support.builders import (
    MAIN,
    START,
    a_message,
    a_turn,
    an_agent,
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


def used(n: int, tokens: int) -> Change:
    """The end of a turn that used so many tokens, each worth a millionth of a dollar."""
    turn = a_turn(f"turn_{n}", message_id=f"msg_{n}", index=n)
    at = moment((n - 1) * USAGE_STEP_MS)
    end = ended(turn, at=at)
    return with_(end, usage=TokenUsage(input_tokens=tokens), cost_micros=tokens)


async def test_what_turns_used_is_added_up_by_agent_and_for_all(store: Store) -> None:
    for n, tokens in ((1, 10), (2, 20), (3, 30)):
        await open_turn(store, n)
        await make(store, used(n, tokens), settled(f"msg_{n}"))
    turn = with_(a_turn("turn_o", message_id="msg_o"), agent_id=OTHER)
    await make(store, an_agent(OTHER), QueueMessage(message=a_message("msg_o", agent_id=OTHER)))
    await make(store, claimed("msg_o", agent_id=OTHER), OpenTurn(turn=turn))
    await make(store, with_(ended(turn), usage=TokenUsage(output_tokens=5)))
    own = await store.reads.budgets.usage(MAIN, since=START)
    assert [(step.turn_count, step.tokens, step.cost_micros) for step in own] == [
        (1, 10, 10),
        (1, 20, 20),
        (1, 30, 30),
    ]
    assert [step.began_at for step in own] == sorted(step.began_at for step in own)
    every = await store.reads.budgets.usage(None, since=START)
    assert [(step.turn_count, step.tokens) for step in every] == [(2, 15), (1, 20), (1, 30)]
    newest = await store.reads.budgets.usage(MAIN, since=moment(2 * USAGE_STEP_MS))
    assert [step.tokens for step in newest] == [30]


async def test_a_used_up_budget_holds_its_agent_until_it_has_room(store: Store) -> None:
    hold = BudgetHold(
        scope=BudgetScope.AGENT,
        measure=BudgetMeasure.TURNS_PER_HOUR,
        used=2,
        allowed=2,
        until=HOUR,
    )
    await make(store, queued("msg_1"), PauseTurns(agent_id=MAIN, hold=hold))
    assert await store.reads.budgets.is_anybody_held()
    assert await store.reads.agents.restless(now=START) == []
    assert await store.reads.wake.next_due_at(after=START) == HOUR
    await make(store, UnpauseTurns(agent_id=MAIN))
    assert not await store.reads.budgets.is_anybody_held()
    assert await store.reads.agents.restless(now=START) == [MAIN]
