"""A conversation no model takes: the turn fails once, and its work item waits for the operator."""

import pytest

from holon.decide.work.items import WorkItemEdit
from holon.model.events.briefs import BriefKind
from holon.model.events.event import RuntimeErrorRecorded
from holon.model.limits import DAY_MS, HOUR_MS
from holon.model.providers.attempts import ContextTooLongError
from holon.model.providers.prompt_frame import ProviderRequest
from holon.model.turns.turn import ModelAnswer
from holon.model.values import WorkItemId
from holon.model.wake import SystemTickEmitted
from holon.ports.clock import Clock
from holon.ports.providers import OnProgress
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.records import active_waits, kept_waits, wait_states
from tests.support.builders import MAIN
from tests.support.manual_clock import ManualClock
from tests.support.scripted_provider import Script, ScriptedProvider

SCRIPT = Script(
    rules=(
        rule("finish it", calls("CompleteWorkItem", work_item_id="work_1")),
        rule("Continue", says("I go on")),
        rule("hello", says("hello yourself")),
    )
)


class SmallWindow:
    """A model whose window is exceeded by every request until it is widened."""

    def __init__(self, clock: Clock) -> None:
        self._model = ScriptedProvider(SCRIPT, clock)
        self.is_wide = False

    async def answer(self, request: ProviderRequest, on_progress: OnProgress) -> ModelAnswer:
        """Refuse the conversation as too long, unless the window was widened."""
        if not self.is_wide:
            raise ContextTooLongError("the prompt is too long")
        return await self._model.answer(request, on_progress)


def asked_about(house: House) -> list[str | None]:
    """The work items the operator is asked about."""
    return [wait.work_item_id for wait in active_waits(house) if wait.kind == "operator"]


def small_window() -> tuple[Setup, list[SmallWindow]]:
    """A setup, and the models it makes."""
    made: list[SmallWindow] = []

    def model(clock: ManualClock) -> SmallWindow:
        made.append(SmallWindow(clock))
        return made[-1]

    return Setup(model=model), made


async def work_ticks(house: House) -> list[str]:
    """The offers of work, in order."""
    events = await house.events()
    return [
        event.tick_key
        for event in events
        if isinstance(event, SystemTickEmitted) and event.tick_key.startswith("work:")
    ]


async def focused_item(house: House, objective: str = "mend the roof") -> WorkItemId:
    """An item in focus."""
    item_id = (await house.host.work.create(MAIN, objective=objective)).id
    await house.host.work.focus(item_id)
    return item_id


@pytest.mark.requirement("context-too-long:no-reactivation")
@pytest.mark.requirement("context-too-long:told-once")
def test_a_conversation_that_is_too_long_fails_one_turn_and_its_item_waits() -> None:
    async def story(house: House) -> None:
        item_id = await focused_item(house)
        await house.rest(DAY_MS)
        assert await work_ticks(house) == [f"work:{item_id}"]
        failures = [e for e in await house.events() if isinstance(e, RuntimeErrorRecorded)]
        assert [each.failure.kind for each in failures] == ["context_length_exceeded"]
        [brief] = await house.briefs()
        assert (brief.kind, brief.work_item_id) == (BriefKind.FAILURE, item_id)
        assert f"Work item {item_id} waits for you" in brief.text
        [wait] = kept_waits(house)
        assert (wait.kind, wait.state, wait.work_item_id) == ("operator", "active", item_id)

    run_house(story, setup=small_window()[0])


@pytest.mark.requirement("context-too-long:no-reactivation")
def test_the_operators_own_turn_may_fail_that_way_too_and_starts_nothing() -> None:
    async def story(house: House) -> None:
        item_id = await focused_item(house)
        await house.prompt("hello")
        await house.rest(DAY_MS)
        assert len(await work_ticks(house)) <= 1
        assert asked_about(house) == [item_id]
        before = len(house.model.requests)
        await house.prompt("hello")
        await house.rest(DAY_MS)
        assert len(house.model.requests) == before + 1, "each prompt has one turn of its own"
        assert asked_about(house) == [item_id]

    run_house(story, setup=small_window()[0])


@pytest.mark.requirement("context-too-long:no-reactivation")
def test_an_item_that_was_only_offered_waits_as_well() -> None:
    async def story(house: House) -> None:
        item_id = (await house.host.work.create(MAIN, objective="sweep the floor")).id
        await house.rest(DAY_MS)
        assert await work_ticks(house) == [f"work:{item_id}"]
        assert len(await house.briefs()) == 1

    run_house(story, setup=small_window()[0])


@pytest.mark.requirement("context-too-long:what-ends-the-wait")
@pytest.mark.parametrize("way", ["prompt", "model", "edit"])
def test_the_operators_word_another_model_or_another_item_lets_the_work_go_on(way: str) -> None:
    setup, models = small_window()

    async def story(house: House) -> None:
        item_id = await focused_item(house)
        await house.rest(HOUR_MS)
        models[-1].is_wide = True
        if way == "prompt":
            await house.prompt("hello")
        elif way == "model":
            await house.host.control.set_model(MAIN, "scripted/wider")
        else:
            await house.host.work.edit(item_id, WorkItemEdit(objective="mend half of the roof"))
        await house.rest(1_000)
        assert (await work_ticks(house))[:2] == [f"work:{item_id}"] * 2
        assert house.model.heard("Continue the current work item")
        assert ("operator", "resolved") in wait_states(house)

    run_house(story, setup=setup)


@pytest.mark.requirement("context-too-long:what-ends-the-wait")
def test_a_restart_with_another_model_lets_the_work_go_on_and_one_with_the_same_does_not() -> None:
    setup, models = small_window()

    async def story(house: House) -> None:
        item_id = await focused_item(house)
        await house.rest(HOUR_MS)
        await house.restart()
        await house.rest(HOUR_MS)
        assert await work_ticks(house) == [f"work:{item_id}"], "nothing has changed"
        models[-1].is_wide = True
        house.model_ref = "scripted/wider"
        await house.restart()
        await house.rest(1_000)
        assert (await work_ticks(house))[:2] == [f"work:{item_id}"] * 2

    run_house(story, setup=setup)


def test_the_wait_survives_a_crash_with_the_turn_that_opened_it() -> None:
    async def story(house: House) -> None:
        item_id = await focused_item(house)
        await house.rest(1_000)
        await house.restart(down_ms=DAY_MS)
        await house.rest(DAY_MS)
        assert await work_ticks(house) == [f"work:{item_id}"]
        assert len(await house.briefs()) == 1

    run_house(story, setup=small_window()[0])
