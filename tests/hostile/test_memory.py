"""Memory runs out: a command is ended for it; the service lives and tells how that one ended."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holon.adapters.exec.supervisor import COMMAND_OOM_SCORE
from tests.hostile.served import World, until

HOG = f"exec {sys.executable} -c 'x = bytearray(1 << 30)'"
# The supervisor has the score of the command while it spawns it, which the command may outrun.
SCORES_ONCE_RESTORED = (
    "for _ in $(seq 200); do"
    " [ $(cat /proc/$PPID/oom_score_adj) = {own} ] && break; sleep 0.05; done;"
    " cat /proc/self/oom_score_adj /proc/$PPID/oom_score_adj"
)
GROUPS = Path("/sys/fs/cgroup")
GROUP_BYTES = 160 << 20


@pytest.mark.requirement("hostile:memory-limit-ends-the-command")
@pytest.mark.requirement("hostile:commands-go-first")
def test_a_command_without_memory_ends_truthfully_and_is_worth_less_than_the_service(
    world: World,
) -> None:
    with world.served() as served:
        limited = served.task(f"ulimit -v 200000; {HOG}")
        killed = served.task("kill -KILL $$")
        own = Path(f"/proc/{served.process.pid}/oom_score_adj").read_text(encoding="ascii").strip()
        scores = served.task(SCORES_ONCE_RESTORED.format(own=own))
        assert served.ended_task(limited)["status"] == "failed"
        assert "ended with exit status 1" in served.result_of(limited)
        assert "MemoryError" in served.result_of(limited)
        assert served.ended_task(killed)["status"] == "failed"
        assert "ended by signal 9" in served.result_of(killed)
        assert served.ended_task(scores)["status"] == "completed"
        expected = f"{max(COMMAND_OOM_SCORE, int(own))}\n{own}"
        assert expected in served.result_of(scores)
        until(served.is_at_rest)
        assert served.end() == 0


@pytest.fixture
def memory_group() -> Iterator[Path]:
    """A group of processes that has little memory, for whoever may make one."""
    old, new = GROUPS / "memory", GROUPS
    where, limit = (old, "memory.limit_in_bytes") if old.is_dir() else (new, "memory.max")
    group = where / f"holon-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(GROUP_BYTES), encoding="ascii")
    except OSError as error:
        pytest.skip(f"this machine lets us make no memory group: {error.strerror}")
    yield group
    until(lambda: not (group / "cgroup.procs").read_text(encoding="ascii"))
    group.rmdir()


@pytest.mark.requirement("hostile:commands-go-first")
def test_when_the_machine_is_out_of_memory_the_command_goes_and_the_service_stays(
    folder: Path, memory_group: Path
) -> None:
    entered = ("sh", "-c", 'echo $$ > "$0" && exec "$@"', str(memory_group / "cgroup.procs"))
    world = World(folder=folder, home=folder / "home", before=entered)
    with world.served() as served:
        hog = served.task(HOG)
        assert served.ended_task(hog)["status"] == "failed"
        assert "ended by signal 9" in served.result_of(hog)
        assert served.ended_task(served.task("exit 0"))["status"] == "completed"
        assert served.end() == 0
