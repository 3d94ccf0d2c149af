"""The database files on disk: checks before opening, and watching them while open.

Owns:  the checks before files are opened, the watch while they are open, and
       `<home>/run/database.json`, which records their identity.
Rule 1: a missing database is not created anew beside its log or beside the homes of agents.
Rule 2: only our own checkpoints write to the main file, and only our own commits to its log. A main
        file with another identity, size or change time, or a log with another identity or a smaller
        size, was changed by another program: nothing is acknowledged after that.
Rule 3: a log is never applied to a database it was not written for. Inodes and times are comparable
        within one boot only, so the record of an earlier boot is ignored.
Rule 4: losses that SQLite would ignore silently are reported: commits behind a damaged frame of the
        log, and a log that is missing, shorter or unreadable since our last commit to it.
Rule 5: the main file is examined by `stat` only. Closing a second descriptor of the file would drop
        the locks that SQLite holds on it.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import apsw
import msgspec

from holon.adapters.exec.process_table import boot_id
from holon.adapters.sqlite.database.error_mapping import not_a_holon_database
from holon.adapters.sqlite.database.home_owner import home_lost
from holon.model.errors import (
    DatabaseMissingError,
    DatabaseReplacedError,
    ForeignLogError,
    LogLostError,
    StoreDamagedError,
)

RECORD_BYTES_MAX: Final = 4_096
_LOG_HEADER_BYTES: Final = 32
_FRAME_HEADER_BYTES: Final = 24
_LOOKS_COUNT_MAX: Final = 5
_RECORD_BYTES: Final = 512  # always as many, so that overwriting one leaves nothing of it
_RESTORE: Final = "or restore a backup with `holon restore`"


class _FileStamp(NamedTuple):
    """One file at one moment."""

    device: int
    inode: int
    size: int
    changed_ns: int

    def is_same_file(self, other: "_FileStamp | None") -> bool:
        return other is not None and self[:2] == other[:2]


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    """What the files were when we last wrote to them. Without `main` a checkpoint was under way."""

    boot: str
    log: _FileStamp
    main: _FileStamp | None = None
    frame_count: int = 0  # how much of the log is not folded back yet; as of the newest commit
    frame_bytes: int = 0


def log_path(path: Path) -> Path:
    """Return where SQLite keeps the write-ahead log of a database."""
    return path.with_name(f"{path.name}-wal")


def record_path(home: Path) -> Path:
    """Return where a home says what the files of its database were."""
    return home / "run" / "database.json"


def require_plain_file(path: Path) -> None:
    """Raise NotAHolonDatabaseError for a link, a folder or a pipe; OSError where it is hidden."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(mode):
        # SQLite keeps the log where the link leads, and we would look for it here.
        raise not_a_holon_database(path, "it is a symbolic link")
    if not stat.S_ISREG(mode):
        raise not_a_holon_database(path, "it is not a plain file")


def require_not_lost(path: Path, home: Path) -> None:
    """Raise DatabaseMissingError when the database is gone and what belonged to it is not."""
    if _size(path):
        return
    problem = "is empty" if path.exists() else "is missing"
    if _size(log_path(path)):
        evidence = f"its write-ahead log {log_path(path).name} is still there"
    elif (agents := _agent_homes(home)) is not None:
        evidence = f"there are homes of agents in {agents}"
    else:
        return
    raise DatabaseMissingError(
        f"the database at {path} {problem}, but {evidence}; nothing was changed",
        hint=f"put the database back, {_RESTORE}; to begin anew, move away what is still there",
    )


def require_own_log(path: Path, record: Path) -> None:
    """Raise ForeignLogError when the log beside a database was written for another one."""
    recorded, main, log = _recorded(record), _stat(path), _stat(log_path(path))
    if recorded is None or recorded.main is None or main is None or log is None or not log.size:
        return
    if recorded.boot != boot_id() or not log.is_same_file(recorded.log) or main == recorded.main:
        return
    if _recorded(record) == recorded:  # or its owner takes a checkpoint just now, and is found next
        raise ForeignLogError(
            f"the database at {path} was exchanged or changed while its write-ahead log stayed;"
            " nothing was changed",
            hint="put back the database that was there; to go on with the one that is there now,"
            f" move {log_path(path)} away: what only that log holds is lost then",
        )


