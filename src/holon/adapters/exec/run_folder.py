"""What one command has on disk: a folder named by its run id.

Owns:  the allow-list. A variable that is not named here does not pass, so a key or a token of the
       runtime cannot reach a command by being forgotten; the one way in which a file of a run
       folder is opened for reading; these names, reading and writing the record, and the signals a
       supervisor heeds, together with the lock that says whom they are for.
Rule 1: a command knows its run folder and may make what it likes there: a folder, a pipe with a
        name, a link, a file of any size. Opening never waits and never follows a link, and what is
        no plain file is as good as none. How much is read is the reader's to bound.
Rule 2: a file that cannot be opened because we hold too many is still there: that is told apart.
Rule 3: this module is also loaded by the fork server, which sees the standard library only.
Rule 4: a line is appended with one write and never changed. Of two lines of a kind the first one
        counts, which makes the record a place where two processes can agree (see `claim`).
Rule 5: a line that was cut short, by a full disk or a power cut, counts as none; its writer gets an
        error and may write it again.
Rule 6: few files are made, since making one costs more than all the rest.
Rule 7: a supervisor looks after one run at a time, and after another one only when the record of
        the last says that nothing is left of it, and no process holds that record. A process that
        holds it and finds something left can signal the supervisor, and means this run.
Rule 8: the command can reach all of this and may have written any of it. A record that is no plain
        file says nothing; of one that is, only what has the right form counts.
Rule 9: a folder that was copied with its home names processes of the original. Which home started
        the run is part of its record; those of another home are never acted on.
Rule 10: this module is also loaded by the fork server, which sees the standard library only.

    run.jsonl        what is known of it, a line each: how it was asked for and by which home, who
                     looks after it, which process it is, how it ended
    stdout, stderr   what it wrote, made with the first byte; a terminal has `combined` instead
    combined         of two streams that have both written: everything, in the order it came
    input            a pipe with a name, for commands that accept input
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

PASSED: Final = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TZ", "TMPDIR"}
)
PASSED_PREFIX: Final = "LC_"
PATH_DEFAULT: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TERMINAL_DEFAULT: Final = "xterm-256color"
RUN_MARKER: Final = "HOLON_RUN"  # the folder of the run: unlike its id, nobody else has it


def passed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what of our own environment others may see."""
    found = {
        name: value
        for name, value in environ.items()
        if name in PASSED or name.startswith(PASSED_PREFIX)
    }
    found.setdefault("PATH", PATH_DEFAULT)
    return found


def command_environment(
    environ: Mapping[str, str], added: Mapping[str, str], *, folder: str, is_tty: bool
) -> dict[str, str]:
    """Return the whole environment of a command."""
    found = passed_on(environ)
    if is_tty:
        found.setdefault("TERM", TERMINAL_DEFAULT)
    return {**found, **added, "HOLON_RUNTIME": "1", RUN_MARKER: folder}


def marker_of(folder: str) -> bytes:
    """Return the line every process of a run has in its environment."""
    return os.fsencode(f"{RUN_MARKER}={folder}")


SCARCE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})  # it passes by itself
WARY: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def opened_plain(path: str) -> int | None:
    """Return a handle to read from, or nothing where there is no plain file to be had."""
    try:
        file = os.open(path, os.O_RDONLY | WARY)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    return None


def opened_pipe(path: str) -> int | None:
    """Return a handle to write to a pipe with a name, or nothing when nobody reads it."""
    try:
        pipe = os.open(path, os.O_WRONLY | WARY)
    except OSError:
        return None
    if stat.S_ISFIFO(os.fstat(pipe).st_mode):
        return pipe
    os.close(pipe)
    return None


def is_within_reach(path: str) -> bool:
    """Whether looking at a file says anything; not so while we have no handle to spare."""
    try:
        os.close(os.open(path, os.O_RDONLY | WARY))
    except OSError as error:
        return error.errno not in SCARCE
    return True


RECORD_BYTES_MAX: Final = 2 * 1024 * 1024  # a command of 96 KiB, escaped, with its environment
SAID_BYTES_MAX: Final = 4 * 1024  # of a line, but for the one with the command
RECORD_LINES_COUNT_MAX: Final = 4_096  # a handful, and what a full disk cut short
PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700
# How a supervisor that was found here is asked to end its command.
POLITE: Final = signal.SIGTERM
FORCED: Final = signal.SIGUSR1
NOBODY: Final = ProcessIdentity(pid=0, start_ticks=0, boot_id="")
ROOM_MAY_COME: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
NUMBER_MAX: Final = 2**31 - 1  # of a process, a signal or an exit status
_SAYS: Final = re.compile(rb'\{"(asked|supervisor|process|ended)": ')
_APPEND: Final = os.O_WRONLY | os.O_APPEND | WARY


class RunRecord(NamedTuple):
    """What the record says."""

    asked: Mapping[str, Any]
    supervisor: ProcessIdentity | None
    process: ProcessIdentity | None
    ended: Mapping[str, Any] | None

    @property
    def left_nothing(self) -> bool:
        """Whether it has ended and nothing runs on: its supervisor goes, and writes no more."""
        return self.ended is not None and self.ended.get("alone") is True

    def is_foreign(self, folder: str, home_id: str | None) -> bool:
        """Whether another home started this, of which the one with this id is a copy.

        A run of an older version does not name its home; its commands were told their folder.
        """
        if not self.asked:
            return False
        match self.asked.get("home"):
            case {"id": str() as started_by}:
                return home_id is not None and started_by != home_id
            case _:
                environment = self.asked.get("environment")
                told = environment.get(RUN_MARKER) if isinstance(environment, dict) else None
                return isinstance(told, str) and told != folder


