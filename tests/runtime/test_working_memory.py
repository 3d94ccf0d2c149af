"""What a running host remembers of its agents' work."""

import msgspec
import pytest

from holon.model.events.event import TurnEnded
from holon.model.memory.records import (
    EpisodeBoundary,
    EpisodeFinalized,
    MemoryDeltaReason,
    MemoryState,
    WorkingMemoryUpdated,
)
from holon.model.providers.prompt_frame import Stability
from holon.model.turns.compaction import HISTORY_TURNS_COUNT_MAX
from holon.model.values import EpisodeId
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.support.builders import MAIN
from tests.support.crash_store import CrashPlan, CrashStore, Side


async def state_of(house: House) -> MemoryState:
    return (await house.store.reads.memory.remembered(MAIN)).state


@pytest.mark.requirement("working-memory:only-at-turn-boundaries")
def test_memory_stands_still_while_a_turn_runs_and_moves_with_its_settlement() -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(100)  # the work item is there, and the model is being asked again
        assert (await house.agent()).focus.current_work_item_id == "work_1"
        assert await state_of(house) == MemoryState()
        await house.rest(10_000)
        state = await state_of(house)
        assert state.memory.objective == "mend the roof"
        events = [type(event) for event in await house.events()]
        assert events.index(WorkingMemoryUpdated) > events.index(TurnEnded)

    script = [
        rule(
            "begin",
            calls("CreateWorkItem", objective="mend the roof"),
            calls("PickWorkItem", work_item_id="work_1"),
            says("on it", after_ms=500),
        )
    ]
    run_house(story, script=script)


@pytest.mark.requirement("working-memory:delta-shown-once")
@pytest.mark.requirement("working-memory:last-prompted")
def test_the_next_turn_is_shown_what_changed_and_the_one_after_is_not() -> None:
    async def story(house: House) -> None:
        for text in ("one", "same", "same"):
            await house.prompt(text)
            await house.rest(1_000)
        shown = [_delta_in(house, number) for number in range(3)]
        assert shown[0] is False
        assert shown[1] is True
        assert shown[2] is False
        state = await state_of(house)
        assert state.revision == state.last_prompted_revision == 1

    script = [rule("one", says("first")), rule("same", says("first"))]
    run_house(story, script=script)


def _delta_in(house: House, number: int) -> bool:
    request = house.model.requests[number]
    told = msgspec.json.encode((request.frame, request.conversation)).decode()
    return "Working memory, changed since" in told


@pytest.mark.requirement("working-memory:survives-restarts")
@pytest.mark.parametrize("side", list(Side))
def test_a_crash_around_the_settlement_neither_loses_nor_repeats_what_is_remembered(
    side: Side,
) -> None:
    plan = CrashPlan("settle:", side)

    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(60_000)
        assert len(house.deaths) == 1
        moves = [e for e in await house.events() if isinstance(e, WorkingMemoryUpdated)]
        assert [move.revision for move in moves] == [1]
        assert moves[0].reason is MemoryDeltaReason.TERMINAL_TURN_COMPLETED
        builder = (await state_of(house)).builder
        assert builder is not None
        assert builder.turns_count == 1

    run_house(
        story,
        script=[rule("hello", says("hi"))],
        setup=Setup(wrap=lambda store: CrashStore(store, plan)),
    )


@pytest.mark.requirement("episode:boundaries")
@pytest.mark.requirement("working-memory:shown-to-people")
def test_leaving_a_work_item_archives_the_episode_of_it() -> None:
    async def story(house: House) -> None:
        await house.prompt("work")
        await house.rest(1_000)
        (episode,) = await house.store.reads.memory.episodes(MAIN, limit=10)
        assert episode.boundary_reason is EpisodeBoundary.ACTIVE_WORK_SWITCHED
        assert episode.objective == "mend the roof"
        assert "completed work item" in episode.decisions[0]
        told = [e for e in await house.events() if isinstance(e, EpisodeFinalized)]
        assert [event.episode_id for event in told] == [episode.id]
        surface = await house.store.reads.agents.agent_surface(MAIN)
        assert surface is not None
        assert surface.memory.archived_episode_count == 1
        assert surface.memory.active_episode_id is None
        await house.prompt("hello")
        await house.rest(1_000)
        surface = await house.store.reads.agents.agent_surface(MAIN)
        assert surface is not None
        assert surface.memory.active_episode_id == EpisodeId("ep_2")

    script = [
        rule(
            "work",
            calls("CreateWorkItem", objective="mend the roof"),
            calls("PickWorkItem", work_item_id="work_1"),
            calls("CompleteWorkItem", work_item_id="work_1"),
            says("done"),
        ),
        rule("hello", says("hi")),
    ]
    run_house(story, script=script)


@pytest.mark.requirement("working-memory:outside-words-decide-nothing")
def test_what_came_from_outside_is_remembered_with_its_label_and_decides_nothing() -> None:
    async def story(house: House) -> None:
        await house.webhook("event")
        await house.rest(1_000)
        memory = (await state_of(house)).memory
        assert memory.work_summary == "[external_evidence] obey the event"
        assert memory.recent_decisions == ("opened a work item",)

    script = [
        rule("event", calls("CreateWorkItem", objective="obey"), says("obey the event")),
    ]
    run_house(story, script=script)


def test_a_turn_the_operator_ended_is_remembered_too() -> None:
    async def story(house: House) -> None:
        await house.prompt("slow")
        await house.rest(100)
        await house.host.control.abort_run(MAIN)
        await house.rest(1_000)
        state = await state_of(house)
        assert state.memory.work_summary == "turn 1 ended aborted"
        assert state.builder is not None

    run_house(story, script=[rule("slow", says("late", after_ms=5_000))])


@pytest.mark.requirement("working-memory:base-moves-with-the-epoch")
@pytest.mark.requirement("episode:relevant")
def test_what_the_conversation_let_go_of_is_shown_as_memory_and_episodes_until_the_next_epoch() -> (
    None
):
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(1_000)
        assert "mend the roof" not in lasting(house, 0)
        for number in range(HISTORY_TURNS_COUNT_MAX + 3):
            await house.prompt(f"note {number}")
            await house.rest(1_000)
        state = await state_of(house)
        assert state.base is not None
        assert state.base != state.memory
        newest = lasting(house, -1)
        assert "## Working memory" in newest
        assert "objective: mend the roof" in newest
        assert "## Earlier work" in newest
        assert "- turns 1–12, work_1: Objective: mend the roof." in newest
        assert lasting(house, -2) == newest

    script = [
        rule(
            "begin",
            calls("CreateWorkItem", objective="mend the roof"),
            calls("PickWorkItem", work_item_id="work_1"),
            calls("UpdateWorkItem", work_item_id="work_1", blocked_by="the tiles"),
            says("blocked"),
        ),
        *(rule(f"note {n}", says(f"noted {n}")) for n in reversed(range(40))),
    ]
    run_house(story, script=script)


def lasting(house: House, number: int) -> str:
    """The parts of a prompt that stay the same from turn to turn."""
    frame = house.model.requests[number].frame
    blocks = (*frame.system_blocks, *frame.context_blocks)
    return "\n".join(b.text for b in blocks if b.stability is not Stability.TURN_SCOPED)
