"""The operator's hand on an agent: create, stop, pause, resume, abort, choose a model."""

from contextlib import suppress

import pytest

from holon.model.agents import AgentStatus
from holon.model.errors import BadIdError, RefusalCode, RefusedError
from holon.model.events.briefs import BriefKind
from holon.model.events.event import ControlApplied, TurnStarted
from holon.model.limits import HOUR_MS
from holon.model.queue import Priority
from holon.model.values import AgentId
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.records import agents_of, call_states, kept_messages, message_states
from tests.support.builders import MAIN, a_hint, an_identity

SLOW = rule("slow", says("done at last", after_ms=60_000))
QUICK = rule("quick", says("done"))  # listed first: an aborted turn's prompt is still in view


def _code(caught: "pytest.ExceptionInfo[RefusedError]") -> RefusalCode:
    return caught.value.refusal.code


def test_an_agent_is_created_once() -> None:
    async def story(house: House) -> None:
        with pytest.raises(RefusedError) as caught:
            await house.host.control.create_agent(an_identity())
        assert _code(caught) is RefusalCode.AGENT_EXISTS
        with pytest.raises(BadIdError):
            await house.host.control.create_agent(an_identity("../main"))
        assert agents_of(house) == [MAIN]

    run_house(story)


@pytest.mark.requirement("admission:control-makes-no-message")
def test_what_the_operator_arranges_is_an_event_and_no_message() -> None:
    async def story(house: House) -> None:
        await house.host.control.create_agent(an_identity("helper"))
        await house.host.timers.create(MAIN, after_ms=HOUR_MS, summary="tea")
        await house.rest(1_000)
        assert kept_messages(house) == []
        assert [type(e).__name__ for e in await house.events("helper")] == ["AgentCreated"]
        assert [type(e).__name__ for e in await house.events()][-1] == "TimerCreated"

    run_house(story)


@pytest.mark.parametrize("verb", ["stop", "pause", "resume", "abort_run"])
def test_an_unknown_agent_cannot_be_steered(verb: str) -> None:
    async def story(house: House) -> None:
        with pytest.raises(RefusedError) as caught:
            await getattr(house.host.control, verb)(AgentId("nobody"))
        assert _code(caught) is RefusalCode.AGENT_NOT_FOUND
        with pytest.raises(RefusedError):
            await house.host.control.set_model(AgentId("nobody"), "lab/m")

    run_house(story)


def test_an_archived_agent_takes_nothing_from_anyone() -> None:
    async def story(house: House) -> None:
        host = house.host
        assert await host.control.archive(MAIN, reason="over")
        asked = (
            *(getattr(host.control, verb)(MAIN) for verb in ("stop", "pause", "resume")),
            host.control.set_model(MAIN, "lab/m"),
            host.timers.create(MAIN, after_ms=1),
            host.work.create(MAIN, objective="more"),
            host.wake.submit(a_hint()),
            host.triggers.ensure(MAIN),
            house.prompt("quick"),
        )
        for each in asked:
            with pytest.raises(RefusedError) as caught:
                await each
            assert _code(caught) is RefusalCode.AGENT_ARCHIVED
        assert not await host.control.archive(AgentId("nobody"), reason="over")
        assert [type(e).__name__ for e in await house.events()] == ["AgentCreated", "AgentArchived"]

    run_house(story)


@pytest.mark.requirement("runtime:stop-ends-the-turn-at-once")
@pytest.mark.parametrize("verb", ["stop", "pause", "abort_run"])
def test_a_running_turn_is_aborted_with_exactly_one_failure_brief(verb: str) -> None:
    async def story(house: House) -> None:
        message_id = await house.prompt("slow work")
        await house.rest(1_000)
        await getattr(house.host.control, verb)(MAIN)
        [brief] = await house.briefs()
        assert brief.kind is BriefKind.FAILURE
        assert brief.related_message_id == message_id
        assert message_states(house) == ["aborted"]
        assert (await house.agent()).focus.open_turn_id is None
        await house.rest(120_000)
        assert len(await house.briefs()) == 1, "the cut-off lane wrote nothing more"
        assert len(house.model.requests) == 1

    run_house(story, script=[SLOW])


@pytest.mark.requirement("runtime:stop-ends-the-turn-at-once")
def test_a_stop_between_a_call_and_its_result_leaves_the_call_answered() -> None:
    script = [rule("go", calls("Enqueue", text="later"), says("x", after_ms=60_000))]

    async def story(house: House) -> None:
        await house.prompt("go")
        await house.rest(1_000)
        await house.host.control.stop(MAIN)
        assert call_states(house) == ["succeeded"]
        assert [(entry.message.kind, entry.state) for entry in kept_messages(house)] == [
            ("operator_prompt", "aborted"),
            ("internal_followup", "queued"),
        ]

    run_house(story, script=script)


def test_a_stop_fences_the_lane_with_a_new_generation() -> None:
    async def story(house: House) -> None:
        await house.prompt("slow work")
        await house.rest(1_000)
        held = (await house.agent()).generation
        await house.host.control.stop(MAIN)
        assert (await house.agent()).generation > held
        applied = [e for e in await house.events() if isinstance(e, ControlApplied)]
        assert [event.action for event in applied] == ["stop"]

    run_house(story, script=[SLOW])


