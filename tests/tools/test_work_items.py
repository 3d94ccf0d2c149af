"""The work-item tools: what they change, what they show, and what they refuse."""

from pathlib import Path

import pytest

from holon.adapters.files.contained_files import ContainedFiles
from holon.model.limits import (
    OBJECTIVE_CHARS_MAX,
    PLAN_BYTES_MAX,
    PLAN_PREVIEW_CHARS_MAX,
    RECHECK_DEFAULT_MS,
    TODO_ITEMS_COUNT_MAX,
)
from holon.model.values import JsonValue, WorkItemId, later
from holon.model.work import PlanStatus, TodoState, WorkItemState
from tests.runtime.house import House, run_house
from tests.runtime.records import active_waits, kept_items, kept_waits
from tests.support.builders import MAIN, an_identity
from tests.tools.work_item_stage import (
    HOME,
    MemoryFiles,
    item_in,
    notes_of,
    perform,
    refusal_of,
    result_of,
)

CHECKLIST = [{"text": "look", "state": "completed"}, {"text": "write", "state": "in_progress"}]


async def make(house: House, objective: str = "tidy up") -> str:
    """An item of the agent's, still to be woken for: it needs the operator, so nobody offers it."""
    arguments: JsonValue = {"objective": objective, "plan_status": "needs_input"}
    created = result_of(await perform(house, "CreateWorkItem", arguments))
    return str(created["work_item"]["id"])


@pytest.mark.requirement("work-item-tools:create-opens-an-item")
def test_a_new_item_is_open_and_queued_and_takes_nobodys_focus() -> None:
    async def story(house: House) -> None:
        first = await make(house)
        await perform(house, "PickWorkItem", {"work_item_id": first})
        arguments: JsonValue = {
            "objective": "deploy",
            "plan_status": "needs_input",
            "todo_list": CHECKLIST,
        }
        view = result_of(await perform(house, "CreateWorkItem", arguments))["work_item"]
        assert (view["state"], view["focus"], view["is_runnable"]) == ("open", "queued", False)
        assert view["readiness"] == "waiting_for_operator"
        assert view["todo_list"] == CHECKLIST
        assert view["todo_counts"] == {"pending": 0, "in_progress": 1, "completed": 1}
        item = await item_in(house, view["id"])
        assert item.plan_status is PlanStatus.NEEDS_INPUT
        assert [todo.state for todo in item.todo_list] == [
            TodoState.COMPLETED,
            TodoState.IN_PROGRESS,
        ]
        assert (await house.agent()).focus.current_work_item_id == first

    run_house(story)


@pytest.mark.requirement("work-item-tools:plan-is-a-file")
@pytest.mark.parametrize("length", [3, PLAN_PREVIEW_CHARS_MAX, PLAN_PREVIEW_CHARS_MAX + 1])
def test_a_plan_is_seeded_as_a_file_and_shown_in_a_bounded_preview(length: int) -> None:
    async def story(house: House) -> None:
        disk = MemoryFiles()
        arguments: JsonValue = {
            "objective": "plan it",
            "plan_status": "needs_input",
            "plan": "é" * length,
        }
        created = await perform(house, "CreateWorkItem", arguments, files=disk)
        view = result_of(created)["work_item"]
        path = f"{HOME}/work-items/{view['id']}/plan.md"
        assert disk.contents == {path: ("é" * length).encode()}
        plan = view["plan_artifact"]
        assert plan["path"] == path
        assert plan["relative_path"] == f"work-items/{view['id']}/plan.md"
        assert plan["bytes"] == 2 * length
        assert plan["preview"] == "é" * min(length, PLAN_PREVIEW_CHARS_MAX)
        assert plan["preview_complete"] is (length <= PLAN_PREVIEW_CHARS_MAX)
        assert (await item_in(house, view["id"])).plan_artifact is not None

    run_house(story)


@pytest.mark.requirement("work-item-tools:plan-is-a-file")
def test_an_edited_plan_shows_as_it_is_now_and_a_lost_one_is_no_error() -> None:
    async def story(house: House) -> None:
        disk = MemoryFiles()
        arguments: JsonValue = {"objective": "x", "plan": "first", "plan_status": "needs_input"}
        created = await perform(house, "CreateWorkItem", arguments, files=disk)
        before = result_of(created)["work_item"]
        asked: JsonValue = {"work_item_id": before["id"]}
        await house.rest(1_000)
        same = result_of(await perform(house, "GetWorkItem", asked, files=disk))["work_item"]
        assert same["plan_artifact"] == before["plan_artifact"]
        disk.contents[before["plan_artifact"]["path"]] = b"second \xff"
        edited = result_of(await perform(house, "GetWorkItem", asked, files=disk))["work_item"]
        assert edited["plan_artifact"]["preview"].startswith("second")
        assert edited["plan_artifact"]["hash"] != before["plan_artifact"]["hash"]
        assert edited["plan_artifact"]["updated_at"] > before["plan_artifact"]["updated_at"]
        disk.contents.clear()
        lost = await perform(house, "GetWorkItem", asked, files=disk)
        assert "plan_artifact" not in result_of(lost)["work_item"]
        disk.escapes = True
        hidden = await perform(house, "GetWorkItem", asked, files=disk)
        assert "leads out of the root" in notes_of(hidden)

    run_house(story)


