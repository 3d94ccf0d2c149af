"""The thread that writes: order, groups, bounds, jobs, failures and the end."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import anyio
import anyio.lowlevel
import apsw
import pytest

from holon.adapters.sqlite.database.checkpoints import Checkpoints
from holon.adapters.sqlite.database.connection import Synchronous, open_writer
from holon.adapters.sqlite.database.migrate import migrate
from holon.adapters.sqlite.queue import MessageChanges
from holon.adapters.sqlite.store import open_store
from holon.adapters.sqlite.writer.commit_writer import AppliedGroup, CommitWriter
from holon.adapters.sqlite.writer.writer_thread import ThreadWriter
from holon.decide.events.audit import audited
from holon.model.commits import Applied, AuditedCommit, QueueMessage
from holon.model.errors import (
    StoreBrokenError,
    StoreBusyError,
    StoreFullError,
)
from holon.model.limits import COMMITS_WAITING_COUNT_MAX, GROUP_COMMIT_COUNT_MAX, WAL_BYTES_MAX
from holon.model.queue import TextBody
from holon.model.values import MessageId
from tests.support.builders import a_commit, a_message, an_admission, an_agent

GroupSizes = list[int]


@pytest.fixture
def group_sizes(monkeypatch: pytest.MonkeyPatch) -> GroupSizes:
    """The size of every group that is written."""
    sizes: GroupSizes = []
    plain = CommitWriter.write_group

    def counted(self: CommitWriter, commits: Sequence[AuditedCommit]) -> AppliedGroup:
        sizes.append(len(commits))
        return plain(self, commits)

    monkeypatch.setattr(CommitWriter, "write_group", counted)
    return sizes


@pytest.fixture
async def writer(tmp_path: Path, group_sizes: GroupSizes) -> AsyncIterator[ThreadWriter]:
    """A writer on a real file that holds one agent."""
    connection = open_writer(tmp_path / "test.sqlite", synchronous=Synchronous.OFF)
    migrate(connection)
    opened = ThreadWriter(connection)
    await opened.submit(audited(a_commit("birth", an_agent()))).outcome()
    group_sizes.clear()
    yield opened
    await opened.close()


class Held:
    """Keeps the writer busy until it is let go."""

    def __init__(self, writer: ThreadWriter) -> None:
        self._go = threading.Event()
        self._job = asyncio.ensure_future(writer.run(self._go.wait))

    async def __aenter__(self) -> "Held":
        await asyncio.sleep(0)  # let the job be submitted
        return self

    async def __aexit__(self, *_: object) -> None:
        self._go.set()
        await self._job


async def test_everything_that_waits_becomes_one_group(
    writer: ThreadWriter, group_sizes: GroupSizes
) -> None:
    async with Held(writer):
        tickets = [writer.submit(audited(an_admission(a_message(f"msg_{n}")))) for n in range(40)]
    assert [await ticket.outcome() for ticket in tickets] == [Applied()] * 40
    assert group_sizes == [40]


async def test_a_group_is_bounded(writer: ThreadWriter, group_sizes: GroupSizes) -> None:
    count = GROUP_COMMIT_COUNT_MAX + 3
    async with Held(writer):
        tickets = [
            writer.submit(audited(an_admission(a_message(f"msg_{n}")))) for n in range(count)
        ]
    for ticket in tickets:
        await ticket.outcome()
    assert group_sizes == [GROUP_COMMIT_COUNT_MAX, 3]


async def test_observers_are_told_once_per_group_on_the_loop(writer: ThreadWriter) -> None:
    told_on: list[threading.Thread] = []
    writer.observe(lambda _: told_on.append(threading.current_thread()))
    async with Held(writer):
        tickets = [writer.submit(audited(an_admission(a_message(f"msg_{n}")))) for n in range(5)]
    for ticket in tickets:
        await ticket.outcome()
    assert told_on == [threading.main_thread()]


async def test_a_commit_too_many_is_turned_away_at_once(
    writer: ThreadWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.adapters.sqlite.writer.writer_thread.COMMITS_WAITING_COUNT_MAX", 3)
    assert COMMITS_WAITING_COUNT_MAX > GROUP_COMMIT_COUNT_MAX
    async with Held(writer):
        tickets = [writer.submit(audited(an_admission(a_message(f"msg_{n}")))) for n in range(3)]
        with pytest.raises(StoreBusyError):
            writer.submit(audited(an_admission(a_message("msg_3"))))
    for ticket in tickets:
        assert await ticket.outcome() == Applied()
    assert await writer.submit(audited(an_admission(a_message("msg_3")))).outcome() == Applied()


async def test_a_job_runs_after_what_was_submitted_before_it(
    writer: ThreadWriter, group_sizes: GroupSizes
) -> None:
    writer.submit(audited(an_admission(a_message("msg_1"))))
    assert await writer.run(lambda: list(group_sizes)) == [1]


async def test_whoever_stops_waiting_does_not_take_the_commit_back(writer: ThreadWriter) -> None:
    async with Held(writer):
        ticket = writer.submit(audited(an_admission(a_message("msg_1"))))
        impatient = asyncio.ensure_future(ticket.outcome())
        await asyncio.sleep(0)
        impatient.cancel()
    assert await ticket.outcome() == Applied()


async def test_a_closed_store_leaves_one_file(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    await store.apply(audited(a_commit("birth", an_agent())))
    await store.close()
    assert [entry.name for entry in (tmp_path / "state").iterdir()] == ["runtime.sqlite"]


async def test_the_log_is_folded_back_before_it_grows_large(tmp_path: Path) -> None:
    store = open_store(tmp_path, synchronous=Synchronous.OFF)
    await store.apply(audited(a_commit("birth", an_agent())))
    body = TextBody(text="x" * 60_000)
    for n in range(200):
        await store.apply(audited(an_admission(a_message(f"msg_{n}", body=body))))
    log = tmp_path / "state" / "runtime.sqlite-wal"
    assert log.stat().st_size < 8_000_000 < WAL_BYTES_MAX
    await store.close()


class Failing:
    """Fails the writing of one message the way a disk does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
        self.count = 0
        plain = MessageChanges.queue_all

        def failing(messages: MessageChanges, changes: Sequence[QueueMessage]) -> None:
            if any(change.message.id == "msg_doomed" for change in changes):
                self.count += 1
                raise error("planted")
            plain(messages, changes)

        monkeypatch.setattr(MessageChanges, "queue_all", failing)


