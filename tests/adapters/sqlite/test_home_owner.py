"""Who owns a home: the row in its database, when the lock file says nothing or too little."""

import os
import shutil
from pathlib import Path

import anyio
import anyio.to_thread
import apsw
import pytest

from holon.adapters.sqlite.database import home_owner
from holon.adapters.sqlite.database.home_lock import HomeLock, database_path, prepare_home
from holon.adapters.sqlite.store import hold_home, open_store
from holon.adapters.system.logs import PythonLog
from holon.decide.events.audit import audited
from holon.model.commits import Commit
from holon.model.errors import (
    DatabaseMissingError,
    HomeInUseError,
    HomeLostError,
    HomeReplacedError,
    NotAHolonDatabaseError,
)
from holon.model.values import EPOCH


def changed(home: Path, sql: str) -> None:
    """Change the database of a home from outside."""
    connection = apsw.Connection(str(database_path(home)))
    connection.execute(sql)
    connection.close()


def row(home: Path, column: str) -> object:
    connection = apsw.Connection(str(database_path(home)))
    found = connection.execute(f"select {column} from home_owner").fetchall()
    connection.close()
    return found[0][0]


def a_commit(name: str) -> Commit:
    return Commit(commit_id=name, at=EPOCH, changes=())


def lose_lock(home: Path) -> None:
    (home / "run" / "lock").unlink()


@pytest.mark.requirement("home:one-owner-without-the-lock")
async def test_a_home_whose_lock_was_removed_is_not_taken_from_a_process_that_lives(
    tmp_path: Path,
) -> None:
    first = open_store(tmp_path)
    lose_lock(tmp_path)
    with pytest.raises(HomeInUseError, match=f"process {os.getpid()}, although its lock file"):
        open_store(tmp_path)
    await first.apply(audited(a_commit("one")))
    assert row(tmp_path, "generation") == 1
    await first.close()


@pytest.mark.requirement("home:a-replaced-owner-writes-nothing")
async def test_an_owner_of_an_older_generation_writes_nothing_more(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    await store.apply(audited(a_commit("one")))
    changed(tmp_path, "update home_owner set generation = generation + 1, pid = 7")
    for attempt in ("two", "three"):
        with pytest.raises(HomeReplacedError, match="taken over by process 7"):
            await store.apply(audited(a_commit(attempt)))
    await store.close()
    again = open_store(tmp_path)
    outcomes = [await again.apply(audited(a_commit(name))) for name in ("one", "two", "three")]
    assert [getattr(outcome, "replayed", None) for outcome in outcomes] == [True, False, False]
    await again.close()


@pytest.mark.requirement("home:a-replaced-owner-writes-nothing")
async def test_a_replaced_owner_that_has_nothing_to_write_notices_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.adapters.sqlite.store.HOME_WATCH_MS", 1)
    store = open_store(tmp_path)
    changed(tmp_path, "update home_owner set generation = generation + 1")
    with pytest.raises(HomeReplacedError):
        await store.watch_home(PythonLog())
    await store.close()


@pytest.mark.requirement("home:one-owner-without-the-lock")
async def test_an_owner_whose_process_cannot_be_seen_is_asked_and_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.adapters.sqlite.store.HOME_WATCH_MS", 10)
    first = open_store(tmp_path)
    # As if the lock had been removed just now, each time the owner looks.
    monkeypatch.setattr(HomeLock, "restored", lambda lock: False)
    # To a process of another machine or container this one is a number like any other.
    changed(tmp_path, "update home_owner set process_space = 'another machine', pid = 4194305")
    async with anyio.create_task_group() as watching:
        watching.start_soon(first.watch_home, PythonLog())
        lose_lock(tmp_path)
        with pytest.raises(HomeInUseError, match="another machine or container"):
            await anyio.to_thread.run_sync(open_store, tmp_path)
        watching.cancel_scope.cancel()
    assert row(tmp_path, "generation") == 1
    await first.close()


@pytest.mark.requirement("home:a-replaced-owner-writes-nothing")
async def test_an_owner_that_cannot_be_seen_and_does_not_answer_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home_owner, "HOME_ANSWER_MS_MAX", 1)
    first = open_store(tmp_path)
    changed(tmp_path, "update home_owner set process_space = 'another machine', pid = 4194305")
    lose_lock(tmp_path)
    second = open_store(tmp_path)
    with pytest.raises(HomeReplacedError, match=f"process {os.getpid()}"):
        await first.apply(audited(a_commit("late")))
    await second.apply(audited(a_commit("new")))
    await first.close()
    await second.close()


@pytest.mark.requirement("home:one-owner-without-the-lock")
async def test_an_owner_that_cannot_be_seen_is_asked_once_in_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await open_store(tmp_path).close()
    changed(tmp_path, "update home_owner set process_space = 'another machine'")
    (tmp_path / "run" / "lock").rename(tmp_path / "run" / "kept")  # or its inode may come again
    asked = []
    monkeypatch.setattr(home_owner, "_answers", lambda connection: asked.append(connection))
    held = hold_home(tmp_path)
    store = open_store(tmp_path, held)
    assert len(asked) == 1
    assert row(tmp_path, "generation") == 2
    await store.close()