def test_a_plan_is_written_to_a_real_disk_and_read_back(tmp_path: Path) -> None:
    async def story(house: House) -> None:
        arguments: JsonValue = {"objective": "x", "plan": "steps", "plan_status": "needs_input"}
        disk, home = ContainedFiles(), str(tmp_path)
        created = await perform(house, "CreateWorkItem", arguments, files=disk, home=home)
        plan = result_of(created)["work_item"]["plan_artifact"]
        assert Path(plan["path"]).read_text("utf-8") == "steps"
        asked: JsonValue = {"work_item_id": result_of(created)["work_item"]["id"]}
        shown = await perform(house, "GetWorkItem", asked, files=disk, home=home)
        assert result_of(shown)["work_item"]["plan_artifact"] == plan
        Path(plan["path"]).unlink()
        Path(plan["path"]).parent.rmdir()
        lost = await perform(house, "GetWorkItem", asked, files=disk, home=home)
        assert "plan_artifact" not in result_of(lost)["work_item"]
        assert notes_of(lost) == ""

    run_house(story)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "objective"),
        ({"objective": "  "}, "objective"),
        ({"objective": "x" * (OBJECTIVE_CHARS_MAX + 1)}, "objective"),
        ({"objective": 7}, "objective"),
        ({"objective": "x", "plan_status": "perhaps"}, "plan_status"),
        ({"objective": "x", "plan": ["a"]}, "plan"),
        ({"objective": "x", "plan": "p" * (PLAN_BYTES_MAX + 1)}, "plan"),
        ({"objective": "x", "plan": "no disk"}, "plan"),
        ({"objective": "x", "todo_list": 3}, "todo_list"),
        ({"objective": "x", "todo_list": [{"state": "pending"}]}, "todo_list[0].text"),
        ({"objective": "x", "todo_list": [{"text": "a", "state": "?"}]}, "todo_list[0].state"),
        ({"objective": "x", "todo_list": ["a"] * (TODO_ITEMS_COUNT_MAX + 1)}, "todo_list"),
        ("tidy up", None),
        ([], None),
    ],
)
def test_what_makes_no_item_is_refused_with_the_field(
    arguments: JsonValue, field: str | None
) -> None:
    async def story(house: House) -> None:
        kind, where = refusal_of(await perform(house, "CreateWorkItem", arguments))
        assert kind in ("invalid_tool_input", "bad_objective", "plan_not_written")
        assert where == field
        assert len(kept_items(house)) == 0

    run_house(story)


@pytest.mark.requirement("work-item-tools:arguments-are-read-leniently")
@pytest.mark.parametrize(
    "arguments",
    [
        {"objective": "x", "todo_list": ["look"]},
        {"objective": "x", "todo_list": "look"},
        {"objective": "x", "todo_list": '[{"text": "look"}]'},
        {"title": "x", "todos": [{"content": "look", "status": "Pending"}]},
        {"arguments": {"objective": "x", "todoList": {"text": "look"}}},
        '{"objective": "x", "todo_list": [{"text": "look", "priority": 1}]}',
    ],
)
def test_a_checklist_in_a_models_own_words_is_understood_with_a_note(arguments: JsonValue) -> None:
    async def story(house: House) -> None:
        created = await perform(house, "CreateWorkItem", arguments)
        view = result_of(created)["work_item"]
        assert (view["objective"], view["todo_list"]) == (
            "x",
            [{"text": "look", "state": "pending"}],
        )
        assert notes_of(created)
        await perform(house, "CompleteWorkItem", {"work_item_id": view["id"]})

    run_house(story)


