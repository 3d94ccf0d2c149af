"""Work items: one by one, in the order they are offered, and how many there are."""

import pytest

from holon.model.commits import (
    FocusWorkItem,
    OpenWait,
    PutWorkItem,
)
from holon.model.values import (
    WorkItemId,
)
from holon.model.work import WorkItemState
from holon.ports.store import Store
from tests.contract.store.steps import make
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
