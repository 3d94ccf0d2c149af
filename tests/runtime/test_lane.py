"""One agent's loop: which message is next, what it amounts to, and what a bug costs."""

import msgspec
import pytest

from holon.decide.work.items import WorkItemEdit
from holon.model.agents import AgentStatus
from holon.model.events.briefs import BriefKind, FailureCategory
from holon.model.events.event import ContinuationResolved, MessageProcessingStarted
from holon.model.limits import CLAIMS_PASSED_OVER_COUNT_MAX
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.queue import Priority
from holon.model.turns.tools import ToolSpec
from holon.model.turns.turn import ModelAnswer
from holon.model.values import AgentId, JsonValue
from holon.model.work import PlanStatus
from holon.ports.providers import OnProgress
from holon.tools.registry import ToolRegistry
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene
from tests.runtime.cast import calls, rule, says, webhook_for
from tests.runtime.house import House, Setup, run_house
from tests.runtime.notes import Notes
from tests.runtime.records import call_states
from tests.support.builders import MAIN, an_identity
from tests.support.fault_store import DiskFault
from tests.support.scripted_provider import ScriptedRound, spoken


async def served(house: House) -> list[str]:
    """Messages in the order they were claimed."""
    return [e.message_id for e in await house.events() if isinstance(e, MessageProcessingStarted)]


@pytest.mark.requirement("runtime:priority-order-stable-within-a-band")
def test_messages_are_served_by_band_and_in_order_within_it() -> None:
    async def story(house: House) -> None:
        await house.host.control.pause(MAIN)
        sent = [
            await house.prompt(f"{priority} {number}", priority=priority)
            for number in (1, 2)
            for priority in (
                Priority.BACKGROUND,
                Priority.NORMAL,
                Priority.NEXT,
            )
        ]
        await house.host.control.resume(MAIN)
        await house.rest(1_000)
        assert await served(house) == [sent[i] for i in (2, 5, 1, 4, 0, 3)]

    run_house(story)


def test_a_background_message_is_not_starved_by_a_stream_of_urgent_ones() -> None:
    async def story(house: House) -> None:
        await house.host.control.pause(MAIN)
        patient = await house.prompt("patient", priority=Priority.BACKGROUND)
        for number in range(2 * CLAIMS_PASSED_OVER_COUNT_MAX):
            await house.prompt(f"urgent {number}", priority=Priority.NEXT)
        await house.host.control.resume(MAIN)
        await house.rest(1_000)
        assert (await served(house)).index(patient) == CLAIMS_PASSED_OVER_COUNT_MAX

    run_house(story)


@pytest.mark.requirement("scheduling:operator-is-not-starved-by-events")
def test_events_that_start_nothing_do_not_keep_the_operators_answer_waiting() -> None:
    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="stuck")
        await house.host.control.pause(MAIN)
        await house.host.work.focus(item.id)
        await house.host.work.edit(item.id, WorkItemEdit(plan_status=PlanStatus.NEEDS_INPUT))
        answer = await house.prompt("this is the way")
        for number in range(2 * CLAIMS_PASSED_OVER_COUNT_MAX):
            event = msgspec.structs.replace(webhook_for(f"{number}"), priority=Priority.NEXT)
            await house.host.admit(event)
        await house.host.control.resume(MAIN)
        await house.rest(1_000)
        resolved = [e for e in await house.events() if isinstance(e, ContinuationResolved)]
        order = [each.message_id for each in resolved]
        assert order.index(answer) == CLAIMS_PASSED_OVER_COUNT_MAX

    run_house(story)


@pytest.mark.requirement("runtime:one-turn-at-a-time")
def test_an_agent_works_on_one_message_at_a_time_and_agents_work_side_by_side() -> None:
    busiest: dict[str, int] = {}
    model = _Crowd(busiest)

    async def story(house: House) -> None:
        model.house = house
        await house.host.control.create_agent(an_identity("other"))
        for agent in (MAIN, "other"):
            for number in range(5):
                await house.prompt(f"n {number}", agent=agent)
        await house.rest(60_000)
        assert busiest == {"main": 1, "other": 1}
        assert model.most_at_once == 2
        assert len(await house.briefs()) == len(await house.briefs("other")) == 5

    run_house(story, setup=Setup(model=lambda clock: model))


class _Crowd:
    """A model that counts how many agents it is asked by at once."""

    house: House

    def __init__(self, busiest: dict[str, int]) -> None:
        self._busiest = busiest
        self._open: list[str] = []
        self.most_at_once = 0

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        self._open.append(request.agent_id)
        count = self._open.count(request.agent_id)
        self._busiest[request.agent_id] = max(self._busiest.get(request.agent_id, 0), count)
        self.most_at_once = max(self.most_at_once, len(self._open))
        await self.house.rest(100)
        self._open.remove(request.agent_id)
        return spoken(ScriptedRound(text="ok"), call_prefix="c")


@pytest.mark.requirement("runtime:agent-sleeps-when-nothing-is-left")
def test_an_agent_falls_asleep_when_its_queue_is_empty_and_says_why() -> None:
    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(1_000)
        posture = (await house.agent()).posture
        assert posture.status is AgentStatus.ASLEEP
        assert posture.reason == "turn_settled"
        assert posture.last_wake_reason == "operator_prompt"
        assert house.host.running_count == 0, "an agent at rest holds no task"

    run_house(story)


