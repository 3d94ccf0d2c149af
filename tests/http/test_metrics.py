"""Figures over a real server."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from holon.http.metrics import METRICS, EventCounters, metric_lines
from holon.model.agents import AgentStatus
from holon.model.budgets import UsageStep
from holon.model.events.event import AuditEvent
from holon.model.events.retention import RetentionPolicy
from holon.model.limits import USAGE_STEP_MS
from holon.model.values import AgentId
from holon.model.wake import TimerFired
from holon.ports.reads import StoreReads
from holon.serve.compose import HostOptions
from tests.http.serving import make_agent, settled, until_event
from tests.http.test_triggers import the_path
from tests.support.control_server import MAIN, ControlServer, ServerOptions, control_server
from tests.support.manual_clock import DAWN

SAMPLE = re.compile(r'[a-z_]+(\{[a-z_]+="[^"]*"\})? [0-9.e+-]+')
STEP = timedelta(milliseconds=USAGE_STEP_MS)
GUIDES = Path(__file__).resolve().parents[2] / "docs" / "howto"


async def told_by(server: ControlServer) -> dict[str, float]:
    answer = await server.operator.get("/metrics")
    assert answer.status == 200, answer.body
    lines = answer.body.decode().splitlines()
    told = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(figure) for name, figure in told}


async def test_the_figures_are_told_in_the_form_readers_expect(server: ControlServer) -> None:
    await settled(server)
    answer = await server.operator.get("/metrics")
    assert answer.status == 200
    assert (answer.header(b"content-type") or b"").startswith(b"text/plain; version=0.0.4")
    lines = answer.body.decode().splitlines()
    told = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert all(SAMPLE.fullmatch(line) for line in lines if not line.startswith("#"))
    assert int(told["holon_rescues_total"]) == 0
    assert int(told["holon_events_total"]) == await server.host.reads.events.last_log_seq()
    assert int(told["holon_http_connections_open"]) >= 1
    assert float(told["process_resident_memory_bytes"]) > 1_000_000
    assert float(told["process_cpu_seconds_total"]) > 0
    assert float(told["holon_uptime_seconds"]) > 0
    helped = {line.split()[2] for line in lines if line.startswith("# HELP")}
    assert {name.partition("{")[0] for name in told} == helped


async def test_no_series_is_added_by_an_agent(server: ControlServer) -> None:
    before = (await server.operator.get("/metrics")).body.count(b"\n")
    await make_agent(server, "somebody")
    after = await server.operator.get("/metrics")
    assert after.body.count(b"\n") == before
    assert b"somebody" not in after.body


async def test_what_happens_is_counted_once(server: ControlServer) -> None:
    before = await told_by(server)
    await settled(server, "one")
    await settled(server, "two")
    first, again = await told_by(server), await told_by(server)
    for figures in (first, again):
        grown = {name: figure - before[name] for name, figure in figures.items()}
        assert grown['holon_turns_total{outcome="completed"}'] == 2
        assert grown['holon_turns_total{outcome="aborted"}'] == 0
        assert grown["holon_messages_admitted_total"] == 2
        assert grown['holon_provider_attempts_total{outcome="succeeded"}'] == 2
        assert grown["holon_events_kept"] == grown["holon_events_total"] > 0
    used = await server.host.reads.agents.agent(MAIN)
    assert used is not None
    assert first['holon_tokens_total{direction="input"}'] == used.totals.input_tokens
    assert first['holon_tokens_total{direction="output"}'] == used.totals.output_tokens


async def test_deliveries_and_requests_are_counted(server: ControlServer) -> None:
    path = await the_path(server)
    before = await told_by(server)
    assert (await server.stranger.send("POST", path, body=b"x")).status == 200
    assert (await server.stranger.get("/nowhere")).status == 404
    after = await told_by(server)
    grown = {name: figure - before[name] for name, figure in after.items()}
    delivered = [grown[name] for name in grown if name.startswith("holon_trigger_deliveries")]
    assert sum(delivered) == 1
    assert grown['holon_http_requests_total{status_class="4xx"}'] == 1
    assert grown['holon_http_requests_total{status_class="2xx"}'] == 2  # the wake, and a look


async def test_a_timer_that_fires_is_counted(server: ControlServer) -> None:
    asked = {"duration_ms": 1, "summary": "look"}
    made = await server.operator.post(f"/control/agents/{MAIN}/timers", asked)
    assert made.status == 200, made.body
    await until_event(server.host, TimerFired)
    assert (await told_by(server))["holon_timers_fired_total"] == 1


async def test_agents_and_sizes_are_told_as_they_are(server: ControlServer) -> None:
    await make_agent(server, "second")
    await make_agent(server, "hidden", private=True)
    stopped = await server.operator.post("/control/agents/second/stop")
    assert stopped.status == 200, stopped.body
    told = await told_by(server)
    by_status = {each: told[f'holon_agents_by_status{{status="{each}"}}'] for each in AgentStatus}
    assert sum(by_status.values()) == 3
    assert by_status[AgentStatus.STOPPED] == 1
    assert told["holon_store_database_bytes"] >= told["holon_store_used_bytes"] > 0
    assert told["holon_store_wal_bytes"] > 0


async def test_a_long_log_is_counted_page_by_page_and_nothing_before_the_start(
    server: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.http.metrics.TALLY_PAGES_COUNT_MAX", 2)
    monkeypatch.setattr("holon.http.metrics.EVENT_PAGE_COUNT_MAX", 4)
    reads, tally = server.host.reads, server.context.tally
    await settled(server)
    await tally.begin(reads, now=server.context.facts.started_at)
    await tally.catch_up(reads)
    assert tally.messages == 0
    for number in range(3):
        await settled(server, f"message {number}")
    seen = []
    for _ in range(12):
        await tally.catch_up(reads)
        seen.append(tally.messages)
    assert (seen[0], seen[-1]) == (1, 3)


class _Spent:
    """A log without events, and what was spent in each step."""

    def __init__(self) -> None:
        self.steps: dict[datetime, int] = {}
        self.events = self.budgets = self

    async def last_log_seq(self) -> int:
        return 0

    async def log_after(self, log_seq: int, *, limit: int) -> Sequence[AuditEvent]:
        del log_seq, limit
        return ()

    async def usage(self, agent_id: AgentId | None, *, since: datetime) -> Sequence[UsageStep]:
        assert agent_id is None
        began = {at: cost for at, cost in self.steps.items() if at + STEP > since}
        return [UsageStep(began_at=at, cost_micros=cost) for at, cost in sorted(began.items())]


async def test_what_was_spent_is_added_up_step_by_step_from_the_start() -> None:
    tally, rows = EventCounters(), _Spent()
    reads = cast("StoreReads", rows)
    rows.steps = {DAWN - STEP: 1_000, DAWN: 70}  # by an earlier process, the second in part
    await tally.begin(reads, now=DAWN + STEP / 2)
    await tally.catch_up(reads)
    assert tally.cost_micros == 0
    rows.steps |= {DAWN: 75, DAWN + STEP: 10}
    await tally.catch_up(reads)
    assert tally.cost_micros == 15
    rows.steps |= {DAWN + STEP: 12, DAWN + 3 * STEP: 100}
    await tally.catch_up(reads)
    await tally.catch_up(reads)
    assert tally.cost_micros == 117


def test_a_label_cannot_break_out_of_its_quotes() -> None:
    found = {metric.name: dict.fromkeys(metric.values, 0.0) for metric in METRICS}
    found["holon_info"] = {'1"} 1\nholon_evil 1 \\': 1}
    lines = list(metric_lines(found))
    assert lines[2] == 'holon_info{version="1\\"} 1\\nholon_evil 1 \\\\"} 1'


def test_names_are_as_prometheus_has_them() -> None:
    for metric in METRICS:
        assert re.fullmatch(r"(holon|process)_[a-z_]+", metric.name)
        assert (metric.kind == "counter") == metric.name.endswith("_total")
        assert metric.says.endswith(".")
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_the_guide_names_series_that_are_there() -> None:
    text = (GUIDES / "monitor-with-prometheus.md").read_text(encoding="utf-8")
    named = set(re.findall(r"holon_[a-z_]+", text))
    assert named
    assert named <= {metric.name for metric in METRICS}
    for name, label, value in re.findall(r'(holon_[a-z_]+)\{(\w+)="(\w+)"\}', text):
        (metric,) = [metric for metric in METRICS if metric.name == name]
        assert metric.label == label
        assert value in metric.values


@pytest.mark.requirement("metrics:counters-are-true-after-pruning")
async def test_what_was_pruned_before_anybody_looked_is_counted(tmp_path: Path) -> None:
    eager = RetentionPolicy(age_ms=1, events_count_min=1, turns_count_min=1)
    options = ServerOptions(host=HostOptions(retention=eager))
    async with control_server(tmp_path, options) as server:
        before = await told_by(server)
        for number in range(4):
            await settled(server, f"prompt {number}")
        await server.host.retention.prune_all()
        after = await told_by(server)
        assert after["holon_events_kept"] < before["holon_events_kept"] + 8, "much was pruned"
        for name, figure in after.items():
            if "_total" in name:
                assert figure >= before[name], name
        for name in ('holon_turns_total{outcome="completed"}', "holon_messages_admitted_total"):
            assert after[name] - before[name] == 4, name
