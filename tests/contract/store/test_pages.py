"""Every page and list is bounded, and refuses a cursor that names no record of the agent."""

import pytest

from holon.model.commits import (
    AppendBrief,
    CreateTask,
    CreateTimer,
    FocusWorkItem,
    PutWorkItem,
    RecordEvent,
)
from holon.model.events.event import ControlApplied
from holon.model.events.reads import EventQuery
from holon.model.limits import (
    EVENT_PAGE_COUNT_MAX,
    STATE_TASKS_COUNT_MAX,
    SURFACE_PAGE_COUNT_MAX,
)
from holon.model.values import (
    BriefId,
    TaskId,
    TimerId,
    WorkItemId,
)
from holon.ports.reads import UnknownCursorError
from holon.ports.store import Store
from tests.contract.store.steps import OTHER, make
from tests.support.builders import (
    MAIN,
    a_brief,
    a_task,
    a_timer,
    a_work_item,
    an_agent,
)


@pytest.mark.parametrize("limit", [0, -1, -(2**40)])
async def test_a_limit_that_makes_no_sense_gives_nothing_rather_than_everything(
    store: Store, limit: int
) -> None:
    await make(
        store,
        PutWorkItem(item=a_work_item()),
        FocusWorkItem(agent_id=MAIN, work_item_id=WorkItemId("work_1")),
        CreateTask(task=a_task()),
        CreateTimer(timer=a_timer()),
        AppendBrief(brief=a_brief()),
    )
    reads = store.reads
    answers = [
        await reads.agents.public_agents(after=None, limit=limit),
        await reads.tasks.tasks_page(MAIN, after=None, limit=limit),
        await reads.wake.timers_page(MAIN, after=None, limit=limit),
        await reads.work.work_items_page(MAIN, after=None, limit=limit),
        await reads.events.briefs_page(MAIN, before=None, limit=limit),
        await reads.turns.turns_page(MAIN, before_index=None, limit=limit),
        (await reads.events.events_page(MAIN, EventQuery(limit=limit))).events,
        await reads.events.log_after(0, limit=limit),
    ]
    assert [len(answer) for answer in answers] == [0] * len(answers)


@pytest.mark.requirement("console:pages-are-bounded")
async def test_no_page_is_longer_than_its_bound_however_much_is_asked_for(store: Store) -> None:
    notes = [
        RecordEvent(agent_id=MAIN, event=ControlApplied(action="a", request_id="r"))
        for _ in range(EVENT_PAGE_COUNT_MAX + 5)
    ]
    briefs = [AppendBrief(brief=a_brief(f"b_{n}")) for n in range(SURFACE_PAGE_COUNT_MAX + 5)]
    tasks = [CreateTask(task=a_task(f"task_{n}")) for n in range(SURFACE_PAGE_COUNT_MAX + 5)]
    await make(store, *notes, *briefs, *tasks)
    slice_ = await store.reads.events.events_page(MAIN, EventQuery(limit=10**9))
    assert len(slice_.events) == EVENT_PAGE_COUNT_MAX
    assert len(await store.reads.events.log_after(0, limit=10**9)) == EVENT_PAGE_COUNT_MAX
    page = await store.reads.events.briefs_page(MAIN, before=None, limit=10**9)
    assert len(page) == SURFACE_PAGE_COUNT_MAX
    assert len(await store.reads.tasks.tasks_page(MAIN, after=None, limit=10**9)) == len(page)
    surface = await store.reads.agents.agent_surface(MAIN)
    assert surface is not None
    assert len(surface.tasks) == STATE_TASKS_COUNT_MAX
    assert surface.counts.tasks == SURFACE_PAGE_COUNT_MAX + 5


async def test_a_cursor_of_nothing_or_of_another_agent_is_refused(store: Store) -> None:
    await make(
        store,
        an_agent(OTHER),
        CreateTask(task=a_task()),
        CreateTimer(timer=a_timer()),
        PutWorkItem(item=a_work_item()),
        AppendBrief(brief=a_brief()),
    )
    reads = store.reads
    for agent_id, suffix in ((MAIN, "9"), (OTHER, "1")):
        with pytest.raises(UnknownCursorError):
            await reads.tasks.tasks_page(agent_id, after=TaskId(f"task_{suffix}"), limit=5)
        with pytest.raises(UnknownCursorError):
            await reads.wake.timers_page(agent_id, after=TimerId(f"timer_{suffix}"), limit=5)
        with pytest.raises(UnknownCursorError):
            await reads.work.work_items_page(agent_id, after=WorkItemId(f"work_{suffix}"), limit=5)
        with pytest.raises(UnknownCursorError):
            await reads.events.briefs_page(agent_id, before=BriefId(f"brief_{suffix}"), limit=5)
    assert (
        len(await reads.tasks.tasks_page(MAIN, after=None, limit=5)) == 1
    )  # no transaction is left open
