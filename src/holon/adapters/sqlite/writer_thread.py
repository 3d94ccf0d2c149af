"""The only thread that writes.

Owns:  the queue in front of the disk, group commit, and the way back to the event loop.
Rule 1: everything that waits when the disk is free becomes one group; a group is acknowledged in
        one call on the loop: first its tickets, then the observers.
        What is submitted in one turn of the loop is handed over together, so that callers who were
        told together are written together and the two threads do not fight over the interpreter.
Rule 2: the queue is bounded. A commit that finds it full is turned away at once with
        StoreBusyError, and nothing of it was written.
Rule 3: maintenance runs here too, between groups, so nobody else ever needs the connection.
"""

import asyncio
import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

import anyio.to_thread
import apsw
import msgspec

from holon.adapters.sqlite.checkpoints import Checkpoints
from holon.adapters.sqlite.commit_writer import CommitWriter, Result
from holon.adapters.sqlite.error_mapping import running_error
from holon.model.commit import Commit
from holon.model.errors import StoreBrokenError, StoreBusyError, StoreClosedError, StoreError
from holon.model.expectation import CommitOutcome
from holon.model.ids import AgentId
from holon.model.limits import COMMITS_WAITING_COUNT_MAX, GROUP_COMMIT_COUNT_MAX
from holon.ports.store import CommitObserver, Ticket

T = TypeVar("T")


class _Waiting:
    """A commit and those who wait for its outcome; used on the loop only."""

    __slots__ = ("_loop", "_result", "_waiters", "commit")

    def __init__(self, commit: Commit, loop: asyncio.AbstractEventLoop) -> None:
        self.commit = commit
        self._loop = loop
        self._result: Result | None = None
        self._waiters: list[asyncio.Future[None]] = []

    def settle(self, result: Result) -> None:
        """The outcome is known: tell everyone who waits."""
        self._result = result
        for waiter in self._waiters:
            _finish(waiter)

    async def outcome(self) -> CommitOutcome:
        # A future for each: whoever stops waiting must not take the outcome away from others.
        if self._result is None:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter
        assert self._result is not None, "waiters are told when there is a result"
        if isinstance(self._result, StoreError):
            raise self._result
        return self._result


class _Job(msgspec.Struct):
    """A piece of maintenance; `done` is called on the loop once it has run."""

    work: Callable[[], None]
    done: Callable[[], None]


class _Stop:
    """Ends the thread."""


_STOP: Final = _Stop()
_Item: TypeAlias = _Waiting | _Job | _Stop


class _Inbox:
    """What is on its way from the loop to the thread."""

    def __init__(self) -> None:
        self._outgoing: list[_Item] = []  # submitted in this turn of the loop
        self._items: queue.SimpleQueue[list[_Item]] = queue.SimpleQueue()
        self._taken: deque[_Item] = deque()  # what the thread took and has not done yet

    def send(self, item: _Item, loop: asyncio.AbstractEventLoop) -> None:
        """On the loop: hand an item over with everything else of this turn."""
        if not self._outgoing:
            loop.call_soon(self._hand_over)
        self._outgoing.append(item)

    def _hand_over(self) -> None:
        items, self._outgoing = self._outgoing, []
        self._items.put(items)

    def gather(self) -> list[_Waiting]:
        """On the thread: wait for something, then take a group: up to a job, or its full size."""
        if not self._taken:
            self._taken.extend(self._items.get())
        with contextlib.suppress(queue.Empty):
            while len(self._taken) < GROUP_COMMIT_COUNT_MAX:
                self._taken.extend(self._items.get_nowait())
        group: list[_Waiting] = []
        while self._taken and len(group) < GROUP_COMMIT_COUNT_MAX:
            item = self._taken[0]
            if not isinstance(item, _Waiting):
                break
            group.append(item)
            self._taken.popleft()
        return group

    def take(self) -> _Item:
        """On the thread: take the one item that stopped a group from growing."""
        return self._taken.popleft()


