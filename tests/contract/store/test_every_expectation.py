"""Every kind of expectation admits a commit while it holds, and else refuses the whole of it."""

from collections.abc import Sequence
from typing import Final, NamedTuple, get_args

import pytest

from holon.model.agents import AgentStatus
from holon.model.commits import (
    AgentAbsent,
    AgentAdmits,
    AgentGeneration,
    AgentInStatus,
    Applied,
    ArchiveAgent,
    CancelTimer,
    Change,
    CreateTask,
    CreateTimer,
    Expect,
    ExpectationFailed,
    MessageInState,
    OpenWait,
    ParkWakeHint,
    PutWorkItem,
    TaskNotTerminal,
    TimerAtSlot,
    WaitInState,
    WakeHintAtRevision,
    WorkItemAtRevision,
    WorkItemWaitsForOnly,
)
from holon.model.queue import MessageState
from holon.model.tasks import TaskStatus
from holon.model.values import AgentId, MessageId, TaskId, TimerId, WaitId, WorkItemId
from holon.model.wake import WaitState
from holon.ports.store import Store
from tests.contract.store.steps import HOUR, OTHER, claimed, in_status, make, noted, offer, queued
from tests.support.builders import (
    MAIN,
    START,
    a_hint,
    a_task,
    a_timer,
    a_wait,
    a_work_item,
    an_agent,
)


class Fence(NamedTuple):
    """An expectation, and the row it is about."""

    expect: Expect
    before: Sequence[Change] = ()
    found: str = ""  # what is there instead, of one that does not hold


WORK: Final = WorkItemId("work_1")
CLAIM: Final = (queued("msg_1"), claimed("msg_1", generation=3))
ITEM: Final = (PutWorkItem(item=a_work_item()), OpenWait(wait=a_wait(work_item_id=WORK)))
TIMER: Final = TimerId("timer_1")
HINT: Final = (ParkWakeHint(hint=a_hint(revision=2)),)

