"""Background tasks: opened, ended once, and heard of through the queue."""

import msgspec
import pytest

from holon.model.agents import AgentStatus
from holon.model.commits import AdvanceTask
from holon.model.errors import RefusalCode, RefusedError
from holon.model.events.event import ClosureDecided, ContinuationResolved, MessageAdmitted
from holon.model.queue import MessageKind
from holon.model.tasks import TaskStatus
from holon.model.values import AgentId, TaskId
from tests.runtime.cast import rule, says
from tests.runtime.house import House, Setup, run_house
from tests.runtime.records import kept_tasks, kept_waits
from tests.runtime.telling import LifeLostError
from tests.support.builders import MAIN, a_task
from tests.support.crash_store import CrashPlan, CrashStore, Side

TASK = a_task(status=TaskStatus.QUEUED)


def report(status: TaskStatus, *, result: str | None = None) -> AdvanceTask:
    """What whoever runs the task has to say."""
    return AdvanceTask(agent_id=MAIN, task_id=TASK.id, status=status, result_summary=result)


async def results(house: House) -> list[MessageAdmitted]:
    """Every task_result that was queued."""
    return [
        event
        for event in await house.events()
        if isinstance(event, MessageAdmitted) and event.message_kind is MessageKind.TASK_RESULT
    ]


async def status_of(house: House) -> TaskStatus:
    """The task's status on record."""
    task = await house.host.tasks.find(TASK.id)
    assert task is not None
    return task.status


@pytest.mark.requirement("runtime:task-result-rejoins-by-the-queue")
def test_a_result_comes_back_once_as_a_task_result() -> None:
    async def story(house: House) -> None:
        await house.host.tasks.open(TASK)
        assert await house.host.tasks.report(report(TaskStatus.RUNNING))
        assert await house.host.tasks.report(report(TaskStatus.COMPLETED, result="42 tests pass"))
        await house.rest(1_000)
        [admitted] = await results(house)
        assert admitted.task_id == TASK.id
        assert msgspec.to_builtins(admitted.origin) == {"kind": "task", "task_id": "task_1"}
        assert len(house.model.requests) == 1
        assert "42 tests pass" in house.model.said()
        [brief] = await house.briefs()
        assert brief.related_task_id == TASK.id

    run_house(story)


@pytest.mark.requirement("runtime:first-terminal-wins")
@pytest.mark.parametrize("late", list(TaskStatus))
def test_the_first_end_stands_and_late_reports_change_nothing(late: TaskStatus) -> None:
    async def story(house: House) -> None:
        await house.host.tasks.open(TASK)
        await house.host.tasks.report(report(TaskStatus.FAILED, result="boom"))
        assert not await house.host.tasks.report(report(late, result="oh, but it worked"))
        await house.rest(1_000)
        assert await status_of(house) is TaskStatus.FAILED
        assert len(await results(house)) == 1

    run_house(story)


def test_a_task_never_moves_back() -> None:
    async def story(house: House) -> None:
        await house.host.tasks.open(TASK)
        assert await house.host.tasks.report(report(TaskStatus.CANCELLING))
        assert not await house.host.tasks.report(report(TaskStatus.RUNNING))
        assert not await house.host.tasks.report(report(TaskStatus.CANCELLING))
        assert await status_of(house) is TaskStatus.CANCELLING
        assert await results(house) == []

    run_house(story)


def test_a_status_short_of_the_end_starts_no_turn() -> None:
    async def story(house: House) -> None:
        await house.host.tasks.open(TASK)
        await house.host.tasks.report(report(TaskStatus.RUNNING))
        await house.rest(3_600_000)
        assert house.model.requests == []

    run_house(story)


@pytest.mark.requirement("runtime:waiting-for-a-task")
def test_a_wait_opened_before_the_end_is_ended_by_the_result() -> None:
    async def story(house: House) -> None:
        await house.host.tasks.open(TASK)
        wait_id = await house.host.tasks.wait_for(TASK.id)
        assert wait_id is not None
        await house.prompt("hello")
        await house.rest(1_000)
        closure = [e for e in await house.events() if isinstance(e, ClosureDecided)][-1]
        assert closure.waiting_reason == "awaiting_task_result"
        await house.host.tasks.report(report(TaskStatus.COMPLETED))
        await house.rest(1_000)
        assert [wait.state for wait in kept_waits(house)] == ["resolved"]
        resolved = [e for e in await house.events() if isinstance(e, ContinuationResolved)][-1]
        told = msgspec.to_builtins(resolved.continuation)
        assert told["continuation_class"] == "resume_expected_wait"
        closure = [e for e in await house.events() if isinstance(e, ClosureDecided)][-1]
        assert closure.outcome == "completed"

    run_house(story)