class RunFolder:
    """The files of one command."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.input = f"{self.path}/input"
        self.record = f"{self.path}/run.jsonl"
        self.combined = f"{self.path}/combined"

    def make(self, asked: Mapping[str, Any], *, takes_input: bool) -> None:
        """Make the folder with what the supervisor needs; FileExistsError when the id was used."""
        os.mkdir(self.path, PRIVATE_FOLDER)
        self._append({"asked": asked}, flags=os.O_CREAT | os.O_EXCL)
        if takes_input:
            os.mkfifo(self.input, PRIVATE_FILE)

    def exists(self) -> bool:
        """Whether a command was ever asked for under this id."""
        return os.path.isdir(self.path)

    def remove(self) -> None:
        """Remove the folder with its files; OSError when a command has put folders there."""
        try:
            if os.path.islink(self.path):  # what it leads to is none of ours
                os.unlink(self.path)
                return
            with os.scandir(self.path) as entries:
                for entry in entries:
                    os.unlink(entry.path)
            os.rmdir(self.path)
        except FileNotFoundError:
            return

    def left_behind(self) -> tuple[float, int]:
        """Return when its record was last added to, and how many bytes all files have.

        Where the record is gone, the folder says when it went.
        """
        with os.scandir(self.path) as entries:
            size_bytes = sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
        try:
            changed = os.stat(self.record, follow_symlinks=False)
        except FileNotFoundError:
            changed = os.stat(self.path, follow_symlinks=False)
        return changed.st_mtime, size_bytes

    def claim(self, identity: ProcessIdentity) -> bool:
        """Record the supervisor of the command unless one is recorded; whether this one holds."""
        return self.claimed(identity) is not None

    def claimed(self, identity: ProcessIdentity) -> RunRecord | None:
        """Claim the command, and return what is known of it when that holds.

        A runtime that finds no supervisor claims the run for none, so that one that comes late
        cannot start a command that was already reported as lost.
        """
        self._append({"supervisor": identity._asdict()})
        facts = self.read()
        return facts if facts.supervisor == identity else None

    def started(self, process: ProcessIdentity) -> None:
        """Say which process the command is."""
        self._append({"process": process._asdict()})

    def ended(
        self, *, exit_status: int, signal_number: int | None, stopped: str | None, is_alone: bool
    ) -> None:
        """Say how the command ended, and whether it left nothing behind that runs."""
        said = {"exit_status": exit_status, "signal": signal_number, "stopped": stopped}
        self._append({"ended": said | {"alone": is_alone}})

    def hold(self) -> int | None:
        """Return a handle: until it is closed, the supervisor of the run takes on no other one.

        Nothing when the run is over, or its record cannot be had.
        """
        record = self.opened()
        if record is None:
            return None
        if _is_locked(record, fcntl.LOCK_SH) and not self.read().left_nothing:
            return record
        os.close(record)
        return None

    def opened(self) -> int | None:
        """Return a handle of the record, which stays the same when the folder is removed."""
        return opened_plain(self.record)

    def read(self) -> RunRecord:
        """Return what the record says; a record that cannot be read says nothing."""
        said: dict[str, Any] = {}
        for line in self._lines():
            name = _name_of(line)
            if name is None or name in said:  # what a command has added costs only a look
                continue
            try:
                said[name] = json.loads(line)[name]
            except (ValueError, RecursionError):
                continue
        asked = said.get("asked")
        return RunRecord(
            asked=asked if isinstance(asked, dict) else {},
            supervisor=identity_said(said.get("supervisor")),
            process=identity_said(said.get("process")),
            ended=_ending(said.get("ended")),
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
        # Plain ASCII: an argument that is no Unicode comes back as the same bytes. The line begins
        # anew, so that one cut short before it spoils nothing.
        line = b"\n" + json.dumps(content).encode("ascii") + b"\n"
        record = os.open(self.record, _APPEND | flags, PRIVATE_FILE)
        try:
            if os.write(record, line) < len(line):  # the disk took what it had room for
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(record)


def is_held(record: int) -> bool:
    """Whether a process holds the run of this record."""
    return not _is_locked(record, fcntl.LOCK_EX)


def _is_locked(record: int, kind: int) -> bool:
    try:
        fcntl.flock(record, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _name_of(line: bytes) -> str | None:
    """Return what a line of ours is about; nothing when it is none of ours."""
    found = _SAYS.match(line)
    if found is None or (len(line) > SAID_BYTES_MAX and found[1] != b"asked"):
        return None
    return found[1].decode("ascii")


def identity_said(said: Any) -> ProcessIdentity | None:
    """Return who is named, or nothing when that is no process."""
    match said:
        case {
            "pid": int() as pid,
            "start_ticks": int() as start_ticks,
            "boot_id": str() as boot_id,
        }:
            is_number = 0 <= pid <= NUMBER_MAX
            return ProcessIdentity(pid, start_ticks, boot_id) if is_number else None
        case _:
            return None


def _ending(said: Any) -> Mapping[str, Any] | None:
    match said:
        case {"exit_status": int() as status, "signal": None | int() as number}:
            is_number = abs(status) <= NUMBER_MAX and abs(number or 0) <= NUMBER_MAX
            return said if is_number else None
        case _:
            return None
