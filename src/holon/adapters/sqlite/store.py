"""The store port on SQLite.

Owns:  assembling reader, writer, retention and lock, and closing them.
Rule 1: opening has one order: directories, lock, a check of the files, the database itself, then
        ownership of the home. A refusal leaves everything unchanged. The lock is taken once: a
        caller that takes it earlier, together with the check, passes it on.
Rule 2: closing the last connection checkpoints the log, unless the store is broken: then closing
        writes nothing, and the next start recovers from what it finds.
"""

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

import anyio
import apsw

from holon.adapters.sqlite.database.connection import (
    Synchronous,
    leave_log,
    open_inspector,
    open_reader,
    open_writer,
)
from holon.adapters.sqlite.database.database_files import (
    DatabaseFiles,
    record_path,
    require_log_kept,
    require_log_read,
    require_not_lost,
    require_own_log,
)
from holon.adapters.sqlite.database.error_mapping import opening_errors
from holon.adapters.sqlite.database.home_lock import (
    HomeLock,
    database_path,
    prepare_home,
    prepare_run,
)
from holon.adapters.sqlite.database.home_owner import HomeOwner, require_no_owner, take_home
from holon.adapters.sqlite.database.migrate import begin_epoch, inspect_file, migrate
from holon.adapters.sqlite.reads import SqliteReads
from holon.adapters.sqlite.retention import Retention
from holon.adapters.sqlite.writer.writer_thread import ThreadWriter, Writer
from holon.model.commits import AuditedCommit, CommitOutcome
from holon.model.errors import HomeInUseError, LogTooLongError, StoreError, StoreFullError
from holon.model.events.retention import PruneReport, RetentionPolicy
from holon.model.limits import HOME_WATCH_MS, SECOND_MS, WAL_BYTES_MAX, WAL_WARNED_BYTES
from holon.ports.journal import Journal, LogLevel
from holon.ports.reads import StoreReads
from holon.ports.store import CommitObserver, Ticket

WriterFactory: TypeAlias = Callable[[apsw.Connection], Writer]


class SqliteStore:
    """Everything durable of one home."""

    def __init__(
        self,
        *,
        writer: Writer,
        retention: Retention,
        reader: apsw.Connection,
        lock: HomeLock | None = None,
        owner: HomeOwner | None = None,
        files: DatabaseFiles | None = None,
    ) -> None:
        self._writer = writer
        self._retention = retention
        self._reader = reader
        self._files = files
        self._lock = lock  # None: the connection belongs to the caller
        self.owner = owner
        self._reads = SqliteReads(reader)

    @property
    def reads(self) -> StoreReads:
        """The queries decisions and surfaces need."""
        return self._reads

    @property
    def problems(self) -> tuple[StoreError, ...]:
        """What an operator should look at, though the store goes on."""
        refused = self._writer.refused
        found: list[StoreError] = [] if refused is None else [refused]
        if self._files is not None and self._files.log_bytes > WAL_WARNED_BYTES:
            found.append(
                LogTooLongError(
                    f"the write-ahead log has {self._files.log_bytes} bytes, more than the"
                    f" {WAL_BYTES_MAX} it may have: another program keeps reading the database"
                )
            )
        return tuple(found)

    async def look(self) -> None:
        """Look at the files; raises StoreBrokenError when they are no longer ours."""
        await self._writer.look()

    def submit(self, commit: AuditedCommit) -> Ticket:
        """Hand a commit to the writer without waiting for it."""
        return self._writer.submit(commit)

    async def apply(self, commit: AuditedCommit) -> CommitOutcome:
        """Submit a commit and wait for its outcome."""
        return await self._writer.submit(commit).outcome()

    def observe(self, observer: CommitObserver) -> None:
        """Call `observer` after every group of commits, with the agents it touched."""
        self._writer.observe(observer)

    async def prune(self, policy: RetentionPolicy, *, now: datetime) -> PruneReport:
        """Remove one bounded batch of what the policy no longer keeps."""
        return await self._writer.run(lambda: self._retention.step(policy, now=now))

    async def watch_home(self, journal: Journal) -> None:
        """See now and then that the home is still ours, for ever; raises when it is not."""
        owner = self.owner
        while owner is not None:
            await anyio.sleep(HOME_WATCH_MS / SECOND_MS)
            with suppress(OSError, StoreFullError):  # a disk that takes no writes: later, then
                if await self._writer.run(owner.look):
                    journal.note(
                        "lock_restored",
                        "the lock file of the home was removed while it was held; it is back",
                        level=LogLevel.WARNING,
                    )

    async def close(self) -> None:
        """Finish what was submitted and let go of the files."""
        await self._writer.close()
        if self._lock is not None:
            if self._writer.is_broken:
                leave_log(self._reader)
            self._reader.close()
            if self._files is not None and not self._writer.is_broken:
                self._files.forget()
            self._lock.release()


