"""The run folder: what one command has on disk, in a folder named by its run id.

Owns:  the file names, the run record (`run.jsonl`), the environment allow-list, the signals a
       supervisor handles, and the lock that tells whom they are for; the only way files of a run
       folder are opened for reading.
Rule 1: only environment variables on the allow-list reach a command, so a key or token of the
        runtime cannot leak because it was forgotten.
Rule 2: a command knows its run folder and may create anything in it: a folder, a FIFO, a link, a
        file of any size. Opening never blocks and never follows a link; anything but a regular file
        counts as absent. The reader bounds how much it reads.
Rule 3: failing to open a file because too many are open is reported apart from absence.
Rule 4: a record line is appended with one write and never changed. Of two lines of a kind the first
        counts, so two processes can agree through the record (see `claim`).
Rule 5: a line cut short by a full disk or a power cut counts as absent; its writer gets an error
        and may write it again.
Rule 6: few files are created, because creating a file costs more than all other work here.
Rule 7: a supervisor serves one run at a time. It takes another one only when the record of the last
        says that nothing is left running, and no process holds that record open. A process that
        holds the record and finds something left may signal the supervisor, and means this run.
Rule 8: the command can write to every file here. A record that is not a regular file is ignored; of
        a regular one only well-formed lines count.
Rule 9: a folder that was copied with its home names processes of the original. The record names the
        home that started the run; runs of another home are never acted on.
Rule 10: the fork server imports this module, so it uses the standard library only.

    run.jsonl        the record, one line per fact: the request and its home, the supervisor, the
                     process, the end
    stdout, stderr   output, created with the first byte; a terminal has `combined` instead
    combined         both streams in the order of arrival, once both have written
    input            a FIFO, for commands that accept input
"""

import errno
import fcntl
import json
import os
import re
import signal
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from holon.adapters.exec.process_table import ProcessIdentity

PASSED_VARIABLES: Final = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TZ", "TMPDIR"}
)
PASSED_PREFIX: Final = "LC_"
PATH_DEFAULT: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TERMINAL_DEFAULT: Final = "xterm-256color"
RUN_MARKER: Final = "HOLON_RUN"  # holds the run folder, which is unique, unlike the run id
DESCRIPTOR_SHORTAGE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
UNTRUSTED_OPEN_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
RECORD_BYTES_MAX: Final = 2 * 1024 * 1024  # a command of 96 KiB, escaped, with its environment
SHORT_LINE_BYTES_MAX: Final = 4 * 1024  # of a line, except the one with the command
RECORD_LINES_COUNT_MAX: Final = 4_096  # a few, plus lines that a full disk cut short
PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700

# The signals that ask a supervisor to end its command.
POLITE: Final = signal.SIGTERM
FORCED: Final = signal.SIGUSR1
NO_PROCESS: Final = ProcessIdentity(pid=0, start_ticks=0, boot_id="")
NO_SPACE_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
NUMBER_MAX: Final = 2**31 - 1  # of a process, a signal or an exit status
_LINE_KIND: Final = re.compile(rb'\{"(asked|supervisor|process|ended)": ')
_APPEND: Final = os.O_WRONLY | os.O_APPEND | UNTRUSTED_OPEN_FLAGS