@pytest.mark.requirement("work-item-tools:pick-moves-the-focus")
@pytest.mark.parametrize("reason", [None, "the operator asked"])
def test_leaving_an_item_that_could_go_on_without_a_reason_is_remarked_on(
    reason: str | None,
) -> None:
    async def story(house: House) -> None:
        await house.host.control.pause(MAIN)  # nobody shall work on the items meanwhile
        ids = [
            result_of(await perform(house, "CreateWorkItem", {"objective": name}))["work_item"][
                "id"
            ]
            for name in ("one", "two")
        ]
        first = await perform(house, "PickWorkItem", {"work_item_id": ids[0]})
        assert result_of(first)["previous_work_item_id"] is None
        assert result_of(first)["work_item"]["is_current"] is True
        assert notes_of(first) == ""
        arguments: JsonValue = {"work_item_id": ids[1], "reason": reason}
        second = await perform(house, "PickWorkItem", arguments)
        assert result_of(second)["previous_work_item_id"] == ids[0]
        assert bool(notes_of(second)) is (reason is None)
        assert (await house.agent()).focus.current_work_item_id == ids[1]
        again = await perform(house, "PickWorkItem", {"work_item_id": ids[1]})
        assert notes_of(again) == ""

    run_house(story)


@pytest.mark.requirement("work-item-tools:only-ones-own-open-items")
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("PickWorkItem", {}),
        ("GetWorkItem", {}),
        ("UpdateWorkItem", {"plan_status": "ready"}),
        ("CompleteWorkItem", {}),
    ],
)
def test_an_item_that_is_unknown_foreign_or_over_is_refused(
    name: str, more: dict[str, JsonValue]
) -> None:
    async def story(house: House) -> None:
        unknown = await perform(house, name, {"work_item_id": "work_99", **more})
        assert refusal_of(unknown) == ("unknown_work_item", "work_item_id")
        bad = await perform(house, name, {"work_item_id": "../etc", **more})
        assert refusal_of(bad) == ("invalid_tool_input", "work_item_id")
        missing = await perform(house, name, more)
        assert refusal_of(missing) == ("invalid_tool_input", "work_item_id")
        item_id = await make(house)
        await house.host.control.create_agent(an_identity("other"))
        foreign = await perform(house, name, {"work_item_id": item_id, **more}, agent="other")
        assert refusal_of(foreign) == ("unknown_work_item", "work_item_id")
        await house.host.work.complete(WorkItemId(item_id))
        over = await perform(house, name, {"work_item_id": item_id, **more})
        if name == "GetWorkItem":
            assert result_of(over)["work_item"]["state"] == "completed"
        else:
            assert refusal_of(over) == ("work_item_completed", "work_item_id")

    run_house(story)


@pytest.mark.requirement("work-item-tools:update-touches-what-it-names")
@pytest.mark.parametrize(
    ("changed", "shows"),
    [
        ({"objective": "better"}, {"objective": "better"}),
        ({"plan_status": "ready", "objective": None}, {"plan_status": "ready"}),
        ({"todo_list": CHECKLIST}, {"todo_list": CHECKLIST}),
    ],
)
def test_an_update_changes_what_it_names_and_keeps_the_blocker_and_its_deadline(
    changed: dict[str, JsonValue], shows: dict[str, JsonValue]
) -> None:
    async def story(house: House) -> None:
        item_id = await make(house)
        asked: JsonValue = {"work_item_id": item_id, "blocked_by": "rain", "recheck_after": 60_000}
        await perform(house, "UpdateWorkItem", asked)
        before = await item_in(house, item_id)
        waits = kept_waits(house)
        await house.rest(1_000)
        updated = await perform(house, "UpdateWorkItem", {"work_item_id": item_id, **changed})
        view = result_of(updated)["work_item"]
        assert {name: view[name] for name in shows} == shows
        after = await item_in(house, item_id)
        assert (after.blocked_by, after.recheck_at) == (before.blocked_by, before.recheck_at)
        assert after.revision == before.revision + 1
        assert kept_waits(house) == waits

    run_house(story)


@pytest.mark.requirement("runtime:repeating-oneself-is-no-progress")
@pytest.mark.parametrize(
    "same", [{"todo_list": CHECKLIST}, {"objective": "tidy up"}, {"blocked_by": ""}]
)
def test_an_update_that_says_the_same_is_answered_and_changes_nothing(
    same: dict[str, JsonValue],
) -> None:
    async def story(house: House) -> None:
        item_id = await make(house)
        asked: JsonValue = {"work_item_id": item_id, "todo_list": CHECKLIST}
        await perform(house, "UpdateWorkItem", asked)
        before = await item_in(house, item_id)
        await house.rest(1_000)
        again = await perform(house, "UpdateWorkItem", {"work_item_id": item_id, **same})
        assert result_of(again)["work_item"]["todo_list"] == CHECKLIST
        assert "nothing has changed" in str(again)
        assert await item_in(house, item_id) == before
        empty = await perform(house, "UpdateWorkItem", {"work_item_id": item_id, "todo_list": []})
        assert result_of(empty)["work_item"]["todo_list"] == []

    run_house(story)


