"""Whatever the process was doing when it died, the next one takes it up."""

import asyncio

import msgspec
import pytest

from holon.decide.turns.recovery import INTERRUPTED
from holon.model.commits import AdvanceTask
from holon.model.events.briefs import BriefKind, FailureCategory
from holon.model.events.event import ToolExecutionFailed, TurnResumed
from holon.model.limits import TURN_RESUMES_COUNT_MAX
from holon.model.queue import MessageKind
from holon.model.tasks import TaskStatus
from holon.model.turns.tools import ToolCallState, ToolOk, ToolSpec
from holon.model.values import JsonValue
from holon.tools.queue import Enqueue
from holon.tools.registry import ToolRegistry
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene
from holon.tools.wake import Sleep
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.records import (
    call_states,
    kept_calls,
    kept_messages,
    kept_waits,
    message_states,
    open_turns,
)
from tests.runtime.telling import LifeLostError, crash_process
from tests.support.builders import MAIN, a_task
from tests.support.crash_store import CrashPlan, CrashStore, Side, die
from tests.support.scripted_provider import ScriptedCall, ScriptedRound

SCRIPT = [
    rule("second errand", says("second done")),
    rule(
        "first errand",
        ScriptedRound(
            text="on it",
            calls=(
                ScriptedCall(name="Enqueue", input={"text": "second errand"}),
                ScriptedCall(name="Imagine", input={}),
            ),
        ),
        calls("Enqueue", text="third", priority="background"),
        says("first done", after_ms=50),
    ),
    rule("third", calls("Sleep", duration_ms=5_000)),
    rule("came due", says("up again")),
]


async def errands(house: House) -> None:
    """A prompt, tools, follow-ups, a nap and a timer: about a dozen commits of every kind."""
    while True:
        try:
            await house.prompt("first errand", key="errand")
            break
        except LifeLostError:
            continue
    await house.rest(60_000)


def _commit_count() -> int:
    plan = CrashPlan(0, Side.BEFORE)
    run_house(errands, script=SCRIPT, setup=Setup(wrap=lambda s: CrashStore(s, plan)))
    return len(plan.commit_ids)


COMMIT_COUNT = 17


def test_the_enumeration_below_covers_every_commit() -> None:
    assert _commit_count() == COMMIT_COUNT


@pytest.mark.requirement("runtime:turns-survive-a-crash-between-any-two-commits")
@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("number", range(1, COMMIT_COUNT + 1))
def test_a_crash_on_either_side_of_any_commit_costs_nothing(number: int, side: Side) -> None:
    plan = CrashPlan(number, side)

    async def story(house: House) -> None:
        await errands(house)
        enqueued = [each.call.state for each in kept_calls(house) if each.call.name == "Enqueue"]
        made = enqueued.count(ToolCallState.SUCCEEDED)
        cut = enqueued.count(ToolCallState.INTERRUPTED)
        assert len(kept_messages(house, kind=MessageKind.INTERNAL_FOLLOWUP)) == made
        assert made + cut == 2, "each call ran once or is known to have been cut off"
        assert set(message_states(house)) == {"processed"}
        assert len(open_turns(house)) == 0
        texts = [brief.text for brief in await house.briefs()]
        assert texts.count("first done") == 1
        if not cut:
            assert sorted(text for text in texts if text) == [
                "first done",
                "second done",
                "up again",
            ]
        else:
            assert house.model.heard(INTERRUPTED.message)

    house = run_house(story, script=SCRIPT, setup=Setup(wrap=lambda s: CrashStore(s, plan)))
    assert len(house.deaths) == 1


class Hammer:
    """A tool with an effect outside the database, which dies in the middle of it."""

    spec = ToolSpec(name="Hammer", description="hits", input_schema={"type": "object"})
    only_plans = False

    def __init__(self) -> None:
        self.blow_count = 0

    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        self.blow_count += 1
        if self.blow_count == 1:
            die("mid-blow")
            await asyncio.get_running_loop().create_future()
        return ToolExecution(outcome=ToolOk(result="hit"))


