"""The files under `<home>/run` by which other processes find a runtime.

Owns:  the names of these files, at low import cost for commands that only call the runtime; the
       record of the running process; writing and removing such files safely.
Rule 1: a file is put in place whole, and replaces only an older one of ours; anything another
        program put there is neither followed, written to, nor removed.
Rule 2: the record is read by neighbouring versions: only the pid is required.
Rule 3: a pid alone identifies no process: the record holds start time and boot id as well.
Rule 4: a home that was copied contains the record of the original. It names the process that serves
        the original, so the copy counts as having no record.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from holon.adapters.exec.process_table import ProcessIdentity, identity_of
from holon.adapters.system.home_identity import HomeIdentity, is_other_home
from holon.model.errors import HomeUnusableError
from holon.model.limits import RUN_FILE_BYTES_MAX
from holon.model.values import Instant, JsonValue

RUN_FOLDER: Final = "run"


class RunPaths:
    """The places of one home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / RUN_FOLDER
        self.socket = self.folder / "holon.sock"
        self.token = self.folder / "token"
        self.pid = self.folder / "holon.pid"  # the number of the process, for scripts
        self.record = self.folder / "daemon.json"  # the record of the process, for us
        self.log = self.folder / "daemon.log"  # what a runtime in the background prints
        self.startup_failure = self.folder / "startup_failure.json"
        self.shutdown_failure = self.folder / "shutdown_failure.json"


class UnsafePathError(HomeUnusableError):
    """A folder or file of ours is accessible to other users, or a foreign one is in its place."""

    code = "unsafe_place"


class RuntimeRecord(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False, omit_defaults=True
):
    """Who serves a home, as that process wrote it down when it was ready."""

    pid: int
    start_ticks: int | None = None
    boot_id: str | None = None
    home_dir: str | None = None
    home: HomeIdentity | None = None
    socket_path: str | None = None
    http_addr: str | None = None
    config_fingerprint: str | None = None
    version: str | None = None
    started_at: Instant | None = None
    options: JsonValue = None  # what it was started with; serve/effective_config has their form

    def identity(self) -> ProcessIdentity | None:
        """The very process that wrote this, or nothing when it did not say enough."""
        if self.start_ticks is None or self.boot_id is None:
            return None
        return ProcessIdentity(self.pid, self.start_ticks, self.boot_id)


class RunFiles(RunPaths):
    """The files of one home, to be read and written."""

    def write_record(self, record: RuntimeRecord) -> None:
        """Say who serves the home; raises UnsafePathError or OSError."""
        put_in_place(self.pid, f"{record.pid}\n".encode())
        put_in_place(self.record, msgspec.json.encode(record) + b"\n")

    def read_record(self) -> RuntimeRecord | None:
        """Who serves the home, or nothing when no process of this home says so."""
        record = self._any_record()
        return None if record is None or self._is_copied(record) else record

    def read_copied_record(self) -> RuntimeRecord | None:
        """Who served the original when this home was copied; nothing when it says of itself."""
        record = self._any_record()
        return record if record is not None and self._is_copied(record) else None

    def _is_copied(self, record: RuntimeRecord) -> bool:
        if record.home is not None:
            return is_other_home(record.home, self.home, boot=record.boot_id)
        # Versions before wrote down the path alone.
        return record.home_dir is not None and (
            os.path.realpath(record.home_dir) != os.path.realpath(self.home)
        )

    def _any_record(self) -> RuntimeRecord | None:
        content = read_own(self.record)
        if content is None:
            return None
        try:
            return msgspec.json.decode(content, type=RuntimeRecord)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None

    def remove_record(self, *, pid: int) -> None:
        """Take back what the process wrote; what another one has put there since stays.

        What a read-only disk keeps is recognised as stale by the next start.
        """
        record = self.read_record()
        with suppress(OSError):
            if record is not None and record.pid == pid:
                self.record.unlink(missing_ok=True)
            if read_own(self.pid) == f"{pid}\n".encode():
                self.pid.unlink(missing_ok=True)


def own_identity() -> ProcessIdentity:
    """Who we are."""
    identity = identity_of(os.getpid())
    return identity if identity is not None else ProcessIdentity(os.getpid(), 0, "")


def put_in_place(path: Path, content: bytes) -> None:
    """Write a private file whole, in place of nothing or of an older one of ours."""
    require_own_file(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    if require_own_file(draft):
        draft.unlink()  # left by one with our number that was killed
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
            file.write(content)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def read_own(path: Path) -> bytes | None:
    """What a small file of ours holds; nothing when there is none, or it is not ours."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.getuid():
            return None
        content = file.read(RUN_FILE_BYTES_MAX + 1)
    return content if len(content) <= RUN_FILE_BYTES_MAX else None


def require_own_file(path: Path, *, forbidden_mode: int = 0o022) -> bool:
    """Whether a file exists; raises UnsafePathError if others own it or may read it."""
    try:
        facts = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(facts.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(facts.st_mode) else "not a plain file"
        raise UnsafePathError(
            f"{path} is {kind}", hint="look what it is, and move it away; nothing was touched"
        )
    require_owned(facts, path, forbidden_mode=forbidden_mode)
    return True


def require_owned(facts: os.stat_result, path: Path, *, forbidden_mode: int) -> None:
    """Raise UnsafePathError unless something is ours and shut to others as far as it must be."""
    uid = os.getuid()
    if facts.st_uid != uid:
        raise UnsafePathError(
            f"{path} belongs to another user (uid {facts.st_uid})",
            hint=f"if it is yours, run: chown {uid} {path}; else choose another HOLON_HOME",
        )
    if facts.st_mode & forbidden_mode:
        change, action = ("go-rwx", "use") if forbidden_mode & 0o044 else ("go-w", "write to")
        raise UnsafePathError(
            f"other users can {action} {path}", hint=f"run: chmod {change} {path}"
        )
