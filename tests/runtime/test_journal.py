"""What a host says about itself: crashes, recovery, a store that breaks, a model that rests."""

import pytest

from holon.model.errors import StoreBrokenError
from holon.ports.journal import LogLevel
from holon.tools.registry import ToolRegistry
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.notes import Notes
from tests.runtime.records import kept_turns
from tests.runtime.test_lane import Grenade, _BrokenModel
from tests.support.builders import MAIN


@pytest.mark.requirement("journal:a-crash-is-told-with-its-ids")
def test_a_turn_that_crashes_is_told_with_its_traceback_and_its_ids() -> None:
    notes = Notes()

    async def story(house: House) -> None:
        await house.prompt("first")
        await house.rest(1_000)
        turn_id = kept_turns(house)[0].turn_id
        [note] = notes.of("turn_crashed")
        assert (note.level, note.about) == (LogLevel.ERROR, {"agent_id": MAIN, "turn_id": turn_id})
        assert isinstance(note.error, ZeroDivisionError)

    run_house(story, setup=Setup(model=lambda clock: _BrokenModel(), journal=notes))


@pytest.mark.requirement("journal:a-crash-is-told-with-its-ids")
def test_a_tool_that_crashes_is_told_with_its_call() -> None:
    notes = Notes()

    async def story(house: House) -> None:
        await house.prompt("pull")
        await house.rest(1_000)
        [note] = notes.of("tool_crashed")
        assert (note.about["agent_id"], note.level) == (MAIN, LogLevel.ERROR)
        assert {"turn_id", "effect_id"} <= note.about.keys()

    script = [rule("pull", calls("Grenade"), says("ouch"))]
    run_house(story, script=script, setup=Setup(tools=ToolRegistry((Grenade(),)), journal=notes))


@pytest.mark.requirement("journal:recovery-tells-its-figures")
def test_a_start_tells_what_it_took_up() -> None:
    notes = Notes()

    async def story(house: House) -> None:
        await house.prompt("slow")
        await house.rest(1_000)
        await house.restart()
        await house.rest(600_000)

    run_house(
        story, script=[rule("slow", says("done", after_ms=60_000))], setup=Setup(journal=notes)
    )
    first, second = (note.about for note in notes.of("recovered"))
    assert set(first.values()) == {0}
    assert second["turns_resumed"] == 1
    assert second["turns_abandoned"] == second["tasks_interrupted"] == 0


def test_a_store_that_breaks_is_told() -> None:
    notes = Notes()

    async def story(house: House) -> None:
        house.host._end_with(StoreBrokenError("the disk is gone"))
        [note] = notes.of("store_broken")
        assert (note.message, note.level) == ("the disk is gone", LogLevel.ERROR)
        house.host._broken = None  # the story is over; the host is let live

    run_house(story, setup=Setup(journal=notes))