@pytest.mark.requirement("runtime:started-call-is-not-run-twice")
def test_a_call_that_was_under_way_is_answered_as_interrupted_and_not_run_again() -> None:
    hammer = Hammer()
    tools = ToolRegistry((Sleep(), Enqueue(), hammer))

    async def story(house: House) -> None:
        await house.prompt("nail")
        await house.rest(60_000)
        assert hammer.blow_count == 1
        assert call_states(house) == ["interrupted"]
        assert INTERRUPTED.message in house.model.said()
        [failed] = [e for e in await house.events() if isinstance(e, ToolExecutionFailed)]
        assert failed.interrupted
        [brief] = await house.briefs()
        assert brief.text == "looked first"

    script = [rule("nail", calls("Hammer"), says("looked first"))]
    run_house(story, script=script, setup=Setup(tools=tools))


@pytest.mark.requirement("runtime:poison-turn-is-given-up")
def test_a_turn_that_kills_the_process_each_time_is_given_up_with_a_failure_brief() -> None:
    async def story(house: House) -> None:
        message_id = await house.prompt("poison")
        following = await house.prompt("harmless")
        for _ in range(TURN_RESUMES_COUNT_MAX + 1):
            await house.rest(1_000)
            await house.restart()
        await house.rest(1_000)
        poisoned, harmless = await house.briefs()
        assert poisoned.kind is BriefKind.FAILURE
        assert poisoned.related_message_id == message_id
        assert poisoned.failure is not None
        assert poisoned.failure.kind == "poison_turn"
        assert harmless.related_message_id == following
        assert message_states(house) == ["aborted", "processed"]
        resumed = [e for e in await house.events() if isinstance(e, TurnResumed)]
        assert [e.resume_count for e in resumed] == list(range(1, TURN_RESUMES_COUNT_MAX + 1))

    script = [rule("harmless", says("fine")), rule("poison", says("never said", after_ms=60_000))]
    run_house(story, script=script)


@pytest.mark.requirement("runtime:lost-task-is-interrupted-loudly")
def test_a_task_nobody_runs_any_more_is_interrupted_and_its_agent_is_told() -> None:
    async def story(house: House) -> None:
        task = msgspec.structs.replace(a_task(), summary="the long build")
        await house.host.tasks.open(task)
        wait_id = await house.host.tasks.wait_for(task.id)
        await house.restart()
        await house.rest(1_000)
        found = await house.host.tasks.find(task.id)
        assert found is not None
        assert found.status is TaskStatus.INTERRUPTED
        assert found.failure is not None
        assert found.failure.category is FailureCategory.TASK
        assert found.failure.kind == "interrupted_by_restart"
        assert "the long build" in house.model.said()
        assert [(wait.id, wait.state) for wait in kept_waits(house)] == [(wait_id, "resolved")]
        late = AdvanceTask(agent_id=MAIN, task_id=task.id, status=TaskStatus.COMPLETED)
        assert not await house.host.tasks.report(late)
        await house.restart()
        await house.rest(1_000)
        assert len(house.model.requests) == 1

    run_house(story)


def test_a_crash_inside_recovery_is_just_another_crash() -> None:
    plan = CrashPlan("resume:", Side.BEFORE)

    async def story(house: House) -> None:
        await house.prompt("slow")
        await house.rest(100)
        await crash_process()
        await house.rest(60_000)
        [brief] = await house.briefs()
        assert brief.text == "done"
        assert len(house.deaths) == 2

    script = [rule("slow", says("done", after_ms=1_000))]
    run_house(story, script=script, setup=Setup(wrap=lambda s: CrashStore(s, plan)))


def test_what_a_resumed_turn_spent_before_the_crash_is_still_on_the_bill() -> None:
    async def story(house: House) -> None:
        await house.prompt("go")
        await house.rest(100)
        await house.restart()
        await house.rest(60_000)
        totals = (await house.agent()).totals
        assert (totals.model_round_count, totals.input_tokens) == (2, 20)

    run_house(story, script=[rule("go", calls("Imagine"), says("done", after_ms=1_000))])