@dataclass(frozen=True, slots=True)
class LockedHome:
    """A home whose lock is held and whose store is not open yet."""

    lock: HomeLock
    generation: int = 0  # of the last owner
    objection: StoreError | None = None  # a problem found, raised when the store is opened

    def release(self) -> None:
        """Let the next process have the home; once its store is closed this does nothing."""
        self.lock.release()


def hold_home(home: Path) -> LockedHome:
    """Take the lock of a home; raises HomeInUseError when another process has it or owns the home.

    Its run folder must be there. What else is wrong with the home is said when it is opened.
    """
    lock = HomeLock(home)
    try:
        return _held(home, lock)
    except BaseException:
        lock.release()
        raise


def open_store(
    home: Path,
    held: LockedHome | None = None,
    *,
    synchronous: Synchronous = Synchronous.FULL,
    vfs: str | None = None,
) -> SqliteStore:
    """Open the store of a home, making it when there is none; raises a StoreError.

    A home that is held already is let go of with the store, or at once when this fails.
    """
    prepare_run(home)
    held = held or hold_home(home)
    try:
        if held.objection is not None:
            raise held.objection
        prepare_home(home)
        return _open_database(home, held, synchronous=synchronous, vfs=vfs)
    except BaseException:
        held.release()
        raise


def _held(home: Path, lock: HomeLock) -> LockedHome:
    try:
        return LockedHome(lock, generation=_last_generation(home, lock))
    except HomeInUseError:
        raise
    except StoreError as error:
        return LockedHome(lock, objection=error)


def _last_generation(home: Path, lock: HomeLock) -> int:
    """Look at the database as it is; raises HomeInUseError when its owner lives."""
    path = database_path(home)
    _require_files(home)
    if not inspect_file(path):
        return 0
    with opening_errors(path), closing(open_inspector(path)) as connection:
        require_log_read(connection, path, record_path(home))
        connection.pragma("query_only", False)  # an owner may have to be asked
        return require_no_owner(connection, home, lock.place)


def _require_files(home: Path) -> None:
    """Raise when the files of the database are not what they were; before SQLite reads the log."""
    path = database_path(home)
    require_not_lost(path, home)
    require_own_log(path, record_path(home))
    require_log_kept(path, record_path(home))


def _open_database(
    home: Path, held: LockedHome, *, synchronous: Synchronous, vfs: str | None
) -> SqliteStore:
    path, record, lock = database_path(home), record_path(home), held.lock
    _require_files(home)  # again: a service takes its port after it has looked at its home
    with opening_errors(path):
        writer = open_writer(path, synchronous=synchronous, vfs=vfs)
        try:
            migrate(writer)
            if not writer.execute("select 1 from log_epoch where id = 1").fetchall():
                begin_epoch(writer)  # a new home, or one from before there were any
            owner = take_home(writer, home, lock, after=held.generation)
            reader = open_reader(path, vfs=vfs)
        except BaseException:
            leave_log(writer)  # whatever failed, it may have been the disk
            writer.close()
            raise
    files = DatabaseFiles(path, record, writer)
    return SqliteStore(
        writer=ThreadWriter(writer, owner.require, files),
        retention=Retention(writer, files),
        reader=reader,
        lock=lock,
        owner=owner,
        files=files,
    )


def open_connection_store(connection: apsw.Connection, make_writer: WriterFactory) -> SqliteStore:
    """Make a store on one connection for readers and writer alike, with a writer of your own.

    The connection must hold the current schema, and outlives the store. The writer must never
    leave a transaction open while the event loop runs, or readers would see it.
    """
    return SqliteStore(
        writer=make_writer(connection), retention=Retention(connection), reader=connection
    )
