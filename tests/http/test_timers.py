"""Timers managed by an operator, over a real server."""

from typing import Any

import pytest

from holon.http.exchange import Header
from holon.model.wake import TimerFired
from tests.http.serving import until_event
from tests.support.control_server import MAIN, ControlServer

CONTROL = f"/control/agents/{MAIN}/timers"
READ = f"/agents/{MAIN}/timers"
HOUR_MS = 3_600_000
KEY: Header = (b"idempotency-key", b"once")


async def armed(server: ControlServer, **asked: Any) -> dict[str, Any]:
    answer = await server.operator.post(CONTROL, {"duration_ms": HOUR_MS, **asked})
    assert answer.status == 200, answer.body
    timer: dict[str, Any] = answer.json()["timer"]
    return timer


async def test_a_timer_is_armed_listed_read_and_cancelled(server: ControlServer) -> None:
    timer = await armed(server, interval_ms=HOUR_MS, summary="look")
    assert (timer["repeat"], timer["summary"], timer["status"]) == (True, "look", "active")
    once = await armed(server)
    page = (await server.operator.get(f"{READ}?limit=1")).json()
    rest = (await server.operator.get(f"{READ}?after={page['next_after']}")).json()
    listed = {each["id"] for each in (*page["timers"], *rest["timers"])}
    assert listed == {timer["id"], once["id"]}
    assert (await server.operator.get(f"{READ}/{timer['id']}")).json() == timer
    for _ in range(2):  # cancelling twice is cancelling once
        gone = await server.operator.post(f"{CONTROL}/{timer['id']}/cancel")
        assert gone.json()["timer"]["status"] == "cancelled"


async def test_a_timer_goes_by_a_clock_on_the_wall(server: ControlServer) -> None:
    asked = {"expression": "0 9 * * 1-5", "zone": "Europe/Vienna", "summary": "good morning"}
    answer = await server.operator.post(CONTROL, asked, headers=[KEY])
    timer = answer.json()["timer"]
    assert (timer["expression"], timer["zone"], timer["repeat"]) == (
        "0 9 * * 1-5",
        "Europe/Vienna",
        True,
    )
    again = await server.operator.post(CONTROL, asked, headers=[KEY])
    assert again.json()["timer"]["id"] == timer["id"]


async def test_an_armed_timer_fires(server: ControlServer) -> None:
    timer = await armed(server, duration_ms=1)
    fired = await until_event(server.host, TimerFired)
    assert isinstance(fired, TimerFired)
    assert fired.timer_id == timer["id"]


async def test_a_key_arms_one_timer_and_a_conflict_is_seen(server: ControlServer) -> None:
    asked = {"duration_ms": HOUR_MS, "summary": "a"}
    first = await server.operator.post(CONTROL, asked, headers=[KEY])
    again = await server.operator.post(CONTROL, asked, headers=[KEY])
    assert first.json() == again.json()
    other = await server.operator.post(CONTROL, {**asked, "duration_ms": 5_000}, headers=[KEY])
    assert (other.status, other.json()["code"]) == (409, "idempotency_conflict")
    bad = await server.operator.post(CONTROL, asked, headers=[(b"idempotency-key", b"a b")])
    assert (bad.status, bad.json()["code"]) == (400, "bad_idempotency_key")
    assert len((await server.operator.get(READ)).json()["timers"]) == 1


BAD: dict[str, dict[str, Any]] = {
    "nothing": {},
    "no time at all": {"duration_ms": 0},
    "time that has passed": {"duration_ms": -1},
    "a fraction": {"duration_ms": 1.5},
    "for ever": {"duration_ms": 2**63},
    "a grid too fine": {"duration_ms": 5_000, "interval_ms": 1},
    "an empty summary": {"duration_ms": 5_000, "summary": ""},
    "two ways at once": {"duration_ms": 5_000, "expression": "* * * * *"},
    "an interval of nothing": {"expression": "* * * * *", "interval_ms": HOUR_MS},
    "a zone of nothing": {"duration_ms": 5_000, "zone": "UTC"},
    "no expression": {"expression": "every day"},
    "a day that never comes": {"expression": "0 0 30 2 *"},
    "no zone": {"expression": "0 9 * * *", "zone": "Mars/Crater"},
    "an unknown field": {"duration_ms": 5_000, "urgent": True},
}


@pytest.mark.parametrize("name", BAD)
async def test_a_timer_that_makes_no_sense_is_refused(server: ControlServer, name: str) -> None:
    assert (await server.operator.post(CONTROL, BAD[name])).status == 400
    assert (await server.operator.get(READ)).json()["timers"] == []


async def test_a_stopped_or_unknown_agent_gets_no_timer(server: ControlServer) -> None:
    unknown = await server.operator.post("/control/agents/nobody/timers", {"duration_ms": 1})
    assert (unknown.status, unknown.json()["code"]) == (404, "agent_not_found")
    await server.host.control.stop(MAIN)
    stopped = await server.operator.post(CONTROL, {"duration_ms": 1})
    assert (stopped.status, stopped.json()["code"]) == (409, "agent_stopped")
