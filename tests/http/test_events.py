"""The audit log over a real server: pages in both directions."""

from typing import Any

import pytest

from holon.adapters.sqlite.queue import SqliteQueueReads
from holon.projections.events.envelope import EventPage
from holon.wire.codec import decode
from tests.http.serving import make_agent, settled
from tests.support.control_server import MAIN, ControlServer

EVENTS = f"/agents/{MAIN}/events"
REQUIRED = ("event_id", "event_seq", "ts", "event_kind", "agent_id")


async def page(server: ControlServer, query: str) -> dict[str, Any]:
    answer = await server.operator.get(f"{EVENTS}?{query}")
    assert answer.status == 200, answer.body
    told: dict[str, Any] = answer.json()
    return told


def seqs(told: dict[str, Any]) -> list[int]:
    return [each["event_seq"] for each in told["events"]]


@pytest.mark.requirement("http:replay-cursor-is-event-seq")
async def test_both_directions_meet_and_nothing_is_missing(server: ControlServer) -> None:
    await settled(server)
    _, newest = await server.host.reads.events.event_bounds(MAIN)
    upwards: list[int] = []
    told = await page(server, "after_seq=0&limit=3")
    while told["events"]:
        upwards += seqs(told)
        told = await page(server, f"after_seq={upwards[-1]}&limit=3")
    assert upwards == list(range(1, newest + 1))
    downwards: list[int] = []
    told = await page(server, "limit=4")
    while told["events"]:
        downwards += seqs(told)
        told = await page(server, f"before_seq={downwards[-1]}&limit=4")
    assert downwards == upwards[::-1]


async def test_a_page_says_where_it_stands(server: ControlServer) -> None:
    await settled(server)
    told = await page(server, "after_seq=1&limit=2")
    assert seqs(told) == [2, 3]
    assert (told["oldest_seq"], told["newest_seq"]) == (2, 3)
    assert (told["has_older"], told["has_newer"]) == (True, True)
    assert (told["order"], told["limit"]) == ("asc", 2)
    between = await page(server, "after_seq=1&before_seq=4&order=desc")
    assert seqs(between) == [3, 2]


@pytest.mark.requirement("http:replay-carries-provenance")
async def test_provenance_stands_beside_every_payload(server: ControlServer) -> None:
    message_id = await settled(server)
    answer = await server.operator.get(f"{EVENTS}?after_seq=0")
    decode(answer.body, EventPage)  # payloads are the events themselves, whole
    told: dict[str, Any] = answer.json()
    about = [each for each in told["events"] if each["provenance"].get("message_id") == message_id]
    assert len(about) > 1
    for each in told["events"]:
        assert all(name in each["provenance"] for name in REQUIRED)
        assert each["provenance"]["event_seq"] == each["event_seq"]
        assert each["projection"] == "operator"
        assert "log_seq" not in each
    for each in about:
        assert each["provenance"]["authority_class"] == "operator_instruction"
        assert each["provenance"]["delivery_surface"] == "http_control_prompt"


@pytest.mark.requirement("http:replay-cursor-is-event-seq")
async def test_transport_numbers_are_for_diagnosis_only(server: ControlServer) -> None:
    await settled(server)
    told = await page(server, "projection=local_debug&after_seq=0")
    assert all(each["log_seq"] for each in told["events"])
    refused = await server.operator.get(f"{EVENTS}?after_log_seq=1")
    assert refused.status == 400


async def test_messages_are_looked_up_once_a_page(
    server: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await settled(server)
    asked: list[int] = []
    looked_up = SqliteQueueReads.messages

    async def counted(self: Any, agent_id: Any, message_ids: Any) -> Any:
        asked.append(len(message_ids))
        return await looked_up(self, agent_id, message_ids)

    monkeypatch.setattr(SqliteQueueReads, "messages", counted)
    await page(server, "after_seq=0")
    assert len(asked) == 1


BAD_NUMBERS = {
    "an underscore": "after_seq=1_0",
    "other digits": "after_seq=%D9%A1%D9%A2",
    "less than nothing": "after_seq=-1",
    "a plus": "after_seq=+1",
    "an exponent": "after_seq=1e3",
    "too large for anything": f"after_seq={2**64}",
    "too large for the store": f"after_seq={2**63}",
    "nothing": "after_seq=",
    "twice": "after_seq=1&after_seq=2",
    "no limit": "limit=0",
    "a limit without end": "limit=513",
}


@pytest.mark.parametrize("name", BAD_NUMBERS)
async def test_s30_a_number_is_digits_within_bounds(server: ControlServer, name: str) -> None:
    for path in (EVENTS, f"{EVENTS}/stream", "/events/stream"):
        if "limit" in BAD_NUMBERS[name] and path != EVENTS:
            continue
        answer = await server.operator.get(f"{path}?{BAD_NUMBERS[name]}")
        assert (answer.status, answer.json()["code"]) == (400, "bad_query")


async def test_s30_a_cursor_newer_than_the_log_is_told_apart(server: ControlServer) -> None:
    _, newest = await server.host.reads.events.event_bounds(MAIN)
    paths = (
        f"{EVENTS}?after_seq={newest + 1}",
        f"{EVENTS}?before_seq={newest + 2}",
        f"{EVENTS}/stream?after_seq={newest + 1}",
        "/events/stream?after_seq=1000000",
    )
    for path in paths:
        answer = await server.operator.get(path)
        assert (answer.status, answer.json()["code"]) == (409, "cursor_ahead"), path
        assert answer.json()["hint"]


INJECTIONS = (
    "order=desc;drop+table+events",
    "order=event_seq",
    "projection=json_extract(payload,%27$.x%27)",
    "type=brief_created",
    "payload.kind=x",
    "after_seq%20or%201=1",
)


@pytest.mark.parametrize("query", INJECTIONS)
async def test_s47_only_known_names_and_values_are_taken(server: ControlServer, query: str) -> None:
    answer = await server.operator.get(f"{EVENTS}?{query}")
    assert (answer.status, answer.json()["code"]) == (400, "bad_query")


@pytest.mark.requirement("http:replay-is-not-ingress")
async def test_s75_a_replayed_event_is_never_taken_in_again(server: ControlServer) -> None:
    await settled(server)
    (envelope,) = (await page(server, "after_seq=0&limit=1"))["events"]
    before = await server.host.reads.events.event_bounds(MAIN)
    doors = (
        f"/control/agents/{MAIN}/prompt",
        f"/agents/{MAIN}/enqueue",
        f"/control/agents/{MAIN}/wake",
        f"/control/agents/{MAIN}/work-items",
    )
    for door in doors:
        for replayed in (envelope, envelope["payload"], {"events": [envelope]}):
            assert (await server.operator.post(door, replayed)).status == 400, door
    assert (await server.operator.post(EVENTS, envelope)).status == 405
    assert await server.host.reads.events.event_bounds(MAIN) == before


async def test_s75_a_cursor_of_another_agent_is_ahead_of_this_one(server: ControlServer) -> None:
    await settled(server)
    other = await make_agent(server, "other")
    _, newest = await server.host.reads.events.event_bounds(MAIN)
    answer = await server.operator.get(f"/agents/{other}/events?after_seq={newest}")
    assert (answer.status, answer.json()["code"]) == (409, "cursor_ahead")