def passed_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the part of our environment that commands may see."""
    environment = {
        name: value
        for name, value in environ.items()
        if name in PASSED_VARIABLES or name.startswith(PASSED_PREFIX)
    }
    environment.setdefault("PATH", PATH_DEFAULT)
    return environment


def command_environment(
    environ: Mapping[str, str], added: Mapping[str, str], *, folder: str, is_tty: bool
) -> dict[str, str]:
    """Return the whole environment of a command."""
    environment = passed_environment(environ)
    if is_tty:
        environment.setdefault("TERM", TERMINAL_DEFAULT)
    return {**environment, **added, "HOLON_RUNTIME": "1", RUN_MARKER: folder}


def marker_of(folder: str) -> bytes:
    """Return the line every process of a run has in its environment."""
    return os.fsencode(f"{RUN_MARKER}={folder}")


def open_regular_file(path: str) -> int | None:
    """Open a regular file for reading; None where there is none."""
    try:
        file = os.open(path, os.O_RDONLY | UNTRUSTED_OPEN_FLAGS)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    return None


def open_fifo(path: str) -> int | None:
    """Open a FIFO for writing; None where there is none or it has no reader."""
    try:
        pipe = os.open(path, os.O_WRONLY | UNTRUSTED_OPEN_FLAGS)
    except OSError:
        return None
    if stat.S_ISFIFO(os.fstat(pipe).st_mode):
        return pipe
    os.close(pipe)
    return None


def can_be_opened(path: str) -> bool:
    """Whether opening the file can succeed; not so while no file descriptor is free."""
    try:
        os.close(os.open(path, os.O_RDONLY | UNTRUSTED_OPEN_FLAGS))
    except OSError as error:
        return error.errno not in DESCRIPTOR_SHORTAGE
    return True


class RunRecord(NamedTuple):
    """The content of a run record."""

    command: Mapping[str, Any]
    supervisor: ProcessIdentity | None
    process: ProcessIdentity | None
    ended: Mapping[str, Any] | None

    @property
    def left_nothing(self) -> bool:
        """Whether it ended and nothing is left running: its supervisor exits and writes no more."""
        return self.ended is not None and self.ended.get("alone") is True

    def is_foreign(self, folder: str, home_id: str | None) -> bool:
        """Whether the original of the home with this id started the run.

        The record of an older version does not name the home; it holds the folder's path instead.
        """
        if not self.command:
            return False
        match self.command.get("home"):
            case {"id": str() as started_by}:
                return home_id is not None and started_by != home_id
            case _:
                environment = self.command.get("environment")
                marked_folder = (
                    environment.get(RUN_MARKER) if isinstance(environment, dict) else None
                )
                return isinstance(marked_folder, str) and marked_folder != folder


class RunFolder:
    """The files of one command."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.input = f"{self.path}/input"
        self.record = f"{self.path}/run.jsonl"
        self.combined = f"{self.path}/combined"

    def make(self, command: Mapping[str, Any], *, takes_input: bool) -> None:
        """Create the folder for a supervisor; FileExistsError when the id was used."""
        os.mkdir(self.path, PRIVATE_FOLDER)
        self._append({"asked": command}, flags=os.O_CREAT | os.O_EXCL)
        if takes_input:
            os.mkfifo(self.input, PRIVATE_FILE)

    def exists(self) -> bool:
        """Whether a command was requested under this id."""
        return os.path.isdir(self.path)

    def remove(self) -> None:
        """Remove the folder with its files; OSError when a command created folders in it."""
        try:
            if os.path.islink(self.path):  # the link's target is not ours
                os.unlink(self.path)
                return
            with os.scandir(self.path) as entries:
                for entry in entries:
                    os.unlink(entry.path)
            os.rmdir(self.path)
        except FileNotFoundError:
            return

    def left_behind(self) -> tuple[float, int]:
        """Return the time of the last record line, and the bytes of all files.

        Where the record is gone, the folder's own time says when it was removed.
        """
        with os.scandir(self.path) as entries:
            size_bytes = sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
        try:
            changed = os.stat(self.record, follow_symlinks=False)
        except FileNotFoundError:
            changed = os.stat(self.path, follow_symlinks=False)
        return changed.st_mtime, size_bytes

    def claim(self, identity: ProcessIdentity) -> bool:
        """Record the supervisor unless one is recorded; return whether this one is."""
        return self.claimed(identity) is not None

    def claimed(self, identity: ProcessIdentity) -> RunRecord | None:
        """Claim the command; return its record if the claim succeeded.

        A runtime that finds no supervisor claims the run for NO_PROCESS, so that a late supervisor
        cannot start a command that was already reported as lost.
        """
        self._append({"supervisor": identity._asdict()})
        facts = self.read()
        return facts if facts.supervisor == identity else None

    def started(self, process: ProcessIdentity) -> None:
        """Record the process of the command."""
        self._append({"process": process._asdict()})

    def ended(
        self, *, exit_status: int, signal_number: int | None, stopped: str | None, is_alone: bool
    ) -> None:
        """Record how the command ended, and whether nothing is left running."""
        status = {"exit_status": exit_status, "signal": signal_number, "stopped": stopped}
        self._append({"ended": status | {"alone": is_alone}})

    def hold(self) -> int | None:
        """Lock the run: until the returned descriptor is closed, its supervisor serves no other.

        None when the run is over, or its record cannot be opened.
        """
        record = self.opened()
        if record is None:
            return None
        if _is_locked(record, fcntl.LOCK_SH) and not self.read().left_nothing:
            return record
        os.close(record)
        return None

    def opened(self) -> int | None:
        """Open the record; the descriptor stays valid when the folder is removed."""
        return open_regular_file(self.record)

    def read(self) -> RunRecord:
        """Return the record; one that cannot be read is empty."""
        entries: dict[str, Any] = {}
        for line in self._lines():
            name = _name_of(line)
            if name is None or name in entries:  # a duplicate is not decoded
                continue
            try:
                entries[name] = json.loads(line)[name]
            except (ValueError, RecursionError):
                continue
        command = entries.get("asked")
        return RunRecord(
            command=command if isinstance(command, dict) else {},
            supervisor=identity_from(entries.get("supervisor")),
            process=identity_from(entries.get("process")),
            ended=_ending(entries.get("ended")),
        )

    def streams(self, *, is_tty: bool) -> Sequence[str]:
        """Return the output files."""
        names = ("combined",) if is_tty else ("stdout", "stderr")
        return [f"{self.path}/{name}" for name in names]

    def _lines(self) -> list[bytes]:
        record = self.opened()
        if record is None:
            return []
        try:
            size = os.fstat(record).st_size
            text = os.read(record, min(size, RECORD_BYTES_MAX))
            return text.split(b"\n", RECORD_LINES_COUNT_MAX)
        except OSError:
            return []
        finally:
            os.close(record)

    def _append(self, content: Mapping[str, Any], *, flags: int = 0) -> None:
        # Plain ASCII: an argument that is not Unicode comes back as the same bytes. A leading line
        # feed separates this line from one that was cut short before it.
        line = b"\n" + json.dumps(content).encode("ascii") + b"\n"
        record = os.open(self.record, _APPEND | flags, PRIVATE_FILE)
        try:
            if os.write(record, line) < len(line):  # a partial write: the disk is full
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(record)


def is_held(record: int) -> bool:
    """Whether a process holds the lock of this run."""
    return not _is_locked(record, fcntl.LOCK_EX)


def _is_locked(record: int, kind: int) -> bool:
    try:
        fcntl.flock(record, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _name_of(line: bytes) -> str | None:
    """Return the kind of a record line; None when it is malformed."""
    match = _LINE_KIND.match(line)
    if match is None or (len(line) > SHORT_LINE_BYTES_MAX and match[1] != b"asked"):
        return None
    return match[1].decode("ascii")


def identity_from(value: Any) -> ProcessIdentity | None:
    """Return the process identity in a JSON value, or None when it is malformed."""
    match value:
        case {
            "pid": int() as pid,
            "start_ticks": int() as start_ticks,
            "boot_id": str() as boot_id,
        }:
            is_number = 0 <= pid <= NUMBER_MAX
            return ProcessIdentity(pid, start_ticks, boot_id) if is_number else None
        case _:
            return None


def _ending(value: Any) -> Mapping[str, Any] | None:
    match value:
        case {"exit_status": int() as status, "signal": None | int() as number}:
            is_number = abs(status) <= NUMBER_MAX and abs(number or 0) <= NUMBER_MAX
            return value if is_number else None
        case _:
            return None