@pytest.mark.parametrize("error", [apsw.FullError, apsw.ReadOnlyError])
async def test_a_full_disk_undoes_the_whole_group_and_is_not_the_end(
    writer: ThreadWriter, monkeypatch: pytest.MonkeyPatch, error: type[apsw.Error]
) -> None:
    Failing(monkeypatch, error)
    async with Held(writer):
        innocent = writer.submit(audited(an_admission(a_message("msg_1"))))
        doomed = writer.submit(audited(an_admission(a_message("msg_doomed"))))
    for ticket in (innocent, doomed):
        with pytest.raises(StoreFullError):
            await ticket.outcome()
    assert await writer.submit(audited(an_admission(a_message("msg_1")))).outcome() == Applied()


@pytest.mark.parametrize("error", [apsw.IOError, apsw.CorruptError])
async def test_after_any_other_failure_nothing_is_tried_again(
    writer: ThreadWriter, monkeypatch: pytest.MonkeyPatch, error: type[apsw.Error]
) -> None:
    planted = Failing(monkeypatch, error)
    with pytest.raises(StoreBrokenError):
        await writer.submit(audited(an_admission(a_message("msg_doomed")))).outcome()
    for name in ("msg_doomed", "msg_1"):
        with pytest.raises(StoreBrokenError):
            await writer.submit(audited(an_admission(a_message(name)))).outcome()
    assert planted.count == 1


async def test_a_job_that_breaks_the_disk_breaks_the_store(writer: ThreadWriter) -> None:
    def job() -> None:
        raise apsw.IOError("planted")

    with pytest.raises(StoreBrokenError):
        await writer.run(job)
    with pytest.raises(StoreBrokenError):
        await writer.submit(audited(an_admission(a_message("msg_1")))).outcome()


