"""Looking changes nothing on disk, whoever has the database open; foreign files are refused."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.sqlite.store import open_store
from holon.decide.events.audit import audited
from holon.model.commits import Commit
from holon.model.errors import HolonError, NotAHolonDatabaseError, SchemaTooNewError, StoreError
from tests.adapters.sqlite.check.story import story
from tests.support.manual_clock import DAWN

WAL = ".sqlite-wal"
SHM = ".sqlite-shm"

# Tells the story to a store in a process of its own, which then stays open until its input ends.
HOST = """
import asyncio, sys
from pathlib import Path
from holon.adapters.sqlite.store import open_store
from holon.decide.events.audit import audited
from holon.model.commits import Commit
from tests.support.manual_clock import DAWN
from tests.adapters.sqlite.check.story import story

async def run():
    store = open_store(Path(sys.argv[1]))
    for commit_id, changes in story():
        commit = Commit(commit_id=commit_id, at=DAWN, changes=changes)
        await store.apply(audited(commit))
    print("told", flush=True)
    await asyncio.to_thread(sys.stdin.read)

asyncio.run(run())
"""


def listing(home: Path) -> dict[str, str]:
    """Every file below `home` with the digest of its bytes."""
    return {
        str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }


def host_on(home: Path) -> "subprocess.Popen[str]":
    """Start a process that holds the story open."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOST, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[4],
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "told\n"
    return child


def kill(child: "subprocess.Popen[str]") -> None:
    child.kill()
    child.communicate()


def assert_untouched_and_clean(home: Path) -> None:
    before = listing(home)
    report = check_database(database_path(home))
    assert report.violations == ()
    assert report.counts["messages"] == 6
    assert listing(home) == before


@pytest.mark.requirement("check:looking-changes-nothing")
def test_a_database_at_rest_stays_one_file(told: Path, tmp_path: Path) -> None:
    target = database_path(tmp_path)
    target.parent.mkdir()
    shutil.copy(told, target)
    assert_untouched_and_clean(tmp_path)
    assert [path.name for path in target.parent.iterdir()] == [target.name]


@pytest.mark.requirement("check:looking-changes-nothing")
def test_a_host_may_be_running_and_a_killed_one_leaves_its_log(tmp_path: Path) -> None:
    home = tmp_path / "home"
    child = host_on(home)
    try:
        assert_untouched_and_clean(home)
        assert child.poll() is None
    finally:
        kill(child)
    files = set(listing(home))
    assert any(name.endswith(WAL) for name in files)
    assert any(name.endswith(SHM) for name in files)
    assert_untouched_and_clean(home)
    for name in files:
        if name.endswith(SHM):
            (home / name).unlink()
    assert_untouched_and_clean(home)  # a copy of database and log alone


@pytest.mark.requirement("check:looking-changes-nothing")
def test_a_log_that_holds_nothing_yet_is_left_where_it_is(told: Path, tmp_path: Path) -> None:
    target = database_path(tmp_path)
    target.parent.mkdir()
    shutil.copy(told, target)
    target.with_name(f"{target.name}-wal").write_bytes(b"\0" * 32)
    assert_untouched_and_clean(tmp_path)


@pytest.mark.requirement("check:looking-changes-nothing")
async def test_a_store_in_this_process_goes_on_as_before(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    *most, (last_id, last_changes) = story()
    for commit_id, changes in most:
        await store.apply(audited(Commit(commit_id=commit_id, at=DAWN, changes=changes)))
    assert check_database(database_path(tmp_path)).is_clean
    await store.apply(audited(Commit(commit_id=last_id, at=DAWN, changes=last_changes)))
    report = check_database(database_path(tmp_path))
    assert report.is_clean
    assert report.counts["commits"] == len(most) + 1
    await store.close()


def test_a_home_with_an_awkward_name_is_found(told: Path, tmp_path: Path) -> None:
    home = tmp_path / "a b?mode=rw&x=%41#y"
    target = database_path(home)
    target.parent.mkdir(parents=True)
    shutil.copy(told, target)
    assert_untouched_and_clean(home)


def nothing(path: Path) -> None:
    path.unlink()


def a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def an_empty_file(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_text("these are my notes\n" * 1_000, encoding="utf-8")


def half_a_database(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5_000])


def another_program(path: Path) -> None:
    path.unlink()
    connection = apsw.Connection(str(path))
    connection.execute("create table bookmarks (url text)")
    connection.close()


def a_newer_schema(path: Path) -> None:
    _set_version(path, 999)


def an_older_schema(path: Path) -> None:
    _set_version(path, 0)


def _set_version(path: Path, version: int) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", version)
    connection.close()


@pytest.mark.requirement("check:foreign-files-are-refused")
@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (nothing, NotAHolonDatabaseError, "there is no database at"),
        (a_directory, NotAHolonDatabaseError, "is not a plain file"),
        (an_empty_file, NotAHolonDatabaseError, "belongs to another program"),
        (text, NotAHolonDatabaseError, "is not a Holon database"),
        (half_a_database, NotAHolonDatabaseError, "is not a Holon database"),
        (another_program, NotAHolonDatabaseError, "belongs to another program"),
        (a_newer_schema, SchemaTooNewError, "has schema version 999"),
        (an_older_schema, NotAHolonDatabaseError, "has schema version 0"),
    ],
)
def test_what_is_not_a_database_of_ours_is_refused_and_left_alone(
    database: Path, make: Callable[[Path], None], error: type[HolonError], words: str
) -> None:
    make(database)
    before = listing(database.parent)
    with pytest.raises(error, match=words) as caught:
        check_database(database)
    assert caught.value.hint
    assert listing(database.parent) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_an_unreadable_database_is_named(database: Path) -> None:
    database.chmod(0)
    with pytest.raises(StoreError, match="cannot be read"):
        check_database(database)
