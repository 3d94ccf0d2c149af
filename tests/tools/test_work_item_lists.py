"""Seeing all one's work, and oneself: bounded, in a fixed order, from the rows as they are."""

import pytest

from holon.decide.work.items import WorkItemEdit
from holon.model.limits import WORK_ITEMS_LISTED_COUNT_MAX, WORK_ITEMS_WEIGHED_COUNT_MAX
from holon.model.values import JsonValue, WorkItemId
from tests.runtime.house import House, run_house
from tests.support.builders import MAIN, an_identity
from tests.tools.work_item_stage import (
    MemoryFiles,
    notes_of,
    perform,
    refusal_of,
    result_of,
)


async def furnish(house: House) -> None:
    """One item of every kind: work_1 runs, work_2 is current, then blocked, asking, and done."""
    await house.host.control.pause(MAIN)
    for objective in ("runs", "current", "blocked", "asks", "done", "done later"):
        await house.host.work.create(MAIN, objective=objective)
    await house.host.work.focus(WorkItemId("work_2"))
    await house.host.work.edit(WorkItemId("work_3"), WorkItemEdit(), blocked_by="rain")
    asks: JsonValue = {"work_item_id": "work_4", "plan_status": "needs_input"}
    await perform(house, "UpdateWorkItem", asks)
    await house.host.work.complete(WorkItemId("work_5"))
    await house.host.work.complete(WorkItemId("work_6"))
    await house.host.control.create_agent(an_identity("other"))
    other = {"objective": "foreign", "plan_status": "needs_input"}
    await perform(house, "CreateWorkItem", other, agent="other")


@pytest.mark.requirement("work-item-tools:lists-are-filtered-and-bounded")
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("all", "current runs blocked asks done-later done"),
        (None, "current runs blocked asks"),
        ("open", "current runs blocked asks"),
        ("completed", "done-later done"),
        ("current", "current"),
        ("queued", "runs asks"),
        ("blocked", "blocked"),
        ("waiting_for_operator", "asks"),
        ("runnable", "current runs"),
        ("Waiting for operator", "asks"),
    ],
)
def test_a_list_shows_what_was_asked_for_in_a_fixed_order(
    wanted: str | None, expected: str
) -> None:
    async def story(house: House) -> None:
        await furnish(house)
        listed = result_of(
            await perform(house, "ListWorkItems", {"filter": wanted} if wanted else {})
        )
        shown = [view["objective"].replace(" ", "-") for view in listed["work_items"]]
        assert shown == expected.split()
        assert listed["omitted_count"] == 0

    run_house(story)


def test_what_the_limit_cuts_off_is_counted_and_previews_are_short() -> None:
    async def story(house: House) -> None:
        disk = MemoryFiles()
        for _ in range(3):
            arguments: JsonValue = {
                "objective": "x",
                "plan": "p" * 1_000,
                "plan_status": "needs_input",
                "todo_list": ["a"],
            }
            await perform(house, "CreateWorkItem", arguments, files=disk)
        listed = await perform(house, "ListWorkItems", {"limit": "2"}, files=disk)
        views = result_of(listed)["work_items"]
        assert (len(views), result_of(listed)["omitted_count"]) == (2, 1)
        assert len(views[0]["plan_artifact"]["preview"]) < 1_000
        assert views[0]["plan_artifact"]["preview_complete"] is False
        assert "todo_list" not in views[0]
        assert "limit" in notes_of(listed)
        whole = await perform(house, "ListWorkItems", {"include_todo_list": True})
        assert result_of(whole)["work_items"][0]["todo_list"]

    run_house(story)


@pytest.mark.requirement("work-item-tools:lists-are-filtered-and-bounded")
@pytest.mark.parametrize(
    ("wanted", "limit", "expected", "omitted"),
    [
        ("all", 5, "current runs blocked asks done-later", 1),
        ("all", 2, "current runs", 4),
        ("open", 1, "current", 3),
        ("completed", 1, "done-later", 1),
        ("runnable", 1, "current", 1),
    ],
)
def test_what_a_limit_leaves_out_is_counted_whatever_is_listed(
    wanted: str, limit: int, expected: str, omitted: int
) -> None:
    async def story(house: House) -> None:
        await furnish(house)
        arguments: JsonValue = {"filter": wanted, "limit": limit}
        listed = result_of(await perform(house, "ListWorkItems", arguments))
        shown = [view["objective"].replace(" ", "-") for view in listed["work_items"]]
        assert (shown, listed["omitted_count"]) == (expected.split(), omitted)

    run_house(story)


def test_a_list_that_looked_only_so_far_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(house: House) -> None:
        await furnish(house)
        monkeypatch.setattr("holon.tools.work.read.WORK_ITEMS_SEARCHED_COUNT_MAX", 2)
        searched = await perform(house, "ListWorkItems", {"filter": "runnable"})
        assert "oldest 2" in notes_of(searched)
        assert notes_of(await perform(house, "ListWorkItems", {"filter": "open"})) == ""

    run_house(story)


def test_more_items_than_the_scheduler_weighs_are_listed_and_counted() -> None:
    async def story(house: House) -> None:
        await house.host.control.pause(MAIN)
        for _ in range(WORK_ITEMS_WEIGHED_COUNT_MAX + 6):
            await house.host.work.create(MAIN, objective="more")
        listed = result_of(await perform(house, "ListWorkItems", {"limit": 67}))
        assert (len(listed["work_items"]), listed["omitted_count"]) == (67, 3)
        seen = result_of(await perform(house, "AgentGet", {}))
        assert seen["counts"]["open_work_items"] == WORK_ITEMS_WEIGHED_COUNT_MAX + 6

    run_house(story)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"filter": "mine"}, "filter"),
        ({"limit": 0}, "limit"),
        ({"limit": WORK_ITEMS_LISTED_COUNT_MAX + 1}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"include_todo_list": "perhaps"}, "include_todo_list"),
        ({"include_todo_list": 1}, "include_todo_list"),
    ],
)
def test_a_list_nobody_can_make_is_refused(arguments: JsonValue, field: str) -> None:
    async def story(house: House) -> None:
        refused = await perform(house, "ListWorkItems", arguments)
        assert refusal_of(refused) == ("invalid_tool_input", field)

    run_house(story)


@pytest.mark.requirement("work-item-tools:agent-sees-itself")
@pytest.mark.parametrize("arguments", [{}, None, "", {"agent_id": "other"}, {"arguments": {}}])
def test_an_agent_sees_itself_and_nobody_else(arguments: JsonValue) -> None:
    async def story(house: House) -> None:
        await furnish(house)
        seen = result_of(await perform(house, "AgentGet", arguments))
        assert seen["identity"]["agent_id"] == MAIN
        assert seen["agent"]["status"] == "paused"
        assert seen["model"]["source"] == "runtime_default"
        assert seen["agent"]["current_work_item_id"] == "work_2"
        assert seen["counts"]["open_work_items"] == 4
        assert seen["counts"]["tasks"] == 0
        assert [each["objective"] for each in seen["work_items"]][:2] == ["current", "runs"]
        assert seen["agent"]["turn_index"] == seen["agent"]["total_input_tokens"] == 0

    run_house(story)


def test_an_agent_that_is_gone_sees_nothing() -> None:
    async def story(house: House) -> None:
        gone = await perform(house, "AgentGet", {}, agent="nobody")
        assert refusal_of(gone)[0] == "agent_not_found"

    run_house(story)
