"""The writer: the only connection that writes, its queue, and the thread that waits for the disk.

Owns:  the writer protocol of the store, and its threaded implementation with group commit; the
       worker thread and its way back to the event loop. A simulation substitutes a writer that
       writes at once, on the loop.
Rule 1: contract of a writer: `submit` keeps order; `run` runs a job on the writer with no
        transaction open, after all that was submitted before; after `close` nothing is accepted.
        Once it is broken, neither a job nor closing writes or syncs anything.
Rule 2: jobs run one after the other, in the order of submission.
Rule 3: everything that waits when the disk becomes free is one group; a group is acknowledged in
        one call on the loop: first its tickets, then the observers.
Rule 4: rows are written on the loop, where a statement takes microseconds and no thread competes
        for the interpreter. Waiting for the disk happens on the thread: making a group durable,
        checkpoints, maintenance, and a database that another program has locked. The connection is
        lent to the thread, and not touched until it is returned.
Rule 5: the queue is bounded. A commit that finds it full fails at once with StoreBusyError, and
        nothing of it was written.
Rule 6: once the store is broken nothing is written or synced, whatever was submitted before: a sync
        that succeeds after one that failed proves nothing about the data the failed one lost.
Rule 7: whatever a job raises, the connection is returned and the thread continues.
"""

import asyncio
import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

import anyio.to_thread
import apsw

from holon.adapters.sqlite.database.checkpoints import Checkpoints
from holon.adapters.sqlite.database.connection import BUSY_TIMEOUT_MS, leave_log
from holon.adapters.sqlite.database.database_files import DatabaseFiles
from holon.adapters.sqlite.database.error_mapping import running_error
from holon.adapters.sqlite.writer.commit_writer import (
    AppliedGroup,
    CommitWriter,
    RequireOwner,
    Result,
    unowned,
)
from holon.model.commits import AuditedCommit, CommitOutcome
from holon.model.errors import (
    StoreBrokenError,
    StoreBusyError,
    StoreClosedError,
    StoreError,
    StoreFullError,
)
from holon.model.limits import COMMITS_WAITING_COUNT_MAX, GROUP_COMMIT_COUNT_MAX
from holon.ports.store import CommitObserver, Ticket

T = TypeVar("T")
Work: TypeAlias = Callable[[], None]


class Writer(Protocol):
    """The one that writes."""

    @property
    def is_broken(self) -> bool:
        """Whether a failure left in doubt what is on the disk."""
        ...

    @property
    def refused(self) -> StoreFullError | None:
        """Why the newest group could not be written, if that was so."""
        ...

    def submit(self, commit: AuditedCommit) -> Ticket:
        """Take a commit on its way to disk."""
        ...

    async def run(self, job: Callable[[], T]) -> T:
        """Do a piece of maintenance between two groups and return what it returned."""
        ...

    async def look(self) -> None:
        """Look whether the files are still ours and, after a group found no room, for room."""
        ...

    def observe(self, observer: CommitObserver) -> None:
        """Call `observer` after every group, with the agents it touched."""
        ...

    async def close(self) -> None:
        """Finish what was submitted and let go of the connection."""
        ...


class WorkerThread:
    """Runs blocking work on one thread, submitted on the loop."""

    def __init__(self) -> None:
        self._works: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._serve, name="holon-writer", daemon=True)
        self._thread.start()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that gets results: the first one that submits work."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def do(self, work: Work) -> None:
        """Hand a piece of work over."""
        self._works.put(work)

    def end(self) -> None:
        """Let the thread end with the piece of work it does."""
        self._works.put(None)

    def join(self) -> None:
        """Wait for its end; never on the loop, which must receive the last result."""
        self._thread.join()

    def tell(self, callback: Work) -> None:
        """On the thread: have the loop call something."""
        # A closed loop has no waiters left.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(callback)

    def _serve(self) -> None:
        while (work := self._works.get()) is not None:
            work()


