"""A provider names a moment: the message waits for it, the agent sleeps, and nothing is lost."""

from datetime import datetime, timedelta

import msgspec
import pytest

from holon.model.agents import AgentStatus
from holon.model.events.briefs import BriefKind
from holon.model.events.event import MessageDeferred, ProviderDeferred, RuntimeErrorRecorded
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import DAY_MS, HOUR_MS, MINUTE_MS
from holon.model.providers.attempts import UsageLimitedError
from holon.model.providers.models import BadModelRefError
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.queue import MessageState, Priority
from holon.model.turns.turn import ModelAnswer, Waiting, WaitingReason
from holon.model.values import later
from holon.ports.clock import Clock
from holon.ports.providers import OnProgress
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.records import kept_calls, kept_messages, message_states, queued_messages
from tests.support.builders import MAIN
from tests.support.database_plants import remove_timers
from tests.support.manual_clock import DAWN, ManualClock
from tests.support.scripted_provider import Script, ScriptedProvider

REOPENS: datetime = DAWN + timedelta(hours=3)
SCRIPT = Script(
    rules=(
        rule("two steps", calls("Enqueue", text="later"), says("both done")),
        rule("hello", says("hello yourself")),
    )
)


class UsedUp:
    """A model whose allowance is spent from its `spent_after`-th answer until it reopens."""

    def __init__(self, clock: Clock, *, spent_after: int = 0, thinks_ms: int = 0) -> None:
        self._thinks_ms = thinks_ms
        self._clock = clock
        self._model = ScriptedProvider(SCRIPT, clock)
        self._left = spent_after
        self._reopens = REOPENS

    def reopen(self) -> None:
        """Take requests again from now on, before the moment that was named."""
        self._reopens = self._clock.now()

    def reopen_at(self, moment: datetime) -> None:
        """Take requests again from another moment on."""
        self._reopens = moment

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Answer, unless the allowance is spent."""
        await self._clock.sleep_until(later(self._clock.now(), by_ms=self._thinks_ms))
        now = self._clock.now()
        if self._left == 0 and now < self._reopens:
            wait_ms = int((self._reopens - now).total_seconds() * 1_000)
            raise UsageLimitedError("the allowance is used up", retry_after_ms=wait_ms)
        self._left = max(0, self._left - 1)
        return await self._model.answer(request, on_progress)


def used_up(*, spent_after: int = 0, thinks_ms: int = 0, deferral: bool = True) -> Setup:
    def model(clock: ManualClock) -> UsedUp:
        return UsedUp(clock, spent_after=spent_after, thinks_ms=thinks_ms)

    return Setup(model=model, deferral_allowed=deferral)


def test_the_message_waits_for_the_moment_and_is_answered_then() -> None:
    async def story(house: House) -> None:
        message_id = await house.prompt("hello")
        await house.rest(MINUTE_MS)
        [brief] = await house.briefs()
        assert brief.kind is BriefKind.ACK
        assert f"{REOPENS:%Y-%m-%d %H:%M} UTC" in brief.text
        assert "used up" in brief.text
        agent = await house.agent()
        assert agent.posture.status is AgentStatus.ASLEEP
        assert agent.posture.sleeping_until == REOPENS
        assert isinstance(agent.last_closure, Waiting)
        assert agent.last_closure.waiting_reason is WaitingReason.AWAITING_TIMER
        entry = await house.store.reads.queue.message(message_id)
        assert entry is not None
        assert entry.state is MessageState.QUEUED
        await house.rest(3 * HOUR_MS)
        assert [b.text for b in await house.briefs()][1:] == ["hello yourself"]
        assert len(house.model.requests) == 2
        entry = await house.store.reads.queue.message(message_id)
        assert entry is not None
        assert entry.state is MessageState.PROCESSED

    run_house(story, setup=used_up())


def test_it_waits_just_as_well_through_a_restart() -> None:
    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(MINUTE_MS)
        await house.restart(down_ms=HOUR_MS)
        await house.rest(MINUTE_MS)
        assert len(house.model.requests) == 1
        await house.rest(2 * HOUR_MS)
        assert (await house.briefs())[-1].text == "hello yourself"

    run_house(story, setup=used_up())


def test_a_moment_that_passed_while_the_host_was_down_is_caught_up_at_once() -> None:
    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(MINUTE_MS)
        await house.restart(down_ms=5 * HOUR_MS)
        await house.rest(1)
        assert (await house.briefs())[-1].text == "hello yourself"

    run_house(story, setup=used_up())


def test_what_the_turn_did_before_is_kept_and_not_done_again() -> None:
    async def story(house: House) -> None:
        await house.prompt("two steps")
        await house.rest(4 * HOUR_MS)
        texts = [brief.text for brief in await house.briefs()]
        assert "both done" in texts
        assert [recorded.call.name for recorded in kept_calls(house)].count("Enqueue") == 2
        assert "put off until" in str(house.model.requests[2].conversation)

    run_house(story, setup=used_up(spent_after=1))


def test_many_messages_at_a_closed_door_make_one_brief() -> None:
    async def story(house: House) -> None:
        await house.prompt("hello one")
        await house.rest(MINUTE_MS)
        await house.prompt("hello two", priority=Priority.BACKGROUND)
        await house.prompt("hello three", priority=Priority.NEXT)
        await house.rest(MINUTE_MS)
        assert len(await house.briefs()) == 1
        deferred = [e for e in await house.events() if isinstance(e, MessageDeferred)]
        assert [event.until for event in deferred] == [REOPENS] * 3
        await house.rest(3 * HOUR_MS)
        assert len(await house.briefs()) == 4
        assert set(message_states(house)) == {"processed"}

    run_house(story, setup=used_up())


def test_work_and_hints_wait_as_well_instead_of_knocking_without_end() -> None:
    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(MINUTE_MS)
        asked = len(house.model.requests)
        await house.host.work.create(MAIN, objective="paint the fence")
        await house.hint("forge", body="something changed")
        await house.rest(2 * HOUR_MS)
        assert len(house.model.requests) == asked
        await house.rest(2 * HOUR_MS)
        assert house.model.heard("something changed")
        assert house.model.heard("paint the fence")

    run_house(story, setup=used_up())


def test_another_model_lets_the_message_go_at_once() -> None:
    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(MINUTE_MS)
        assert len(house.model.requests) == 1
        await house.host.control.set_model(MAIN, "scripted/other")
        await house.rest(MINUTE_MS)
        [_, told] = [e for e in await house.events() if isinstance(e, ProviderDeferred)]
        assert told.timeline is not None
        assert told.timeline.requested_model_ref == "scripted/other"

    run_house(story, setup=used_up())


@pytest.mark.parametrize("bad", ["", "gpt", "no slash", "/x", "a/" + "m" * 600])
def test_a_model_that_is_no_reference_is_refused_and_changes_nothing(bad: str) -> None:
    async def story(house: House) -> None:
        with pytest.raises(BadModelRefError):
            await house.host.control.set_model(MAIN, bad)
        assert (await house.agent()).model.override_model is None

    run_house(story)


def test_a_stopped_agent_takes_the_message_up_when_it_is_resumed() -> None:
    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(MINUTE_MS)
        await house.host.control.stop(MAIN)
        await house.rest(4 * HOUR_MS)
        assert len(house.model.requests) == 1
        await house.host.control.resume(MAIN)
        await house.rest(MINUTE_MS)
        assert (await house.briefs())[-1].text == "hello yourself"

    run_house(story, setup=used_up())


def test_the_attempts_are_on_record_though_nothing_failed() -> None:
    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(MINUTE_MS)
        events = await house.events()
        assert not [e for e in events if isinstance(e, RuntimeErrorRecorded)]
        [told] = [e for e in events if isinstance(e, ProviderDeferred)]
        assert told.until == REOPENS
        assert told.timeline is not None
        assert [a.failure_kind for a in told.timeline.attempts] == ["usage_limit_reached"]

    run_house(story, setup=used_up())


def test_with_deferral_switched_off_the_turn_fails_and_says_why() -> None:
    async def story(house: House) -> None:
        message_id = await house.prompt("hello")
        await house.rest(4 * HOUR_MS)
        [brief] = await house.briefs()
        assert brief.kind is BriefKind.FAILURE
        assert "used up" in brief.text
        assert len(house.model.requests) == 1
        entry = await house.store.reads.queue.message(message_id)
        assert entry is not None
        assert entry.state is MessageState.PROCESSED

    run_house(story, setup=used_up(deferral=False))


def test_an_event_from_outside_that_was_put_off_is_taken_up_at_its_moment() -> None:
    async def story(house: House) -> None:
        await house.webhook("hello from outside")
        await house.rest(MINUTE_MS)
        assert len(house.model.requests) == 1
        await house.rest(3 * HOUR_MS)
        assert (await house.briefs())[-1].text == "hello yourself"

    run_house(story, setup=used_up())


def test_a_tick_that_was_put_off_is_taken_up_and_the_work_goes_on() -> None:
    async def story(house: House) -> None:
        await house.host.work.create(MAIN, objective="say hello")
        await house.rest(HOUR_MS)
        assert len(house.model.requests) == 1
        await house.rest(3 * HOUR_MS)
        assert len(house.model.requests) > 1
        reasons = [entry.settled_reason for entry in kept_messages(house)]
        assert "liveness_only" not in reasons

    run_house(story, setup=used_up())


def test_an_answer_before_the_moment_lets_what_was_put_off_go_at_once() -> None:
    async def story(house: House) -> None:
        await house.prompt("hello one")
        await house.rest(MINUTE_MS)
        back = house.model.model
        assert isinstance(back, UsedUp)
        back.reopen()
        await house.prompt("hello two")
        await house.rest(MINUTE_MS)
        assert [b.text for b in await house.briefs()][1:] == ["hello yourself"] * 2

    run_house(story, setup=used_up())


def test_a_tick_that_is_put_off_after_its_timer_was_cancelled_is_silent() -> None:
    async def story(house: House) -> None:
        timer = await house.host.timers.create(MAIN, after_ms=1_000, every_ms=2 * HOUR_MS)
        await house.rest(10_000)
        assert len(house.model.requests) == 1
        await house.host.timers.cancel(timer.id)  # its tick is in hand: the turn goes on
        await house.rest(4 * HOUR_MS)
        assert len(house.model.requests) == 1
        assert len(queued_messages(house)) == 0

    run_house(story, setup=used_up(thinks_ms=30_000))


def test_an_event_that_comes_while_another_message_is_put_off_is_kept_and_shown_then() -> None:
    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(MINUTE_MS)
        await house.webhook("the gate is open")
        await house.rest(MINUTE_MS)
        assert len(house.model.requests) == 1
        await house.rest(3 * HOUR_MS)
        assert house.model.heard("the gate is open")

    run_house(story, setup=used_up())


@pytest.mark.requirement("scheduling-large:rest-costs-nothing")
def test_an_agent_whose_tick_was_put_off_is_not_looked_at_before_its_moment() -> None:
    async def story(house: House) -> None:
        await house.host.work.create(MAIN, objective="say hello")
        await house.rest(HOUR_MS)
        reads, now = house.store.reads, house.clock.now()
        assert await reads.wake.due_activations(now, limit=10) == []
        assert await reads.agents.restless(now=now) == []
        assert await reads.wake.due_activations(REOPENS, limit=10) == [MAIN]
        assert await reads.agents.restless(now=REOPENS) == [MAIN]

    run_house(story, setup=used_up())


def test_a_clock_that_was_set_back_leaves_a_put_off_message_with_its_moment() -> None:
    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(MINUTE_MS)
        house.clock.jump(-DAY_MS)
        await house.rest(DAY_MS)
        assert len(house.model.requests) == 1
        await house.rest(4 * HOUR_MS)
        assert (await house.briefs())[-1].text == "hello yourself"

    run_house(story, setup=used_up())


AGED = RetentionPolicy(age_ms=30 * MINUTE_MS, events_count_min=5, turns_count_min=2)


def used_up_for(days: int) -> Setup:
    def model(clock: ManualClock) -> UsedUp:
        spent = UsedUp(clock)
        spent.reopen_at(DAWN + timedelta(days=days))
        return spent

    return Setup(model=model, retention=AGED)


def test_a_tick_that_was_put_off_for_days_outlives_its_timer() -> None:
    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=1_000, summary="hello")
        await house.rest(4 * DAY_MS)
        assert (await house.briefs())[-1].text == "hello yourself"

    run_house(story, setup=used_up_for(days=3))


def test_a_tick_whose_timer_is_not_there_any_more_is_taken_up_all_the_same() -> None:
    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=1_000, summary="hello")
        await house.rest(MINUTE_MS)
        remove_timers(house.connection)
        await house.rest(4 * HOUR_MS)
        assert (await house.briefs())[-1].text == "hello yourself"

    run_house(story, setup=used_up())


def test_a_message_that_was_put_off_is_known_as_such_however_old_its_turn_is() -> None:
    async def story(house: House) -> None:
        put_off = await house.webhook("hello from outside")
        for number in range(4):
            await house.prompt(f"hello {number}")
            await house.rest(MINUTE_MS)
        await house.rest(2 * HOUR_MS)
        entry = await house.store.reads.queue.message(put_off)
        assert entry is not None
        assert entry.was_put_off
        await house.rest(HOUR_MS)
        assert [b.text for b in await house.briefs()][-5:] == ["hello yourself"] * 5

    run_house(story, setup=msgspec.structs.replace(used_up(), retention=AGED))
