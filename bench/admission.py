"""Durable admissions per second, against a bare group-commit writer.

Owns:  the comparison: `Host.admit` and bench/bare_writer write the same rows into the same schema
       for the same number of callers, in turns within one run.
Every agent is in the middle of a turn whose model does not answer, so that the host does nothing
but admit. The bare writer is given the very rows the host has just written, read back and encoded
before its clock starts; the host's requests are made before its clock starts. Garbage is looked for
as seldom as the program looks for it.
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import apsw

from bench.bare_writer import AdmissionRows, BareWriter
from bench.hosting import BenchHost, SilentModel, prompt, running_host, temporary_home
from bench.measure import Measurement, median, timed
from holon.adapters.sqlite.database.connection import open_reader, open_writer
from holon.adapters.sqlite.database.home_lock import database_path, prepare_home
from holon.adapters.sqlite.database.migrate import migrate
from holon.adapters.sqlite.writer.commit_writer import CommitWriter
from holon.decide.events.audit import audited
from holon.model.limits import CHECKPOINT_PAGES
from holon.serve.foreground import ALLOCATIONS_COUNT
from tests.support.builders import a_commit, an_agent

CALLERS_COUNT: Final = 64
AGENTS_COUNT: Final = 8
ROUNDS_COUNT: Final = 21  # the first one warms up and is not counted
PER_CALLER_COUNT: Final = 25
_NEW_ROWS: Final = """
select
    commit_id, applied_at, message_id, m.agent_id, 'queued', band, m.kind, origin_kind, trust,
    authority_class, admission_context, surface, idempotency_key, body_digest, tick_key, timer_id,
    wait_id, admitted_at, envelope
from messages m join commits c on c.commit_id = 'admit:' || m.message_id
where seq > ?1 order by seq
"""
_NEW_EVENTS: Final = """
select event from events where log_seq > ?1 and event like '{"kind":"message_admitted"%'
order by log_seq
"""


def make_agents(home: Path) -> apsw.Connection:
    """Make a home with agents; returns the connection that writes it."""
    prepare_home(home)
    connection = open_writer(database_path(home))
    migrate(connection)
    commits = [
        a_commit(f"create:{number}", an_agent(f"agent-{number}")) for number in range(AGENTS_COUNT)
    ]
    CommitWriter(connection).apply_group([audited(each) for each in commits])
    return connection


async def run() -> list[Measurement]:
    """Admit in turns with both, and compare the rates."""
    before = gc.get_threshold()
    gc.set_threshold(ALLOCATIONS_COUNT)
    try:
        return await _run()
    finally:
        gc.set_threshold(*before)


async def _run() -> list[Measurement]:
    with temporary_home() as home, temporary_home() as bare_home:
        make_agents(home).close()
        bare_connection = make_agents(bare_home)
        bare_connection.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)  # as often as the host
        bare = BareWriter(bare_connection)
        async with running_host(home, model=SilentModel()) as host:
            for number in range(AGENTS_COUNT):
                await host.admit(prompt(f"agent-{number}"))
            rates = [
                await _one_round(number, host, bare, database_path(home))
                for number in range(ROUNDS_COUNT)
            ]
        bare.close()
        bare_connection.close()
    return [_compared(rates[1:])]


async def _one_round(
    number: int, host: BenchHost, bare: BareWriter, path: Path
) -> tuple[float, float]:
    reader = open_reader(path)
    marks = _marks(reader)
    gc.collect()

    requests = [
        prompt(f"agent-{count % AGENTS_COUNT}", key=f"{number}-{count}")
        for count in range(CALLERS_COUNT * PER_CALLER_COUNT)
    ]

    async def admit(caller: int) -> None:
        for mine in requests[caller::CALLERS_COUNT]:
            await host.admit(mine)

    host_seconds = await timed(lambda: _by_all_callers(admit))
    rows = list(_rows_since(reader, *marks))
    reader.close()
    gc.collect()

    async def insert(caller: int) -> None:
        for mine in rows[caller::CALLERS_COUNT]:
            await bare.insert(mine)

    bare_seconds = await timed(lambda: _by_all_callers(insert))
    return len(rows) / host_seconds, len(rows) / bare_seconds


async def _by_all_callers(work: Callable[[int], Awaitable[None]]) -> None:
    await asyncio.gather(*(work(caller) for caller in range(CALLERS_COUNT)))


def _marks(reader: apsw.Connection) -> tuple[int, int]:
    sql = "select (select max(seq) from messages), (select max(log_seq) from events)"
    ((message_seq, log_seq),) = reader.execute(sql).fetchall()
    return int(str(message_seq or 0)), int(str(log_seq or 0))


def _rows_since(reader: apsw.Connection, message_seq: int, log_seq: int) -> Iterator[AdmissionRows]:
    messages: Sequence[tuple[object, ...]] = reader.execute(_NEW_ROWS, (message_seq,)).fetchall()
    events = reader.execute(_NEW_EVENTS, (log_seq,)).fetchall()
    for row, (event,) in zip(messages, events, strict=True):
        columns = tuple(v if v is None or isinstance(v, int) else str(v) for v in row)
        agent_id, at = str(columns[3]), int(str(columns[1]))
        yield AdmissionRows(columns[:2], columns[2:], agent_id, at, str(event))


def _compared(rates: Sequence[tuple[float, float]]) -> Measurement:
    shares = [by_host / by_bare for by_host, by_bare in rates]
    return Measurement(
        name="durable admissions, 64 callers, share of a bare group-commit writer",
        measured=100 * median(shares),
        target=60,
        at_least=True,
        unit=" %",
        detail=f"host {median([h for h, _ in rates]):,.0f}/s,"
        f" bare {median([b for _, b in rates]):,.0f}/s",
    )