@pytest.mark.requirement("runtime:waiting-for-a-task")
def test_a_wait_opened_after_the_end_is_over_before_it_begins() -> None:
    async def story(house: House) -> None:
        await house.host.tasks.open(TASK)
        await house.host.tasks.report(report(TaskStatus.COMPLETED))
        assert await house.host.tasks.wait_for(TASK.id) is None
        assert kept_waits(house) == []

    run_house(story)


@pytest.mark.requirement("runtime:task-result-rejoins-by-the-queue")
@pytest.mark.parametrize("side", list(Side))
def test_a_crash_around_the_end_of_a_task_neither_loses_nor_repeats_its_result(side: Side) -> None:
    """The end, the result and the wait it ends are one commit; a lost task is ended by recovery."""
    plan = CrashPlan(f"task:{TASK.id}:completed", side)

    async def story(house: House) -> None:
        await house.host.tasks.open(TASK)
        await house.host.tasks.wait_for(TASK.id)
        with pytest.raises(LifeLostError):
            await house.host.tasks.report(report(TaskStatus.COMPLETED))
        assert not await house.host.tasks.report(report(TaskStatus.COMPLETED))
        await house.rest(1_000)
        assert len(await results(house)) == 1
        assert len(house.model.requests) == 1
        assert [wait.state for wait in kept_waits(house)] == ["resolved"]

    run_house(story, setup=Setup(wrap=lambda store: CrashStore(store, plan)))


def test_several_waits_on_one_task_all_end_with_its_one_result() -> None:
    async def story(house: House) -> None:
        item = await house.host.work.create(MAIN, objective="deploy")
        await house.host.tasks.open(TASK)
        await house.host.tasks.wait_for(TASK.id)
        await house.host.tasks.wait_for(TASK.id, work_item_id=item.id)
        await house.host.tasks.report(report(TaskStatus.COMPLETED))
        await house.rest(1_000)
        assert {wait.state for wait in kept_waits(house)} == {"resolved"}
        assert len(await results(house)) == 1

    run_house(story)


@pytest.mark.requirement("runtime:result-waits-for-a-stopped-agent")
def test_a_result_for_a_stopped_agent_waits_and_is_delivered_after_the_resume() -> None:
    async def story(house: House) -> None:
        await house.host.tasks.open(TASK)
        await house.host.tasks.wait_for(TASK.id)
        await house.host.control.stop(MAIN)
        assert await house.host.tasks.report(report(TaskStatus.COMPLETED, result="worth the wait"))
        await house.restart(down_ms=1_000)
        await house.rest(60_000)
        assert house.model.requests == []
        assert (await house.agent()).posture.status is AgentStatus.STOPPED
        await house.host.control.resume(MAIN)
        await house.rest(1_000)
        assert "worth the wait" in house.model.said()
        assert [wait.state for wait in kept_waits(house)] == ["resolved"]

    run_house(story)


def test_a_result_that_comes_while_the_agent_is_busy_is_heard_afterwards() -> None:
    async def story(house: House) -> None:
        await house.host.tasks.open(TASK)
        await house.prompt("slow work")
        await house.rest(1_000)
        await house.host.tasks.report(report(TaskStatus.COMPLETED, result="ready"))
        await house.rest(120_000)
        assert "ready" in house.model.said()

    run_house(story, script=[rule("slow", says("done", after_ms=60_000))])


def test_a_task_that_does_not_exist_is_named() -> None:
    async def story(house: House) -> None:
        for act in (
            house.host.tasks.report(report(TaskStatus.RUNNING)),
            house.host.tasks.wait_for(TASK.id),
        ):
            with pytest.raises(RefusedError) as caught:
                await act
            assert caught.value.refusal.code is RefusalCode.TASK_NOT_FOUND
        assert await house.host.tasks.find(TaskId("task_9")) is None
        lost = msgspec.structs.replace(TASK, agent_id=AgentId("nobody"))
        with pytest.raises(RefusedError) as caught:
            await house.host.tasks.open(lost)
        assert caught.value.refusal.code is RefusalCode.AGENT_NOT_FOUND

    run_house(story)


def test_a_task_cannot_be_opened_on_a_stopped_agent() -> None:
    async def story(house: House) -> None:
        await house.host.control.stop(MAIN)
        with pytest.raises(RefusedError):
            await house.host.tasks.open(TASK)
        assert kept_tasks(house) == []

    run_house(story)