class ThreadWriter:
    """Writes on a thread of its own; everything public is called on the event loop."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._commits = CommitWriter(connection)
        self._checkpoints = Checkpoints(connection)
        self._inbox = _Inbox()
        self._observers: list[CommitObserver] = []
        self._waiting_count = 0
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._serve, name="holon-writer", daemon=True)
        self._thread.start()

    def submit(self, commit: Commit) -> Ticket:
        """Queue a commit for the next group."""
        self._require_open()
        if self._waiting_count >= COMMITS_WAITING_COUNT_MAX:
            raise StoreBusyError(f"{self._waiting_count} commits wait to be written")
        self._waiting_count += 1
        waiting = _Waiting(commit, self._running_loop())
        self._inbox.send(waiting, self._running_loop())
        return waiting

    async def run(self, job: Callable[[], T]) -> T:
        """Run a job on the thread, after everything submitted before it."""
        self._require_open()
        loop = self._running_loop()
        finished: asyncio.Future[None] = loop.create_future()
        returned: list[T] = []
        raised: list[StoreError] = []

        def work() -> None:
            try:
                returned.append(job())
            except apsw.Error as error:
                said = self._connection.system_errno
                raised.append(self._note_failure(running_error(error, system_errno=said)))
            except StoreError as error:
                raised.append(self._note_failure(error))

        self._inbox.send(_Job(work, lambda: _finish(finished)), loop)
        await asyncio.shield(finished)
        if raised:
            raise raised[0]
        return returned[0]

    def observe(self, observer: CommitObserver) -> None:
        """Call `observer` after every group that changed something."""
        self._observers.append(observer)

    async def close(self) -> None:
        """Write what was submitted, fold the log back and end the thread."""
        if self._is_closed:
            return
        self._is_closed = True
        self._inbox.send(_STOP, self._running_loop())
        # Not on the loop: the last group must still be delivered there while we wait.
        await anyio.to_thread.run_sync(self._thread.join)

    def _require_open(self) -> None:
        if self._is_closed:
            raise StoreClosedError("the store is closed")

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def _note_failure(self, failure: StoreError) -> StoreError:
        if isinstance(failure, StoreBrokenError):
            self._commits.broken = failure
        return failure

    # What follows runs on the thread. ------------------------------------------------------------

    def _serve(self) -> None:
        while True:
            if group := self._inbox.gather():
                self._write(group)
                continue
            item = self._inbox.take()
            if isinstance(item, _Stop):
                break
            if isinstance(item, _Job):
                item.work()
                self._tell_loop(item.done)
                self._checkpoint_if_due()
        self._let_go()

    def _write(self, group: list[_Waiting]) -> None:
        results, touched = self._commits.apply_group([waiting.commit for waiting in group])
        self._tell_loop(lambda: self._deliver(group, results, touched))
        self._checkpoint_if_due()

    def _checkpoint_if_due(self) -> None:
        try:
            self._checkpoints.take_if_due()
        except StoreBrokenError as failure:
            self._commits.broken = failure

    def _let_go(self) -> None:
        # What was acknowledged is durable in the log; if folding fails, the next start does it.
        with contextlib.suppress(apsw.Error, StoreError):
            if self._commits.broken is None:
                self._checkpoints.truncate()
            self._connection.close()

    def _tell_loop(self, callback: Callable[[], None]) -> None:
        assert self._loop is not None, "whoever put an item here was on a loop"
        # A loop that is gone took everyone with it who could have been told.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)

    # And this on the loop again. -----------------------------------------------------------------

    def _deliver(
        self, group: list[_Waiting], results: list[Result], touched: frozenset[AgentId]
    ) -> None:
        self._waiting_count -= len(group)
        for waiting, result in zip(group, results, strict=True):
            waiting.settle(result)
        if touched:
            for observer in self._observers:
                observer(touched)


def _finish(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
