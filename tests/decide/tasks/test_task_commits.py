"""What a report about a task makes durable."""

from holon.decide.queue.admission import Admitted
from holon.decide.tasks.commits import (
    advance_commit,
    end_commit,
    opening_of,
    result_request,
    wait_commit,
)
from holon.model.agents import AgentStatus
from holon.model.commits import (
    AdvanceTask,
    Commit,
    CreateTask,
    MoveWait,
    OpenWait,
    QueueMessage,
    TaskNotTerminal,
)
from holon.model.errors import Refusal, RefusalCode
from holon.model.limits import WAIT_DEADLINE_DEFAULT_MS
from holon.model.queue import TextBody
from holon.model.tasks import TaskStatus
from holon.model.values import WaitId, later
from holon.model.wake import WaitState
from tests.decide.sample_rows import agent_in
from tests.support.builders import MAIN, START, a_message, a_task, a_wait

TASK = a_task()
DONE = AdvanceTask(agent_id=MAIN, task_id=TASK.id, status=TaskStatus.COMPLETED)


def test_a_task_is_opened_for_an_agent_that_exists() -> None:
    opened = opening_of(TASK, agent_in(AgentStatus.ASLEEP))
    assert isinstance(opened, Commit)
    assert opened.changes == (CreateTask(task=TASK),)
    refused = opening_of(TASK, None)
    assert isinstance(refused, Refusal)
    assert refused.code is RefusalCode.AGENT_NOT_FOUND


def test_a_step_of_a_task_comes_true_once_and_never_after_its_end() -> None:
    running = AdvanceTask(agent_id=MAIN, task_id=TASK.id, status=TaskStatus.RUNNING)
    commit = advance_commit(TASK, running, now=START)
    assert commit.commit_id == f"task:{TASK.id}:running"
    assert commit.expects == (TaskNotTerminal(task_id=TASK.id),)


def test_the_end_the_result_and_the_waits_are_one_commit() -> None:
    waits = [a_wait("wait_1"), a_wait("wait_2")]
    result = Admitted(message=a_message("msg_9"))
    commit = end_commit(TASK, DONE, result=result, waits=waits, now=START)
    kinds = [type(change) for change in commit.changes]
    assert kinds == [AdvanceTask, MoveWait, MoveWait, QueueMessage]
    moved = [change for change in commit.changes if isinstance(change, MoveWait)]
    assert {each.state for each in moved} == {WaitState.TRIGGERED}


def test_where_the_result_goes_nowhere_the_waits_are_cancelled() -> None:
    commit = end_commit(TASK, DONE, result=None, waits=[a_wait()], now=START)
    (moved,) = (change for change in commit.changes if isinstance(change, MoveWait))
    assert moved.state is WaitState.CANCELLED
    assert not any(isinstance(change, QueueMessage) for change in commit.changes)


def test_a_result_ends_the_first_wait_by_identity_and_always_says_something() -> None:
    request = result_request(TASK, DONE, [a_wait("wait_1"), a_wait("wait_2")])
    assert (request.wait_id, request.task_id) == ("wait_1", TASK.id)
    assert request.body == TextBody(text=f"task {TASK.id} ended: completed")
    assert result_request(TASK, DONE, []).wait_id is None


def test_a_task_that_has_ended_is_not_waited_for() -> None:
    commit = wait_commit(WaitId("wait_1"), TASK, work_item_id=None, now=START)
    assert commit is not None
    (opened,) = commit.changes
    assert isinstance(opened, OpenWait)
    assert opened.wait.deadline_at == later(START, by_ms=WAIT_DEADLINE_DEFAULT_MS)
    over = a_task(status=TaskStatus.FAILED)
    assert wait_commit(WaitId("wait_1"), over, work_item_id=None, now=START) is None
