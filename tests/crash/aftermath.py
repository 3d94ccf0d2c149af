"""What must be true of a home whose host is dead.

Owns:  the judgement over a database after a kill, and after everything has come to rest. Each
       problem is one line; no lines means that every promise was kept.
Rule 1: safety is judged after every kill; that everything ended is judged only at rest.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import apsw

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.check.untouched import open_untouched
from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.sqlite.store import open_store
from holon.decide.turns.conversation import conversation_of, problems_of
from holon.model.errors import HolonError
from holon.model.turns.conversation import UserMessage
from holon.model.turns.transcript import TurnLog
from holon.model.values import AgentId, MessageId
from tests.crash.dead_copy import dead_copy
from tests.crash.hands_aftermath import effect_problems, patch_problems
from tests.crash.stage import Ledger
from tests.support.command_oracle import result_problems
from tests.support.world_oracle import safety_problems

_ENDS: Final = (
    "message_processed",
    "message_processing_aborted",
    "message_dropped",
    "operator_interjection_admitted",
)
_TURNS_READ_COUNT_MAX: Final = 1_000_000


def problems_after_kill(home: Path, ledger: Ledger) -> list[str]:
    """Every invariant a kill broke."""
    acked = {MessageId(message_id) for message_id in ledger.acked.values()}
    with dead_copy(home) as database:
        try:
            report = check_database(database, acked=acked)
        except HolonError as error:
            return [f"the database cannot be checked: {error.message}"]
        with open_untouched(database) as connection:
            found = [
                *effect_problems(home, connection),
                *patch_problems(home, connection),
                *result_problems(connection),
            ]
    return [*(str(violation) for violation in report.violations), *found]


def problems_at_rest(home: Path, ledger: Ledger) -> list[str]:
    """Everything that is wrong once the last host has ended with nothing left to do."""
    acked = {MessageId(message_id) for message_id in ledger.acked.values()}
    with dead_copy(home) as database, open_untouched(database) as connection:
        found = [
            *safety_problems(connection, acked=acked),
            *_message_problems(connection, acked),
            *_log_problems(connection),
            *_lost_rows(connection, ledger),
            *_call_problems(connection),
            *_task_problems(connection),
            *_wake_problems(connection, ledger),
        ]
    return [*problems_after_kill(home, ledger), *found, *asyncio.run(_sendable_problems(home))]


def _message_problems(connection: apsw.Connection, acked: set[MessageId]) -> Iterator[str]:
    """P1 and P3: every admitted message is there and ended exactly once."""
    ends: Counter[str] = Counter()
    marks = ", ".join("?" for _ in _ENDS)
    told = connection.execute(
        f"select event ->> '$.message_id' from events where event ->> '$.kind' in ({marks})",
        _ENDS,
    )
    ends.update(str(message_id) for (message_id,) in told)
    seen = set()
    for message_id, kind, state in connection.execute(
        "select message_id, kind, state from messages"
    ):
        seen.add(message_id)
        if state in ("queued", "claimed"):
            yield f"P3 {kind} {message_id} is still {state}"
        elif ends[str(message_id)] != 1:
            yield f"P3 {kind} {message_id} ended {ends[str(message_id)]} times"
    yield from (f"P1 {message_id} was acknowledged and is gone" for message_id in acked - seen)


def _log_problems(connection: apsw.Connection) -> Iterator[str]:
    """P14: the log of each agent counts 1, 2, 3 …"""
    for agent_id, count, first, last in connection.execute(
        "select agent_id, count(*), min(event_seq), max(event_seq) from events group by agent_id"
    ):
        if (first, last) != (1, count):
            yield f"P14 {agent_id} has {count} events numbered {first} to {last}"


def _lost_rows(connection: apsw.Connection, ledger: Ledger) -> Iterator[str]:
    """Nothing an operator was told of is gone."""
    told = {"timer": ledger.timers, "work_item": ledger.items, "task": ledger.tasks}
    for kind, known in told.items():
        kept = {str(row) for (row,) in connection.execute(f"select {kind}_id from {kind}s")}
        lost = {record_id for _, record_id in known.values()} - kept
        yield from (f"P1 {kind} {each} was acknowledged and is gone" for each in sorted(lost))


def _call_problems(connection: apsw.Connection) -> Iterator[str]:
    """P4: every tool call has its one receipt."""
    for effect_id, name, state in connection.execute(
        "select effect_id, name, state from tool_calls where receipt is null or state = 'started'"
    ):
        yield f"P4 {name} {effect_id} is {state} without a receipt"


def _task_problems(connection: apsw.Connection) -> Iterator[str]:
    """P9: every task of a command has ended."""
    for task_id, status in connection.execute(
        "select task_id, status from tasks where record ->> '$.detail.run_id' is not null"
        " and status in ('queued', 'running', 'cancelling')"
    ):
        yield f"P9 task {task_id} is still {status}"


def _wake_problems(connection: apsw.Connection, ledger: Ledger) -> Iterator[str]:
    """P7: every hint that was taken in has become a tick, and every delivery is on record once."""
    delivered: Counter[str] = Counter()
    waiting: dict[tuple[str, str], str] = {}
    for agent, kind, source, sources, correlation in connection.execute(
        "select agent_id, event ->> '$.kind', event ->> '$.source_key',"
        " event -> '$.source_keys', event ->> '$.correlation_id' from events"
        " where event ->> '$.kind' in"
        " ('callback_delivered', 'wake_hint_coalesced', 'wake_hint_triggered') order by log_seq"
    ):
        if kind == "wake_hint_triggered":
            for each in json.loads(str(sources)):
                waiting.pop((str(agent), each), None)
            continue
        waiting[str(agent), str(source)] = str(correlation or "a wake")
        if kind == "callback_delivered":
            delivered[str(correlation)] += 1
    for (agent, source), what in waiting.items():
        yield f"P7 {what} of {source} never woke {agent}"
    for key in ledger.deliveries:
        if delivered[key] != 1:
            yield f"P2 delivery {key} was acknowledged and is on record {delivered[key]} times"


async def _sendable_problems(home: Path) -> list[str]:
    """P5: what any agent would send to a provider next is something a provider takes."""
    store = open_store(home)
    found: list[str] = []
    try:
        with open_untouched(database_path(home)) as connection:
            agents = [str(a) for (a,) in connection.execute("select agent_id from agents")]
        for agent in agents:
            logs = await store.reads.turns.recent_turns(AgentId(agent), limit=_TURNS_READ_COUNT_MAX)
            found.extend(f"P5 {agent}: {problem}" for problem in _conversation_problems(logs))
    finally:
        await store.close()
    return found


def _conversation_problems(logs: Sequence[TurnLog]) -> Iterator[str]:
    for count in range(1, len(logs) + 1):
        window = logs[max(0, count - 12) : count]
        conversation = conversation_of(window)
        # A settled turn ends with the model; what a provider sees ends with the next input.
        while conversation and not isinstance(conversation[-1], UserMessage):
            conversation = conversation[:-1]
        for problem in problems_of(conversation):
            yield f"{window[-1].turn.turn_id}: {problem}"