@pytest.mark.parametrize("error", [MemoryError, RecursionError, KeyError])
async def test_a_job_with_a_bug_tells_whoever_asked_and_the_writer_goes_on(
    writer: ThreadWriter, error: type[Exception]
) -> None:
    def job() -> None:
        raise error("planted")

    with anyio.fail_after(30):
        with pytest.raises(error, match="planted"):
            await writer.run(job)
        assert await writer.submit(audited(an_admission(a_message("msg_1")))).outcome() == Applied()
    assert not writer.is_broken


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
async def test_a_bug_under_a_group_is_told_to_all_who_wait_and_to_all_who_come(
    writer: ThreadWriter, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    planted = Failing(monkeypatch, error)
    with anyio.fail_after(30):
        async with Held(writer):
            innocent = writer.submit(audited(an_admission(a_message("msg_1"))))
            doomed = writer.submit(audited(an_admission(a_message("msg_doomed"))))
        for ticket in (innocent, doomed, writer.submit(audited(an_admission(a_message("msg_2"))))):
            with pytest.raises(StoreBrokenError) as told:
                await ticket.outcome()
            assert isinstance(told.value.__cause__, error)
    assert planted.count == 1


async def test_a_checkpoint_with_a_bug_breaks_the_store_and_hangs_nobody(
    writer: ThreadWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(_: Checkpoints) -> None:
        raise MemoryError

    with anyio.fail_after(30):
        while writer._is_lent:  # what came before the test is checkpointed without a bug
            await anyio.lowlevel.checkpoint()
        monkeypatch.setattr(Checkpoints, "take_if_due", forgetful)
        assert await writer.submit(audited(an_admission(a_message("msg_1")))).outcome() == Applied()
        with pytest.raises(StoreBrokenError):
            await writer.submit(audited(an_admission(a_message("msg_2")))).outcome()


async def test_a_broken_writer_runs_no_job(writer: ThreadWriter) -> None:
    def job() -> None:
        raise apsw.IOError("planted")

    ran: list[str] = []
    breaking, waiting = await asyncio.gather(
        writer.run(job), writer.run(lambda: ran.append("ran")), return_exceptions=True
    )
    assert isinstance(breaking, StoreBrokenError)
    assert waiting is breaking
    assert ran == []


async def test_a_program_that_holds_the_database_is_waited_for_elsewhere(
    writer: ThreadWriter, tmp_path: Path
) -> None:
    outsider = apsw.Connection(str(tmp_path / "test.sqlite"))
    outsider.execute("begin immediate")
    ticket = asyncio.ensure_future(
        writer.submit(audited(an_admission(a_message("msg_1")))).outcome()
    )
    for _ in range(3):
        await asyncio.sleep(0)  # a loop that waited for the lock itself would not come back
    assert not ticket.done()
    outsider.execute("commit")
    assert await ticket == Applied()


async def test_a_long_reader_does_not_hold_up_the_writer(tmp_path: Path) -> None:
    store = open_store(tmp_path, synchronous=Synchronous.OFF)
    await store.apply(audited(a_commit("birth", an_agent())))
    outsider = apsw.Connection(str(tmp_path / "state" / "runtime.sqlite"))
    outsider.execute("begin")
    outsider.execute("select count(*) from agents").fetchall()
    body = TextBody(text="x" * 60_000)
    for n in range(120):
        await store.apply(audited(an_admission(a_message(f"msg_{n}", body=body))))
    assert await store.reads.queue.message(MessageId("msg_119")) is not None
    outsider.execute("commit")
    outsider.close()
    await store.close()


async def test_closing_with_a_reader_in_the_way_folds_nothing_afterwards(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "test.sqlite", synchronous=Synchronous.OFF)
    migrate(connection)
    writer = ThreadWriter(connection)
    await writer.submit(audited(a_commit("birth", an_agent()))).outcome()
    outsider = apsw.Connection(str(tmp_path / "test.sqlite"))
    outsider.execute("begin")
    outsider.execute("select count(*) from agents").fetchall()
    body = TextBody(text="x" * 60_000)
    for n in range(80):  # enough to make a checkpoint due, which stays so
        await writer.submit(audited(an_admission(a_message(f"msg_{n}", body=body)))).outcome()
    await writer.close()
    assert not writer.is_broken  # as it would be, had the closed connection been used
    outsider.close()