@pytest.mark.requirement("runtime:resume-restores-a-live-loop")
def test_a_stopped_agent_keeps_its_queue_and_runs_it_after_a_resume() -> None:
    async def story(house: House) -> None:
        await house.prompt("slow work")
        waiting = await house.prompt("quick work")
        await house.rest(1_000)
        await house.host.control.stop(MAIN)
        await house.restart(down_ms=3_600_000)
        await house.rest(60_000)
        assert (await house.agent()).posture.status is AgentStatus.STOPPED
        assert len(house.model.requests) == 1
        await house.host.control.resume(MAIN)
        await house.rest(60_000)
        assert (await house.briefs())[-1].related_message_id == waiting
        assert (await house.agent()).posture.status is AgentStatus.ASLEEP

    run_house(story, script=[QUICK, SLOW])


@pytest.mark.requirement("runtime:paused-agent-keeps-its-mail")
def test_a_paused_agent_admits_but_runs_nothing_until_it_is_resumed() -> None:
    async def story(house: House) -> None:
        await house.host.control.pause(MAIN)
        message_id = await house.prompt("hello", priority=Priority.INTERJECT)
        await house.hint("forge", body="news")
        timer = await house.host.timers.create(MAIN, after_ms=1_000)
        await house.restart()
        await house.rest(3_600_000)
        assert house.model.requests == []
        assert (await house.agent()).posture.status is AgentStatus.PAUSED
        await house.host.control.resume(MAIN)
        await house.rest(60_000)
        assert (await house.briefs())[0].related_message_id == message_id
        assert house.model.heard(timer.id)
        assert house.model.heard("news")
        assert len(house.model.requests) == 3

    run_house(story)


def test_a_control_that_has_no_row_in_the_lifecycle_is_refused() -> None:
    async def story(house: House) -> None:
        await house.host.control.stop(MAIN)
        with pytest.raises(RefusedError) as caught:
            await house.host.control.pause(MAIN)
        assert _code(caught) is RefusalCode.TRANSITION_FORBIDDEN

    run_house(story)


@pytest.mark.parametrize("verb", ["stop", "pause"])
def test_who_asks_for_what_is_so_already_changes_nothing(verb: str) -> None:
    async def story(house: House) -> None:
        control = house.host.control
        for each in (control.resume, getattr(control, verb)):
            await each(MAIN)
            before, told = await house.agent(), await house.events()
            await each(MAIN)
            assert (await house.agent(), await house.events()) == (before, told)

    run_house(story)


def test_starting_an_agent_that_runs_leaves_its_turn_alone() -> None:
    async def story(house: House) -> None:
        await house.prompt("slow work")
        await house.rest(1_000)
        await house.host.control.resume(MAIN)
        await house.rest(120_000)
        [brief] = await house.briefs()
        assert brief.text == "done at last"

    run_house(story, script=[SLOW])


def test_aborting_without_a_run_is_refused() -> None:
    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(1_000)
        with pytest.raises(RefusedError) as caught:
            await house.host.control.abort_run(MAIN)
        assert _code(caught) is RefusalCode.NO_CURRENT_RUN

    run_house(story)


def test_an_aborted_agent_goes_on_with_the_next_message() -> None:
    async def story(house: House) -> None:
        await house.prompt("slow work")
        following = await house.prompt("quick work")
        await house.rest(1_000)
        await house.host.control.abort_run(MAIN)
        await house.rest(1_000)
        assert (await house.briefs())[-1].related_message_id == following
        assert (await house.agent()).posture.status is AgentStatus.ASLEEP

    run_house(story, script=[QUICK, SLOW])


@pytest.mark.requirement("runtime:model-override-is-for-future-turns")
def test_a_model_override_does_not_disturb_the_running_turn() -> None:
    async def story(house: House) -> None:
        await house.prompt("slow work")
        await house.rest(1_000)
        held = (await house.agent()).generation
        await house.host.control.set_model(MAIN, "other/model")
        assert (await house.agent()).generation == held
        await house.rest(120_000)
        [brief] = await house.briefs()
        assert (brief.kind, brief.text) == (BriefKind.RESULT, "done at last")
        assert (await house.agent()).model.override_model == "other/model"
        await house.restart()
        assert (await house.agent()).model.override_model == "other/model"
        await house.host.control.set_model(MAIN, None)
        assert (await house.agent()).model.override_model is None

    run_house(story, script=[SLOW])


@pytest.mark.parametrize("verb", ["stop", "pause", "abort_run"])
@pytest.mark.parametrize("seed", range(8))
def test_a_control_that_meets_the_end_of_the_turn_wins_or_loses_whole(verb: str, seed: int) -> None:
    """Whoever commits first settles the turn; the other finds it settled."""

    async def story(house: House) -> None:
        await house.prompt("quick work")
        await house.rest(100)
        with suppress(RefusedError):  # there may be nothing left to abort
            await getattr(house.host.control, verb)(MAIN)
        await house.rest(1_000)
        started = [e for e in await house.events() if isinstance(e, TurnStarted)]
        assert len(await house.briefs()) == len(started) == 1

    run_house(story, script=[rule("quick", says("done", after_ms=100))], setup=Setup(seed=seed))
