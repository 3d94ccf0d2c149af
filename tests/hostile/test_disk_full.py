"""A full disk is an answer, not an end: nothing is lost, reads go on, and so does work, later.

The disk is a small tmpfs in a mount namespace of the service's own, so no right is needed and
nothing is left behind. From outside it is reached through /proc/<pid>/root.
"""

import resource
import shutil
from functools import partial
from pathlib import Path

import pytest

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database.home_lock import database_path
from holon.client.control_client import ControlError
from holon.model.values import MessageId
from tests.hostile.conftest import require_own_disk
from tests.hostile.served import Served, World, declined, own_disk, until
from tests.support.database_oracle import unsettled_messages
from tests.support.database_plants import begin_long_read

PAGE = b"\0" * 4_096
LONG = "more " * 800
WRITES: tuple[tuple[str, dict[str, str | int]], ...] = (
    ("/control/agents/main/prompt", {"text": LONG}),
    ("/control/agents/ada/create", {}),
    ("/control/agents/main/timers", {"duration_ms": 3_600_000, "summary": LONG[:100]}),
    ("/control/agents/main/work-items", {"objective": LONG}),
    ("/control/agents/main/tasks", {"summary": "a command", "cmd": f": {LONG}"}),
)


def fill(served: Served) -> Path:
    """Leave no page of the disk free; return what lies there instead."""
    ballast = served.seen(served.world.home.parent) / "ballast"
    with ballast.open("ab", buffering=0) as file:
        try:
            while file.write(PAGE):
                pass
        except OSError:
            return ballast
    return ballast


def refused_keys(served: Served, acked: set[str], *, count: int) -> list[str]:
    """Prompts that found no room; what still fitted into the last page was taken, and counts."""
    keys: list[str] = []
    for number in range(200):
        key = f"prompt-{number}"
        try:
            acked.add(served.prompt(f"{LONG} {number}", key=key))
        except ControlError as refusal:
            require_says_what_to_do(refusal)
            keys.append(key)
        if len(keys) == count:
            return keys
    raise AssertionError("the disk never was full")


def require_says_what_to_do(refusal: ControlError, code: str = "storage_full") -> None:
    assert (refusal.status, refusal.body.code) == (507, code)
    assert refusal.body.hint is not None
    assert "HOLON_HOME" in refusal.body.hint


def problems_of(served: Served, copy: Path, acked: set[str]) -> list[str]:
    """What is wrong with the database of a service that has come to rest."""
    ignored = shutil.ignore_patterns("*-shm", "*.sock", "lock", "gate", "input")
    shutil.copytree(served.seen(served.world.home) / "state", copy / "state", ignore=ignored)
    report = check_database(database_path(copy), acked={MessageId(each) for each in acked})
    return [*(str(violation) for violation in report.violations), *unsettled_messages(copy)]


def require_nothing_failed(served: Served) -> None:
    """No brief tells of a failure, and nothing was printed that an operator would worry about."""
    assert "last_failure" not in served.get("/control/runtime/status")
    assert "last_runtime_failure" not in served.get("/agents/main/status")["agent"]
    assert "Traceback" not in served.world.said()


@pytest.mark.requirement("crash:full-disk-is-an-answer")
@pytest.mark.requirement("hostile:full-disk-refuses-writes")
@pytest.mark.requirement("hostile:full-disk-serves-reads")
@pytest.mark.requirement("hostile:full-disk-pauses-agents")
@pytest.mark.requirement("hostile:full-disk-resumes-by-itself")
def test_a_full_disk_is_refused_waited_out_and_costs_nothing(small_disk: World) -> None:
    with small_disk.served() as served:
        acked = {served.prompt("hello"), served.prompt("hold on")}
        until((small_disk.folder / "here").exists)  # it is in the middle of a turn
        ballast = fill(served)

        keys = refused_keys(served, acked, count=5)
        for path, body in WRITES:
            require_says_what_to_do(declined(partial(served.post, path, body)))
        served.read_everything()
        served.open_gate()  # and now the turn has something to write down
        require_says_what_to_do(declined(lambda: served.prompt(LONG)))
        assert not served.is_at_rest()
        assert served.is_alive()
        require_nothing_failed(served)

        ballast.unlink()
        acked |= {served.prompt(f"{LONG} {key.split('-')[1]}", key=key) for key in keys}
        until(served.is_at_rest)
        require_nothing_failed(served)
        assert problems_of(served, small_disk.folder / "copy", acked) == []
        assert served.end() == 0


