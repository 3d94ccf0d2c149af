"""What commands, patches and tasks must have left behind, whoever was killed when.

Owns:  the judgement over effects on the machine: what the workspaces hold, which tasks have an
       owner, and which processes are still there.
Rule 1: an effect counts by what it wrote. What the database says of a call must agree with that.
Rule 2: an owner is a process that is alive now: its number, its start and the boot agree with what
        was written down when the command began.
Rule 3: a task somebody was told of ends as its command does, whatever ended the host meanwhile.
Rule 4: a process is known by the marker of its home in its first environment, and ended by its
        number alone.
"""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

import apsw

from holon.adapters.exec.process_table import is_living, marked_with
from holon.adapters.exec.run_folder import RUN_MARKER, RunFolder
from holon.adapters.sqlite.check.untouched import open_untouched
from holon.adapters.sqlite.database.home_lock import database_path
from holon.decide.tasks.commands import run_id_of, spec_of
from holon.model.tasks import TaskRecord
from holon.serve.compose import COMMANDS_FOLDER
from holon.wire.codec import decode
from tests.crash.caller import STOPPED_NOW_AND_THEN
from tests.crash.load import ORDER_PREFIX
from tests.crash.stage import Ledger
from tests.support.command_oracle import OPEN, effect_of, execution_problems
from tests.support.mixed_commands import EFFECTS_FILE, NOTE_PREFIX, note_text
from tests.support.served_host import MARKER

LEFT_S_MAX: Final = 5.0  # for what ends by itself once the last host is gone
_POLL_S: Final = 0.02


def effect_problems(home: Path, connection: apsw.Connection) -> Iterator[str]:
    """P4: a call has its effect at most once, and only if it was recorded before."""
    written = list(_effects(home))
    orders = Counter(line for line in written if line.startswith(ORDER_PREFIX))
    yield from (f"P4 {line} was executed {n} times" for line, n in orders.items() if n > 1)
    lines = [line for line in written if line not in orders]
    steps = Counter(line for line in lines if ":" in line)  # of one command, the later ones
    yield from execution_problems(connection, [line for line in lines if ":" not in line])
    yield from execution_problems(connection, {line.split(":")[0] for line in steps})
    yield from (f"P4 {line} was executed {n} times" for line, n in steps.items() if n > 1)
    yield from _missing_effects(connection, Counter(written))


def _effects(home: Path) -> Iterator[str]:
    for file in home.glob(f"agents/*/{EFFECTS_FILE}"):
        yield from file.read_text(encoding="utf-8").splitlines()


def _missing_effects(connection: apsw.Connection, written: Counter[str]) -> Iterator[str]:
    """What the model was told has ended well must have happened."""
    ended = connection.execute(
        "select effect_id, input, receipt from tool_calls"
        " where name = 'ExecCommand' and state = 'succeeded'"
    )
    for effect_id, asked, receipt in ended:
        if '\\"disposition\\":\\"completed\\"' in str(receipt).replace(" ", ""):
            has_proof = EFFECTS_FILE in str(asked)
            if has_proof and not written[str(effect_id)]:
                yield f"P4 {effect_id} is told to have ended and left no trace"
    done = connection.execute("select task_id, record from tasks where status = 'completed'")
    for task_id, record in done:
        task = decode(str(record), TaskRecord)
        run_id = run_id_of(task)
        proof = (task.summary or "").replace("order ", ORDER_PREFIX)
        if run_id is not None and not written[run_id] and not written[proof]:
            yield f"P4 task {task_id} is told to have ended and left no trace"


def order_problems(home: Path, ledger: Ledger, *, may_be_lost: bool) -> Iterator[str]:
    """P9: a task that was acknowledged and that nobody stopped has come to its own end.

    A kill may come while its supervisor is being asked, before anybody looks after the command:
    then it was interrupted, and says so.
    """
    with open_untouched(database_path(home)) as connection:
        found = connection.execute("select task_id, status, record from tasks")
        tasks = {str(task_id): (str(status), str(record)) for task_id, status, record in found}
    for agent, task_id in ledger.tasks.values():
        if task_id not in tasks:
            yield f"P9 task {task_id} was acknowledged, and has no row"
            continue
        status, record = tasks[task_id]
        spec = spec_of(decode(record, TaskRecord))
        is_ended_by_others = task_id in ledger.stopped or agent == STOPPED_NOW_AND_THEN
        if spec is None or spec.accepts_input or is_ended_by_others:
            continue
        own_end = "failed" if "exit 3" in spec.cmd else "completed"
        if status != own_end and not (may_be_lost and status == "interrupted"):
            yield f"P9 task {task_id} was acknowledged, and ended as {status}: {spec.cmd}"


