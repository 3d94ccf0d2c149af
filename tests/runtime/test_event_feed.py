"""Following an agent's log: no gap, no repeat, and no silent skipping."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import timedelta
from functools import partial

import anyio
import pytest

from holon.model.events.event import AuditEvent
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import EVENT_PAGE_COUNT_DEFAULT, HOUR_MS
from holon.model.values import AgentId
from holon.runtime.events.feed import (
    GATHER_MS,
    CursorAheadError,
    CursorLostError,
    SubscriberLaggedError,
    require_kept,
)
from tests.runtime.cast import rule, says
from tests.runtime.house import House, Setup, run_house
from tests.support.builders import MAIN, an_identity


async def newest(house: House) -> int:
    """The newest event's number."""
    return (await house.store.reads.events.event_bounds(MAIN))[1]


async def drain(events: AsyncIterator[AuditEvent], seen: list[int]) -> None:
    """Note events one by one, for as long as they come."""
    async for event in events:
        seen.append(event.event_seq)  # noqa: PERF401 - somebody looks on while they come


async def read(house: House, *, after: int, upto: int) -> list[int]:
    """Follow from a cursor until an event number is reached."""
    seen: list[int] = []
    async with aclosing(house.host.events.follow(MAIN, after=after)) as events:
        async for event in events:
            seen.append(event.event_seq)
            if event.event_seq >= upto:
                break
    return seen


@pytest.mark.requirement("runtime:log-is-followed-without-a-gap")
def test_a_follower_sees_every_event_once_and_in_order_across_restarts() -> None:
    async def story(house: House) -> None:
        seen: list[int] = []
        for number in range(5):
            await house.prompt(f"n {number}")
            await house.rest(1_000)
            cursor = seen[-1] if seen else 0
            seen += await read(house, after=cursor, upto=await newest(house))
            await house.restart()
        assert seen == list(range(1, len(seen) + 1))
        assert len(seen) > 30

    run_house(story)


def test_a_live_follower_is_woken_by_each_commit() -> None:
    async def story(house: House) -> None:
        seen: list[int] = []

        async def follow() -> None:
            async with aclosing(house.host.events.follow(MAIN, after=0)) as events:
                await drain(events, seen)

        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            for number in range(20):
                await house.prompt(f"n {number}")
                await house.rest(10)
                assert seen == list(range(1, await newest(house) + 1))
            group.cancel_scope.cancel()
        assert len(seen) > EVENT_PAGE_COUNT_DEFAULT
        assert house.host.events._followers == {}, "nobody is remembered who has left"

    run_house(story)


@pytest.mark.parametrize(("page_count", "waits"), [(EVENT_PAGE_COUNT_DEFAULT, True), (2, False)])
def test_a_reader_at_the_end_lets_a_moment_pass_and_one_that_is_behind_does_not(
    monkeypatch: pytest.MonkeyPatch, page_count: int, waits: bool
) -> None:
    monkeypatch.setattr("holon.runtime.events.feed.EVENT_PAGE_COUNT_DEFAULT", page_count)

    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(100)
        with house.host.events.reader(MAIN, after=0) as reader:
            assert await reader.page()
            before = house.clock.now()
            await reader.gather()
            assert house.clock.now() - before == timedelta(milliseconds=GATHER_MS if waits else 0)

    run_house(story)


def test_a_follower_who_falls_behind_is_told_and_never_skipped_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holon.runtime.events.feed.FEED_LAG_EVENTS_MAX", 10)
    monkeypatch.setattr("holon.runtime.events.feed.EVENT_PAGE_COUNT_DEFAULT", 4)

    async def story(house: House) -> None:
        start = await newest(house)
        async with aclosing(house.host.events.follow(MAIN, after=start)) as events:
            await house.prompt("n 0")
            first = await anext(events)
            assert first.event_seq == start + 1
            for number in range(5):
                await house.prompt(f"n {number}")
                await house.rest(100)
            seen: list[int] = []
            with pytest.raises(SubscriberLaggedError) as caught:
                await drain(events, seen)
        assert seen == list(range(first.event_seq + 1, first.event_seq + 1 + len(seen)))
        assert caught.value.hint is not None
        again = await read(house, after=await newest(house) - 5, upto=await newest(house))
        assert len(again) == 5

    run_house(story)


def test_a_cursor_whose_events_were_pruned_is_lost_and_says_so() -> None:
    policy = RetentionPolicy(age_ms=1, events_count_min=1, turns_count_min=1)

    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(1_000)
        await house.rest(700_000)
        floor, last = await house.store.reads.events.event_bounds(MAIN)
        assert 0 < floor < last
        with pytest.raises(CursorLostError):
            await read(house, after=0, upto=last)
        assert await read(house, after=floor, upto=last) == list(range(floor + 1, last + 1))

    run_house(story, setup=Setup(retention=policy))


@pytest.mark.parametrize(
    ("cursor", "error"), [(0, CursorLostError), (2, CursorLostError), (11, CursorAheadError)]
)
def test_a_cursor_is_lost_when_it_was_pruned_or_is_of_the_future(
    cursor: int, error: type[CursorLostError]
) -> None:
    with pytest.raises(error):
        require_kept(MAIN, cursor, floor=3, newest=10)