@pytest.mark.requirement("home:the-lock-refuses-first")
async def test_a_home_that_is_held_stays_so_until_its_store_is_closed(tmp_path: Path) -> None:
    prepare_home(tmp_path)
    held = hold_home(tmp_path)
    for take in (hold_home, open_store):
        with pytest.raises(HomeInUseError, match=f"process {os.getpid()}$"):
            take(tmp_path)
    store = open_store(tmp_path, held)
    with pytest.raises(HomeInUseError, match=f"process {os.getpid()}$"):
        hold_home(tmp_path)
    await store.close()
    again = hold_home(tmp_path)
    held.release()  # lets go of nothing that another one has taken since
    with pytest.raises(HomeInUseError):
        hold_home(tmp_path)
    again.release()


async def test_what_is_wrong_with_a_home_that_is_held_is_told_when_it_is_opened(
    tmp_path: Path,
) -> None:
    prepare_home(tmp_path)
    database_path(tmp_path).write_text("not a database at all")
    held = hold_home(tmp_path)
    with pytest.raises(HomeInUseError):
        hold_home(tmp_path)
    with pytest.raises(NotAHolonDatabaseError):
        open_store(tmp_path, held)
    hold_home(tmp_path).release()


@pytest.mark.requirement("database:gone-beside-what-belonged-to-it")
async def test_a_database_that_goes_after_its_home_was_taken_is_not_begun_anew(
    tmp_path: Path,
) -> None:
    await open_store(tmp_path).close()
    (tmp_path / "agents" / "main").mkdir(parents=True)
    held = hold_home(tmp_path)
    database_path(tmp_path).unlink()
    with pytest.raises(DatabaseMissingError):
        open_store(tmp_path, held)
    assert not database_path(tmp_path).exists()


async def test_the_holder_of_the_lock_that_the_last_owner_held_asks_for_nothing_more(
    tmp_path: Path,
) -> None:
    await open_store(tmp_path).close()
    changed(tmp_path, "update home_owner set process_space = 'another machine'")
    store = open_store(tmp_path)
    assert row(tmp_path, "question") == 0
    assert row(tmp_path, "generation") == 2
    await store.close()


@pytest.mark.requirement("home:a-removed-lock-is-restored")
async def test_a_lock_file_that_was_removed_or_replaced_is_held_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.adapters.sqlite.store.HOME_WATCH_MS", 1)
    store, lock = open_store(tmp_path), tmp_path / "run" / "lock"
    async with anyio.create_task_group() as watching:
        watching.start_soon(store.watch_home, PythonLog())
        for what in ("removed", "removed with its folder", "replaced"):
            lose(lock, what)
            with anyio.fail_after(20):
                while row(tmp_path, "lock_inode") != inode_of(lock):  # noqa: ASYNC110
                    await anyio.sleep(0.001)
            with pytest.raises(HomeInUseError, match=f"process {os.getpid()}$"):
                open_store(tmp_path)
        watching.cancel_scope.cancel()
    await store.close()
    await open_store(tmp_path).close()


def inode_of(lock: Path) -> str | None:
    return str(lock.stat().st_ino) if lock.exists() else None


def lose(lock: Path, what: str) -> None:
    """Remove the lock file, or put another one in its place."""
    if what == "removed":
        lock.unlink()
        return
    if what == "removed with its folder":
        shutil.rmtree(lock.parent)
        return
    other = lock.with_name("other")
    other.touch()
    other.rename(lock)


@pytest.mark.requirement("home:a-removed-lock-is-restored")
async def test_a_home_that_is_moved_away_ends_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.adapters.sqlite.store.HOME_WATCH_MS", 1)
    home = tmp_path / "home"
    store = open_store(home)
    home.rename(tmp_path / "away")
    with pytest.raises(HomeLostError, match=f"{home} was moved"):
        await store.watch_home(PythonLog())
    await store.close()
    assert not home.exists()


@pytest.mark.requirement("home:a-copy-has-an-identity-of-its-own")
async def test_a_copy_is_known_once_and_has_an_identity_of_its_own_from_then_on(
    tmp_path: Path,
) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    first = open_store(home)
    assert first.owner is not None
    assert first.owner.original is None
    shutil.copytree(home, copy)
    second = open_store(copy)  # although its row names a process that lives
    assert second.owner is not None
    assert second.owner.original == str(home)
    assert second.owner.identity.id != first.owner.identity.id
    await second.close()
    again = open_store(copy)
    assert again.owner is not None
    assert again.owner.original is None
    assert again.owner.identity == second.owner.identity
    await again.close()
    await first.close()


@pytest.mark.requirement("home:a-moved-home-goes-on")
async def test_a_moved_home_is_the_same_and_so_is_one_on_a_renumbered_disk(tmp_path: Path) -> None:
    home, moved = tmp_path / "home", tmp_path / "moved"
    first = open_store(home)
    assert first.owner is not None
    await first.close()
    home.rename(moved)
    changed(moved, "update home_owner set device = '1', process_space = 'an earlier boot'")
    second = open_store(moved)
    assert second.owner is not None
    assert second.owner.original is None
    assert second.owner.identity.id == first.owner.identity.id
    assert second.owner.identity.path == str(moved)
    await second.close()
