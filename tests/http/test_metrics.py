"""Figures over a real server."""

import re

from holon.testing.control_server import ControlServer
from tests.http.serving import make_agent, settled

SAMPLE = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"\})? [0-9.e+-]+')


async def test_the_figures_are_told_in_the_form_readers_expect(server: ControlServer) -> None:
    await settled(server)
    answer = await server.operator.get("/metrics")
    assert answer.status == 200
    assert (answer.header(b"content-type") or b"").startswith(b"text/plain; version=0.0.4")
    lines = answer.body.decode().splitlines()
    told = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert all(SAMPLE.fullmatch(line) for line in lines if not line.startswith("#"))
    assert int(told["holon_rescues_total"]) == 0
    assert int(told["holon_events_total"]) == await server.host.reads.last_log_seq()
    assert int(told["holon_http_connections_open"]) >= 1
    assert float(told["process_resident_memory_bytes"]) > 1_000_000
    assert float(told["process_cpu_seconds_total"]) > 0
    helped = {line.split()[2] for line in lines if line.startswith("# HELP")}
    assert {name.partition("{")[0] for name in told} == helped


async def test_no_series_is_added_by_an_agent(server: ControlServer) -> None:
    before = (await server.operator.get("/metrics")).body.count(b"\n")
    await make_agent(server, "somebody")
    after = await server.operator.get("/metrics")
    assert after.body.count(b"\n") == before
    assert b"somebody" not in after.body
