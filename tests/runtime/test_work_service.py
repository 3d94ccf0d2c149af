"""Work items: rows the runtime follows up on by itself, without stealing anyone's focus."""

from collections.abc import Awaitable, Callable

import msgspec
import pytest

from holon.decide.work.items import WorkItemEdit
from holon.model.errors import BadIdError, RefusalCode, RefusedError
from holon.model.events.event import ClosureDecided
from holon.model.limits import (
    NO_PROGRESS_ACTIVATIONS_COUNT_MAX,
    OBJECTIVE_CHARS_MAX,
    RECHECK_DEFAULT_MS,
)
from holon.model.queue import MessageKind
from holon.model.turns.turn import ClosureOutcome
from holon.model.values import AgentId, WorkItemId
from holon.model.wake import SystemTickEmitted
from holon.model.work import WorkItemRecord, WorkItemState
from tests.runtime.cast import rule, says
from tests.runtime.house import House, run_house
from tests.runtime.records import kept_messages, kept_turns, kept_waits, wait_states
from tests.support.builders import MAIN, a_task

SLOW = rule("slow", says("done", after_ms=60_000))
DAY_MS = 86_400_000


async def item_of(house: House, work_item_id: WorkItemId) -> WorkItemRecord:
    """An item as it stands."""
    item = await house.store.reads.work.work_item(work_item_id)
    assert item is not None
    return item


async def tick_keys(house: House) -> list[str]:
    """What the runtime ticked about, in order."""
    return [e.tick_key for e in await house.events() if isinstance(e, SystemTickEmitted)]


async def make_item(house: House, objective: str) -> WorkItemId:
    """An item in the queue."""
    return (await house.host.work.create(MAIN, objective=objective)).id


@pytest.mark.parametrize("objective", ["", "  \n", "x" * (OBJECTIVE_CHARS_MAX + 1)])
def test_an_objective_says_something_and_not_too_much(objective: str) -> None:
    async def story(house: House) -> None:
        with pytest.raises(RefusedError) as caught:
            await make_item(house, objective)
        assert caught.value.refusal.code is RefusalCode.BAD_OBJECTIVE

    run_house(story)


def test_work_needs_an_agent_that_is_up() -> None:
    async def story(house: House) -> None:
        with pytest.raises(RefusedError) as caught:
            await house.host.work.create(AgentId("nobody"), objective="x")
        assert caught.value.refusal.code is RefusalCode.AGENT_NOT_FOUND
        await house.host.control.stop(MAIN)
        with pytest.raises(RefusedError) as caught:
            await make_item(house, "x")
        assert caught.value.refusal.code is RefusalCode.AGENT_STOPPED

    run_house(story)


@pytest.mark.parametrize("verb", ["focus", "edit", "complete"])
def test_an_item_that_does_not_exist_or_is_over_is_left_alone(verb: str) -> None:
    async def story(house: House) -> None:
        said = (WorkItemEdit(objective="y"),) if verb == "edit" else ()
        handle = getattr(house.host.work, verb)
        with pytest.raises(RefusedError) as caught:
            await handle(WorkItemId("work_9"), *said)
        assert caught.value.refusal.code is RefusalCode.WORK_ITEM_NOT_FOUND
        with pytest.raises(BadIdError):
            await handle(WorkItemId("../work"), *said)
        item_id = await make_item(house, "x")
        await house.host.work.complete(item_id)
        with pytest.raises(RefusedError) as caught:
            await handle(item_id, *said)
        assert caught.value.refusal.code is RefusalCode.WORK_ITEM_COMPLETED

    run_house(story)


@pytest.mark.requirement("runtime:enqueue-never-steals-focus")
def test_enqueueing_work_makes_no_message_and_never_replaces_the_focus() -> None:
    async def story(house: House) -> None:
        current = await make_item(house, "current")
        await house.host.work.focus(current)
        await house.prompt("slow work")
        await house.rest(1_000)
        before = len(kept_messages(house))
        queued = await make_item(house, "queued")
        assert len(kept_messages(house)) == before
        agent = await house.agent()
        assert agent.focus.current_work_item_id == current
        assert agent.focus.open_turn_id is not None, "the running turn was not disturbed"
        await house.rest(DAY_MS)
        assert (await house.agent()).focus.current_work_item_id == current
        assert (await item_of(house, queued)).state is WorkItemState.OPEN

    run_house(story, script=[SLOW])


