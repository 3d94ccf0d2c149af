"""Results that have arrived and no turn has taken in yet, as a prompt reads them."""

import msgspec

from holon.decide.events.audit import audited
from holon.model.commits import AdvanceTask, Applied, Change, ClaimMessage, CreateTask, QueueMessage
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    MessageKind,
    TaskOrigin,
    TrustLevel,
)
from holon.model.tasks import TaskStatus
from holon.model.values import AgentId, MessageId, TaskId
from holon.ports.store import Store
from tests.support.builders import MAIN, START, a_commit, a_message, a_task, an_agent, moment
from tests.support.inline_writer import InlineWriter, NoFaults
from tests.support.manual_clock import ManualClock
from tests.support.memory_store import memory_connection, memory_store

OTHER = AgentId("other")


async def write(store: Store, name: str, *changes: Change, at_ms: int = 0) -> None:
    assert await store.apply(audited(a_commit(name, *changes, at=moment(at_ms)))) == Applied()


def ended(task_id: str, agent_id: AgentId = MAIN) -> tuple[Change, ...]:
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


async def test_waiting_results_are_the_agents_own_newest_first_and_bounded() -> None:
    shared = memory_connection()
    store = memory_store(shared, InlineWriter(shared, ManualClock(START), NoFaults()))
    await write(store, "birth", an_agent(), an_agent(OTHER))
    await write(store, "foreign", *ended("task_x", OTHER), at_ms=1)
    for number in range(3):
        await write(store, f"own:{number}", *ended(f"task_{number}"), at_ms=10 + number)
    await write(store, "runs", CreateTask(task=a_task("task_9")), at_ms=20)
    claimed = MessageId("msg_task_0")
    claim = ClaimMessage(agent_id=MAIN, message_id=claimed, generation=1, passed_over=0)
    await write(store, "claim", claim, at_ms=30)
    found = await store.reads.tasks.unread_results(MAIN, limit=5)
    assert [task.id for task in found] == ["task_2", "task_1", "task_0"]
    assert found[0].result_summary == "what task_2 said"
    assert len(await store.reads.tasks.unread_results(MAIN, limit=2)) == 2
    assert await store.reads.tasks.unread_results(AgentId("nobody"), limit=2) == []
