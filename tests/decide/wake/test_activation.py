"""What an agent does next, from its rows: the order of reasons and the brake on vain work."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holon.decide.queue.message_view import hint_tick_body
from holon.decide.wake.activation import (
    ActivationDecision,
    AskOperator,
    ContinueActive,
    EmitHintTick,
    EmitRecheckTick,
    OfferQueued,
    Rest,
    RestUntil,
    RunQueue,
    StayInactive,
    decide_activation,
)
from holon.model.agents import AgentStatus, TurnRateState
from holon.model.events.reads import AgentSnapshot, WeighedItem
from holon.model.limits import (
    MESSAGE_BODY_BYTES_MAX,
    NO_PROGRESS_ACTIVATIONS_COUNT_MAX,
    NO_PROGRESS_BACKOFF_MS_MAX,
    NO_PROGRESS_BACKOFF_MS_MIN,
    WAKE_HINT_BODY_BYTES_MAX,
)
from holon.model.values import WorkItemId
from holon.model.wake import WaitKind
from holon.model.work import ActivationMemory, PlanStatus, WorkItemState
from tests.decide.sample_rows import (
    HEAD,
    HINT,
    ITEM,
    MEMORY,
    MESSAGE_ID,
    NOW,
    agent_in,
    seconds,
    wait_of,
    weighed,
)

vary = msgspec.structs.replace
IDLE = AgentSnapshot(agent=agent_in(AgentStatus.AWAKE_IDLE))
CURRENT, QUEUED, LATER = weighed("work_1"), weighed("work_2"), weighed("work_3")
BLOCKED = weighed("work_9", blocked=True)
HELD_MEMORY = vary(MEMORY, no_progress_count=3, not_before=NOW + seconds(4))
HELD = weighed("work_1", activation=HELD_MEMORY)
EVERYTHING = vary(
    IDLE,
    heads=(HEAD,),
    hints=(HINT,),
    current=CURRENT,
    queued=(QUEUED, LATER),
    due_rechecks=(BLOCKED,),
)
NOT_RUNNABLE = [
    pytest.param(BLOCKED, id="blocked"),
    pytest.param(
        WeighedItem(item=vary(ITEM, plan_status=PlanStatus.NEEDS_INPUT)), id="waiting for operator"
    ),
    pytest.param(WeighedItem(item=vary(ITEM, state=WorkItemState.COMPLETED)), id="completed"),
    pytest.param(WeighedItem(item=ITEM, waits=(wait_of(WaitKind.TASK),)), id="waiting for a task"),
]


def fresh_memory(item: WeighedItem) -> ActivationMemory:
    return vary(MEMORY, work_item_id=item.item.id)


def decide(snapshot: AgentSnapshot, *, after_s: float = 0) -> ActivationDecision:
    return decide_activation(snapshot, now=NOW + seconds(after_s))


# --- order ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        pytest.param(EVERYTHING, RunQueue(), id="messages before everything"),
        pytest.param(
            vary(EVERYTHING, heads=()), EmitHintTick(hints=(HINT,)), id="hints before work"
        ),
        pytest.param(
            vary(EVERYTHING, heads=(), hints=()),
            ContinueActive(item=CURRENT, memory=fresh_memory(CURRENT)),
            id="current work before queued work",
        ),
        pytest.param(
            vary(EVERYTHING, heads=(), hints=(), current=BLOCKED),
            OfferQueued(item=QUEUED, memory=fresh_memory(QUEUED)),
            id="the oldest queued work before rechecks",
        ),
        pytest.param(
            vary(EVERYTHING, heads=(), hints=(), current=BLOCKED, queued=(BLOCKED,)),
            EmitRecheckTick(items=(BLOCKED,)),
            id="rechecks before rest",
        ),
        pytest.param(vary(IDLE, current=BLOCKED, queued=(BLOCKED,)), Rest(), id="nothing to do"),
        pytest.param(vary(IDLE, claimed_message_id=MESSAGE_ID), RunQueue(), id="a claim in hand"),
    ],
)
def test_the_first_reason_to_act_decides(
    snapshot: AgentSnapshot, expected: ActivationDecision
) -> None:
    assert decide(snapshot) == expected


@pytest.mark.requirement("scheduling:down-means-down")
@pytest.mark.parametrize("status", [AgentStatus.BOOTING, AgentStatus.PAUSED, AgentStatus.STOPPED])
def test_an_agent_that_is_down_stays_down_whatever_waits(status: AgentStatus) -> None:
    snapshot = vary(EVERYTHING, agent=agent_in(status), claimed_message_id=MESSAGE_ID)
    assert decide(snapshot) == StayInactive(status=status)


@pytest.mark.requirement("scheduling:work-ticks-only-when-idle")
@pytest.mark.parametrize(
    "busy",
    [
        pytest.param(vary(EVERYTHING, claimed_message_id=MESSAGE_ID), id="queued and claimed"),
        pytest.param(EVERYTHING, id="queued"),
        pytest.param(vary(EVERYTHING, heads=(), claimed_message_id=MESSAGE_ID), id="claimed"),
    ],
)
def test_no_tick_is_made_while_there_are_messages(busy: AgentSnapshot) -> None:
    assert decide(busy) == RunQueue()


@pytest.mark.requirement("wake:eligible-agent-turns-hints-into-a-tick")
@pytest.mark.requirement("scheduling:work-never-starves-hints")
@pytest.mark.parametrize(
    "status", [AgentStatus.AWAKE_IDLE, AgentStatus.ASLEEP, AgentStatus.AWAITING_TASK]
)
def test_parked_hints_become_one_tick_before_any_work(status: AgentStatus) -> None:
    hints = (HINT, vary(HINT, source_key="forge"))
    snapshot = vary(EVERYTHING, agent=agent_in(status), heads=(), hints=hints)
    assert decide(snapshot) == EmitHintTick(hints=hints)


@given(st.lists(st.integers(0, WAKE_HINT_BODY_BYTES_MAX - 2), min_size=1, max_size=20))
def test_a_hint_tick_takes_no_more_hints_than_a_message_can_hold(sizes_bytes: list[int]) -> None:
    hints = tuple(
        vary(HINT, source_key=f"source_{place}", body="x" * size_bytes)
        for place, size_bytes in enumerate(sizes_bytes)
    )
    left = hints
    while left:
        decision = decide(vary(IDLE, hints=left))
        assert isinstance(decision, EmitHintTick)
        assert decision.hints == left[: len(decision.hints)]
        assert len(msgspec.json.encode(hint_tick_body(decision.hints))) <= MESSAGE_BODY_BYTES_MAX
        left = left[len(decision.hints) :]


def test_a_hint_too_large_for_any_tick_is_still_handed_over_alone() -> None:
    huge = vary(HINT, description="x" * MESSAGE_BODY_BYTES_MAX)
    assert decide(vary(IDLE, hints=(huge, HINT))) == EmitHintTick(hints=(huge,))


@pytest.mark.requirement("scheduling:idle-agent-continues-its-item")
@pytest.mark.parametrize("status", [AgentStatus.AWAKE_IDLE, AgentStatus.ASLEEP])
def test_an_idle_or_sleeping_agent_goes_on_with_its_runnable_item(status: AgentStatus) -> None:
    decision = decide(vary(IDLE, agent=agent_in(status), current=CURRENT, queued=(QUEUED,)))
    assert decision == ContinueActive(item=CURRENT, memory=fresh_memory(CURRENT))


@pytest.mark.requirement("scheduling:queued-item-is-offered")
@pytest.mark.parametrize("current", [pytest.param(None, id="no focus"), *NOT_RUNNABLE])
def test_without_a_runnable_focus_the_first_runnable_queued_item_is_offered(
    current: WeighedItem | None,
) -> None:
    decision = decide(vary(IDLE, current=current, queued=(BLOCKED, QUEUED, LATER)))
    assert decision == OfferQueued(item=QUEUED, memory=fresh_memory(QUEUED))


@pytest.mark.requirement("scheduling:only-runnable-items-are-activated")
@pytest.mark.parametrize("item", NOT_RUNNABLE)
def test_an_item_that_is_not_runnable_activates_nothing(item: WeighedItem) -> None:
    assert decide(vary(IDLE, current=item)) == Rest()
    assert decide(vary(IDLE, queued=(item,))) == Rest()


@pytest.mark.requirement("scheduling:no-items-no-ticks")
@pytest.mark.parametrize("status", [AgentStatus.AWAKE_IDLE, AgentStatus.ASLEEP])
def test_without_work_items_an_agent_just_waits_for_messages(status: AgentStatus) -> None:
    assert decide(vary(IDLE, agent=agent_in(status))) == Rest()


def test_a_reminder_of_a_blocker_keeps_while_the_runtime_has_given_up() -> None:
    given_up = vary(IDLE.agent, pace=TurnRateState(gave_up=True))
    assert decide(vary(IDLE, agent=given_up, due_rechecks=(BLOCKED,))) == Rest()
    assert decide(vary(IDLE, due_rechecks=(BLOCKED,))) == EmitRecheckTick(items=(BLOCKED,))


@pytest.mark.requirement("scheduling:due-rechecks-share-one-tick")
def test_all_due_rechecks_share_one_tick_and_unblock_nothing() -> None:
    other = weighed("work_8", blocked=True)
    decision = decide(vary(IDLE, current=BLOCKED, due_rechecks=(BLOCKED, other)))
    assert decision == EmitRecheckTick(items=(BLOCKED, other))


# --- the brake ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "count", "backoff_s"),
    [
        pytest.param(None, 0, 0, id="first offer"),
        pytest.param(MEMORY, 1, 1, id="first vain offer"),
        pytest.param(vary(MEMORY, no_progress_count=1), 2, 2, id="second"),
        pytest.param(vary(MEMORY, no_progress_count=6), 7, 64, id="last before asking"),
        pytest.param(vary(MEMORY, revision_seen=0, no_progress_count=6), 0, 0, id="the item moved"),
        pytest.param(
            vary(HELD_MEMORY, revision_seen=0), 0, 0, id="the item moved while it was held"
        ),
        pytest.param(
            vary(HELD_MEMORY, last_at=NOW + seconds(1)),
            4,
            8,
            id="the clock went back to before the last offer",
        ),
    ],
)
def test_the_memory_that_goes_with_an_offer(
    memory: ActivationMemory | None, count: int, backoff_s: int
) -> None:
    item = weighed(activation=memory)
    remembered = vary(MEMORY, no_progress_count=count, not_before=NOW + seconds(backoff_s))
    assert decide(vary(IDLE, current=item)) == ContinueActive(item=item, memory=remembered)


def test_a_held_item_is_not_offered_before_its_moment() -> None:
    assert decide(vary(IDLE, current=HELD), after_s=3.999) == RestUntil(moment=NOW + seconds(4))
    assert isinstance(decide(vary(IDLE, current=HELD), after_s=4), ContinueActive)


def test_the_agent_rests_until_the_first_held_item_is_free() -> None:
    sooner = weighed("work_2", activation=vary(HELD_MEMORY, not_before=NOW + seconds(2)))
    snapshot = vary(IDLE, current=HELD, queued=(BLOCKED, sooner))
    assert decide(snapshot) == RestUntil(moment=NOW + seconds(2))


def test_a_held_item_does_not_hold_back_the_others() -> None:
    assert decide(vary(IDLE, current=HELD, queued=(QUEUED,))) == OfferQueued(
        item=QUEUED, memory=fresh_memory(QUEUED)
    )
    assert decide(vary(IDLE, current=HELD, due_rechecks=(BLOCKED,))) == EmitRecheckTick(
        items=(BLOCKED,)
    )


@pytest.mark.parametrize("is_current", [True, False], ids=["current", "queued"])
def test_after_too_many_vain_offers_the_operator_is_asked_and_the_count_starts_afresh(
    is_current: bool,
) -> None:
    spent = vary(MEMORY, no_progress_count=NO_PROGRESS_ACTIVATIONS_COUNT_MAX - 1)
    item = weighed(activation=spent)
    snapshot = vary(IDLE, current=item) if is_current else vary(IDLE, queued=(item,))
    assert decide(snapshot) == AskOperator(item=item, memory=MEMORY)


@pytest.mark.requirement("scheduling:no-item-keeps-an-agent-alive-for-ever")
def test_an_item_that_never_moves_is_offered_a_bounded_number_of_times() -> None:
    item, now, offers = weighed(), NOW, 0
    for _ in range(100):
        match decide_activation(vary(IDLE, current=item), now=now):
            case ContinueActive(memory=memory):
                offers += 1
                item = weighed(activation=memory)
            case RestUntil(moment=moment):
                assert now < moment
                now = moment
            case AskOperator():
                break
            case other:
                pytest.fail(f"unexpected {other}")
    assert offers == NO_PROGRESS_ACTIVATIONS_COUNT_MAX
    pauses_ms = sum(NO_PROGRESS_BACKOFF_MS_MIN << step for step in range(offers - 1))
    assert now == NOW + seconds(pauses_ms / 1_000)


@given(
    count=st.integers(0, NO_PROGRESS_ACTIVATIONS_COUNT_MAX - 2),
    moved=st.booleans(),
    held_ms=st.integers(0, NO_PROGRESS_BACKOFF_MS_MAX),
    elapsed_ms=st.integers(0, NO_PROGRESS_BACKOFF_MS_MAX),
)
def test_an_offer_is_never_early_and_its_pause_never_past_the_limit(
    count: int, moved: bool, held_ms: int, elapsed_ms: int
) -> None:
    memory = vary(
        MEMORY,
        revision_seen=0 if moved else 1,
        no_progress_count=count,
        not_before=NOW + seconds(held_ms / 1_000),
    )
    decision = decide(vary(IDLE, queued=(weighed(activation=memory),)), after_s=elapsed_ms / 1_000)
    if not moved and elapsed_ms < held_ms:
        assert decision == RestUntil(moment=memory.not_before)
        return
    assert isinstance(decision, OfferQueued)
    pause = decision.memory.not_before - decision.memory.last_at
    assert seconds(0) <= pause <= seconds(NO_PROGRESS_BACKOFF_MS_MAX / 1_000)
    assert decision.memory.no_progress_count == (0 if moved else count + 1)


@given(st.permutations(["work_1", "work_2", "work_3"]), st.integers(0, 3))
def test_items_are_offered_in_the_order_they_are_given(
    names: list[str], blocked_count: int
) -> None:
    items = tuple(weighed(name, blocked=place < blocked_count) for place, name in enumerate(names))
    decision = decide(vary(IDLE, queued=items))
    if blocked_count == len(names):
        assert decision == Rest()
    else:
        assert isinstance(decision, OfferQueued)
        assert decision.item.item.id == WorkItemId(names[blocked_count])
