"""Where the time of an agent's turns went, for `holon debug latency`.

Owns:  reading the turns from a home that may be in use, and the two tables a person sees.
Rule 1: nothing is changed by looking.
"""

from pathlib import Path
from typing import Final

import anyio

from holon.adapters.sqlite.check.untouched import open_untouched
from holon.adapters.sqlite.home_lock import database_path
from holon.adapters.sqlite.reads import SqliteReads
from holon.cli.tables import Column, screen_cells, table_lines
from holon.decide.agent_refusals import refuse_unknown
from holon.model.ids import parse_agent_id
from holon.model.refusal import RefusedError
from holon.projections.latency import LatencyReport, latency_report

_PARTS: Final = ("queue_wait", "context_build", "provider", "tools", "cleanup", "other")


def read_latency(home: Path, agent: str, *, limit: int) -> LatencyReport:
    """Return where the time of the agent's newest settled turns went."""
    agent_id = parse_agent_id(agent)

    async def read() -> LatencyReport:
        with open_untouched(database_path(home)) as connection:
            connection.execute("commit")  # the reads begin a transaction of their own
            reads = SqliteReads(connection)
            if await reads.agent(agent_id) is None:
                raise RefusedError(refuse_unknown(agent_id))
            return latency_report(await reads.turns_page(agent_id, before_index=None, limit=limit))

    return anyio.run(read)


def latency_lines(report: LatencyReport, agent: str) -> list[str]:
    """Return a row for each turn, and one for each part over all of them."""
    if not report.turns:
        return [f"{agent} has had no turn that ended"]
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
            turn.other_ms,
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