def require_log_kept(path: Path, record: Path) -> None:
    """Raise LogLostError when the log is gone or shorter than our last commit left it."""
    recorded, log_bytes = _recorded(record), _size(log_path(path))
    if recorded is None or not recorded.frame_count:
        return
    if log_bytes < _LOG_HEADER_BYTES + recorded.frame_count * recorded.frame_bytes:
        problem = "was cut" if log_bytes else "is gone"
        _raise_if_lost(path, record, recorded, f"{problem}: it had {recorded.frame_count} frames")


def require_log_read(connection: apsw.Connection, path: Path, record: Path) -> None:
    """Raise LogLostError when SQLite reads less of the log than our last commit left in it."""
    recorded = _recorded(record)
    if recorded is None or not recorded.frame_count:
        return
    try:
        connection.execute("select count(*) from sqlite_schema").fetchall()  # or none is read yet
        read_count = max(0, _frames_read(connection))
    except apsw.BusyError:
        return  # it has an owner, which is found next
    if read_count < recorded.frame_count:
        problem = f"is damaged: {read_count} of its {recorded.frame_count} frames can be read"
        _raise_if_lost(path, record, recorded, problem)


def _raise_if_lost(path: Path, record: Path, recorded: _Record, problem: str) -> None:
    """Raise for a log that lacks commits, if they cannot be in the main file by now."""
    if recorded.boot != boot_id() or recorded.main is None or _stat(path) != recorded.main:
        return  # a checkpoint of another program may have taken them there
    if _recorded(record) == recorded:  # or its owner takes a checkpoint just now, and is found next
        raise LogLostError(
            f"the write-ahead log of the database at {path} {problem}; what was acknowledged there"
            " is in no other place; nothing was changed",
            hint=f"put {log_path(path).name} back, {_RESTORE}; to go on without what is lost,"
            f" remove {record}",
        )


def require_whole_log(connection: apsw.Connection, path: Path) -> None:
    """Raise StoreDamagedError when commits stand in the log behind where SQLite stopped reading.

    SQLite takes the first frame that does not fit for the end of the log. A power cut leaves at
    most one commit behind it, the one under way, since each is on the disk before the next.
    """
    try:
        end, lost_count = _end_and_lost(connection, log_path(path))
    except (apsw.BusyError, OSError):
        return  # opening it reports what is wrong
    if lost_count > 1:
        raise StoreDamagedError(
            f"the write-ahead log of the database at {path} is damaged: {lost_count} commits behind"
            " the damaged place cannot be read; nothing was changed",
            hint=f"restore a backup with `holon restore`; to go on without those commits:"
            f" truncate --size={end} {log_path(path)}",
        )


def _end_and_lost(connection: apsw.Connection, log: Path) -> tuple[int, int]:
    """Where SQLite stopped reading the log, and how many commits stand behind that place.

    A log may have an owner that writes to it meanwhile, while its lock file is missing. Its commits
    are behind the end that was found first, and no loss: SQLite has read on by then.
    """
    frame_bytes = _frame_bytes(connection)
    for _ in range(_LOOKS_COUNT_MAX):
        read_count = _frames_read(connection)
        if read_count < 0 or not _size(log):
            break
        end = _LOG_HEADER_BYTES + read_count * frame_bytes
        lost_count = _commits_behind(log, end, frame_bytes)
        if lost_count <= 1 or _frames_read(connection) == read_count:
            return end, lost_count
    return 0, 0  # no log, or one that has an owner for certain, which is found next


def _frame_bytes(connection: apsw.Connection) -> int:
    return _FRAME_HEADER_BYTES + int(str(connection.pragma("page_size")))


def _frames_read(connection: apsw.Connection) -> int:
    """How many frames of its log SQLite takes to be whole; less than zero where there is none."""
    read_count, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    return int(read_count)


def _commits_behind(log: Path, end: int, frame_bytes: int) -> int:
    """How many frames behind a place end a commit and are of the same log, not an older one."""
    count = 0
    with log.open("rb") as file:
        salts = file.read(_LOG_HEADER_BYTES)[16:24]
        file.seek(end)
        while len(header := file.read(_FRAME_HEADER_BYTES)) == _FRAME_HEADER_BYTES:
            count += header[8:16] == salts and header[4:8] != bytes(4)
            file.seek(frame_bytes - _FRAME_HEADER_BYTES, os.SEEK_CUR)
    return count


