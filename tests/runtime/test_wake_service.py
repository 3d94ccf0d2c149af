"""Wake hints: signals that may wake an agent, and never interrupt one."""

import msgspec
import pytest

from holon.model.agents import AgentStatus
from holon.model.errors import RefusalCode, RefusedError
from holon.model.events.event import MessageAdmitted
from holon.model.limits import WAKE_HINT_BODY_BYTES_MAX, WAKE_HINT_SOURCES_COUNT_MAX
from holon.model.queue import MessageKind
from holon.model.wake import WakeDisposition
from tests.runtime.cast import rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.records import kept_hints, kept_messages
from tests.support.builders import MAIN

SLOW = rule("slow", says("done", after_ms=10_000))


async def ticks(house: House) -> int:
    """How many system ticks were queued so far."""
    return sum(
        isinstance(event, MessageAdmitted) and event.message_kind is MessageKind.SYSTEM_TICK
        for event in await house.events()
    )


@pytest.mark.requirement("runtime:hint-wakes-an-idle-agent")
def test_an_idle_agent_gets_a_tick_at_once_and_reads_the_body() -> None:
    async def story(house: House) -> None:
        assert await house.hint("forge", body="build 7 failed") is WakeDisposition.TRIGGERED
        await house.rest(1)
        assert await ticks(house) == 1
        assert "build 7 failed" in house.model.said()
        assert kept_hints(house) == []

    run_house(story)


@pytest.mark.requirement("runtime:plain-hint-is-a-sign-of-life")
def test_a_hint_with_a_blank_body_is_a_sign_of_life_too() -> None:
    async def story(house: House) -> None:
        await house.hint("forge", body=" \n")
        await house.rest(1_000)
        assert await ticks(house) == 1
        assert house.model.requests == []

    run_house(story)


@pytest.mark.requirement("runtime:plain-hint-is-a-sign-of-life")
def test_a_hint_without_a_body_is_a_sign_of_life_and_no_turn() -> None:
    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(1_000)
        await house.hint("forge")
        await house.rest(1_000)
        assert await ticks(house) == 1
        second = kept_messages(house)[1]
        assert (second.state, second.settled_reason) == ("processed", "liveness_only")
        assert len(house.model.requests) == 1
        assert len(await house.briefs()) == 1

    run_house(story)


@pytest.mark.requirement("runtime:hint-waits-for-a-busy-agent")
def test_a_busy_agent_is_not_interrupted_and_gets_one_tick_afterwards() -> None:
    async def story(house: House) -> None:
        await house.prompt("slow work")
        await house.rest(1_000)
        assert await house.hint("forge", body="first") is WakeDisposition.PARKED
        assert await house.hint("forge", body="second") is WakeDisposition.COALESCED
        assert await ticks(house) == 0
        await house.rest(60_000)
        assert await ticks(house) == 1
        assert "second" in house.model.said()
        assert len(await house.briefs()) == 2

    run_house(story, script=[SLOW])


@pytest.mark.requirement("runtime:hint-burst-coalesces")
def test_a_burst_of_one_source_is_one_tick_with_its_last_body() -> None:
    async def story(house: House) -> None:
        await house.prompt("slow work")
        await house.rest(1_000)
        for number in range(50):
            await house.hint("forge", body=f"build {number}")
        await house.hint("forge")
        [kept] = kept_hints(house)
        assert kept.revision == 51
        await house.rest(60_000)
        assert await ticks(house) == 1
        assert "build 49" in house.model.said()
        assert "build 48" not in house.model.said()

    run_house(story, script=[SLOW])


@pytest.mark.requirement("runtime:every-source-is-heard")
@pytest.mark.parametrize("restart", [False, True], ids=["", "across a restart"])
def test_three_sources_keep_three_bodies_in_one_tick(restart: bool) -> None:
    async def story(house: House) -> None:
        await house.prompt("slow work")
        await house.rest(1_000)
        for source in ("forge", "mail", "pager"):
            await house.hint(source, body=f"news of {source}")
        if restart:
            await house.restart()
        await house.rest(60_000)
        assert await ticks(house) == 1
        told = house.model.said()
        assert all(f"news of {source}" in told for source in ("forge", "mail", "pager"))

    run_house(story, script=[SLOW])


@pytest.mark.requirement("runtime:wake-does-not-resume")
def test_a_stopped_agent_answers_a_wake_with_the_way_to_resume_it() -> None:
    async def story(house: House) -> None:
        await house.host.control.stop(MAIN)
        with pytest.raises(RefusedError) as caught:
            await house.hint("forge", body="news")
        refusal = caught.value.refusal
        assert refusal.code is RefusalCode.AGENT_STOPPED
        assert refusal.resume_path == "/control/agents/main/resume"
        await house.rest(60_000)
        assert (await house.agent()).posture.status is AgentStatus.STOPPED
        assert kept_hints(house) == []

    run_house(story)


def test_an_unknown_agent_cannot_be_woken() -> None:
    async def story(house: House) -> None:
        with pytest.raises(RefusedError) as caught:
            await house.hint("forge", agent="nobody")
        assert caught.value.refusal.code is RefusalCode.AGENT_NOT_FOUND

    run_house(story)


def test_too_many_sources_are_told_so_and_displace_nobody() -> None:
    async def story(house: House) -> None:
        await house.host.control.pause(MAIN)
        for number in range(WAKE_HINT_SOURCES_COUNT_MAX):
            await house.hint(f"source {number}")
        assert await house.hint("one more", body="x") is WakeDisposition.IGNORED
        assert await house.hint("source 3", body="x") is WakeDisposition.COALESCED
        assert len(kept_hints(house)) == WAKE_HINT_SOURCES_COUNT_MAX
        assert any(
            msgspec.to_builtins(event)["kind"] == "wake_hint_ignored"
            for event in await house.events()
        )

    run_house(story)


def test_an_oversized_hint_is_refused() -> None:
    async def story(house: House) -> None:
        with pytest.raises(RefusedError) as caught:
            await house.hint("forge", body="x" * (WAKE_HINT_BODY_BYTES_MAX + 1))
        assert caught.value.refusal.code is RefusalCode.BODY_TOO_LARGE

    run_house(story)


def test_hints_that_do_not_fit_one_tick_come_in_the_next() -> None:
    async def story(house: House) -> None:
        await house.host.control.pause(MAIN)
        for number in range(5):
            await house.hint(f"s{number}", body=f"<{number}>" + "x" * 200_000)
        await house.host.control.resume(MAIN)
        await house.rest(60_000)
        assert all(house.model.heard(f"<{number}>") for number in range(5))
        assert await ticks(house) > 1

    run_house(story)


@pytest.mark.requirement("runtime:work-does-not-starve-hints")
def test_endless_work_does_not_starve_a_hint() -> None:
    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="endless")
        await house.host.work.focus(item.id)
        await house.rest(1_500)
        await house.hint("forge", body="fresh news")
        await house.rest(1_000)
        assert house.model.heard("fresh news")

    run_house(story)


@pytest.mark.parametrize("seed", range(20))
def test_a_hint_at_the_very_moment_a_turn_ends_is_never_lost(seed: int) -> None:
    async def story(house: House) -> None:
        await house.prompt("slow work")
        await house.rest(10_000)
        await house.hint("forge", body="just in time")
        await house.rest(1_000)
        assert "just in time" in house.model.said()

    run_house(story, script=[SLOW], setup=Setup(seed=seed))