@pytest.mark.requirement("runtime:idle-agent-continues-its-item")
def test_an_idle_agent_is_ticked_to_continue_its_current_item() -> None:
    async def story(house: House) -> None:
        item_id = await make_item(house, "tidy up")
        await house.host.work.focus(item_id)
        await house.rest(100)
        assert f"Continue the current work item {item_id}: tidy up" in house.model.said()
        assert kept_turns(house)[0].work_item_id == item_id
        [brief, *_] = await house.briefs()
        assert brief.work_item_id == item_id

    run_house(story)


@pytest.mark.requirement("runtime:queued-item-is-offered-not-focused")
def test_a_queued_item_is_offered_without_moving_the_focus() -> None:
    async def story(house: House) -> None:
        item_id = await make_item(house, "tidy up")
        await house.rest(100)
        assert f"Work item {item_id} is ready" in house.model.said()
        assert (await house.agent()).focus.current_work_item_id is None
        closures = [e for e in await house.events() if isinstance(e, ClosureDecided)]
        assert closures[-1].outcome is ClosureOutcome.CONTINUABLE
        assert closures[-1].work_item_id == item_id

    run_house(story)


def test_a_turn_that_ends_without_completion_leaves_its_item_open_and_unchanged() -> None:
    async def story(house: House) -> None:
        item_id = await make_item(house, "tidy up")
        await house.host.work.focus(item_id)
        await house.rest(100)
        item = await item_of(house, item_id)
        assert (item.state, item.revision) == (WorkItemState.OPEN, 1)

    run_house(story, script=[rule("tidy up", says("I have completed everything!"))])


@pytest.mark.requirement("runtime:blocked-work-is-not-activated")
def test_a_blocked_item_is_not_offered_and_gets_its_reminder_once() -> None:
    async def story(house: House) -> None:
        item_id = await make_item(house, "deploy")
        await house.host.work.edit(
            item_id, WorkItemEdit(), blocked_by="review", recheck_after_ms=60_000
        )
        await house.rest(1_000)  # an offer made before the block may still be on its way
        asked_before = len(house.model.requests)
        await house.rest(58_000)
        assert len(house.model.requests) == asked_before
        await house.rest(2_000)
        assert f"{item_id}: blocked by review" in house.model.said()
        item = await item_of(house, item_id)
        assert item.blocked_by == "review", "a reminder clears nothing"
        assert item.recheck_consumed_at is not None
        await house.rest(DAY_MS)
        assert (await tick_keys(house)).count("recheck") == 1

    run_house(story)


@pytest.mark.requirement("work-projection:triggered-blocked")
def test_a_blocked_item_whose_reminder_came_is_shown_first_until_its_blocker_is_refreshed() -> None:
    async def story(house: House) -> None:
        def shown() -> str:
            return msgspec.json.encode(house.model.requests[-1]).decode()

        item_id = await make_item(house, "deploy")
        await house.host.work.edit(
            item_id, WorkItemEdit(), blocked_by="review", recheck_after_ms=60_000
        )
        await house.prompt("hello")
        await house.rest(1_000)
        assert "blocked (1):" in shown()
        assert "triggered_blocked" not in shown()
        await house.rest(60_000)
        assert "triggered_blocked (1):" in shown()
        await house.prompt("hello")
        await house.rest(1_000)
        assert "triggered_blocked (1):" in shown(), "nothing was done about it yet"
        await house.host.work.edit(
            item_id, WorkItemEdit(), blocked_by="review", recheck_after_ms=60_000
        )
        await house.prompt("hello")
        await house.rest(1_000)
        assert "triggered_blocked" not in shown()

    run_house(story)


def test_a_blocker_without_a_moment_gets_one() -> None:
    async def story(house: House) -> None:
        item_id = await make_item(house, "deploy")
        await house.host.work.edit(item_id, WorkItemEdit(), blocked_by="review")
        await house.rest(RECHECK_DEFAULT_MS + 1_000)
        assert (await tick_keys(house))[-1] == "recheck"

    run_house(story)