@pytest.mark.requirement("hostile:quota-is-a-full-disk")
def test_a_limit_on_file_sizes_is_no_different_from_a_full_disk(world: World) -> None:
    with world.served() as served:
        acked = {served.prompt("hello")}
        until(served.is_at_rest)
        log = Path(f"{database_path(world.home)}-wal").stat().st_size
        _, hard = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (log, hard))
        keys = refused_keys(served, acked, count=3)
        served.read_everything()
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        acked |= {served.prompt(f"{LONG} {key.split('-')[1]}", key=key) for key in keys}
        until(served.is_at_rest)
        require_nothing_failed(served)
        assert problems_of(served, world.folder / "copy", acked) == []


@pytest.mark.requirement("hostile:full-disk-and-command-output")
def test_a_command_that_fills_the_disk_is_ended_and_its_end_is_told_once_there_is_room(
    small_disk: World,
) -> None:
    with small_disk.served() as served:
        short = served.task("exit 0")
        assert served.ended_task(short)["status"] == "completed"
        # Its record is made to end just before a page does: how it ended needs another page.
        pad = 4_096 - 40 - record_bytes_before_the_end(served)
        ballast = served.seen(small_disk.home.parent) / "ballast"
        ballast.write_bytes(PAGE * 768)
        sign = small_disk.folder / "taken"  # not before the task is on record
        waits = f"until [ -e {sign} ]; do sleep 0.01; done; cat /dev/zero #"
        flood = served.task(waits.ljust(pad - 1, "x"))
        sign.touch()
        until(lambda: is_declined(served))
        served.read_everything()
        assert served.get(f"/agents/main/tasks/{flood}")["status"] == "running"
        ballast.unlink()
        ended = served.ended_task(flood)
        assert ended["status"] == "failed"
        until(served.is_at_rest)
        assert "could not be kept" in served.result_of(flood)
        assert "Traceback" not in small_disk.said()


def record_bytes_before_the_end(served: Served) -> int:
    """How long the record of the only command so far was when it ended."""
    (record,) = served.seen(served.world.home).glob("**/run.jsonl")
    lines = record.read_bytes().splitlines(keepends=True)
    return sum(len(line) for line in lines if b'"ended"' not in line) - 1


def is_declined(served: Served) -> bool:
    try:
        served.prompt(LONG)
    except ControlError as refusal:
        require_says_what_to_do(refusal)
        return True
    return False


@pytest.mark.requirement("crash:full-disk-is-an-answer")
@pytest.mark.requirement("hostile:full-disk-at-the-start")
def test_a_home_on_a_full_disk_is_refused_in_a_sentence(folder: Path) -> None:
    require_own_disk()
    disk = folder / "disk"
    filled = 'dd if=/dev/zero of="$0/ballast" bs=4k 2>/dev/null; true'
    done = World(folder=folder, home=disk / "home", before=own_disk(disk, first=filled)).refused()
    assert done.returncode == 2
    assert f"\nholon: {disk}/home" in f"\n{done.stderr}"
    assert "No space left" in done.stderr or "full" in done.stderr
    assert "check" in done.stderr or "free disk space" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.requirement("health:full-disk-is-told")
def test_the_status_says_that_the_disk_is_full_until_it_no_longer_is(small_disk: World) -> None:
    with small_disk.served() as served:
        acked = {served.prompt("hello")}
        until(served.is_at_rest)
        assert served.get("/control/runtime/status")["healthy"] is True
        ballast = fill(served)
        refused_keys(served, acked, count=1)
        status = served.get("/control/runtime/status")
        assert status["healthy"] is False
        (problem,) = status["problems"]
        assert problem["code"] == "storage_full"
        assert "HOLON_HOME" in problem["hint"]
        ballast.unlink()
        until(lambda: served.get("/control/runtime/status")["healthy"])  # nothing is asked of it
        assert "problems" not in served.get("/control/runtime/status")


@pytest.mark.requirement("health:log-over-its-limit-is-told")
def test_a_log_that_a_foreign_reader_keeps_long_is_warned_of(world: World) -> None:
    with world.served() as served:
        reader = begin_long_read(world.home)
        for number in range(150):  # half a megabyte each
            served.prompt("x" * 500_000 + str(number))
            status = served.get("/control/runtime/status")
            if status.get("problems"):
                break
        assert status["healthy"] is True
        (problem,) = status["problems"]
        assert problem["code"] == "wal_over_limit"
        log = world.home / "run" / "daemon.log"
        until(lambda: '"wal_over_limit"' in log.read_text())
        reader.close()
        served.prompt("and now it can be folded back")
        until(lambda: "problems" not in served.get("/control/runtime/status"))