@pytest.mark.parametrize("cursor", [3, 10])
def test_a_cursor_at_either_end_of_what_is_kept_is_good(cursor: int) -> None:
    require_kept(MAIN, cursor, floor=3, newest=10)


@pytest.mark.parametrize("agent", [MAIN, AgentId("nobody")])
def test_a_cursor_in_the_future_is_refused(agent: AgentId) -> None:
    async def story(house: House) -> None:
        with pytest.raises(CursorLostError):
            await anext(house.host.events.follow(agent, after=10_000))

    run_house(story)


def test_the_end_of_a_follower_does_not_disturb_the_others() -> None:
    async def story(house: House) -> None:
        seen: list[int] = []

        async def follow(count: int) -> None:
            async with aclosing(house.host.events.follow(MAIN, after=0)) as events:
                async for event in events:
                    seen.append(event.event_seq)
                    if len(seen) >= count:
                        return

        async with anyio.create_task_group() as group:
            group.start_soon(follow, 3)
            group.start_soon(partial(follow, 1_000))
            await house.prompt("hello")
            await house.rest(1_000)
            group.cancel_scope.cancel()
        assert set(range(1, await newest(house) + 1)) <= set(seen)

    run_house(story, script=[rule("hello", says("hi"))])


def test_a_reader_of_all_sees_every_agent_in_the_order_of_the_log() -> None:
    async def story(house: House) -> None:
        seen: list[int] = []
        with house.host.events.log_reader(after=0) as reader:
            for number in range(3):
                await house.prompt(f"n {number}")
                await house.rest(1_000)
                await reader.news()
                while page := await reader.page():
                    seen += [event.log_seq for event in page]
            assert house.host.events.follower_count == 1
        assert seen == sorted(set(seen))
        assert seen[-1] == await house.store.reads.events.last_log_seq()
        assert house.host.events.follower_count == 0

    run_house(story)


@pytest.mark.requirement("runtime:log-is-followed-without-a-gap")
def test_a_reader_of_all_is_told_of_what_was_pruned_and_one_that_has_read_on_is_not() -> None:
    """One agent keeps its few events; around them, those of another one go."""
    policy = RetentionPolicy(age_ms=HOUR_MS, events_count_min=30, turns_count_min=1)
    quiet = AgentId("quiet")

    async def story(house: House) -> None:
        reads, feed = house.store.reads, house.host.events
        await house.host.control.create_agent(an_identity(quiet))
        for number in range(3):
            await house.prompt(f"n {number}")
            await house.rest(10)
        await house.prompt("hello", agent=quiet)
        await house.rest(10)
        start = await reads.events.last_log_seq()
        for number in range(20):
            await house.prompt(f"n {number}")
            await house.rest(10)
        end = await reads.events.last_log_seq()
        with feed.log_reader(after=end) as live, feed.log_reader(after=start) as behind:
            await house.rest(2 * HOUR_MS)
            kept = [event.log_seq for event in await reads.events.log_after(0, limit=512)]
            holes = sorted(set(range(1, end + 1)) - set(kept))
            assert min(kept) < start < max(holes) < end, "there is a hole in the middle"
            for cursor in (0, min(kept), start, max(holes) - 1):
                with pytest.raises(CursorLostError):
                    await feed.require_log_kept(cursor)
            for cursor in (max(holes), max(holes) + 1, end):
                await feed.require_log_kept(cursor)
            with pytest.raises(CursorLostError):
                await behind.page()
            await house.prompt("still there?")
            await house.rest(10)
            told = [event.log_seq for event in await live.page()]
            assert told == list(range(end + 1, await reads.events.last_log_seq() + 1))

    run_house(story, setup=Setup(retention=policy))


def test_a_reader_of_all_comes_to_a_hole_page_by_page_and_not_past_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holon.runtime.events.feed.EVENT_PAGE_COUNT_DEFAULT", 2)

    async def story(house: House) -> None:
        for number in range(2):
            await house.prompt(f"n {number}")
            await house.rest(10)
        honest, hole = house.store.reads.events.log_after, 6

        async def holed(log_seq: int, *, limit: int) -> list[AuditEvent]:
            found = await honest(log_seq, limit=limit + 1)
            return [event for event in found if event.log_seq != hole][:limit]

        house.store.reads.events.log_after = holed  # type: ignore[method-assign]
        seen: list[int] = []
        with house.host.events.log_reader(after=0) as reader:
            for _ in range(2):
                seen += [event.log_seq for event in await reader.page()]
            with pytest.raises(CursorLostError):
                await reader.page()
        assert seen == [1, 2, 3, 4]

    run_house(story)


def test_a_log_number_from_the_future_is_told_apart() -> None:
    async def story(house: House) -> None:
        with house.host.events.log_reader(after=10_000) as reader, pytest.raises(CursorAheadError):
            await reader.page()

    run_house(story)
