"""Lanes start on news alone; the backstop is there for bugs, and counts them."""

from collections import Counter

import anyio
import pytest
from anyio.lowlevel import checkpoint

from holon.decide.work.items import WorkItemEdit
from holon.model.limits import BACKSTOP_GRACE_MS, BACKSTOP_INTERVAL_MS, DAY_MS
from holon.model.queue import Priority
from holon.model.values import AgentId
from holon.ports.journal import LogLevel
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.notes import Notes
from tests.runtime.records import message_states, queued_messages
from tests.support.builders import MAIN, an_identity

LIVELY = [
    rule("nap", calls("Sleep", duration_ms=90_000)),
    rule("errand", calls("Enqueue", text="nap"), says("sent", after_ms=500)),
    rule("slow", says("done", after_ms=45_000)),
]


@pytest.mark.requirement("runtime:nobody-needs-rescue")
@pytest.mark.parametrize("seed", range(3))
def test_a_long_eventful_run_needs_no_rescue(seed: int) -> None:
    async def story(house: House) -> None:
        agents = (MAIN, AgentId("ada"), AgentId("bob"))
        for agent in agents[1:]:
            await house.host.control.create_agent(an_identity(agent))
        for number in range(10):
            agent = agents[number % 3]
            await house.prompt("errand", agent=agent)
            await house.prompt("slow", agent=agent, priority=Priority.BACKGROUND)
            await house.host.timers.create(agent, after_ms=70_000)
            await house.hint(f"s{number}", body="news", agent=agent)
            await house.rest(13_000)
            if number % 4 == 3:
                await house.restart()
        await house.rest(3_600_000)
        assert len(queued_messages(house)) == 0

    assert run_house(story, script=LIVELY, setup=Setup(seed=seed)).rescue_count == 0


@pytest.mark.requirement("runtime:backstop-rescues-and-counts")
def test_a_forgotten_agent_is_rescued_and_the_rescue_is_counted() -> None:
    async def story(house: House) -> None:
        deaf = house.host._scheduler
        hear = deaf.commit_applied
        deaf.commit_applied = lambda touched: None  # type: ignore[method-assign]  # the bug
        await house.prompt("hello")
        deaf.commit_applied = hear  # type: ignore[method-assign]
        await house.rest(1_000)
        assert house.model.requests == []
        await house.rest(BACKSTOP_INTERVAL_MS + BACKSTOP_GRACE_MS)
        assert len(house.model.requests) == 1
        assert house.host.rescue_count == 1

    notes = Notes()
    run_house(story, setup=Setup(rescue_count=1, journal=notes))
    [note] = notes.of("agent_overlooked")
    assert (note.level, note.about["agent_id"]) == (LogLevel.ERROR, "main")


def test_an_agent_that_is_merely_slow_is_not_rescued() -> None:
    async def story(house: House) -> None:
        await house.prompt("slow")
        await house.rest(600_000)
        assert len(house.model.requests) == 1

    run_house(story, script=[rule("slow", says("done", after_ms=400_000))])


def test_work_that_rests_by_right_is_not_rescued() -> None:
    """Paused queues, blocked items and questions to the operator are no reason to wake anyone."""

    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="stuck")
        await house.host.work.focus(item.id)
        blocked = await house.host.work.create(MAIN, objective="blocked")
        await house.host.work.edit(
            blocked.id, WorkItemEdit(), blocked_by="x", recheck_after_ms=10 * DAY_MS
        )
        await house.host.control.create_agent(an_identity("held"))
        await house.host.control.pause(AgentId("held"))
        await house.prompt("hello", agent="held")
        await house.rest(DAY_MS)

    run_house(story)


@pytest.mark.requirement("daemon:drain-claims-nothing")
def test_a_host_that_drains_ends_the_turn_that_runs_and_claims_nothing_more() -> None:
    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity("other"))
        sent = [await house.prompt("slow")]
        await house.rest(100)
        sent.append(await house.prompt("behind it"))
        await house.host.drain()
        sent.append(await house.prompt("after it"))
        elsewhere = await house.prompt("to somebody at rest", agent="other")
        await house.rest(10 * BACKSTOP_INTERVAL_MS)
        assert [brief.related_message_id for brief in await house.briefs()] == sent[:1]
        assert Counter(message_states(house)) == {"processed": 1, "queued": 3}
        await house.restart()
        await house.rest(60_000)
        assert [brief.related_message_id for brief in await house.briefs()] == sent
        assert [brief.related_message_id for brief in await house.briefs("other")] == [elsewhere]

    run_house(story, script=[rule("slow", says("done", after_ms=1_000))])


def test_news_that_comes_while_a_lane_looks_is_not_lost() -> None:
    """A commit lands after the rows were read and before the lane has ended."""

    async def story(house: House) -> None:
        reads = house.store.reads
        honest = reads.agents.snapshot
        sent = False

        async def look(agent_id: AgentId, *, now: object) -> object:
            nonlocal sent
            found = await honest(agent_id, now=now)  # type: ignore[arg-type]
            if not sent and found is not None and not found.heads:
                sent = True
                await house.prompt("right after the look")
            return found

        reads.agents.snapshot = look  # type: ignore[method-assign,assignment]
        house.host._scheduler.commit_applied([MAIN])
        await house.rest(1)
        assert len(house.model.requests) == 1

    run_house(story)


@pytest.mark.parametrize("seed", range(10))
def test_an_interrupted_lane_leaves_its_news_behind(seed: int) -> None:
    async def story(house: House) -> None:
        await house.prompt("slow")
        await house.rest(100)
        await house.prompt("quick", priority=Priority.NEXT)
        await house.host.control.abort_run(MAIN)
        await house.rest(100)
        assert len(queued_messages(house)) == 0

    script = [rule("quick", says("ok")), LIVELY[2]]
    run_house(story, script=script, setup=Setup(seed=seed))


def test_the_backstop_lets_others_go_on_between_two_agents() -> None:
    async def story(house: House) -> None:
        names = [AgentId(name) for name in ("ada", "bob", "cy")]
        for name in names:
            await house.host.control.create_agent(an_identity(name))
        reads = house.store.reads
        honest, seen = reads.agents.snapshot, list[str]()

        async def restless(*, now: object) -> list[AgentId]:
            return names

        async def look(agent_id: AgentId, *, now: object) -> object:
            seen.append(agent_id)
            return await honest(agent_id, now=now)  # type: ignore[arg-type]

        async def another() -> None:
            while "cy" not in seen:
                seen.append("another")
                await checkpoint()

        reads.agents.restless = restless  # type: ignore[method-assign]
        reads.agents.snapshot = look  # type: ignore[method-assign,assignment]
        async with anyio.create_task_group() as both:
            both.start_soon(another)
            both.start_soon(house.host._scheduler._overlooked)
        assert "another" in seen[seen.index("ada") : seen.index("cy")]

    run_house(story)
