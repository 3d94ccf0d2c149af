"""The runtime's own ticks: queued once, with what belongs to them, or not at all."""

from collections.abc import Callable

import msgspec
import pytest

from holon.decide.wake import ticks
from holon.decide.work.items import WorkItemEdit
from holon.model.limits import HOUR_MS
from holon.model.queue import MessageKind
from holon.model.values import AgentId, WaitId
from holon.model.wake import SystemTickEmitted
from holon.runtime.turns.lane import Lane
from tests.runtime.cast import calls, hint_for, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.records import (
    held_until,
    kept_hints,
    kept_messages,
    kept_waits,
    queued_messages,
    unseen_messages,
)
from tests.support.builders import MAIN
from tests.support.crash_store import CrashPlan, CrashStore, Side

SLOW = rule("slow", says("done", after_ms=60_000))


@pytest.mark.requirement("runtime:ticks-are-the-runtimes-own")
def test_no_tool_lets_a_model_make_a_tick() -> None:
    async def story(house: House) -> None:
        await house.prompt("tick yourself")
        await house.rest(1_000)
        [request, *_] = house.model.requests
        offered = [(tool.name, str(tool.input_schema)) for tool in request.tools]
        assert {"Sleep", "Enqueue"} <= {name for name, _ in offered}
        assert not [name for name, schema in offered if "tick" in f"{name} {schema}".lower()]
        ticks = [e for e in await house.events() if isinstance(e, SystemTickEmitted)]
        assert ticks == []
        assert [entry.message.kind for entry in kept_messages(house)[1:]] == ["internal_followup"]

    script = [
        rule("tick yourself", calls("SystemTick"), calls("Enqueue", text="system_tick"), says("ok"))
    ]
    run_house(story, script=script)


@pytest.mark.requirement("scheduling:only-runnable-items-are-activated")
def test_an_offer_that_was_held_back_is_silent_once_its_item_is_over() -> None:
    async def story(house: House) -> None:
        items = [await house.host.work.create(MAIN, objective=f"job {n}") for n in range(4)]
        for _ in range(2_000):  # the brake holds an offer back once enough of them were vain
            if queued_messages(house):
                break
            await house.rest(500)
        assert queued_messages(house)
        asked_count = len(house.model.requests)
        for item in items:
            await house.host.work.complete(item.id)
        await house.rest(HOUR_MS)
        assert queued_messages(house) == []
        assert len(house.model.requests) == asked_count
        assert unseen_messages(house) == [], "nor is it shown later"

    run_house(story, script=[rule("", says("hm"))])


@pytest.mark.parametrize("side", list(Side))
def test_a_crash_around_a_tick_neither_loses_nor_repeats_a_hint(side: Side) -> None:
    plan = CrashPlan("tick:", side)

    async def story(house: House) -> None:
        await house.hint("forge", body="news")
        await house.rest(60_000)
        assert len(house.deaths) == 1
        [entry] = kept_messages(house)
        assert (entry.message.kind, entry.state) == ("system_tick", "processed")
        assert kept_hints(house) == []
        assert house.model.heard("news")

    run_house(story, setup=Setup(wrap=lambda store: CrashStore(store, plan)))


@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("number", range(1, 5))
def test_a_crash_around_any_commit_of_a_reminder_neither_loses_nor_repeats_it(
    side: Side, number: int
) -> None:
    plan = CrashPlan(0, side)

    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="deploy")
        await house.host.work.edit(
            item.id, WorkItemEdit(), blocked_by="review", recheck_after_ms=60_000
        )
        await house.rest(59_000)
        plan.at = len(plan.commit_ids) + number  # the tick, its claim, its settlement
        await house.rest(HOUR_MS)
        assert plan.has_struck is (number < 4)
        ticks = [e.tick_key for e in await house.events() if isinstance(e, SystemTickEmitted)]
        assert ticks.count("recheck") == 1
        assert house.model.heard("blocked by review")
        assert [wait.state for wait in kept_waits(house)] == ["resolved"]

    run_house(story, setup=Setup(wrap=lambda store: CrashStore(store, plan)))


