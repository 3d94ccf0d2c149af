"""What waits to be shown to agents, and what of it goes first."""

from holon.model.commits import ArchiveAgent, QueueMessage
from holon.model.queue import MessageKind, TaskOrigin
from holon.model.values import TaskId
from tests.adapters.sqlite.history_rows import settled
from tests.adapters.sqlite.test_reads import Bench, bench
from tests.support.builders import MAIN, a_message, a_tick

__all__ = ["bench"]


async def test_the_oldest_beyond_the_newest_go_first_but_no_result_of_a_task(bench: Bench) -> None:
    origin = TaskOrigin(task_id=TaskId("task_1"))
    result = a_tick("msg_0", kind=MessageKind.TASK_RESULT, origin=origin)
    for message in (result, *(a_message(f"msg_{n}") for n in range(1, 6))):
        await bench.make(QueueMessage(message=message), settled(message, unseen=True))
    assert await bench.reads.queue.crowded(kept=6) == []
    assert await bench.reads.queue.crowded(kept=5) == [MAIN]
    assert await bench.reads.queue.oldest_unseen(MAIN, kept=6, limit=9) == []
    assert await bench.reads.queue.oldest_unseen(MAIN, kept=2, limit=9) == [
        "msg_1",
        "msg_2",
        "msg_3",
    ]
    assert await bench.reads.queue.oldest_unseen(MAIN, kept=2, limit=1) == ["msg_1"]
    await bench.make(ArchiveAgent(agent_id=MAIN, reason="over"))
    assert await bench.reads.queue.crowded(kept=5) == [], (
        "it goes with the rest of an archived agent"
    )
