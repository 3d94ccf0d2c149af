"""A turn's writer: patient with the disk, strict with the fence, one commit travelling at most."""

import pytest

from holon.model.commits import AgentGeneration, ExpectationFailed, RecordEvent
from holon.model.events.briefs import BriefKind
from holon.model.events.event import ControlApplied
from holon.runtime.turns.log import LaneFencedError, TurnWriter
from tests.runtime.cast import calls, rule
from tests.runtime.house import House, run_house
from tests.runtime.records import call_states
from tests.support.builders import MAIN, a_commit
from tests.support.fault_store import DiskFault

FIRST = AgentGeneration(agent_id=MAIN, generation=0)
STALE = AgentGeneration(agent_id=MAIN, generation=99)
NOTE = RecordEvent(agent_id=MAIN, event=ControlApplied(action="note", request_id="r"))


def _writer(house: House) -> TurnWriter:
    host = house.host
    return TurnWriter(store=host.store, clock=host.clock, failpoints=host.failpoints)


def test_a_refused_commit_stops_the_lane() -> None:
    async def story(house: House) -> None:
        writer = _writer(house)
        stale = a_commit("round:1", NOTE, expects=(STALE,))
        assert isinstance(await writer.try_apply(stale), ExpectationFailed)
        with pytest.raises(LaneFencedError):
            await writer.apply(stale)
        assert writer.submit(stale)
        with pytest.raises(LaneFencedError):
            await writer.wait_in_flight()
        await writer.wait_in_flight()  # nothing travels any more

    run_house(story)


def test_a_commit_that_met_a_full_disk_on_its_way_is_sent_again() -> None:
    async def story(house: House) -> None:
        writer = _writer(house)
        house.disk.fault = DiskFault.FULL
        assert writer.submit(a_commit("tool:1", NOTE, expects=(FIRST,)))
        house.disk.fault = DiskFault.NONE
        await writer.wait_in_flight()
        assert (await house.events()).count(NOTE.event) == 1

    run_house(story)


def test_a_swamped_writer_says_so_and_nothing_travels() -> None:
    async def story(house: House) -> None:
        writer = _writer(house)
        house.disk.fault = DiskFault.SWAMPED
        assert not writer.submit(a_commit("tool:1", NOTE))
        await writer.wait_in_flight()

    run_house(story)


def test_a_turn_goes_on_when_the_writer_was_swamped_for_a_while() -> None:
    async def story(house: House) -> None:
        house.disk.fault, house.disk.only = DiskFault.SWAMPED, "tool:"
        await house.prompt("begin")
        await house.rest(5_000)
        assert house.disk.refused_count > 1
        house.disk.fault = DiskFault.NONE
        await house.rest(60_000)
        [brief] = await house.briefs()
        assert brief.kind is BriefKind.RESULT
        assert call_states(house) == ["succeeded"]

    run_house(story, script=[rule("begin", calls("Sleep"))])
