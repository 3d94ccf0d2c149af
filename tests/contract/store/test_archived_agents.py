"""Archiving: only who has nothing left to do, for good, and no longer counted."""

import pytest

from holon.decide.events.audit import audited
from holon.model.agents import IdentityStatus
from holon.model.commits import (
    AppendBrief,
    Applied,
    ArchiveAgent,
    Change,
    ClaimMessage,
    CommitOutcome,
    ConstraintRefused,
    CreateTask,
    CreateTimer,
    CreateTrigger,
    OpenTurn,
    OpenWait,
    ParkWakeHint,
    PutWorkItem,
    QueueMessage,
)
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import DAY_MS
from holon.model.tasks import TaskStatus
from holon.model.values import AgentId
from holon.model.work import WorkItemState
from holon.ports.store import Store
from tests.contract.store.steps import OTHER, make, prune_all
from tests.support.builders import (
    MAIN,
    a_brief,
    a_commit,
    a_hint,
    a_message,
    a_task,
    a_timer,
    a_trigger,
    a_turn,
    a_wait,
    a_work_item,
    an_agent,
    moment,
)

QUEUED = QueueMessage(message=a_message())


CLAIMED = ClaimMessage(agent_id=MAIN, message_id=a_message().id, generation=1, passed_over=0)


UNFINISHED: dict[str, tuple[Change, ...]] = {
    "a queued message": (QUEUED,),
    "a claimed message": (QUEUED, CLAIMED),
    "an open turn": (QUEUED, CLAIMED, OpenTurn(turn=a_turn())),
    "a running task": (CreateTask(task=a_task()),),
    "open work": (PutWorkItem(item=a_work_item()),),
    "an active timer": (CreateTimer(timer=a_timer()),),
    "an open wait": (OpenWait(wait=a_wait()),),
    "a wake hint": (ParkWakeHint(hint=a_hint()),),
    "an address to be called by": (CreateTrigger(trigger=a_trigger()),),
}


async def archive(store: Store, commit_id: str = "archive:main") -> CommitOutcome:
    commit = a_commit(commit_id, ArchiveAgent(agent_id=MAIN, reason="over"))
    return await store.apply(audited(commit))


@pytest.mark.requirement("run-once:agent-ends-with-its-run")
@pytest.mark.parametrize("changes", UNFINISHED.values(), ids=UNFINISHED)
async def test_an_agent_with_something_left_stays_in_use(
    store: Store, changes: tuple[Change, ...]
) -> None:
    await make(store, *changes)
    bounds = await store.reads.events.event_bounds(MAIN)
    assert await archive(store) == ConstraintRefused(constraint="agents_archived_owe_nothing")
    state = await store.reads.agents.agent(MAIN)
    assert state is not None
    assert state.identity.status is IdentityStatus.ACTIVE
    assert await store.reads.events.event_bounds(MAIN) == bounds


@pytest.mark.requirement("run-once:agent-ends-with-its-run")
async def test_an_archived_agent_is_kept_for_good_and_not_counted(store: Store) -> None:
    done = a_work_item(state=WorkItemState.COMPLETED)
    finished = (CreateTask(task=a_task(status=TaskStatus.COMPLETED)), PutWorkItem(item=done))
    await make(store, an_agent("other"), *finished)
    assert await store.reads.agents.agent_count(limit=9) == 2
    assert await store.reads.agents.agent_count(limit=1) == 1, "counting stops there"
    assert await archive(store) == Applied()
    assert await archive(store) == Applied(replayed=True)
    assert isinstance(await archive(store, "again"), ConstraintRefused)
    state = await store.reads.agents.agent(MAIN)
    assert state is not None
    assert (state.identity.agent_id, state.identity.status) == (MAIN, IdentityStatus.ARCHIVED)
    assert await store.reads.agents.agent_count(limit=9) == 1
    assert await store.reads.tasks.task(a_task().id) is not None


async def test_an_archived_agent_is_named_once_no_row_of_its_doings_is_left(store: Store) -> None:
    await make(store, an_agent(OTHER), AppendBrief(brief=a_brief()))
    asked = [MAIN, OTHER, AgentId("never")]
    assert await archive(store) == Applied()
    assert await store.reads.agents.archived_without_history(asked) == []
    await prune_all(store, RetentionPolicy(), now=moment(400 * DAY_MS))
    (left,) = await store.reads.agents.archived_without_history(asked)
    assert (left.agent_id, left.status) == (MAIN, IdentityStatus.ARCHIVED)
    assert await store.reads.agents.archived_without_history([OTHER]) == []
