"""The database goes away, is exchanged or is damaged: nothing is acknowledged or begun anew."""

import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from holon.adapters.sqlite.check.checker import check_database
from holon.adapters.sqlite.database import database_files
from holon.adapters.sqlite.database.connection import leave_log, open_inspector, open_writer
from holon.adapters.sqlite.database.database_files import DatabaseFiles, record_path
from holon.adapters.sqlite.database.home_lock import HomeLock, database_path, prepare_home
from holon.adapters.sqlite.store import SqliteStore, hold_home, open_store
from holon.decide.events.audit import audited
from holon.model.errors import (
    DatabaseMissingError,
    DatabaseReplacedError,
    ForeignLogError,
    HomeInUseError,
    LogLostError,
    NotAHolonDatabaseError,
    StoreDamagedError,
)
from tests.adapters.sqlite.check.story import write_story
from tests.support.builders import a_commit, a_message, an_admission, an_agent

pytestmark = pytest.mark.long


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


async def a_used_store(home: Path) -> SqliteStore:
    store = open_store(home)
    await store.apply(audited(a_commit("birth", an_agent())))
    return store


def an_agent_home(home: Path) -> None:
    folder = home / "agents" / "main"
    folder.mkdir(parents=True)
    (folder / "AGENTS.md").write_text("Be kind.\n")


def everything_in(home: Path) -> dict[str, bytes]:
    skipped = {"lock"}
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and path.name not in skipped
    }


# At the start ---------------------------------------------------------------------------------


@pytest.mark.requirement("database:gone-beside-what-belonged-to-it")
@pytest.mark.parametrize("empty", [True, False], ids=["empty", "missing"])
@pytest.mark.parametrize("beside", ["log", "agents"])
def test_a_database_that_is_gone_is_not_begun_anew_beside_what_belonged_to_it(
    tmp_path: Path, beside: str, empty: bool
) -> None:
    prepare_home(tmp_path)
    path = database_path(tmp_path)
    if empty:
        path.touch()
    if beside == "log":
        log_of(path).write_bytes(b"frames of a database that is gone")
    else:
        an_agent_home(tmp_path)
    before = everything_in(tmp_path)
    hold_home(tmp_path).release()  # says nothing of it, and leaves it as it is
    with pytest.raises(DatabaseMissingError) as refused:
        open_store(tmp_path)
    assert str(path) in refused.value.message
    assert "holon restore" in (refused.value.hint or "")
    assert everything_in(tmp_path) == before
    HomeLock(tmp_path).release()


@pytest.mark.requirement("database:gone-beside-what-belonged-to-it")
async def test_a_refused_start_leaves_the_place_free_for_the_folder_that_is_put_back(
    tmp_path: Path,
) -> None:
    store = await a_used_store(tmp_path)
    await store.close()
    an_agent_home(tmp_path)
    folder = database_path(tmp_path).parent
    folder.rename(tmp_path / "moved")
    with pytest.raises(DatabaseMissingError):
        open_store(tmp_path)
    assert not folder.exists(), "a folder there would take up the one that is moved back"
    (tmp_path / "moved").rename(folder)
    again = open_store(tmp_path)
    await again.close()


async def test_a_home_that_is_being_made_is_no_home_that_lost_its_database(tmp_path: Path) -> None:
    (tmp_path / "agents" / ".births" / "main").mkdir(parents=True)
    prepare_home(tmp_path)
    database_path(tmp_path).touch()
    store = open_store(tmp_path)
    await store.close()


def as_folder(path: Path) -> None:
    path.mkdir()


def as_pipe(path: Path) -> None:
    os.mkfifo(path)


def as_link(path: Path) -> None:
    path.symlink_to(path.with_name("elsewhere.sqlite"))


@pytest.mark.requirement("database:plain-file-or-nothing")
@pytest.mark.parametrize("make", [as_folder, as_pipe, as_link])
def test_what_is_no_plain_file_is_no_database(tmp_path: Path, make: Callable[[Path], None]) -> None:
    prepare_home(tmp_path)
    make(database_path(tmp_path))
    with pytest.raises(NotAHolonDatabaseError):
        open_store(tmp_path)
    with pytest.raises(NotAHolonDatabaseError):
        check_database(database_path(tmp_path))