@pytest.mark.requirement("runtime:recheck-comes-while-waiting-for-the-operator")
def test_a_blocked_item_is_rechecked_even_while_another_waits_for_the_operator() -> None:
    async def story(house: House) -> None:
        stuck = await make_item(house, "never moves")
        await house.host.work.focus(stuck)
        await house.rest(DAY_MS)
        assert wait_states(house) == [("operator", "active")]
        blocked = await make_item(house, "deploy")
        await house.host.work.edit(
            blocked, WorkItemEdit(), blocked_by="review", recheck_after_ms=60_000
        )
        await house.rest(61_000)
        assert f"{blocked}: blocked by review" in house.model.said()

    run_house(story)


def test_rechecks_that_fall_due_together_share_one_tick() -> None:
    async def story(house: House) -> None:
        for name in ("one", "two", "three"):
            item_id = await make_item(house, name)
            await house.host.work.edit(
                item_id, WorkItemEdit(), blocked_by=f"who {name}", recheck_after_ms=60_000
            )
        await house.restart(down_ms=120_000)
        await house.rest(1_000)
        assert (await tick_keys(house)).count("recheck") == 1
        assert all(f"who {name}" in house.model.said() for name in ("one", "two", "three"))

    run_house(story)


def test_unblocking_clears_the_reminder_and_the_item_runs() -> None:
    async def story(house: House) -> None:
        item_id = await make_item(house, "deploy")
        await house.host.work.focus(item_id)
        await house.host.work.edit(
            item_id, WorkItemEdit(), blocked_by="review", recheck_after_ms=60_000
        )
        await house.host.work.edit(
            item_id, WorkItemEdit(), blocked_by="budget", recheck_after_ms=90_000
        )
        assert [wait.state for wait in kept_waits(house)] == [
            "cancelled",
            "active",
        ]
        await house.host.work.edit(item_id, WorkItemEdit(), blocked_by=None)
        assert {wait.state for wait in kept_waits(house)} == {"cancelled"}
        item = await item_of(house, item_id)
        assert (item.blocked_by, item.recheck_at) == (None, None)
        await house.rest(100)
        assert (await tick_keys(house))[-1] == f"work:{item_id}"
        await house.rest(DAY_MS)
        assert "recheck" not in await tick_keys(house)

    run_house(story)


def test_completing_an_item_ends_everything_it_waited_for() -> None:
    async def story(house: House) -> None:
        item_id = await make_item(house, "deploy")
        await house.host.work.edit(
            item_id, WorkItemEdit(), blocked_by="review", recheck_after_ms=60_000
        )
        await house.host.tasks.open(a_task())
        await house.host.tasks.wait_for(a_task().id, work_item_id=item_id)
        await house.host.work.complete(item_id)
        assert {wait.state for wait in kept_waits(house)} == {"cancelled"}
        asked_before = len(house.model.requests)
        await house.rest(DAY_MS)
        assert len(house.model.requests) == asked_before
        assert (await item_of(house, item_id)).state is WorkItemState.COMPLETED

    run_house(story)


def test_an_item_that_waits_for_a_task_is_not_offered_until_the_task_ends() -> None:
    async def story(house: House) -> None:
        item_id = await make_item(house, "deploy")
        await house.host.work.focus(item_id)
        await house.host.tasks.open(a_task())
        await house.host.tasks.wait_for(a_task().id, work_item_id=item_id)
        ticks = len(await tick_keys(house))
        await house.rest(3_600_000)
        assert len(await tick_keys(house)) - ticks <= 1, "one may have been on its way"
        agent = await house.agent()
        assert agent.focus.current_work_item_id == item_id

    run_house(story)


def test_a_moved_item_is_offered_again_at_once() -> None:
    async def story(house: House) -> None:
        item_id = await make_item(house, "deploy")
        await house.host.work.focus(item_id)
        for _ in range(3 * NO_PROGRESS_ACTIVATIONS_COUNT_MAX):
            await house.host.work.edit(item_id, WorkItemEdit())  # any new revision is progress
            await house.rest(10)
        assert len(house.model.requests) >= 3 * NO_PROGRESS_ACTIVATIONS_COUNT_MAX
        assert len(kept_waits(house)) == 0

    run_house(story)


