"""The end of a turn is one commit, whatever happens around it."""

import pytest

from holon.decide.events.audit import audited
from holon.decide.work.items import WorkItemEdit
from holon.model.agents import AgentStatus
from holon.model.commits import SetAgentStatus
from holon.model.events.event import AgentStateChanged, ClosureDecided, TurnEnded
from holon.ports.failpoint import Failpoint
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.records import kept_turns, kept_waits, message_states, open_turns
from tests.support.builders import MAIN, a_commit
from tests.support.crash_store import CrashPlan, CrashStore, Side


@pytest.mark.requirement("runtime:one-brief-per-turn-across-crashes")
@pytest.mark.parametrize("side", list(Side))
def test_a_crash_around_the_settlement_neither_loses_nor_repeats_the_brief(side: Side) -> None:
    plan = CrashPlan("settle:", side)

    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(60_000)
        assert len(house.deaths) == 1
        assert len(await house.briefs()) == 1
        assert len([e for e in await house.events() if isinstance(e, TurnEnded)]) == 1

    run_house(story, setup=Setup(wrap=lambda store: CrashStore(store, plan)))


def test_a_turn_ends_with_its_message_its_brief_its_closure_and_its_posture_together() -> None:
    async def story(house: House) -> None:
        await house.prompt("hello")
        await house.rest(1_000)
        assert house.disk.handed_on.count("settle:msg_1") == 1
        told = [type(event).__name__ for event in await house.events()]
        last = told[told.index("TurnEnded") :]
        assert {"MessageProcessed", "BriefCreated", "ClosureDecided", "AgentStateChanged"} <= set(
            last
        )

    run_house(story)


@pytest.mark.requirement("runtime:sleep-is-recorded-with-reason-and-end")
def test_a_rest_with_an_end_is_recorded_and_taken_back_when_the_agent_wakes_early() -> None:
    async def story(house: House) -> None:
        await house.prompt("nap")
        await house.rest(1_000)
        posture = (await house.agent()).posture
        assert posture.status is AgentStatus.ASLEEP
        assert posture.reason == "short nap"
        [wait] = kept_waits(house)
        assert posture.sleeping_until is not None
        assert posture.sleeping_until == wait.deadline_at

    run_house(story, script=[rule("nap", calls("Sleep", reason="short nap", duration_ms=60_000))])


def test_an_agent_with_mail_waiting_stays_awake_between_turns() -> None:
    async def story(house: House) -> None:
        await house.host.control.pause(MAIN)
        await house.prompt("one")
        await house.prompt("two")
        await house.host.control.resume(MAIN)
        await house.rest(1_000)
        moves = [e for e in await house.events() if isinstance(e, AgentStateChanged)]
        posture = [event.status.value for event in moves]
        assert posture[-4:] == ["awake_running", "awake_idle", "awake_running", "asleep"]
        closures = [e.outcome for e in await house.events() if isinstance(e, ClosureDecided)]
        assert closures == ["completed", "completed"]

    run_house(story, script=[rule("one", says("1")), rule("two", says("2"))])


def test_a_settlement_that_meets_a_changed_work_item_is_decided_anew() -> None:
    """The item moves between the look and the commit; the turn still ends exactly once."""

    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="moving target")
        await house.host.work.focus(item.id)
        await house.prompt("slow")
        await house.rest(500)
        await house.host.work.edit(item.id, WorkItemEdit(), blocked_by="review")
        await house.rest(60_000)
        assert len(open_turns(house)) == 0
        assert len(await house.briefs()) == len(kept_turns(house))

    run_house(story, script=[rule("slow", says("done", after_ms=1_000))])


class _FenceOnce:
    """Takes the agent away from its lane right before the turn is settled."""

    house: House
    has_struck = False

    async def reach(self, point: Failpoint) -> None:
        if point is not Failpoint.SETTLE_BEFORE_COMMIT or self.has_struck:
            return
        self.has_struck = True
        generation = (await self.house.agent()).generation + 1
        taken = SetAgentStatus(
            agent_id=MAIN,
            status=AgentStatus.AWAKE_RUNNING,
            reason="another lane",
            new_generation=generation,
        )
        await self.house.store.apply(
            audited(a_commit("control:fence", taken, at=self.house.clock.now()))
        )


def test_a_lane_that_lost_its_agent_right_before_the_end_settles_nothing() -> None:
    """It stops; whoever holds the agent then goes on from the rows and settles once."""
    fence = _FenceOnce()

    async def story(house: House) -> None:
        fence.house = house
        await house.prompt("hello")
        await house.rest(1_000)
        assert fence.has_struck
        assert len(await house.briefs()) == 1
        assert len(house.model.requests) == 2
        assert message_states(house) == ["processed"]

    run_house(story, setup=Setup(failpoints=fence))