HOLDING: Final = (
    Fence(AgentGeneration(agent_id=MAIN, generation=3), CLAIM),
    Fence(AgentAdmits(agent_id=MAIN)),
    Fence(AgentAdmits(agent_id=MAIN), (in_status(AgentStatus.PAUSED),)),
    Fence(AgentInStatus(agent_id=MAIN, statuses=(AgentStatus.PAUSED, AgentStatus.ASLEEP))),
    Fence(AgentAbsent(agent_id=OTHER)),
    Fence(MessageInState(message_id=MessageId("msg_1"), state=MessageState.CLAIMED), CLAIM),
    Fence(TimerAtSlot(timer_id=TIMER, slot=START), (CreateTimer(timer=a_timer()),)),
    Fence(WaitInState(wait_id=WaitId("wait_1"), state=WaitState.ACTIVE), ITEM),
    Fence(WorkItemAtRevision(work_item_id=WORK, revision=1), ITEM),
    Fence(WorkItemWaitsForOnly(work_item_id=WORK, wait_count=1), ITEM),
    Fence(TaskNotTerminal(task_id=TaskId("task_1")), (CreateTask(task=a_task()),)),
    Fence(WakeHintAtRevision(agent_id=MAIN, source_key="github", revision=2), HINT),
)
FAILING: Final = (
    Fence(AgentGeneration(agent_id=MAIN, generation=2), CLAIM, "generation 3"),
    Fence(AgentGeneration(agent_id=OTHER, generation=0), found="absent"),
    Fence(AgentAdmits(agent_id=MAIN), (in_status(AgentStatus.STOPPED),), "stopped"),
    Fence(AgentAdmits(agent_id=MAIN), (ArchiveAgent(agent_id=MAIN, reason="over"),), "archived"),
    Fence(AgentAdmits(agent_id=OTHER), found="absent"),
    Fence(AgentInStatus(agent_id=MAIN, statuses=(AgentStatus.PAUSED,)), found="asleep"),
    Fence(AgentInStatus(agent_id=OTHER, statuses=tuple(AgentStatus)), found="absent"),
    Fence(AgentAbsent(agent_id=OTHER), (an_agent(OTHER),), "present"),
    Fence(
        MessageInState(message_id=MessageId("msg_1"), state=MessageState.QUEUED), CLAIM, "claimed"
    ),
    Fence(MessageInState(message_id=MessageId("msg_9"), state=MessageState.QUEUED), found="absent"),
    Fence(
        TimerAtSlot(timer_id=TIMER, slot=HOUR),
        (CreateTimer(timer=a_timer()),),
        f"next slot {START.isoformat()}",
    ),
    Fence(
        TimerAtSlot(timer_id=TIMER, slot=START),
        (CreateTimer(timer=a_timer()), CancelTimer(agent_id=MAIN, timer_id=TIMER)),
        "cancelled",
    ),
    Fence(TimerAtSlot(timer_id=TIMER, slot=START), found="absent"),
    Fence(WaitInState(wait_id=WaitId("wait_1"), state=WaitState.TRIGGERED), ITEM, "active"),
    Fence(WaitInState(wait_id=WaitId("wait_9"), state=WaitState.ACTIVE), found="absent"),
    Fence(WorkItemAtRevision(work_item_id=WORK, revision=2), ITEM, "1"),
    Fence(WorkItemAtRevision(work_item_id=WORK, revision=1), found="absent"),
    Fence(WorkItemWaitsForOnly(work_item_id=WORK, wait_count=0), ITEM, "1"),
    Fence(
        TaskNotTerminal(task_id=TaskId("task_1")),
        (CreateTask(task=a_task(status=TaskStatus.CANCELLED)),),
        "cancelled",
    ),
    Fence(TaskNotTerminal(task_id=TaskId("task_9")), found="absent"),
    Fence(WakeHintAtRevision(agent_id=MAIN, source_key="github", revision=1), HINT, "2"),
    Fence(WakeHintAtRevision(agent_id=MAIN, source_key="github", revision=1), found="absent"),
)


def name_of(fence: Fence) -> str:
    return " ".join((type(fence.expect).__name__, fence.found)).strip()


@pytest.mark.parametrize("fence", HOLDING, ids=name_of)
async def test_a_commit_comes_in_while_what_it_expects_holds(store: Store, fence: Fence) -> None:
    if fence.before:
        await make(store, *fence.before)
    assert await offer(store, noted(), expects=(fence.expect,)) == Applied()


@pytest.mark.parametrize("fence", FAILING, ids=name_of)
async def test_a_commit_is_refused_whole_when_one_expectation_fails(
    store: Store, fence: Fence
) -> None:
    if fence.before:
        await make(store, *fence.before)
    bounds = await store.reads.events.event_bounds(MAIN)
    absent = AgentAbsent(agent_id=AgentId("never"))  # holds, and does not help
    outcome = await offer(
        store, noted(), PutWorkItem(item=a_work_item("new")), expects=(absent, fence.expect)
    )
    assert outcome == ExpectationFailed(expect=fence.expect, found=fence.found)
    assert await store.reads.events.event_bounds(MAIN) == bounds
    assert await store.reads.work.work_item(WorkItemId("new")) is None


async def test_the_first_expectation_that_fails_is_named(store: Store) -> None:
    first, second = (AgentGeneration(agent_id=MAIN, generation=n) for n in (8, 9))
    outcome = await offer(store, noted(), expects=(first, second))
    assert outcome == ExpectationFailed(expect=first, found="generation 0")


@pytest.mark.parametrize("fences", [HOLDING, FAILING], ids=["holding", "failing"])
def test_every_kind_of_expectation_is_tried(fences: Sequence[Fence]) -> None:
    assert {type(fence.expect) for fence in fences} == set(get_args(Expect))
