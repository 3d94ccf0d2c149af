"""Background tasks: those that run, those that have ended, and what no turn has taken in yet."""

import msgspec

from holon.model.commits import (
    AdvanceTask,
    Change,
    CreateTask,
    QueueMessage,
)
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    MessageKind,
    TaskOrigin,
    TrustLevel,
)
from holon.model.tasks import TaskStatus
from holon.model.values import (
    AgentId,
    TaskId,
)
from holon.ports.store import Store
from tests.contract.store.steps import OTHER, claimed, make, settled, with_
from tests.support.builders import (
    MAIN,
    a_message,
    a_task,
    an_agent,
    moment,
)


async def test_tasks_come_open_ones_first_and_newest_first(store: Store) -> None:
    await make(store, an_agent(OTHER))
    for n in range(6):
        task = with_(a_task(f"task_{n}"), updated_at=moment(n))
        await make(store, CreateTask(task=task), at=moment(n))
    for n in (1, 4):
        end = AdvanceTask(agent_id=MAIN, task_id=TaskId(f"task_{n}"), status=TaskStatus.COMPLETED)
        await make(store, end, at=moment(10 + n))
    expected = ["task_5", "task_3", "task_2", "task_0", "task_4", "task_1"]
    whole = await store.reads.tasks.tasks_page(MAIN, after=None, limit=50)
    assert [task.id for task in whole] == expected
    for size in (1, 2, 4):
        seen: list[str] = []
        after: TaskId | None = None
        while page := await store.reads.tasks.tasks_page(MAIN, after=after, limit=size):
            seen += [task.id for task in page]
            after = page[-1].id
        assert seen == expected
    assert await store.reads.tasks.tasks_page(OTHER, after=None, limit=50) == []


async def test_a_task_is_read_as_it_stands(store: Store) -> None:
    await make(store, CreateTask(task=a_task()))
    assert await store.reads.tasks.open_tasks() == [a_task()]
    await make(
        store,
        AdvanceTask(
            agent_id=MAIN,
            task_id=TaskId("task_1"),
            status=TaskStatus.COMPLETED,
            result_summary="ok",
            exit_status=0,
        ),
    )
    task = await store.reads.tasks.task(TaskId("task_1"))
    assert task is not None
    assert (task.status, task.result_summary, task.exit_status) == ("completed", "ok", 0)
    assert await store.reads.tasks.open_tasks() == []


def ended_task(task_id: str, agent_id: AgentId = MAIN) -> tuple[Change, ...]:
    """A task of an agent, its end, and the message that tells of it."""
    task = msgspec.structs.replace(a_task(task_id), agent_id=agent_id)
    message = msgspec.structs.replace(
        a_message(f"msg_{task_id}"),
        agent_id=agent_id,
        kind=MessageKind.TASK_RESULT,
        origin=TaskOrigin(task_id=TaskId(task_id)),
        trust=TrustLevel.TRUSTED_SYSTEM,
        authority_class=AuthorityClass.RUNTIME_INSTRUCTION,
        delivery_surface=DeliverySurface.TASK_REJOIN,
        admission_context=AdmissionContext.RUNTIME_OWNED,
        task_id=TaskId(task_id),
    )
    return (
        CreateTask(task=task),
        AdvanceTask(
            agent_id=agent_id,
            task_id=task.id,
            status=TaskStatus.FAILED,
            result_summary=f"what {task_id} said",
        ),
        QueueMessage(message=message),
    )


async def test_waiting_results_are_the_agents_own_newest_first_and_bounded(store: Store) -> None:
    await make(store, an_agent(OTHER))
    await make(store, *ended_task("task_x", OTHER), at=moment(1))
    for number in range(3):
        await make(store, *ended_task(f"task_{number}"), at=moment(10 + number))
    await make(store, CreateTask(task=a_task("task_9")), at=moment(20))
    await make(store, claimed("msg_task_0"), at=moment(30))
    found = await store.reads.tasks.unread_results(MAIN, limit=5)
    assert [task.id for task in found] == ["task_2", "task_1", "task_0"]
    assert found[0].result_summary == "what task_2 said"
    assert len(await store.reads.tasks.unread_results(MAIN, limit=2)) == 2
    assert await store.reads.tasks.unread_results(AgentId("nobody"), limit=2) == []


async def test_ended_tasks_are_the_agents_own_newest_first(store: Store) -> None:
    await make(store, an_agent(OTHER))
    await make(store, *ended_task("task_x", OTHER), at=moment(5))
    for n, number in enumerate((2, 0, 1)):
        await make(store, *ended_task(f"task_{number}"), at=moment(10 + n))
    await make(store, CreateTask(task=a_task("task_9")), at=moment(20))
    found = await store.reads.tasks.ended_tasks(MAIN, limit=9)
    assert [task.id for task in found] == ["task_1", "task_0", "task_2"]
    assert len(await store.reads.tasks.ended_tasks(MAIN, limit=2)) == 2


async def test_results_of_all_agents_wait_until_their_messages_are_settled(store: Store) -> None:
    await make(store, an_agent(OTHER))
    await make(store, *ended_task("task_x", OTHER), *ended_task("task_1"), *ended_task("task_2"))
    await make(store, settled("msg_task_1"))
    found = await store.reads.tasks.unread_tasks()
    assert {task.id for task in found} == {"task_x", "task_2"}