class _Waiting:
    """A commit and those who wait for its outcome; used on the loop only."""

    __slots__ = ("_loop", "_result", "_waiters", "commit")

    def __init__(self, commit: AuditedCommit, loop: asyncio.AbstractEventLoop) -> None:
        self.commit = commit
        self._loop = loop
        self._result: Result | None = None
        self._waiters: list[asyncio.Future[None]] = []

    def settle(self, result: Result) -> None:
        """The outcome is known: tell everyone who waits."""
        self._result = result
        for waiter in self._waiters:
            _wake(waiter)

    async def outcome(self) -> CommitOutcome:
        # A future per waiter: cancelling one must not cancel the others.
        if self._result is None:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter
        assert self._result is not None, "waiters resume when there is a result"
        if isinstance(self._result, StoreError):
            raise self._result
        return self._result


_Item: TypeAlias = _Waiting | Work


class ThreadWriter:
    """Writes durably; everything public is called on the event loop."""

    def __init__(
        self,
        connection: apsw.Connection,
        require_owner: RequireOwner = unowned,
        files: DatabaseFiles | None = None,
    ) -> None:
        """`files` are those of the connection, where a home has them watched."""
        self._connection = connection
        self._require_owner = require_owner
        self._files = files
        self._commits = CommitWriter(connection, require_owner, files)
        self._checkpoints = Checkpoints(connection, files)
        self._disk = WorkerThread()
        self._items: deque[_Item] = deque()  # in the order they came
        self._is_called = False  # a wake-up of the thread is pending
        self._is_lent = False  # the connection, to the thread
        self._is_closed = False
        self._is_let_go = False  # of the connection, finally
        self._waiting_count = 0
        self._refused: StoreFullError | None = None  # the newest group, for want of room
        self._observers: list[CommitObserver] = []

    @property
    def is_broken(self) -> bool:
        """Whether a failure left in doubt what is on the disk."""
        return self._commits.broken is not None

    @property
    def refused(self) -> StoreFullError | None:
        """Why the newest group could not be written, if that was so."""
        return self._refused

    def submit(self, commit: AuditedCommit) -> Ticket:
        """Queue a commit for the next group."""
        if self._waiting_count >= COMMITS_WAITING_COUNT_MAX:
            raise StoreBusyError(f"{self._waiting_count} commits wait to be written")
        waiting = _Waiting(commit, self._disk.loop)
        self._take(waiting)
        self._waiting_count += 1
        return waiting

    async def run(self, job: Callable[[], T]) -> T:
        """Run a job on the thread, after everything submitted before it; raises what it raises."""
        finished: asyncio.Future[None] = self._disk.loop.create_future()
        returned: list[T] = []
        raised: list[Exception] = []

        def work() -> None:
            try:
                if self._commits.broken is not None:  # maybe only since the job was taken
                    raise self._commits.broken
                if self._files is not None:
                    self._files.require_ours()
                self._connection.set_busy_timeout(BUSY_TIMEOUT_MS)
                self._require_owner()
                returned.append(job())
            except apsw.Error as error:
                raised.append(running_error(error, system_errno=self._connection.system_errno))
            except Exception as error:  # noqa: BLE001 - named boundary: raised in the caller
                raised.append(error)
            _note_breakage(self._commits, raised)
            if self._files is not None:
                self._files.written()  # before acknowledging: later growth is not ours
            self._disk.tell(lambda: _wake(finished))

        self._take(work)
        await asyncio.shield(finished)
        if raised:
            raise raised[0]
        return returned[0]

    async def look(self) -> None:
        """Look at the files; where the newest group found no room, see whether there is some."""

        def work() -> None:
            if self._refused is not None:
                write_nothing(self._connection)

        await self.run(work)
        self._refused = None

    def observe(self, observer: CommitObserver) -> None:
        """Call `observer` after every group that changed something."""
        self._observers.append(observer)

    async def close(self) -> None:
        """Write what was submitted, fold the log back if it may be, and end the thread."""
        if self._is_closed:
            return
        self._take(self._let_go)
        self._is_closed = True
        await anyio.to_thread.run_sync(self._disk.join)

    def _take(self, item: _Item) -> None:
        """Take an item; it is looked at with everything else of this turn of the loop."""
        if self._is_closed:
            raise StoreClosedError("the store is closed")
        self._items.append(item)
        if not (self._is_lent or self._is_called):
            self._is_called = True
            self._disk.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Do what comes next, until the connection is lent for it."""
        self._is_called = False
        while self._items and not self._is_lent:
            if group := _next_group(self._items):
                self._write(group)
            else:
                work = self._items.popleft()
                assert not isinstance(work, _Waiting), "commits are taken by the group"
                self._lend(work)

    def _write(self, group: list[_Waiting]) -> None:
        self._connection.set_busy_timeout(0)
        commits = [waiting.commit for waiting in group]
        written = self._commits.write_group(commits)
        if written.is_open:
            self._lend(partial(self._finish, group, partial(self._commits.make_durable, written)))
        elif isinstance(written.results[0], StoreBusyError):
            # Another program has locked the database: the thread waits a while for it.
            self._lend(partial(self._finish, group, partial(self._commits.apply_group, commits)))
        else:
            self._deliver(group, written)

    def _lend(self, work: Work) -> None:
        self._is_lent = True
        self._disk.do(partial(self._borrowed, work))

    def _given_back(self) -> None:
        self._is_lent = False
        self._go_on()

    def _deliver(self, group: list[_Waiting], applied: AppliedGroup) -> None:
        self._waiting_count -= len(group)
        first = applied.results[0]
        self._refused = first if isinstance(first, StoreFullError) else None
        for waiting, result in zip(group, applied.results, strict=True):
            waiting.settle(result)
        if applied.touched:
            for observer in self._observers:
                observer(applied.touched)

    # What follows runs on the thread, which has the connection meanwhile. ------------------------

    def _borrowed(self, work: Work) -> None:
        try:
            work()
            if not (self._is_let_go or self.is_broken):
                self._checkpoints.take_if_due()
        except Exception as error:  # noqa: BLE001 - named boundary: the thread must go on
            _note_breakage(self._commits, [_doubt(error)])
        finally:
            self._disk.tell(self._given_back)

    def _finish(self, group: list[_Waiting], wait: Callable[[], AppliedGroup]) -> None:
        """Do for a group what waits for the disk."""
        self._connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        applied = wait()
        self._disk.tell(lambda: self._deliver(group, applied))

    def _let_go(self) -> None:
        self._disk.end()
        self._is_let_go = True
        try:
            if not self.is_broken:
                self._checkpoints.truncate()
        except StoreBrokenError as failure:
            # What was acknowledged is durable in the log; the next start folds it back.
            _note_breakage(self._commits, [failure])
        if self.is_broken:
            leave_log(self._connection)
        with contextlib.suppress(apsw.Error):
            self._connection.close()


def write_nothing(connection: apsw.Connection) -> None:
    """Write a page as it is, to see whether the disk takes it; raises apsw.Error."""
    version = connection.pragma("user_version")
    try:
        connection.execute("begin immediate")
        connection.pragma("user_version", version)
        connection.execute("commit")
    except apsw.Error:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def _next_group(items: deque[_Item]) -> list[_Waiting]:
    """Take the commits that come first: up to a piece of work, or as many as make a group."""
    group: list[_Waiting] = []
    while items and len(group) < GROUP_COMMIT_COUNT_MAX:
        item = items[0]
        if not isinstance(item, _Waiting):
            break
        group.append(item)
        items.popleft()
    return group


def _doubt(error: Exception) -> StoreBrokenError:
    """Return what a failure means that came in the middle of work on the disk."""
    if isinstance(error, StoreBrokenError):
        return error
    doubt = StoreBrokenError(f"work on the disk was cut short: {type(error).__name__}: {error}")
    doubt.__cause__ = error
    return doubt


def _note_breakage(commits: CommitWriter, failures: Sequence[Exception]) -> None:
    """After a failure that leaves durability unknown nothing more is written."""
    for failure in failures:
        if isinstance(failure, StoreBrokenError):
            commits.broken = failure


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