@pytest.mark.requirement("runtime:external-is-not-operator")
def test_an_outside_event_does_not_answer_for_the_operator() -> None:
    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="stuck")
        await house.host.work.focus(item.id)
        await house.rest(86_400_000)
        message_id = await house.webhook("yes, go on")
        await house.rest(1_000)
        resolved = next(
            event.continuation
            for event in await house.events()
            if isinstance(event, ContinuationResolved) and event.message_id == message_id
        )
        told = msgspec.to_builtins(resolved)
        assert told["prior_waiting_reason"] == "awaiting_operator_input"
        assert resolved.evidence == ("waits_for_something_else",)

    run_house(story)


@pytest.mark.requirement("continuation:running-marker-does-not-suppress")
def test_a_follow_up_is_taken_up_although_the_agent_was_running_when_it_was_made() -> None:
    async def story(house: House) -> None:
        await house.prompt("go")
        await house.rest(1_000)
        continuations = [
            msgspec.to_builtins(e.continuation)
            for e in await house.events()
            if isinstance(e, ContinuationResolved)
        ]
        assert [c["trigger_kind"] for c in continuations] == ["operator_input", "internal_followup"]
        assert (await house.briefs())[-1].text == "followed up"

    script = [
        rule("the rest", says("followed up")),
        rule("go", calls("Enqueue", text="the rest"), says("done")),
    ]
    run_house(story, script=script)


class Grenade:
    """A tool with a bug."""

    spec = ToolSpec(name="Grenade", description="bang", input_schema={"type": "object"})
    only_plans = True

    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        raise ZeroDivisionError("a bug in a tool")


def test_a_tool_with_a_bug_is_answered_and_the_turn_goes_on() -> None:
    async def story(house: House) -> None:
        await house.prompt("pull")
        await house.rest(1_000)
        assert "tool_crashed" in house.model.said()
        assert "ZeroDivisionError" not in house.model.said()
        [brief] = await house.briefs()
        assert (brief.kind, brief.text) == (BriefKind.RESULT, "ouch")

    run_house(
        story,
        script=[rule("pull", calls("Grenade"), says("ouch"))],
        setup=Setup(tools=ToolRegistry((Grenade(),))),
    )


class _BrokenModel:
    """A provider that breaks its contract once."""

    def __init__(self) -> None:
        self.asked = 0

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        self.asked += 1
        if self.asked == 1:
            raise ZeroDivisionError("a bug in a provider")
        return spoken(ScriptedRound(text="fine"), call_prefix="c")


@pytest.mark.requirement("runtime:a-bug-fails-one-turn")
def test_an_unexpected_error_fails_the_turn_and_not_the_host() -> None:
    async def story(house: House) -> None:
        await house.prompt("first")
        await house.prompt("second")
        await house.rest(1_000)
        failed, fine = await house.briefs()
        assert failed.kind is BriefKind.FAILURE
        assert failed.failure is not None
        assert failed.failure.category is FailureCategory.UNKNOWN
        assert fine.text == "fine"
        assert house.deaths == []

    run_house(story, setup=Setup(model=lambda clock: _BrokenModel()))


def test_a_bug_in_the_middle_of_a_tool_round_leaves_a_sendable_conversation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The driver itself breaks between a call and its result; the call is still answered."""

    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug in the runner")

    monkeypatch.setattr("holon.runtime.turns.tool_runner.ToolRunner.run", broken)

    async def story(house: House) -> None:
        await house.prompt("pull")
        await house.rest(1_000)
        assert call_states(house) == ["interrupted"]
        monkeypatch.undo()
        await house.prompt("hello")
        await house.rest(1_000)
        assert [b.kind for b in await house.briefs()] == [BriefKind.FAILURE, BriefKind.RESULT]

    script = [rule("hello", says("hi")), rule("pull", calls("Enqueue", text="x"), says("done"))]
    run_house(story, script=script)


class _BreaksAfterTools:
    """A provider that breaks its contract as soon as it is shown a result."""

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        if len(request.conversation) > 1:
            raise ZeroDivisionError("a bug in a provider")
        return spoken(calls("ListWorkItems"), call_prefix="c")


@pytest.mark.parametrize("fault", [DiskFault.NONE, DiskFault.FULL])
def test_a_turn_that_breaks_off_while_a_result_travels_keeps_it_and_is_settled_once(
    fault: DiskFault,
) -> None:
    async def story(house: House) -> None:
        house.disk.delay_ms = 50
        house.disk.fault, house.disk.only = fault, "tool:"
        await house.prompt("look")
        await house.rest(5_000)
        house.disk.fault = DiskFault.NONE
        await house.rest(60_000)
        assert len(house.model.requests) == 2
        assert call_states(house) == ["succeeded"]
        [brief] = await house.briefs()
        assert brief.kind is BriefKind.FAILURE
        assert notes.of("lane_fenced") == []

    notes = Notes()
    run_house(story, setup=Setup(model=lambda clock: _BreaksAfterTools(), journal=notes))


def test_an_operator_cuts_a_turn_off_that_waits_for_a_result_to_land() -> None:
    async def story(house: House) -> None:
        house.disk.fault, house.disk.only = DiskFault.FULL, "tool:"
        await house.prompt("look")
        await house.rest(5_000)
        await house.host.control.abort_run(MAIN)
        await house.rest(1_000)
        [brief] = await house.briefs()
        assert brief.failure is not None
        assert brief.failure.kind == "operator_abort"
        assert house.host.running_count == 0

    run_house(story, setup=Setup(model=lambda clock: _BreaksAfterTools()))


def test_an_agent_that_does_not_exist_is_no_reason_to_do_anything() -> None:
    async def story(house: House) -> None:
        house.host._scheduler.commit_applied([AgentId("ghost")])
        await house.rest(1_000)
        assert house.host.running_count == 0

    run_house(story)