def test_a_newer_hint_that_comes_in_meanwhile_is_not_swallowed() -> None:
    """The rows move between the look and the tick; the tick is decided anew."""

    async def story(house: House) -> None:
        reads = house.store.reads
        honest = reads.queue.admission_target
        sent = False

        async def late(agent_id: AgentId) -> object:
            nonlocal sent
            if not sent:
                sent = True
                await house.hint("forge", body="newer")
            return await honest(agent_id)

        reads.queue.admission_target = late  # type: ignore[method-assign,assignment]
        await house.hint("forge", body="older")
        await house.rest(1_000)
        assert house.model.heard("newer")
        assert kept_hints(house) == []

    run_house(story)


async def hold_back_a_blank_tick(house: House) -> None:
    """Have hints come in that only say that a wait is over, until the brake holds one back."""
    for _ in range(60):
        blank = hint_for("x", body=None, agent=MAIN, now=house.clock.now())
        await house.host.wake.submit(msgspec.structs.replace(blank, wait_id=WaitId("wait_1")))
        await house.rest(50)
        if held_until(house):
            return
    raise AssertionError("nothing was held back")


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[AgentId]:
    """Every look of a lane at its rows; a lane that spins does not get away with it."""
    seen: list[AgentId] = []
    honest = Lane._look

    async def counted(lane: Lane, agent_id: AgentId, before_look: Callable[[], None]) -> object:
        seen.append(agent_id)
        assert len(seen) < 10_000, "the lane spins"
        return await honest(lane, agent_id, before_look)

    monkeypatch.setattr(Lane, "_look", counted)
    return seen


@pytest.mark.usefixtures("looks")
def test_news_is_handed_over_while_a_blank_tick_is_held_back() -> None:
    async def story(house: House) -> None:
        await hold_back_a_blank_tick(house)
        await house.hint("forge", body="news")
        await house.rest(500)
        assert house.model.heard("news")
        assert len(queued_messages(house)) == 1, "the blank one still waits"
        await house.rest(HOUR_MS)
        assert queued_messages(house) == []

    run_house(story)


def test_a_tick_that_has_no_place_lets_the_lane_rest_and_comes_when_there_is_one(
    monkeypatch: pytest.MonkeyPatch, looks: list[AgentId]
) -> None:
    monkeypatch.setattr(ticks, "NEWS", ticks.BLANK_HINTS)  # so that one is in the way

    async def story(house: House) -> None:
        await hold_back_a_blank_tick(house)
        looks.clear()
        await house.hint("forge", body="news")
        await house.rest(500)
        assert 0 < len(looks) < 5
        assert not house.model.heard("news")
        await house.rest(HOUR_MS)
        assert house.model.heard("news"), "what was put off is not lost"
        assert kept_hints(house) == []

    run_house(story)


def test_a_queue_that_is_full_puts_the_tick_off(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(house: House) -> None:
        await house.host.control.pause(MAIN)
        await house.hint("forge", body="news")
        monkeypatch.setattr("holon.decide.queue.admission.QUEUED_PER_AGENT_COUNT_MAX", 0)
        await house.host.control.resume(MAIN)
        await house.rest(1_000)
        assert house.model.requests == []
        monkeypatch.undo()
        await house.prompt("hello")
        await house.rest(1_000)
        assert house.model.heard("news")

    run_house(story)


def test_a_tick_says_where_it_comes_from() -> None:
    async def story(house: House) -> None:
        await house.hint("forge", body="news")
        await house.rest(1_000)
        [entry] = kept_messages(house)
        tick = msgspec.to_builtins(entry.message)
        assert tick["kind"] == MessageKind.SYSTEM_TICK
        assert tick["origin"] == {"kind": "system", "subsystem": "wake_hint"}
        assert tick["authority_class"] == "runtime_instruction"
        [hint] = tick["body"]["value"]["wake_hints"]
        assert (hint["source_key"], hint["body"]) == ("forge", "news")

    run_house(story)
