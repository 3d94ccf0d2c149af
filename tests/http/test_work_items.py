"""Work items managed by an operator, over a real server."""

from typing import Any

import pytest

from holon.http.exchange import Header
from tests.http.serving import events_of, make_agent
from tests.support.control_server import MAIN, ControlServer

CONTROL = f"/control/agents/{MAIN}/work-items"
READ = f"/agents/{MAIN}/work-items"
KEY: Header = (b"idempotency-key", b"once")


@pytest.fixture
async def held(server: ControlServer) -> ControlServer:
    """A server whose agent takes nothing up, so that items stay as they are put."""
    await server.host.control.pause(MAIN)
    return server


async def opened(server: ControlServer, objective: str = "tidy") -> dict[str, Any]:
    answer = await server.operator.post(CONTROL, {"objective": objective})
    assert answer.status == 200, answer.body
    item: dict[str, Any] = answer.json()["work_item"]
    return item


@pytest.mark.requirement("http:work-item-enqueue")
async def test_an_item_is_opened_without_a_message_and_replaces_nothing(
    held: ControlServer,
) -> None:
    first = await opened(held, "first")
    await held.operator.post(f"{CONTROL}/{first['id']}/pick")
    second = await opened(held, "second")
    assert (second["state"], second["focus"]) == ("open", "queued")
    assert (await held.operator.get(f"{READ}/{first['id']}")).json()["focus"] == "current"
    agent = await held.host.reads.agents.agent(MAIN)
    assert agent is not None
    assert agent.totals.message_count == 0
    kinds = {type(each).__name__ for each in await events_of(held.host)}
    assert "WorkItemWritten" in kinds
    assert "MessageAdmitted" not in kinds


@pytest.mark.requirement("http:work-item-enqueue")
async def test_a_control_item_is_found_where_the_agents_own_are(held: ControlServer) -> None:
    item = await opened(held)
    kept = await held.host.reads.work.work_item(item["id"])
    assert kept is not None
    assert kept.objective == "tidy"


async def test_items_are_listed_page_by_page_and_read_one_by_one(held: ControlServer) -> None:
    made = [(await opened(held, f"n {number}"))["id"] for number in range(3)]
    page = (await held.operator.get(f"{READ}?limit=2")).json()
    rest = (await held.operator.get(f"{READ}?after={page['next_after']}")).json()
    listed = [each["id"] for each in (*page["work_items"], *rest["work_items"])]
    assert listed == made
    one = await held.operator.get(f"{READ}/{made[0]}")
    assert one.json() == page["work_items"][0]


async def test_a_change_is_one_revision_whatever_it_names(held: ControlServer) -> None:
    item = await opened(held)
    asked = {
        "objective": "tidy up",
        "plan_status": "ready",
        "todo_list": [{"text": "sweep", "state": "in_progress"}, {"text": "dust"}],
        "blocked_by": "the broom",
        "recheck_after_ms": 60_000,
    }
    path = f"{CONTROL}/{item['id']}"
    told = (await held.operator.patch(path, asked)).json()["work_item"]
    assert (told["objective"], told["plan_status"]) == ("tidy up", "ready")
    assert [each["state"] for each in told["todo_list"]] == ["in_progress", "pending"]
    assert (told["blocked_by"], told["revision"]) == ("the broom", 2)
    assert [each["kind"] for each in told["active_wait_conditions"]] == ["recheck"]
    kept = (await held.operator.patch(path, {"plan_status": "draft"})).json()["work_item"]
    assert (kept["blocked_by"], kept["objective"]) == ("the broom", "tidy up")
    freed = (await held.operator.patch(path, {"blocked_by": None})).json()["work_item"]
    assert "blocked_by" not in freed
    assert freed["active_wait_conditions"] == []


BAD_PATCHES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a moment without a blocker": {"recheck_after_ms": 5},
    "a blank objective": {"objective": "  "},
    "an unknown field": {"state": "completed"},
    "an unknown status": {"plan_status": "done"},
    "an empty blocker": {"blocked_by": ""},
}


@pytest.mark.parametrize("name", BAD_PATCHES)
async def test_a_change_that_makes_no_sense_changes_nothing(held: ControlServer, name: str) -> None:
    item = await opened(held)
    answer = await held.operator.patch(f"{CONTROL}/{item['id']}", BAD_PATCHES[name])
    assert answer.status == 400
    assert (await held.operator.get(f"{READ}/{item['id']}")).json()["revision"] == 1


async def test_a_completed_item_leaves_the_focus_and_takes_no_more(held: ControlServer) -> None:
    item = await opened(held)
    path = f"{CONTROL}/{item['id']}"
    assert (await held.operator.post(f"{path}/pick")).json()["work_item"]["is_current"] is True
    done = (await held.operator.post(f"{path}/complete")).json()["work_item"]
    assert (done["state"], done["focus"]) == ("completed", "completed")
    agent = await held.host.reads.agents.agent(MAIN)
    assert agent is not None
    assert agent.focus.current_work_item_id is None
    for again in (
        await held.operator.post(f"{path}/complete"),
        await held.operator.post(f"{path}/pick"),
        await held.operator.patch(path, {"objective": "more"}),
    ):
        assert (again.status, again.json()["code"]) == (409, "work_item_completed")


async def test_a_key_opens_one_item_and_a_conflict_is_seen(held: ControlServer) -> None:
    asked = {"objective": "once"}
    first = await held.operator.post(CONTROL, asked, headers=[KEY])
    again = await held.operator.post(CONTROL, asked, headers=[KEY])
    assert first.json() == again.json()
    other = await held.operator.post(CONTROL, {"objective": "other"}, headers=[KEY])
    assert (other.status, other.json()["code"]) == (409, "idempotency_conflict")
    assert len((await held.operator.get(READ)).json()["work_items"]) == 1
    await make_agent(held, "other")
    elsewhere = await held.operator.post("/control/agents/other/work-items", asked, headers=[KEY])
    assert elsewhere.json()["work_item"]["id"] != first.json()["work_item"]["id"]


@pytest.mark.parametrize("objective", ["", "   ", "x" * 4_001])
async def test_what_is_no_objective_is_refused(held: ControlServer, objective: str) -> None:
    assert (await held.operator.post(CONTROL, {"objective": objective})).status == 400


async def test_a_stopped_agent_is_given_nothing(server: ControlServer) -> None:
    await server.host.control.stop(MAIN)
    answer = await server.operator.post(CONTROL, {"objective": "x"})
    assert (answer.status, answer.json()["code"]) == (409, "agent_stopped")
