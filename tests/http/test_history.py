"""Briefs, turns and messages, over a real server."""

import pytest

from tests.http.serving import make_agent, settled
from tests.support.control_server import MAIN, ControlServer

BASE = f"/agents/{MAIN}"


async def test_briefs_run_backwards_page_by_page(server: ControlServer) -> None:
    for number in range(3):
        await settled(server, f"n {number}")
    first = (await server.operator.get(f"{BASE}/briefs?limit=2")).json()
    assert len(first["briefs"]) == 2
    rest = await server.operator.get(f"{BASE}/briefs?limit=2&before={first['next_before']}")
    seen = [each["id"] for each in (*first["briefs"], *rest.json()["briefs"])]
    everything = (await server.operator.get(f"{BASE}/briefs")).json()
    assert seen == [each["id"] for each in everything["briefs"]]
    assert "next_before" not in everything
    one = await server.operator.get(f"{BASE}/briefs/{seen[0]}")
    assert one.json() == everything["briefs"][0]


async def test_turns_run_backwards_page_by_page(server: ControlServer) -> None:
    for number in range(2):
        await settled(server, f"n {number}")
    newest = (await server.operator.get(f"{BASE}/transcript?limit=1")).json()
    assert [each["turn_index"] for each in newest["turns"]] == [2]
    older = await server.operator.get(f"{BASE}/transcript?before={newest['next_before']}")
    assert [each["turn_index"] for each in older.json()["turns"]] == [1]
    entries = older.json()["turns"][0]["entries"]
    assert entries[0]["text"] == "n 0"


async def test_a_message_is_read_with_its_place_in_the_queue(server: ControlServer) -> None:
    message_id = await settled(server)
    told = (await server.operator.get(f"{BASE}/messages/{message_id}")).json()
    assert told["message"]["id"] == message_id
    assert told["state"] == "processed"


@pytest.mark.parametrize("kind", ["briefs", "messages", "tasks", "timers", "work-items"])
async def test_what_is_not_there_is_not_found(server: ControlServer, kind: str) -> None:
    answer = await server.operator.get(f"{BASE}/{kind}/nothing_1")
    assert answer.status == 404
    assert answer.json()["code"].endswith("_not_found")
    assert answer.json()["hint"]


async def test_a_page_of_another_agents_cursor_is_refused(server: ControlServer) -> None:
    await settled(server)
    other = await make_agent(server, "other")
    brief = (await server.operator.get(f"{BASE}/briefs")).json()["briefs"][0]["id"]
    answer = await server.operator.get(f"/agents/{other}/briefs?before={brief}")
    assert (answer.status, answer.json()["code"]) == (400, "unknown_cursor")
