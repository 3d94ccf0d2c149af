"""The oracle for commands and tasks: compares a database with the commands that ran.

Owns:  the judgement of commands, shared by the simulation and the drills with real processes.
Rule 1: an execution is counted where it happened, never by what the database says of it.
Rule 2: safety can be judged at any moment between two commits; ownership once recovery is done;
        that every end was reported, only when faults have stopped.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

import apsw

OPEN: Final = "('queued', 'running', 'cancelling')"
_ENDED: Final = "('completed', 'failed', 'cancelled', 'interrupted')"


def execution_problems(connection: apsw.Connection, run_ids: Collection[str]) -> Iterator[str]:
    """P4: a call runs its command at most once, and only after it is on record."""
    known = {str(effect) for (effect,) in connection.execute("select effect_id from tool_calls")}
    for run_id, count in Counter(run_ids).items():
        if count != 1:
            yield f"P4 {run_id} was executed {count} times"
        if effect_of(run_id) not in known:
            yield f"P4 {run_id} was executed and no call is on record"


def effect_of(run_id: str) -> str:
    """Return the call a run belongs to: `turn.round.position`, and an item's number in a batch."""
    return ".".join(run_id.split(".")[:3])


def result_problems(connection: apsw.Connection) -> Iterator[str]:
    """P4, P9: a call has one result; a task ends once and tells its agent so once."""
    told = Counter(
        str(task_id)
        for (task_id,) in connection.execute(
            "select envelope ->> '$.task_id' from messages where kind = 'task_result'"
        )
    )
    tasks = connection.execute(f"select task_id, status, status in {OPEN} from tasks")
    for task_id, status, is_open in tasks:
        if told[str(task_id)] != (0 if is_open else 1):
            yield f"P9 {status} task {task_id} has {told[str(task_id)]} results"
    ends = connection.execute(
        "select event ->> '$.task_id', count(*) from events"
        f" where event ->> '$.kind' = 'task_status_updated' and event ->> '$.status' in {_ENDED}"
        " group by 1 having count(*) > 1"
    )
    yield from (f"P9 task {task_id} ended {count} times" for task_id, count in ends)
    answers = connection.execute(
        "select event ->> '$.effect_id', count(*) from events"
        " where event ->> '$.kind' in ('tool_executed', 'tool_execution_failed')"
        " group by 1 having count(*) > 1"
    )
    yield from (f"P4 {effect_id} has {count} results" for effect_id, count in answers)


def open_runs(connection: apsw.Connection) -> dict[str, str]:
    """The runs of command tasks that have not ended, each with its task."""
    found = connection.execute(
        "select record ->> '$.detail.run_id', task_id from tasks"
        f" where status in {OPEN} and record ->> '$.detail.run_id' is not null"
    )
    return {str(run_id): str(task_id) for run_id, task_id in found}


def unanswered_calls(connection: apsw.Connection) -> set[str]:
    """The calls that still have no result."""
    found = connection.execute("select effect_id from tool_calls where state = 'started'")
    return {str(effect_id) for (effect_id,) in found}


def ownerless(connection: apsw.Connection, *, found: Collection[str]) -> Iterator[str]:
    """P9: after recovery a task of a command has ended, or its command can be found."""
    for run_id, task_id in open_runs(connection).items():
        if run_id not in found:
            yield f"P9 task {task_id} goes on and nothing runs for it"


def tasks_to_take_up(connection: apsw.Connection, *, found: Collection[str]) -> list[str]:
    """Before recovery: tasks that ran, of agents that may, whose commands can be found again."""
    ran = connection.execute(
        "select t.record ->> '$.detail.run_id', t.task_id"
        " from tasks t join agents a on a.agent_id = t.agent_id"
        " where t.status = 'running' and a.status <> 'stopped' and a.archived = 0"
    )
    return [str(task_id) for run_id, task_id in ran if run_id in found]


def given_up(connection: apsw.Connection, *, before: Collection[str]) -> Iterator[str]:
    """P9: after recovery nobody has given up a task whose command could be found again."""
    lost = connection.execute("select task_id from tasks where status = 'interrupted'")
    for task_id in sorted({str(task_id) for (task_id,) in lost} & set(before)):
        yield f"P9 task {task_id} was given up although its command was there"


def runaways(connection: apsw.Connection, *, running: Collection[str]) -> Iterator[str]:
    """P4: what runs, runs for a task that is open or for a call that is under way."""
    tasks, calls = open_runs(connection), unanswered_calls(connection)
    for run_id in running:
        if run_id not in tasks and effect_of(run_id) not in calls:
            yield f"P4 {run_id} runs on for nobody"


def untold(connection: apsw.Connection, *, running: Collection[str]) -> Iterator[str]:
    """P9: a task is open only as long as its command runs."""
    for run_id, task_id in open_runs(connection).items():
        if run_id not in running:
            yield f"P9 the command of task {task_id} has ended and nobody was told"