@pytest.mark.requirement("work-item-tools:blocker-brings-a-recheck")
@pytest.mark.parametrize("after_ms", [None, 5_000])
def test_a_blocker_sets_a_reminder_and_a_new_one_replaces_it(after_ms: int | None) -> None:
    async def story(house: House) -> None:
        item_id = await make(house)
        asked: JsonValue = {"work_item_id": item_id, "blocked_by": "rain"}
        if after_ms is not None:
            asked["recheck_after"] = after_ms
        view = result_of(await perform(house, "UpdateWorkItem", asked))["work_item"]
        due_at = later(house.clock.now(), by_ms=after_ms or RECHECK_DEFAULT_MS)
        assert (view["blocked_by"], view["recheck_at"]) == ("rain", due_at.isoformat())
        assert [wait["kind"] for wait in view["active_wait_conditions"]] == ["recheck"]
        assert (await item_in(house, item_id)).revision == 2
        again: JsonValue = {"work_item_id": item_id, "blocked_by": "snow", "objective": "ski"}
        await perform(house, "UpdateWorkItem", again)
        assert [wait.state for wait in kept_waits(house)] == ["cancelled", "active"]
        assert (await item_in(house, item_id)).revision == 3

    run_house(story)


@pytest.mark.requirement("work-item-tools:clearing-unblocks")
@pytest.mark.parametrize(
    ("arguments", "clears"),
    [
        ({"blocked_by": None}, True),
        ({"blocked_by": ""}, True),
        ({"blocked_by": None, "objective": "new"}, True),
        ({"blocked_by": None, "recheck_after": None}, True),
        ({"blocked_by": "", "recheck_after": None, "objective": "new"}, True),
        ({"blocked_by": None, "recheck_after": None, "objective": "new"}, False),
    ],
)
def test_a_null_clears_the_blocker_unless_a_strict_schema_forced_it(
    arguments: dict[str, JsonValue], clears: bool
) -> None:
    async def story(house: House) -> None:
        item_id = await make(house)
        await perform(house, "UpdateWorkItem", {"work_item_id": item_id, "blocked_by": "rain"})
        updated = await perform(house, "UpdateWorkItem", {"work_item_id": item_id, **arguments})
        item = await item_in(house, item_id)
        assert (item.blocked_by is None, item.recheck_at is None) == (clears, clears)
        assert len(active_waits(house)) == (0 if clears else 1)
        assert ("blocked_by stays" in notes_of(updated)) is not clears

    run_house(story)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, None),
        ({"objective": None}, None),
        ({"objective": " "}, "objective"),
        ({"recheck_after": 5}, "recheck_after"),
        ({"recheck_after": 5, "blocked_by": None}, "recheck_after"),
        ({"recheck_after": 0, "blocked_by": "rain"}, "recheck_after"),
        ({"recheck_after": "soon", "blocked_by": "rain"}, "recheck_after"),
        ({"blocked_by": "x" * 501}, "blocked_by"),
        ({"blocked_by": 7}, "blocked_by"),
        ({"plan_status": "done"}, "plan_status"),
    ],
)
def test_an_update_that_means_nothing_is_refused(
    arguments: dict[str, JsonValue], field: str | None
) -> None:
    async def story(house: House) -> None:
        item_id = await make(house)
        refused = await perform(house, "UpdateWorkItem", {"work_item_id": item_id, **arguments})
        assert refusal_of(refused)[1] == field
        assert (await item_in(house, item_id)).revision == 1

    run_house(story)


@pytest.mark.requirement("work-item-tools:complete-ends-the-item")
def test_completion_ends_the_waits_and_lets_go_of_the_focus() -> None:
    async def story(house: House) -> None:
        item_id = await make(house)
        await perform(house, "PickWorkItem", {"work_item_id": item_id})
        await perform(house, "UpdateWorkItem", {"work_item_id": item_id, "blocked_by": "rain"})
        done = await perform(house, "CompleteWorkItem", {"work_item_id": item_id})
        view = result_of(done)["work_item"]
        assert (view["state"], view["focus"], view["readiness"]) == ("completed",) * 3
        assert "active_wait_conditions" not in view
        item = await item_in(house, item_id)
        assert item.state is WorkItemState.COMPLETED
        assert (item.blocked_by, item.recheck_at) == (None, None)
        assert [wait.state for wait in kept_waits(house)] == ["cancelled"]
        assert (await house.agent()).focus.current_work_item_id is None

    run_house(story)


def test_completing_another_item_keeps_the_focus() -> None:
    async def story(house: House) -> None:
        kept, other = await make(house), await make(house)
        await perform(house, "PickWorkItem", {"work_item_id": kept})
        await perform(house, "CompleteWorkItem", {"work_item_id": other})
        assert (await house.agent()).focus.current_work_item_id == kept

    run_house(story)
