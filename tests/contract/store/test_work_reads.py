"""Work items: one by one, in the order they are offered, and how many there are."""

import pytest

from holon.model.commits import (
    ConstraintRefused,
    FocusWorkItem,
    OpenWait,
    PutWorkItem,
)
from holon.model.values import (
    WorkItemId,
)
from holon.model.work import WorkItemCounts, WorkItemState
from holon.ports.store import Store
from tests.contract.store.steps import OTHER, make, offer
from tests.support.builders import (
    MAIN,
    a_wait,
    a_work_item,
    moment,
)


@pytest.mark.requirement("console:work-items-are-ranked")
async def test_work_items_come_in_the_order_current_queued_waiting_completed(
    store: Store,
) -> None:
    for n, name in enumerate(("waits", "blocked", "first", "second", "current", "done", "older")):
        item = a_work_item(f"work_{name}", created_at=moment(n), updated_at=moment(n))
        await make(store, PutWorkItem(item=item))
    await make(
        store,
        OpenWait(wait=a_wait(work_item_id=WorkItemId("work_waits"))),
        PutWorkItem(
            item=a_work_item("work_blocked", created_at=moment(1), revision=2, blocked_by="rain")
        ),
        FocusWorkItem(agent_id=MAIN, work_item_id=WorkItemId("work_current")),
    )
    for n, name in ((50, "older"), (60, "done")):
        done = a_work_item(
            f"work_{name}", revision=2, state=WorkItemState.COMPLETED, updated_at=moment(n)
        )
        await make(store, PutWorkItem(item=done))
    expected = ["current", "first", "second", "waits", "blocked", "done", "older"]
    for size in (1, 3, 100):
        seen: list[str] = []
        after: WorkItemId | None = None
        while page := await store.reads.work.work_items_page(MAIN, after=after, limit=size):
            seen += [weighed.item.id.removeprefix("work_") for weighed in page]
            after = page[-1].item.id
        assert seen == expected
    waiting = (await store.reads.work.work_items_page(MAIN, after=None, limit=4))[-1]
    assert [wait.id for wait in waiting.waits] == ["wait_1"]


async def test_open_and_completed_items_are_listed_apart_and_counted(store: Store) -> None:
    for n in range(5):
        await make(store, PutWorkItem(item=a_work_item(f"work_{n}", created_at=moment(n))))
    for n in (4, 1):
        done = a_work_item(
            f"work_{n}", revision=2, state=WorkItemState.COMPLETED, updated_at=moment(10 - n)
        )
        await make(store, PutWorkItem(item=done), at=moment(10 - n))
    current = FocusWorkItem(agent_id=MAIN, work_item_id=WorkItemId("work_3"))
    wait = a_wait(work_item_id=WorkItemId("work_2"))
    await make(store, current, OpenWait(wait=wait))
    weighed = await store.reads.work.open_items(MAIN, limit=9)
    assert [each.item.id for each in weighed] == ["work_3", "work_0", "work_2"]
    assert [each.waits for each in weighed] == [(), (), (wait,)]
    assert len(await store.reads.work.open_items(MAIN, limit=2)) == 2
    completed = await store.reads.work.completed_items(MAIN, limit=9)
    assert [item.id for item in completed] == ["work_1", "work_4"]
    assert len(await store.reads.work.completed_items(MAIN, limit=1)) == 1
    counts = await store.reads.work.work_item_counts(MAIN)
    assert counts == WorkItemCounts(open_count=3, completed_count=2)
    nobody = await store.reads.work.work_item_counts(OTHER)
    assert nobody == WorkItemCounts(open_count=0, completed_count=0)


async def test_an_item_is_found_by_its_id_as_it_was_put_last(store: Store) -> None:
    assert await store.reads.work.work_item(WorkItemId("work_1")) is None
    await make(store, PutWorkItem(item=a_work_item()))
    again = a_work_item(revision=2, blocked_by="a review")
    await make(store, PutWorkItem(item=again))
    assert await store.reads.work.work_item(WorkItemId("work_1")) == again


async def test_the_revision_of_an_item_follows_the_stored_one(store: Store) -> None:
    await make(store, PutWorkItem(item=a_work_item()))
    for revision in (1, 3):
        refused = await offer(store, PutWorkItem(item=a_work_item(revision=revision)))
        assert isinstance(refused, ConstraintRefused)
    found = await store.reads.work.work_item(WorkItemId("work_1"))
    assert found == a_work_item()