# While it is open -----------------------------------------------------------------------------


def removed(path: Path, other: Path) -> None:
    path.unlink()


def moved_away(path: Path, other: Path) -> None:
    path.rename(path.with_name("moved.sqlite"))


def folder_in_its_place(path: Path, other: Path) -> None:
    path.unlink()
    path.mkdir()


def link_in_its_place(path: Path, other: Path) -> None:
    path.unlink()
    path.symlink_to(other)


def another_in_its_place(path: Path, other: Path) -> None:
    shutil.copy(other, path.with_name("new"))
    path.with_name("new").rename(path)


def overwritten_in_place(path: Path, other: Path) -> None:
    shutil.copyfile(other, path)


def cut(path: Path, other: Path) -> None:
    os.truncate(path, 0)


def without_its_log(path: Path, other: Path) -> None:
    log_of(path).unlink()


def with_a_log_cut_to_nothing(path: Path, other: Path) -> None:
    os.truncate(log_of(path), 0)


SWAPS = [
    removed,
    moved_away,
    folder_in_its_place,
    link_in_its_place,
    another_in_its_place,
    overwritten_in_place,
    cut,
    without_its_log,
    with_a_log_cut_to_nothing,
]


@pytest.mark.requirement("database:exchanged-while-it-is-open")
@pytest.mark.parametrize("swap", SWAPS)
async def test_nothing_is_acknowledged_once_the_database_is_another(
    tmp_path: Path, swap: Callable[[Path, Path], None]
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    other = await write_story(elsewhere)
    store = await a_used_store(home)
    await store.apply(audited(an_admission(a_message("msg_before"))))
    swap(database_path(home), other)

    with pytest.raises(DatabaseReplacedError) as told:
        await store.apply(audited(an_admission(a_message("msg_after"))))
    assert str(database_path(home)) in told.value.message
    assert "holon restore" in (told.value.hint or "")
    with pytest.raises(DatabaseReplacedError):
        await store.apply(audited(an_admission(a_message("msg_later"))))
    await store.close()


@pytest.mark.requirement("database:exchanged-while-it-is-open")
@pytest.mark.parametrize("swap", SWAPS)
async def test_a_look_tells_it_though_nothing_is_committed(
    tmp_path: Path, swap: Callable[[Path, Path], None]
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    other = await write_story(elsewhere)
    store = await a_used_store(home)
    await store.look()
    swap(database_path(home), other)
    with pytest.raises(DatabaseReplacedError):
        await store.look()
    with pytest.raises(DatabaseReplacedError):
        await store.apply(audited(an_admission(a_message("msg_after"))))
    await store.close()


async def test_what_came_in_place_of_the_database_is_not_written_to(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    other = await write_story(elsewhere)
    store = await a_used_store(home)
    another_in_its_place(database_path(home), other)
    with pytest.raises(DatabaseReplacedError):
        await store.apply(audited(an_admission(a_message("msg_after"))))
    await store.close()
    assert database_path(home).read_bytes() == other.read_bytes()


@pytest.mark.requirement("database:checkpoints-are-no-exchange")
async def test_our_own_checkpoints_are_no_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.adapters.sqlite.database.checkpoints.CHECKPOINT_PAGES", 1)
    store = await a_used_store(tmp_path)
    for number in range(40):
        await store.apply(audited(an_admission(a_message(f"msg_{number}"))))
        await store.look()
    await store.close()
    again = open_store(tmp_path)
    assert await again.reads.queue.message(a_message("msg_39").id) is not None
    await again.close()


# After a life that did not end well -----------------------------------------------------------


def left_behind(home: Path, kept: Path) -> None:
    """Leave what a killed process leaves: the files as they are, and no lock."""
    shutil.copytree(home, kept, ignore=shutil.ignore_patterns("lock"))


@pytest.mark.requirement("database:a-log-is-not-laid-over-another-database")
@pytest.mark.parametrize("swap", [another_in_its_place, overwritten_in_place])
async def test_a_log_is_not_laid_over_another_database(
    tmp_path: Path, swap: Callable[[Path, Path], None]
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    other = await write_story(elsewhere)
    store = await a_used_store(home)
    swap(database_path(home), other)
    with pytest.raises(DatabaseReplacedError):
        await store.apply(audited(an_admission(a_message("msg_after"))))
    await store.close()
    before = everything_in(home / "state")

    with pytest.raises(ForeignLogError) as refused:
        open_store(home)
    assert "-wal" in (refused.value.hint or "")
    assert everything_in(home / "state") == before
    log_of(database_path(home)).rename(tmp_path / "log")  # as the hint says
    again = open_store(home)
    assert await again.reads.queue.message(a_message("msg_after").id) is None
    await again.close()
    assert check_database(database_path(home)).is_clean


@pytest.mark.requirement("home:one-owner-without-the-lock")
async def test_a_checkpoint_of_the_owner_meanwhile_is_no_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, path = await a_used_store(tmp_path), database_path(tmp_path)
    (tmp_path / "run" / "lock").unlink()  # or the home is refused before it is looked at
    files, recorded = DatabaseFiles(path, record_path(tmp_path)), database_files._recorded
    folded: list[object] = []

    def before_a_checkpoint(record: Path) -> object:
        known = recorded(record)
        if not folded:
            with files.checkpointing():
                os.utime(path)
            folded.append(known)
        return known

    monkeypatch.setattr(database_files, "_recorded", before_a_checkpoint)
    with pytest.raises(HomeInUseError):
        open_store(tmp_path)
    assert folded
    await store.close()


async def test_a_copied_home_with_its_log_is_opened(tmp_path: Path) -> None:
    home, copied = tmp_path / "home", tmp_path / "copied"
    store = await a_used_store(home)
    await store.apply(audited(an_admission(a_message("msg_before"))))
    left_behind(home, copied)
    await store.close()
    again = open_store(copied)
    assert await again.reads.queue.message(a_message("msg_before").id) is not None
    await again.close()


async def test_a_look_that_asks_for_an_owner_takes_no_checkpoint(tmp_path: Path) -> None:
    await open_store(tmp_path).close()
    path = database_path(tmp_path)
    writer = open_writer(path)
    leave_log(writer)
    writer.execute("create table filler (content blob)")
    writer.execute("insert into filler values (zeroblob(?))", (1_100 * 4_096,))
    writer.close()  # as a crash would: everything is in the log
    before = path.read_bytes()
    inspector = open_inspector(path)
    inspector.pragma("query_only", False)
    inspector.execute("update home_owner set question = 1")
    inspector.close()
    assert path.read_bytes() == before


@pytest.mark.requirement("database:damaged-log-is-told")
@pytest.mark.parametrize("at", [0.2, 0.5, 0.8])
async def test_a_log_that_is_damaged_in_the_middle_is_not_cut_there_in_silence(
    tmp_path: Path, at: float
) -> None:
    home, killed = tmp_path / "home", tmp_path / "killed"
    store = await a_used_store(home)
    for number in range(20):
        await store.apply(audited(an_admission(a_message(f"msg_{number}"))))
    left_behind(home, killed)
    await store.close()
    log = log_of(database_path(killed))
    content = bytearray(log.read_bytes())
    content[int(len(content) * at)] ^= 1
    log.write_bytes(content)
    before = database_path(killed).read_bytes()

    with pytest.raises(StoreDamagedError) as refused:
        open_store(killed)
    assert "write-ahead log" in refused.value.message
    assert (log.read_bytes(), database_path(killed).read_bytes()) == (bytes(content), before)
    hint = refused.value.hint or ""
    size = int(hint.partition("--size=")[2].split()[0])
    os.truncate(log, size)  # as the hint says
    again = open_store(killed)
    await again.close()
    assert check_database(database_path(killed)).is_clean


@pytest.mark.requirement("database:damaged-log-is-told")
async def test_a_last_commit_that_a_power_cut_tore_is_no_damage(tmp_path: Path) -> None:
    home, cut = tmp_path / "home", tmp_path / "cut"
    store = await a_used_store(home)
    sizes = []
    for number in range(5):
        await store.apply(audited(an_admission(a_message(f"msg_{number}"))))
        sizes.append(log_of(database_path(home)).stat().st_size)
    left_behind(home, cut)
    await store.close()
    log = log_of(database_path(cut))
    content = bytearray(log.read_bytes())
    content[sizes[-2] + 30] ^= 1  # in the first frame of the last commit
    log.write_bytes(content)
    again = open_store(cut)
    assert await again.reads.queue.message(a_message("msg_3").id) is not None
    assert await again.reads.queue.message(a_message("msg_4").id) is None
    await again.close()


@pytest.mark.requirement("database:damaged-log-is-told")
@pytest.mark.requirement("home:one-owner-without-the-lock")
@pytest.mark.parametrize("goes_on", [True, False], ids=["all the time", "once"])
async def test_a_log_that_its_owner_writes_to_meanwhile_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goes_on: bool
) -> None:
    store = await a_used_store(tmp_path)
    (tmp_path / "run" / "lock").unlink()  # or the home is refused before it is looked at
    counted, other = database_files._commits_behind, apsw.Connection(str(database_path(tmp_path)))
    found: list[int] = []

    def meanwhile(log: Path, end: int, frame_bytes: int) -> int:
        if goes_on or not found:
            for _ in range(3):
                other.execute("update home_owner set question = question + 1")
        found.append(counted(log, end, frame_bytes))
        return found[-1]

    monkeypatch.setattr(database_files, "_commits_behind", meanwhile)
    with pytest.raises(HomeInUseError):
        open_store(tmp_path)
    assert found[0] == 3
    assert found[-1] == (3 if goes_on else 0)
    other.close()
    await store.close()


def log_gone(log: Path) -> None:
    log.unlink()


def log_emptied(log: Path) -> None:
    os.truncate(log, 0)


def log_cut_at_its_last_commit(log: Path) -> None:
    os.truncate(log, log.stat().st_size - 4_120)


def log_with_other_salts(log: Path) -> None:
    content = bytearray(log.read_bytes())
    content[16] ^= 1
    log.write_bytes(content)


def log_with_a_torn_last_frame(log: Path) -> None:
    content = bytearray(log.read_bytes())
    content[-5] ^= 1
    log.write_bytes(content)


LOSSES = [
    log_gone,
    log_emptied,
    log_cut_at_its_last_commit,
    log_with_other_salts,
    log_with_a_torn_last_frame,
]


async def a_killed_home(home: Path) -> None:
    """Make a home in which a process was killed: what is not folded back is in its log alone."""
    store, path = await a_used_store(home), database_path(home)
    for number in range(5):
        await store.apply(audited(an_admission(a_message(f"msg_{number}"))))
    await store.look()  # after the checkpoint that the last commit may have led to
    files = [path, log_of(path), record_path(home)]
    was, times = [file.read_bytes() for file in files], path.stat()
    await store.close()
    for file, content in zip(files, was, strict=True):
        file.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.requirement("database:lost-log-is-told")
@pytest.mark.parametrize("lose", LOSSES)
async def test_a_log_that_is_lost_after_a_kill_is_not_passed_over_in_silence(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    await a_killed_home(tmp_path)
    lose(log_of(database_path(tmp_path)))
    before = everything_in(tmp_path / "state")

    hold_home(tmp_path).release()  # says nothing of it, and leaves it as it is
    with pytest.raises(LogLostError) as refused:
        open_store(tmp_path)
    left = everything_in(tmp_path / "state")
    left.pop("runtime.sqlite-shm", None)  # which holds nothing of its own
    assert left == before
    if lose in (log_gone, log_emptied):
        with pytest.raises(LogLostError):
            check_database(database_path(tmp_path))
    hint = refused.value.hint or ""
    assert "holon restore" in hint
    assert str(record_path(tmp_path)) in hint
    record_path(tmp_path).unlink()  # as the hint says
    again = open_store(tmp_path)
    await again.close()
    assert check_database(database_path(tmp_path)).is_clean


@pytest.mark.requirement("database:lost-log-is-told")
async def test_a_log_that_was_put_back_is_read(tmp_path: Path) -> None:
    await a_killed_home(tmp_path)
    log = log_of(database_path(tmp_path))
    content = log.read_bytes()
    log.unlink()
    with pytest.raises(LogLostError):
        open_store(tmp_path)
    log.write_bytes(content)
    again = open_store(tmp_path)
    assert await again.reads.queue.message(a_message("msg_4").id) is not None
    await again.close()


@pytest.mark.requirement("database:lost-log-is-told")
async def test_a_log_that_another_program_folded_back_is_not_lost(tmp_path: Path) -> None:
    await a_killed_home(tmp_path)
    shell = apsw.Connection(str(database_path(tmp_path)))
    shell.execute("select count(*) from messages").fetchall()
    shell.close()  # the last one takes a checkpoint and removes the log
    assert not log_of(database_path(tmp_path)).exists()
    again = open_store(tmp_path)
    assert await again.reads.queue.message(a_message("msg_4").id) is not None
    await again.close()


@pytest.mark.requirement("database:lost-log-is-told")
async def test_a_log_whose_commits_are_folded_back_may_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.adapters.sqlite.database.checkpoints.CHECKPOINT_PAGES", 1)
    await a_killed_home(tmp_path)
    log_of(database_path(tmp_path)).unlink()
    again = open_store(tmp_path)
    assert await again.reads.queue.message(a_message("msg_4").id) is not None
    await again.close()


# Damage ---------------------------------------------------------------------------------------


def damage(path: Path, chance: random.Random) -> None:
    """Overwrite a page other than the first with something, or cut the file."""
    content = bytearray(path.read_bytes())
    page = chance.randrange(1, len(content) // 4_096) * 4_096
    match chance.randrange(4):
        case 0:
            content[page : page + 4_096] = chance.randbytes(4_096)
        case 1:
            content[page : page + 4_096] = bytes(4_096)
        case 2:
            other = chance.randrange(1, len(content) // 4_096) * 4_096
            content[page : page + 4_096] = content[other : other + 4_096]
        case _:
            at = page + chance.randrange(4_000)
            content[at : at + 64] = chance.randbytes(64)
    path.write_bytes(content)


@pytest.mark.requirement("database:damage-is-a-finding")
@pytest.mark.parametrize("seed", range(40))
async def test_a_check_of_damaged_pages_reports_and_never_fails(tmp_path: Path, seed: int) -> None:
    path = await write_story(tmp_path)
    damage(path, random.Random(seed))
    before = path.read_bytes()
    with suppress(NotAHolonDatabaseError):  # too much is gone to say what
        assert all(str(violation) for violation in check_database(path).violations)
    assert path.read_bytes() == before


@pytest.mark.requirement("database:damage-is-told-with-the-way-out")
@pytest.mark.parametrize("table", ["agents", "messages", "events"])
async def test_a_store_that_meets_a_damaged_page_says_so(tmp_path: Path, table: str) -> None:
    path = await write_story(tmp_path)
    overwrite_pages_of(path, table)
    with pytest.raises((StoreDamagedError, NotAHolonDatabaseError)) as told:
        await read_everything(tmp_path)
    assert "holon restore" in (told.value.hint or "")
    with suppress(NotAHolonDatabaseError):  # too much is gone to say what
        assert not check_database(path).is_clean


async def read_everything(home: Path) -> None:
    store = open_store(home)
    try:
        await store.reads.agents.census()
        await store.reads.queue.message(a_message("msg_1").id)
        await store.reads.events.log_after(0, limit=500)
    finally:
        await store.close()


def overwrite_pages_of(path: Path, table: str) -> None:
    """Overwrite the root page of a table and of its indexes."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    found = connection.execute("select rootpage from sqlite_schema where tbl_name = ?", (table,))
    pages = [int(str(page)) for (page,) in found if page]
    connection.close()
    with path.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * 4_096)
            file.write(b"\xa5" * 4_096)