def patch_problems(home: Path, connection: apsw.Connection) -> Iterator[str]:
    """P4: a patch is there whole or not at all, and one that succeeded is there."""
    notes = {
        file: file.read_text(encoding="utf-8") for file in home.glob(f"agents/*/{NOTE_PREFIX}*")
    }
    for file, text in notes.items():
        if text != note_text(file.name):
            yield f"P4 {file.name} is torn: {len(text)} characters"
    names = {file.name for file in notes}
    done = connection.execute(
        "select effect_id, input from tool_calls where name = 'ApplyPatch' and state = 'succeeded'"
    )
    for effect_id, asked in done:
        for line in str(json.loads(str(asked)).get("patch", "")).splitlines():
            name = line.removeprefix("*** Add File: ")
            if name != line and name not in names:
                yield f"P4 {effect_id} is told to have added {name}, which is not there"


def open_tasks(database: Path) -> dict[str, str | None]:
    """The tasks that have not ended, each with the run it stands for."""
    with open_untouched(database) as connection:
        found = connection.execute(f"select task_id, record from tasks where status in {OPEN}")
        return {
            str(task_id): run_id_of(decode(str(record), TaskRecord)) for task_id, record in found
        }


def unowned(home: Path, among: Iterable[str]) -> list[str]:
    """Which of these tasks have neither ended nor a living process."""
    still_open = open_tasks(database_path(home))
    return [
        task_id
        for task_id in among
        if task_id in still_open and not _is_owned(home, still_open[task_id])
    ]


def _is_owned(home: Path, run_id: str | None) -> bool:
    if run_id is None:
        return False
    facts = RunFolder(home / COMMANDS_FOLDER / run_id).read()
    return not facts.left_nothing and is_living(facts.supervisor)


def interrupted_calls(home: Path) -> frozenset[str]:
    """The calls the model was told were interrupted."""
    with open_untouched(database_path(home)) as connection:
        found = connection.execute("select effect_id from tool_calls where state = 'interrupted'")
        return frozenset(str(effect_id) for (effect_id,) in found)


def runaways(home: Path, among: Collection[str] | None = None) -> list[str]:
    """Processes of interrupted calls, and of runs nobody knows of; or only of some such calls.

    A run nobody knows of may be one an operator is just asking for: its row comes a moment later.
    """
    runs = [(facts.pid, _run_of(facts.pid)) for facts in marked_with(marker_of_home(home))]
    with open_untouched(database_path(home)) as connection:
        calls = connection.execute("select effect_id, state from tool_calls")
        states = {str(effect_id): str(state) for effect_id, state in calls}
        tasks = connection.execute("select record ->> '$.detail.run_id' from tasks")
        ordered = {str(run_id) for (run_id,) in tasks}
    found = [
        f"P4 process {pid} of the interrupted call {run} goes on"
        for pid, run in runs
        if run is not None
        and states.get(effect_of(run)) == "interrupted"
        and (among is None or effect_of(run) in among)
    ]
    unknown = [
        f"P4 process {pid} of {run} is on no record"
        for pid, run in runs
        if run is not None and effect_of(run) not in states and run not in ordered
        if among is None
    ]
    return [*found, *unknown]


def _run_of(pid: int) -> str | None:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    prefix = f"{RUN_MARKER}=".encode()
    found = next((each for each in environment if each.startswith(prefix)), None)
    return None if found is None else Path(os.fsdecode(found)).name


def end_stragglers(home: Path) -> list[str]:
    """Wait for what ends by itself; end the rest, one by one, and say what it was."""
    deadline = time.monotonic() + LEFT_S_MAX
    while (left := marked_with(marker_of_home(home))) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    told = []
    for facts in left:
        told.append(f"process {facts.pid} was left behind: {_command_line(facts.pid)}")
        try:
            os.kill(facts.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return told


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:200]
    except OSError:
        return "gone by now"


def marker_of_home(home: Path) -> bytes:
    """Return what every process that was started for a home has in its first environment."""
    return os.fsencode(f"{MARKER}={home}")
