"""One turn after another: rounds, tools, interjections, and ends of every kind."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from holon.decide.turns.conversation import INTERJECTION_HEADER
from holon.model.agents import AgentStatus
from holon.model.events.briefs import BriefKind
from holon.model.events.event import (
    InterjectionAdmitted,
    MaxOutputRecovery,
    RuntimeErrorRecorded,
    ToolExecutionFailed,
    TurnContextBuilt,
    TurnEnded,
)
from holon.model.limits import (
    INTERJECTIONS_PER_POINT_COUNT_MAX,
    MAX_OUTPUT_CONTINUATIONS_COUNT_MAX,
)
from holon.model.queue import AdmissionContext, DeliverySurface, MessageEnvelope, Priority
from holon.model.turns.transcript import RuntimeFailure
from holon.model.turns.turn import SafePoint, StopReason, TerminalKind
from holon.model.values import AgentId
from tests.runtime.cast import calls, rule, says, webhook_for
from tests.runtime.house import House, run_house
from tests.runtime.records import (
    call_states,
    kept_calls,
    kept_items,
    kept_messages,
    kept_turns,
    message_states,
    unseen_messages,
)
from tests.support.builders import MAIN
from tests.support.fault_store import DiskFault
from tests.support.scripted_provider import FAILURES, ScriptedCall, ScriptedRound

LATER = rule("errand", says("errand run"))  # listed first: what was said before is still in view
TOOL_ROUND = rule("go", calls("Enqueue", text="an errand"), says("done"))


def interject_after_look(house: House, number: int) -> None:
    """Have the operator speak right after the turn has looked for interjections that often."""
    reads = house.store.reads
    honest = reads.queue.interjections
    looks = 0

    async def look(agent_id: AgentId, *, limit: int) -> Sequence[MessageEnvelope]:
        nonlocal looks
        found = await honest(agent_id, limit=limit)
        looks += 1
        if looks == number:
            await house.prompt("wait, one more thing", priority=Priority.INTERJECT)
        return found

    reads.queue.interjections = look  # type: ignore[method-assign]  # the store the host reads from


def test_a_tool_round_trip_ends_in_one_result_brief() -> None:
    async def story(house: House) -> None:
        await house.prompt("go")
        await house.rest(1_000)
        first, second = await house.briefs()
        assert (first.kind, first.text) == (BriefKind.RESULT, "done")
        assert second.text == "errand run"
        [recorded] = kept_calls(house)
        assert (recorded.call.name, recorded.call.state) == ("Enqueue", "succeeded")
        result = house.model.said(1)
        assert '\\"ok\\":true' in result

    run_house(story, script=[LATER, TOOL_ROUND])


@pytest.mark.requirement("console:context-build-is-measured")
def test_the_time_it_takes_to_put_a_prompt_together_is_on_record() -> None:
    async def story(house: House) -> None:
        reads = house.store.reads
        turns, memory = reads.turns.recent_turns, reads.memory.prompted_memory

        async def slow_turns(*asked: Any, **more: Any) -> Any:
            await house.clock.sleep_for(200)
            return await turns(*asked, **more)

        async def slow_memory(*asked: Any, **more: Any) -> Any:
            await house.clock.sleep_for(40)
            return await memory(*asked, **more)

        reads.turns.recent_turns = slow_turns  # type: ignore[method-assign]
        reads.memory.prompted_memory = slow_memory  # type: ignore[method-assign]
        await house.prompt("hello")
        await house.rest(1_000)
        (built,) = [e for e in await house.events() if isinstance(e, TurnContextBuilt)]
        assert built.context_build_ms == 240

    run_house(story, script=[rule("hello", says("hi"))])


@pytest.mark.requirement("runtime:history-comes-with-the-next-turn")
def test_the_next_turn_knows_what_was_said_before_and_who_said_it() -> None:
    async def story(house: House) -> None:
        await house.prompt("my name is Ada")
        await house.rest(1_000)
        await house.webhook("my name is Bob")
        await house.rest(1_000)
        conversation = msgspec.json.encode(house.model.requests[-1].conversation).decode()
        assert "my name is Ada" in conversation
        assert "authority: operator_instruction" in conversation
        assert "authority: external_evidence" in conversation

    run_house(story)


@pytest.mark.requirement("runtime:interjection-enters-at-safe-points")
def test_an_operator_message_enters_at_each_of_the_four_safe_points() -> None:
    entered: set[SafePoint] = set()
    for number in range(1, 8):

        async def story(house: House, number: int = number) -> None:
            interject_after_look(house, number)
            await house.prompt("go")
            await house.rest(1_000)
            admitted = [e for e in await house.events() if isinstance(e, InterjectionAdmitted)]
            entered.update(event.point for event in admitted)
            assert len(admitted) <= 1
            assert house.model.heard(INTERJECTION_HEADER) is bool(admitted)
            assert set(message_states(house)) <= {"processed", "interjected"}

        run_house(story, script=[LATER, TOOL_ROUND])
    assert entered == set(SafePoint)


def test_an_interjection_during_a_model_call_is_answered_in_the_same_turn() -> None:
    async def story(house: House) -> None:
        await house.prompt("think hard")
        await house.rest(1_000)
        await house.prompt("stop thinking", priority=Priority.INTERJECT)
        await house.rest(60_000)
        assert len(kept_turns(house)) == 1
        [brief] = await house.briefs()
        assert brief.text == "as you wish"
        assert INTERJECTION_HEADER in house.model.said()

    script = [
        rule("stop thinking", says("as you wish")),
        rule("think", says("hm", after_ms=10_000)),
    ]
    run_house(story, script=script)


def test_an_interjection_keeps_a_resting_agent_up_in_the_same_turn() -> None:
    async def story(house: House) -> None:
        interject_after_look(house, 1)
        await house.prompt("rest now")
        await house.rest(1_000)
        assert len(kept_turns(house)) == 1
        [brief] = await house.briefs()
        assert brief.text == "here I am"

    script = [rule("one more thing", says("here I am")), rule("rest", calls("Sleep"))]
    run_house(story, script=script)


@pytest.mark.requirement("runtime:only-the-operator-interjects")
def test_a_follow_up_in_the_interject_band_waits_for_its_own_turn() -> None:
    async def story(house: House) -> None:
        await house.prompt("go")
        await house.rest(1_000)
        assert len(kept_turns(house)) == 2
        assert set(message_states(house)) == {"processed"}

    script = [rule("go", calls("Enqueue", text="psst", priority="interject"), says("done"))]
    run_house(story, script=script)


def test_what_else_waits_in_the_interject_band_hides_no_interjection() -> None:
    async def story(house: House) -> None:
        await house.prompt("go")
        await house.rest(1_000)
        for number in range(INTERJECTIONS_PER_POINT_COUNT_MAX):
            event = msgspec.structs.replace(
                webhook_for(f"event {number}"),
                admission=AdmissionContext.LOCAL_PROCESS,
                surface=DeliverySurface.HTTP_CONTROL_PROMPT,  # at its own surface it is refused
                priority=Priority.INTERJECT,
            )
            await house.host.admit(event)
        asked = await house.prompt("wait, one more thing", priority=Priority.INTERJECT)
        await house.rest(60_000)
        assert "wait, one more thing" in house.model.said(1)
        states = {entry.message.id: entry.state for entry in kept_messages(house)}
        assert states[asked] == "interjected"

    run_house(story, script=[rule("go", says("done", after_ms=30_000))])


@pytest.mark.requirement("runtime:cut-answers-are-continued-twice")
def test_a_cut_answer_is_continued_at_most_twice() -> None:
    async def story(house: House) -> None:
        await house.prompt("tell me everything")
        await house.rest(1_000)
        assert len(house.model.requests) == 1 + MAX_OUTPUT_CONTINUATIONS_COUNT_MAX
        [brief] = await house.briefs()
        assert brief.text == "and so on, and so on, and so on, "
        nudges = [e for e in await house.events() if isinstance(e, MaxOutputRecovery)]
        assert len(nudges) == MAX_OUTPUT_CONTINUATIONS_COUNT_MAX

    cut = ScriptedRound(text="and so on, ", stop_reason=StopReason.MAX_TOKENS)
    run_house(story, script=[rule("everything", cut)])


@pytest.mark.requirement("hands:error-object-in-the-log")
def test_a_cut_off_enqueue_is_refused_and_queues_nothing() -> None:
    async def story(house: House) -> None:
        await house.prompt("go")
        await house.rest(1_000)
        assert len(kept_messages(house)) == 1
        assert "truncated_mutation_tool_call" in house.model.said()
        [failed] = [e for e in await house.events() if isinstance(e, ToolExecutionFailed)]
        assert failed.error_kind == "truncated_mutation_tool_call"
        assert failed.tool_error is not None
        assert failed.tool_error.kind == failed.error_kind
        assert failed.tool_error.hint

    maimed = ScriptedRound(
        calls=(ScriptedCall(name="Enqueue", input={"text": "half of"}),),
        stop_reason=StopReason.MAX_TOKENS,
    )
    run_house(story, script=[rule("go", maimed, says("I see"))])


def test_an_unknown_tool_is_answered_and_the_turn_goes_on() -> None:
    async def story(house: House) -> None:
        await house.prompt("go")
        await house.rest(1_000)
        assert "unknown_tool" in house.model.said()
        [brief] = await house.briefs()
        assert brief.text == "sorry"

    run_house(story, script=[rule("go", calls("Imagine", a=1), says("sorry"))])


def test_calls_of_one_round_run_in_order_and_each_gets_its_result() -> None:
    async def story(house: House) -> None:
        await house.prompt("go")
        await house.rest(1_000)
        assert call_states(house) == ["succeeded", "failed", "failed", "succeeded"]
        texts = [b.text for b in await house.briefs()]
        assert texts == ["done", "errand run", "errand run"]

    many = ScriptedRound(
        calls=(
            ScriptedCall(name="Enqueue", input={"text": "errand a"}),
            ScriptedCall(name="Imagine"),
            ScriptedCall(name="Enqueue", input={"text": ""}),
            ScriptedCall(name="Enqueue", input={"text": "errand b"}),
        )
    )
    run_house(story, script=[LATER, rule("go", many, says("done"))])


@pytest.mark.requirement("runtime:failed-turn-is-seen-in-the-foreground")
@pytest.mark.parametrize("code", sorted(FAILURES))
def test_a_provider_failure_is_told_to_the_operator_the_transcript_and_the_log(code: str) -> None:
    async def story(house: House) -> None:
        message_id = await house.prompt("go")
        await house.rest(10_000)
        [brief] = await house.briefs()
        assert brief.kind is BriefKind.FAILURE
        assert brief.related_message_id == message_id
        [told] = [e for e in await house.events() if isinstance(e, RuntimeErrorRecorded)]
        assert told.failure.kind == code
        assert told.timeline is not None
        kinds = [attempt.failure_kind for attempt in told.timeline.attempts]
        assert kinds == [code] * (3 if FAILURES[code].retryable else 1)
        assert told.token_usage is not None
        assert told.token_usage.input_tokens == 10, "the round before the failure was paid for"
        assert told.turn_id is not None
        log = await house.store.reads.turns.turn_log(told.turn_id)
        assert log is not None
        entry = log.entries[-1].data
        assert isinstance(entry, RuntimeFailure)
        assert (entry.timeline, entry.token_usage) == (told.timeline, told.token_usage)
        [ended] = [e for e in await house.events() if isinstance(e, TurnEnded)]
        assert ended.terminal is not TerminalKind.COMPLETED
        assert message_states(house) == ["processed"]
        assert (await house.agent()).posture.status is AgentStatus.ASLEEP

    run_house(story, script=[rule("go", calls("Imagine"), ScriptedRound(fail=code))])


def test_after_a_failed_turn_the_agent_goes_on_with_the_next_message() -> None:
    async def story(house: House) -> None:
        await house.prompt("bad")
        await house.prompt("good")
        await house.rest(10_000)
        assert [b.kind for b in await house.briefs()] == [BriefKind.FAILURE, BriefKind.RESULT]
        conversation = msgspec.json.encode(house.model.requests[-1].conversation).decode()
        assert "this turn ended in failure" in conversation

    run_house(
        story, script=[rule("good", says("fine")), rule("bad", ScriptedRound(fail="timeout"))]
    )


@pytest.mark.requirement("runtime:liveness-only-content-is-shown-later")
def test_a_webhook_that_may_not_run_now_is_shown_at_the_next_turn_once() -> None:
    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="wait for me")
        await house.host.work.focus(item.id)
        await house.rest(86_400_000)  # the item never moves: the agent waits for the operator
        asked = len(house.model.requests)
        await house.webhook("the build is green")
        await house.rest(1_000)
        assert len(house.model.requests) == asked
        assert len(unseen_messages(house)) == 1
        await house.prompt("hello")
        await house.rest(100)
        assert "the build is green" in house.model.said(asked)
        assert "shown to you for the first time" in house.model.said(asked)
        assert len(unseen_messages(house)) == 0

    run_house(story)


@pytest.mark.requirement("runtime:sleep-ends-the-turn")
def test_a_sleep_only_round_ends_the_turn_and_the_agent_is_asleep() -> None:
    async def story(house: House) -> None:
        await house.prompt("good night")
        await house.rest(1_000)
        assert len(house.model.requests) == 1
        agent = await house.agent()
        assert agent.posture.status is AgentStatus.ASLEEP
        assert agent.posture.reason == "tired"
        assert agent.posture.sleeping_until is None
        assert len(await house.briefs()) == 1

    run_house(story, script=[rule("night", calls("Sleep", reason="tired"))])


def test_sleep_beside_another_call_does_not_end_the_turn() -> None:
    both = ScriptedRound(
        calls=(ScriptedCall(name="Sleep"), ScriptedCall(name="Enqueue", input={"text": "x"}))
    )

    async def story(house: House) -> None:
        await house.prompt("go")
        await house.rest(1_000)
        assert (await house.briefs())[0].text == "still here"

    run_house(story, script=[rule("go", both, says("still here"))])


@pytest.mark.parametrize("only", ["claim:", "round:", "tool:", "settle:", "interject:"])
def test_a_full_disk_anywhere_in_a_turn_is_waited_out(only: str) -> None:
    async def story(house: House) -> None:
        house.disk.fault, house.disk.only = DiskFault.FULL, only
        interject_after_look(house, 1)
        await house.prompt("go")
        await house.rest(10_000)
        assert house.disk.refused_count > 0
        assert await house.briefs() == []
        house.disk.fault = DiskFault.NONE
        await house.rest(60_000)
        assert {brief.kind for brief in await house.briefs()} == {BriefKind.RESULT}
        assert call_states(house)[0] == "succeeded"

    run_house(story, script=[LATER, TOOL_ROUND])


def test_a_slow_disk_changes_nothing_but_the_time() -> None:
    async def story(house: House) -> None:
        house.disk.delay_ms = 700
        await house.prompt("go")
        await house.rest(60_000)
        assert [b.text for b in await house.briefs()] == ["done", "errand run"]

    run_house(story, script=[LATER, TOOL_ROUND])


def test_the_last_tool_result_is_durable_before_the_next_round_is() -> None:
    async def story(house: House) -> None:
        house.disk.delay_ms = 700
        await house.prompt("go")
        await house.rest(60_000)
        order = [
            name.split(":")[0]
            for name in house.disk.handed_on
            if "turn_1" in name or name == "settle:msg_1"
        ]
        assert order == ["round", "tool", "settle"]

    run_house(story, script=[LATER, TOOL_ROUND])


@pytest.mark.requirement("turn-complete:previews-are-no-briefs")
@pytest.mark.requirement("turn-complete:no-item-is-made-up")
def test_what_is_said_and_done_along_the_way_makes_neither_a_brief_nor_a_work_item() -> None:
    async def story(house: House) -> None:
        await house.prompt("Please fix the roof by Monday")
        await house.rest(1_000)
        assert [brief.text for brief in await house.briefs()] == ["It is fixed."]
        assert len(kept_items(house)) == 0
        assert (await house.agent()).focus.current_work_item_id is None

    aloud = ScriptedRound(
        text="First I look around.", calls=(ScriptedCall(name="AgentGet", input={}),)
    )
    run_house(story, script=[rule("roof", aloud, aloud, says("It is fixed."))])