class DatabaseFiles:
    """The files of one open database."""

    def __init__(self, path: Path, record: Path, connection: apsw.Connection | None = None) -> None:
        """Take them as they are; SQLite must have opened the log by now, on this connection."""
        self._frame_count, self._frame_bytes = 0, 0
        if connection is not None:
            self._frame_bytes = _frame_bytes(connection)
            logged, folded = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
            self.logged(logged if logged != folded else 0)
        self._path = path
        self._log = log_path(path)
        self._index = path.with_name(f"{path.name}-shm")
        self._record = record
        self._main_was = _stat(path)
        self._log_was = _stat(self._log)
        self._index_was = _stat(self._index)
        self._write_record()

    @property
    def log_bytes(self) -> int:
        """How long the log is."""
        return _size(self._log)

    def require_ours(self) -> None:
        """Raise DatabaseReplacedError when the files are no longer those that were opened."""
        fault = self._fault()
        if fault is not None and not self._path.parent.is_dir():
            raise home_lost(self._path.parent.parent)
        if fault is not None:
            raise DatabaseReplacedError(
                f"{fault}; nothing is acknowledged any more",
                hint=f"put back the files that were there, {_RESTORE}; then start Holon again",
            )

    def logged(self, frame_count: int) -> None:
        """Take note of how many frames of the log hold what is not folded back."""
        self._frame_count = frame_count

    def written(self) -> None:
        """Record the log's size after our own write, before the commits are acknowledged."""
        stamp = _stat(self._log)
        if stamp is not None and stamp.is_same_file(self._log_was):
            self._log_was = stamp
        if self._frame_count != self._recorded_count:
            self._write_record()

    def forget(self) -> None:
        """Remove the record after the final checkpoint, when no log is left to compare."""
        with suppress(OSError):
            self._record.unlink(missing_ok=True)

    @contextmanager
    def checkpointing(self) -> Iterator[None]:
        """Let the block write the log back into the main file."""
        self.require_ours()  # never into what another program has put there
        self._main_was, main = None, self._main_was
        self._write_record()
        try:
            yield
        finally:
            stamp = _stat(self._path)
            self._main_was = stamp if stamp is not None and stamp.is_same_file(main) else main
            self._log_was = _stat(self._log) or self._log_was
            self._write_record()

    def _fault(self) -> str | None:
        main = _stat(self._path)
        if main is None:
            return f"the database at {self._path} was removed"
        if not main.is_same_file(self._main_was):
            return f"another file was put in the place of the database at {self._path}"
        if main != self._main_was:
            return f"another program has changed the database at {self._path}"
        log = _stat(self._log)
        if log is None or not log.is_same_file(self._log_was):
            return f"the write-ahead log of the database at {self._path} was removed or exchanged"
        if self._log_was is not None and log.size < self._log_was.size:
            return f"another program has cut the write-ahead log of the database at {self._path}"
        index = _stat(self._index)
        if index is None or not index.is_same_file(self._index_was):
            return f"the index {self._index.name} of {self._path} was removed or exchanged"
        return None

    def _write_record(self) -> None:
        self._recorded_count = self._frame_count
        if self._log_was is None:
            return
        record = _Record(
            boot=boot_id(),
            log=self._log_was,
            main=self._main_was,
            frame_count=self._frame_count,
            frame_bytes=self._frame_bytes,
        )
        # A record that cannot be written costs a warning at a later start, and nothing else.
        with suppress(OSError):
            _put(self._record, msgspec.json.encode(record))


def _put(path: Path, content: bytes) -> None:
    """Overwrite a private file in place, at once: it is never found empty."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, flags, 0o600)
    try:
        os.write(handle, content.ljust(_RECORD_BYTES))
    finally:
        os.close(handle)


def _recorded(path: Path) -> _Record | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        content = os.read(handle, RECORD_BYTES_MAX)
        return msgspec.json.decode(content, type=_Record)
    except (OSError, msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    finally:
        os.close(handle)


def _stat(path: Path) -> _FileStamp | None:
    try:
        facts = os.lstat(path)
    except OSError:
        return None
    return _FileStamp(facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns)


def _size(path: Path) -> int:
    stamp = _stat(path)
    return 0 if stamp is None else stamp.size


def _agent_homes(home: Path) -> Path | None:
    """Return the folder of the agents' homes when there is one; births leave hidden names there."""
    folder = home / "agents"
    try:
        with os.scandir(folder) as entries:
            return folder if any(not each.name.startswith(".") for each in entries) else None
    except OSError:
        return None
