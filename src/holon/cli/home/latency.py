"""`holon debug latency`: where the time of an agent's turns was spent.

Owns:  reading the events of a home that may be in use; the two tables.
Rule 1: reading changes nothing.
"""

from pathlib import Path
from typing import Final

import anyio

from holon.adapters.sqlite.check.untouched import untouched_reads
from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.sqlite.reads import SqliteReads
from holon.cli.console.output import Column, screen_cells, table_lines
from holon.decide.agents.lifecycle import refuse_unknown
from holon.model.errors import RefusedError
from holon.model.events.event import AuditEvent
from holon.model.events.reads import EventOrder, EventQuery
from holon.model.limits import EVENT_PAGE_COUNT_MAX
from holon.model.values import AgentId, parse_agent_id
from holon.projections.turns.latency import LatencyReport, latency_report

_PARTS: Final = ("queue_wait", "context_build", "provider", "tools", "cleanup")


def read_latency(home: Path, agent: str, *, limit: int, events_limit: int) -> LatencyReport:
    """Return the latency of the agent's newest turns, from its newest events."""
    agent_id = parse_agent_id(agent)

    async def read() -> LatencyReport:
        with untouched_reads(database_path(home)) as reads:
            if await reads.agents.agent(agent_id) is None:
                raise RefusedError(refuse_unknown(agent_id))
            newest = await _newest_events(reads, agent_id, events_limit)
            return latency_report(newest, limit=limit)

    return anyio.run(read)


async def _newest_events(reads: SqliteReads, agent_id: AgentId, limit: int) -> list[AuditEvent]:
    """Read an agent's newest events, page by page; return them oldest first."""
    found: list[AuditEvent] = []
    before: int | None = None
    while len(found) < limit:
        asked = min(EVENT_PAGE_COUNT_MAX, limit - len(found))
        query = EventQuery(before_seq=before, order=EventOrder.DESC, limit=asked)
        page = (await reads.events.events_page(agent_id, query)).events
        found.extend(page)
        if len(page) < asked:
            break
        before = page[-1].event_seq
    return found[::-1]


def latency_lines(report: LatencyReport, agent: str) -> list[str]:
    """Return a row for each turn, and one for each part over all of them."""
    if not report.turns:
        return [f"no turn of {agent} begins and ends in its newest {report.event_count} events"]
    columns = (
        Column("TURN", is_number=True),
        Column("ENDED"),
        Column("TOTAL MS", is_number=True),
        *(Column(part.replace("_", " ").upper(), is_number=True) for part in _PARTS),
        Column("ROUNDS", is_number=True),
        Column("CALLS", is_number=True),
    )
    rows = [
        (
            turn.turn_index,
            turn.terminal.value,
            turn.total_ms,
            turn.queue_wait_ms,
            turn.context_build_ms,
            turn.provider_ms,
            turn.tools_ms,
            turn.cleanup_ms,
            turn.model_rounds,
            turn.tool_calls,
        )
        for turn in report.turns
    ]
    cells_max = screen_cells()
    lines = table_lines(columns, rows, empty="", cells_max=cells_max)
    return [*lines, "", *_spreads(report, cells_max)]


def _spreads(report: LatencyReport, cells_max: int | None) -> list[str]:
    names = ("MEDIAN MS", "P95 MS", "MAX MS", "TOTAL MS")
    columns = (Column("PART"), *(Column(name, is_number=True) for name in names))
    rows = [
        (part.replace("_", " "), spread.median_ms, spread.p95_ms, spread.max_ms, spread.total_ms)
        for part, spread in report.parts.items()
    ]
    return table_lines(columns, rows, empty="", cells_max=cells_max)
