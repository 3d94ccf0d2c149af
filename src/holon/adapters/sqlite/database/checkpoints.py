"""Checkpoints of the write-ahead log.

Owns:  when the log is copied back into the database; always on the writer, after a group was
       acknowledged.
Rule 1: a full disk or a reader in the way only postpones a checkpoint: what is in the log is
        durable.
Rule 2: any other failure leaves the database file in doubt, and the store counts as broken.
"""

from contextlib import nullcontext

import apsw

from holon.adapters.sqlite.database.connection import BUSY_TIMEOUT_MS
from holon.adapters.sqlite.database.database_files import DatabaseFiles
from holon.adapters.sqlite.database.error_mapping import running_error
from holon.model.errors import StoreBrokenError
from holon.model.limits import CHECKPOINT_PAGES, WAL_BYTES_MAX


class Checkpoints:
    """Keeps the log of one connection short."""

    def __init__(self, connection: apsw.Connection, files: DatabaseFiles | None = None) -> None:
        self._connection = connection
        self._files = files
        self._log_pages = 0
        self._log_pages_max = WAL_BYTES_MAX // int(str(connection.pragma("page_size")))
        connection.set_wal_hook(self._committed)

    def _committed(self, connection: apsw.Connection, database: str, pages: int) -> int:
        del connection, database
        self._log_pages = pages
        if self._files is not None:
            self._files.logged(pages)
        return apsw.SQLITE_OK

    def take_if_due(self) -> None:
        """Fold the log back when it has grown; raises StoreBrokenError when the disk fails."""
        if self._log_pages >= self._log_pages_max:
            self.truncate()
        elif self._log_pages >= CHECKPOINT_PAGES and _fold(
            self._connection, apsw.SQLITE_CHECKPOINT_PASSIVE, self._files
        ):
            self._log_pages = 0

    def truncate(self) -> None:
        """Fold the whole log back and give its disk space up, unless a reader is in the way."""
        if truncate_log(self._connection, self._files):
            self._log_pages = 0


def truncate_log(connection: apsw.Connection, files: DatabaseFiles | None = None) -> bool:
    """Fold the log back and cut it to nothing; returns whether no reader was in the way."""
    connection.set_busy_timeout(0)  # a long reader must not hold up the writer
    try:
        return _fold(connection, apsw.SQLITE_CHECKPOINT_TRUNCATE, files)
    finally:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)


def _fold(connection: apsw.Connection, mode: int, files: DatabaseFiles | None) -> bool:
    try:
        with nullcontext() if files is None else files.checkpointing():
            logged, folded = connection.wal_checkpoint(mode=mode)
            if files is not None and logged == folded:
                files.logged(0)
    except apsw.Error as error:
        failure = running_error(error, system_errno=connection.system_errno)
        if isinstance(failure, StoreBrokenError):
            raise failure from error
        return False
    return logged == folded
