"""The host as a whole: ready only after recovery, and gone when its disk is."""

import dataclasses

import anyio
import pytest

from holon.model.errors import RefusalCode, RefusedError, StoreBrokenError, StoreFullError
from holon.model.limits import RETENTION_INTERVAL_MS
from holon.ports.failpoint import Failpoint
from tests.runtime.cast import prompt_for, rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.records import kept_messages
from tests.support.armed_failpoints import Armed, ArmedFailpoints, FailAction
from tests.support.builders import MAIN
from tests.support.fault_store import DiskFault


@pytest.mark.requirement("runtime:nothing-is-admitted-before-recovery")
def test_nothing_is_admitted_before_recovery_is_done() -> None:
    async def story(house: House) -> None:
        fresh = dataclasses.replace(house.host)
        with pytest.raises(RefusedError) as caught:
            await fresh.admit(prompt_for("too early"))
        assert caught.value.refusal.code is RefusalCode.SHUTTING_DOWN
        assert caught.value.refusal.hint is not None
        assert kept_messages(house) == []

    run_house(story)


@pytest.mark.requirement("runtime:nothing-is-admitted-before-recovery")
def test_a_host_that_cannot_recover_yet_is_not_ready() -> None:
    async def story(house: House) -> None:
        await house.prompt("slow")
        await house.rest(100)
        await house.restart()
        house.disk.fault = DiskFault.FULL
        second = dataclasses.replace(house.host)
        async with anyio.create_task_group() as group:
            group.start_soon(second.run)
            with anyio.CancelScope() as patience:
                group.start_soon(_give_up, house, patience)
                await second.wait_ready()
            assert patience.cancel_called, "its recovery waits for the disk"
            group.cancel_scope.cancel()
        house.disk.fault = DiskFault.NONE
        await house.rest(60_000)

    run_house(story, script=[rule("slow", says("done", after_ms=1_000))])


async def _give_up(house: House, scope: anyio.CancelScope) -> None:
    await house.rest(10_000)
    scope.cancel()


@pytest.mark.requirement("runtime:full-disk-is-told-at-the-door")
def test_a_full_disk_is_told_to_the_caller_and_nothing_is_lost() -> None:
    async def story(house: House) -> None:
        before = await house.prompt("before")
        house.disk.fault = DiskFault.FULL
        with pytest.raises(StoreFullError):
            await house.prompt("while full", key="k")
        await house.rest(10_000)
        house.disk.fault = DiskFault.NONE
        again = await house.prompt("while full", key="k")
        await house.rest(60_000)
        assert [b.related_message_id for b in await house.briefs()] == [before, again]
        assert house.deaths == []

    run_house(story)


@pytest.mark.requirement("runtime:broken-disk-ends-the-host")
@pytest.mark.parametrize("fault", [DiskFault.BROKEN_AND_LOST, DiskFault.BROKEN_BUT_KEPT])
def test_a_disk_that_breaks_under_a_turn_ends_the_host_and_a_restart_recovers(
    fault: DiskFault,
) -> None:
    async def story(house: House) -> None:
        message_id = await house.prompt("slow")
        await house.rest(100)
        house.disk.fault = fault
        await house.rest(60_000)
        assert len(house.deaths) == 1
        [brief] = await house.briefs()
        assert brief.related_message_id == message_id

    run_house(story, script=[rule("slow", says("done", after_ms=1_000))])


@pytest.mark.requirement("runtime:broken-disk-ends-the-host")
@pytest.mark.parametrize("fault", [DiskFault.BROKEN_AND_LOST, DiskFault.BROKEN_BUT_KEPT])
def test_once_the_disk_broke_at_the_door_nothing_more_is_admitted(fault: DiskFault) -> None:
    async def story(house: House) -> None:
        house.disk.fault = fault
        with pytest.raises(StoreBrokenError):
            await house.prompt("hello", key="k")
        house.disk.fault = DiskFault.NONE
        with pytest.raises(StoreBrokenError):
            await house.prompt("other")
        await house.restart()
        await house.prompt("hello", key="k")
        await house.rest(1_000)
        assert len(kept_messages(house)) == 1

    run_house(story)


@pytest.mark.requirement("runtime:nothing-is-admitted-before-recovery")
def test_a_recovery_that_fails_ends_the_host_before_it_is_ready() -> None:
    """Whoever starts the host hears of it, and the next start goes on with what is left."""
    armed = {Failpoint.RECOVERY_BETWEEN_AGENTS: Armed(FailAction.RAISE, 1)}

    async def story(house: House) -> None:
        message_id = await house.prompt("slow")
        await house.rest(100)
        await house.restart()
        assert len(house.deaths) == 2, "the crash, and the start that could not recover"
        await house.rest(60_000)
        [brief] = await house.briefs()
        assert (brief.related_message_id, brief.text) == (message_id, "done")

    script = [rule("slow", says("done", after_ms=1_000))]
    run_house(story, script=script, setup=Setup(failpoints=ArmedFailpoints(armed)))


def test_a_part_that_breaks_ends_the_host_and_the_next_start_takes_everything_up() -> None:
    """The other parts are cancelled, not killed; what they were at is not lost either way."""
    failpoints = ArmedFailpoints({Failpoint.RETENTION_BETWEEN_BATCHES: Armed(FailAction.RAISE, 1)})

    async def story(house: House) -> None:
        await house.host.timers.create(MAIN, after_ms=RETENTION_INTERVAL_MS)
        await house.rest(RETENTION_INTERVAL_MS - 500)
        await house.prompt("slow")
        await house.rest(60_000)
        assert len(house.deaths) == 1
        assert [b.text for b in await house.briefs()] == ["done", "done"]

    script = [rule("slow", says("done", after_ms=1_000))]
    run_house(story, script=script, setup=Setup(failpoints=failpoints))
