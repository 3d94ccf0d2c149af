"""Files that are not ours, disks that do not take writes: a typed refusal, and nothing changed."""

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from holon.adapters.sqlite.database.home_lock import HomeLock, database_path, prepare_home
from holon.adapters.sqlite.store import open_store
from holon.decide.events.audit import audited
from holon.model.errors import NotAHolonDatabaseError
from tests.support.builders import a_commit, an_agent


async def a_used_database(home: Path) -> Path:
    store = open_store(home)
    await store.apply(audited(a_commit("birth", an_agent())))
    await store.close()
    return database_path(home)


def a_foreign_database(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("create table orders (id); insert into orders values (1)")
    connection.pragma("application_id", 7)
    connection.close()


def an_anonymous_database(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("create table orders (id)")
    connection.close()


FOREIGN: dict[str, Callable[[Path], object]] = {
    "another program's database": a_foreign_database,
    "a database that does not say whose it is": an_anonymous_database,
    "a text file": lambda path: path.write_text("Dear diary,\n" * 400),
    "random bytes": lambda path: path.write_bytes(random.Random(1).randbytes(20_000)),
    "a few bytes": lambda path: path.write_bytes(b"SQLite"),
    "only the first line of a database": lambda path: path.write_bytes(b"SQLite format 3\x00"),
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_a_file_that_is_not_ours_is_refused_and_left_alone(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    prepare_home(tmp_path)
    path = database_path(tmp_path)
    make(path)
    before = path.read_bytes()
    with pytest.raises(NotAHolonDatabaseError) as refused:
        open_store(tmp_path)
    assert str(path) in refused.value.message
    assert refused.value.hint is not None
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name], "no litter beside it"
    HomeLock(tmp_path).release()  # and the home is free again


def overwrite_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"\xff" * 100)


def overwrite_schema(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 3_000)


def cut_in_half(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def cut_to_its_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(100)


@pytest.mark.parametrize(
    "damage", [overwrite_header, overwrite_schema, cut_in_half, cut_to_its_header]
)
async def test_a_damaged_database_is_refused_and_left_alone(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = await a_used_database(tmp_path)
    damage(path)
    before = path.read_bytes()
    with pytest.raises(NotAHolonDatabaseError):
        open_store(tmp_path)
    assert path.read_bytes() == before


async def test_a_first_write_that_was_cut_off_is_begun_again(tmp_path: Path) -> None:
    prepare_home(tmp_path)
    path = database_path(tmp_path)
    scratch = tmp_path / "scratch.sqlite"
    connection = apsw.Connection(str(scratch))
    connection.pragma("auto_vacuum", "incremental")
    connection.execute("begin immediate")
    connection.pragma("application_id", 1)
    connection.cache_flush()  # the page is in the file, the journal still says it should not be
    path.write_bytes(scratch.read_bytes()[:700])
    journal = Path(f"{scratch}-journal").read_bytes()
    Path(f"{path}-journal").write_bytes(journal)
    connection.close()
    await open_store(tmp_path).close()


IN_A_NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c"]

ON_A_READ_ONLY_MOUNT = """
import subprocess, sys
from pathlib import Path
from holon.adapters.sqlite.store import open_store
from holon.model.errors import StoreUnwritableError
home = Path(sys.argv[1])
subprocess.run(["mount", "--bind", home, home], check=True)
subprocess.run(["mount", "-o", "remount,bind,ro", home, home], check=True)
try:
    open_store(home)
except StoreUnwritableError as error:
    print("refused:", error.message)
"""

ON_A_FULL_DISK = """
import asyncio, subprocess, sys
from pathlib import Path
from holon.adapters.sqlite.store import open_store
from holon.decide.events.audit import audited
from holon.model.errors import StoreFullError
from holon.model.queue import TextBody
from tests.support.builders import a_commit, a_message, an_admission, an_agent

home = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", home], check=True)

def admission(n):
    return audited(an_admission(a_message(f"msg_{n}", body=TextBody(text="x" * 4000))))

async def main():
    store = open_store(home)
    await store.apply(audited(a_commit("birth", an_agent())))
    ballast = home / "ballast"
    ballast.write_bytes(bytes(1_000_000))
    acknowledged, refused = [], None
    for n in range(2_000):
        try:
            await store.apply(admission(n))
        except StoreFullError as error:
            refused = n
            break
        acknowledged.append(n)
    print("full:", refused is not None)
    lost = [n for n in acknowledged if await store.reads.queue.message(f"msg_{n}") is None]
    print("lost:", lost)
    print("half there:", await store.reads.queue.message(f"msg_{refused}") is not None)
    ballast.unlink()
    await store.apply(admission(refused))
    print("works again:", await store.reads.queue.message(f"msg_{refused}") is not None)
    await store.close()
    reopened = open_store(home)
    queue, all_told = reopened.reads.queue, [*acknowledged, refused]
    lost = [n for n in all_told if await queue.message(f"msg_{n}") is None]
    print("lost after restart:", lost)
    events = await reopened.reads.events.events_after("main", 0, limit=5_000)
    print("gapless:", [e.event_seq for e in events] == list(range(1, len(acknowledged) + 3)))
    await reopened.close()

asyncio.run(main())
"""


def run_in_namespace(script: str, home: Path) -> list[str]:
    """Run a script where it may mount what it likes, and return what it printed."""
    done = subprocess.run(
        [*IN_A_NAMESPACE, script, str(home)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_read_only_home_is_refused(tmp_path: Path) -> None:
    prepare_home(tmp_path)
    (line,) = run_in_namespace(ON_A_READ_ONLY_MOUNT, tmp_path)
    assert line.startswith("refused:")
    assert not database_path(tmp_path).exists()


def test_a_full_disk_loses_nothing_and_is_got_over(tmp_path: Path) -> None:
    assert run_in_namespace(ON_A_FULL_DISK, tmp_path) == [
        "full: True",
        "lost: []",
        "half there: False",
        "works again: True",
        "lost after restart: []",
        "gapless: True",
    ]