async def change_objective(house: House, item_id: WorkItemId) -> None:
    """The operator asks for less."""
    await house.host.work.edit(item_id, WorkItemEdit(objective="move the hill"))


async def clear_blocker(house: House, item_id: WorkItemId) -> None:
    """The operator says that nothing stands in the way."""
    await house.host.work.edit(item_id, WorkItemEdit(), blocked_by=None)


async def focus_anew(house: House, item_id: WorkItemId) -> None:
    """The operator wants just this item done."""
    await house.host.work.focus(item_id)


async def make_stuck_item(house: House) -> WorkItemId:
    """A focused item that was offered in vain, with the operator asked about it."""
    item_id = await make_item(house, "move the mountain")
    await house.host.work.focus(item_id)
    await house.rest(DAY_MS)
    [wait] = kept_waits(house)
    assert (wait.kind, wait.state, wait.work_item_id) == ("operator", "active", item_id)
    return item_id


@pytest.mark.requirement("scheduling:operators-change-answers-the-question")
@pytest.mark.parametrize("answer", [change_objective, clear_blocker, focus_anew])
def test_an_operator_who_changes_a_stuck_item_has_answered_and_it_is_offered_again(
    answer: Callable[[House, WorkItemId], Awaitable[None]],
) -> None:
    async def story(house: House) -> None:
        item_id = await make_stuck_item(house)
        ticks = await tick_keys(house)
        await answer(house, item_id)
        assert wait_states(house) == [("operator", "resolved")]
        await house.rest(100)
        assert (await tick_keys(house))[len(ticks)] == f"work:{item_id}"

    run_house(story)


@pytest.mark.requirement("scheduling:operators-change-answers-the-question")
def test_an_operator_who_blocks_a_stuck_item_has_answered_and_it_waits_for_the_blocker() -> None:
    async def story(house: House) -> None:
        item_id = await make_stuck_item(house)
        asked_before = len(house.model.requests)
        await house.host.work.edit(
            item_id, WorkItemEdit(), blocked_by="a spade", recheck_after_ms=60_000
        )
        assert wait_states(house) == [
            ("operator", "resolved"),
            ("recheck", "active"),
        ]
        await house.rest(59_000)
        assert len(house.model.requests) == asked_before, "a blocked item is not offered"
        await house.rest(2_000)
        assert (await tick_keys(house))[-1] == "recheck"

    run_house(story)


def test_a_question_about_one_item_is_not_answered_by_what_happens_to_another() -> None:
    async def story(house: House) -> None:
        await make_stuck_item(house)
        other = await make_item(house, "sweep the floor")
        await change_objective(house, other)
        await focus_anew(house, other)
        assert wait_states(house) == [("operator", "active")]

    run_house(story)


def test_completing_a_stuck_item_takes_its_question_back() -> None:
    async def story(house: House) -> None:
        await house.host.work.complete(await make_stuck_item(house))
        assert wait_states(house) == [("operator", "cancelled")]

    run_house(story)


@pytest.mark.requirement("runtime:without-items-messages-drive")
def test_without_work_items_an_idle_agent_stays_idle() -> None:
    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(DAY_MS)
        assert len(house.model.requests) == 1
        assert await tick_keys(house) == []

    run_house(story)


def test_a_work_tick_is_the_runtimes_own_and_waits_behind_people() -> None:
    async def story(house: House) -> None:
        await house.host.control.pause(MAIN)
        item_id = await make_item(house, "deploy")
        await house.host.work.focus(item_id)
        message_id = await house.prompt("hello")
        await house.host.control.resume(MAIN)
        await house.rest(100)
        [first, *_] = await house.briefs()
        assert first.related_message_id == message_id
        entry, *_ = kept_messages(house, kind=MessageKind.SYSTEM_TICK)
        tick = msgspec.to_builtins(entry.message)
        assert tick["origin"] == {"kind": "system", "subsystem": "work_queue"}
        assert (tick["trust"], tick["priority"]) == ("trusted_system", "background")
        assert tick["work_item_id"] == item_id

    run_house(story)
