"""Probes the runtime of a home, and reports its status.

Owns:  the four results of a probe; the status report of `holon daemon status`; finding and removing
       stale run files.
Rule 1: a file is removed only if it is ours, of the expected kind, and no live process owns it or
        listens on it. Any other file stays, and a start fails on it.
Rule 2: four results: running; unresponsive; not running (perhaps with stale files); or a foreign
        process or file in the runtime's place.
Rule 3: a process is the recorded one only if pid, start time and boot id agree, or if the kernel
        names it as the listener on the home's own socket.
Rule 4: a copied home contains the record of its original's process. That process is not probed: the
        copy has no runtime until one is started on it, and the status says that it is a copy.
Rule 5: a response of a nearby version is accepted if it names the home and the process.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import anyio
import msgspec

from holon.adapters.exec.process_table import ProcessIdentity, identity_of, is_living
from holon.adapters.system.failure_files import FailureFiles
from holon.adapters.system.listening_sockets import answers
from holon.adapters.system.run_files import RunFiles
from holon.client.connection import ForeignServerError, SilentRuntimeError
from holon.client.control_client import ControlClient, ControlError
from holon.client.endpoint import NoRuntimeError, UnixEndpoint
from holon.model.errors import StoreError
from holon.model.events.briefs import BriefRecord
from holon.model.limits import DAEMON_PROBE_MS_MAX, SECOND_MS
from holon.model.values import JsonValue
from holon.projections.runtime_status import (
    ControlConnectivity,
    DaemonState,
    DaemonStatus,
    FailurePhase,
    LastFailure,
    RuntimeStatus,
    newest_failure,
    turn_failure,
)

STATUS_PATH: Final = "/control/runtime/status"
_RESTART: Final = "holon daemon restart"
_ALWAYS_THERE: Final = ("ok", "healthy", "pid", "home_dir", "socket_path")


def stale_files(files: RunFiles) -> tuple[Path, ...]:
    """Return the removable files of an earlier process."""
    record = files.read_record()
    if record is not None and is_living(record.identity()):
        return ()
    found = [path for path in (files.pid, files.record) if _is_ours(path, stat.S_ISREG)]
    if _is_ours(files.socket, stat.S_ISSOCK) and not answers(files.socket):
        found.append(files.socket)
    return tuple(found)


def remove_stale(files: RunFiles) -> tuple[Path, ...]:
    """Remove the files of an earlier process, and return them."""
    found = stale_files(files)
    for path in found:
        path.unlink(missing_ok=True)
    return found


def _is_ours(path: Path, is_kind: Callable[[int], bool]) -> bool:
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    return is_kind(found.st_mode) and found.st_uid == os.getuid()


class Running(NamedTuple):
    """The runtime responds; `process` listens on its socket."""

    status: RuntimeStatus
    process: ProcessIdentity | None


class Unresponsive(NamedTuple):
    """The process is alive but does not respond."""

    process: ProcessIdentity


class NotRunning(NamedTuple):
    """No process serves the home; these files of an earlier process are left."""

    left_behind: tuple[Path, ...]


class ForeignProcess(NamedTuple):
    """Another program or file is in the runtime's place."""

    what: str


RuntimeProbe: TypeAlias = Running | Unresponsive | NotRunning | ForeignProcess


def probe_runtime(files: RunFiles) -> RuntimeProbe:
    """Find out which process serves a home."""
    record = files.read_record()
    written_down = None if record is None else record.identity()
    lives = is_living(written_down)
    found = _answer_on(files)
    if isinstance(found, Running | ForeignProcess):
        return found
    if written_down is not None and lives:
        return Unresponsive(written_down)
    if found is not None:  # a process listens that is not the recorded one
        return Unresponsive(found)
    return NotRunning(stale_files(files))


def _answer_on(files: RunFiles) -> Running | ForeignProcess | ProcessIdentity | None:
    """Probe the socket: a runtime, a foreign process, an unresponsive one, or None."""
    foreign = _foreign_file(files.socket)
    if foreign is not None:
        return foreign
    client = ControlClient(UnixEndpoint(files.socket), timeout_s=DAEMON_PROBE_MS_MAX / SECOND_MS)
    try:
        status = _understood(client.get_json(STATUS_PATH))
    except NoRuntimeError:
        return None
    except (ForeignServerError, ControlError) as error:
        return ForeignProcess(f"another program responds on {files.socket}: {error.message}")
    except SilentRuntimeError:
        return _silent(files, client.server_pid)
    if status is None:
        return ForeignProcess(f"another program responds on {files.socket}")
    if Path(status.home_dir).resolve() != files.home.resolve():
        return ForeignProcess(f"{files.socket} belongs to the runtime of {status.home_dir}")
    return Running(status, None if client.server_pid is None else identity_of(client.server_pid))


def _understood(answer: JsonValue) -> RuntimeStatus | None:
    """Decode the status; fields that a nearby version encodes differently are dropped."""
    try:
        return msgspec.convert(answer, RuntimeStatus)
    except msgspec.ValidationError:
        if not isinstance(answer, dict):
            return None
    least = {name: answer[name] for name in _ALWAYS_THERE if name in answer}
    try:
        return msgspec.convert(least, RuntimeStatus)
    except msgspec.ValidationError:
        return None


def _silent(files: RunFiles, pid: int | None) -> ForeignProcess | ProcessIdentity | None:
    """Identify a listener that does not respond; only the recorded process is ours."""
    record = files.read_record()
    if pid is None:
        return None  # it broke off while we came: it is about to be gone
    if record is None or record.pid != pid:
        return ForeignProcess(f"another program (process {pid}) listens on {files.socket}")
    return identity_of(pid)


def _foreign_file(path: Path) -> ForeignProcess | None:
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.getuid():
        return ForeignProcess(f"{path} is not a socket of ours")
    return None


def status_of(
    files: RunFiles, *, fingerprint: str | None, replaced_by: str = _RESTART
) -> DaemonStatus:
    """Return what is known of a home's runtime.

    `fingerprint` is what one would be started with, and `replaced_by` the command that does so.
    """
    return told(files, probe_runtime(files), fingerprint=fingerprint, replaced_by=replaced_by)


def told(
    files: RunFiles, found: RuntimeProbe, *, fingerprint: str | None, replaced_by: str = _RESTART
) -> DaemonStatus:
    """Return the status report of a probe."""
    match found:
        case Running(status=status):
            return _running(files, status, fingerprint, replaced_by)
        case Unresponsive(process=process):
            return _down(
                files,
                state=DaemonState.RUNNING,
                connectivity=ControlConnectivity.UNREACHABLE,
                message=f"process {process.pid} serves this home and does not respond; "
                "see: holon daemon logs",
                pid=process.pid,
            )
        case NotRunning(left_behind=left) if (copied := said_of_copy(files)) is not None:
            return _down(
                files,
                state=DaemonState.STALE if left else DaemonState.STOPPED,
                connectivity=ControlConnectivity.NOT_TRIED,
                message=copied,
                stale=left,
            )
        case NotRunning(left_behind=()):
            return _down(
                files,
                state=DaemonState.STOPPED,
                connectivity=ControlConnectivity.NOT_TRIED,
                message="no runtime is running; start one with: holon daemon start",
            )
        case NotRunning(left_behind=left):
            return _down(
                files,
                state=DaemonState.STALE,
                connectivity=ControlConnectivity.UNREACHABLE,
                message="no runtime is running; a start removes the files of an earlier one",
                stale=left,
            )
        case ForeignProcess(what=what):
            return _down(
                files,
                state=DaemonState.STOPPED,
                connectivity=ControlConnectivity.UNREACHABLE,
                message=what,
            )


def said_of_copy(files: RunFiles) -> str | None:
    """Report a copied home that has not been started, with the next steps."""
    record = files.read_copied_record()
    if record is None:
        return None
    original = record.home_dir if record.home is None else record.home.path
    served = f", which process {record.pid} serves" if is_living(record.identity()) else ""
    return (
        f"no runtime serves this home: it is a copy of {original}{served}. Its commands are left"
        " alone. To start it as an independent home: holon daemon start; tasks that were running"
        " are interrupted then, and its timers and queued messages are also processed here"
    )


def _running(
    files: RunFiles, status: RuntimeStatus, fingerprint: str | None, replaced_by: str
) -> DaemonStatus:
    known = fingerprint is not None and status.config_fingerprint is not None
    matches = fingerprint == status.config_fingerprint if known else None
    failed = newest_failure(status.last_failure, FailureFiles(files).newest())
    message = f"process {status.pid} serves this home"
    if matches is False:
        message += f" with another configuration; to use this one: {replaced_by}"
    message += "".join(f"; {problem.message}" for problem in status.problems)
    return DaemonStatus(
        ok=status.healthy,
        state=DaemonState.RUNNING,
        healthy=status.healthy,
        home_dir=status.home_dir,
        socket_path=status.socket_path,
        control_connectivity=ControlConnectivity.CONNECTED,
        stale_files=(),
        message=message,
        http_addr=status.http_addr,
        pid=status.pid,
        runtime_config_fingerprint=status.config_fingerprint,
        config_fingerprint_match=matches,
        activity=status.activity,
        last_failure=failed,
        last_failure_path=failure_path(files, failed),
        problems=status.problems,
    )


def _down(
    files: RunFiles,
    *,
    state: DaemonState,
    connectivity: ControlConnectivity,
    message: str,
    pid: int | None = None,
    stale: tuple[Path, ...] = (),
) -> DaemonStatus:
    record = files.read_record()
    failed = newest_failure(FailureFiles(files).newest(), last_turn_failure(files.home))
    return DaemonStatus(
        ok=False,
        state=state,
        healthy=False,
        home_dir=str(files.home),
        socket_path=str(files.socket),
        control_connectivity=connectivity,
        stale_files=tuple(str(path) for path in stale),
        message=message,
        http_addr=None if record is None else record.http_addr,
        pid=pid,
        runtime_config_fingerprint=None if record is None else record.config_fingerprint,
        last_failure=failed,
        last_failure_path=failure_path(files, failed),
    )


def failure_path(files: RunFiles, failure: LastFailure | None) -> str | None:
    """Return the path of the details of a failure: its own file, or the log."""
    if failure is None:
        return None
    is_turn = failure.phase is FailurePhase.RUNTIME_TURN
    return str(files.log if is_turn else FailureFiles(files).path_of(failure.phase))


def last_turn_failure(home: Path) -> LastFailure | None:
    """Return the last failure of a turn as the database has it, while no service answers.

    A database that cannot be read is no reason to say nothing else: `holon debug check` tells more.
    """
    from holon.adapters.sqlite.check.untouched import untouched_reads
    from holon.adapters.sqlite.database.home_lock import database_path

    async def read() -> BriefRecord | None:
        with untouched_reads(database_path(home)) as reads:
            return await reads.events.last_failure()

    try:
        failed = anyio.run(read)
    except StoreError:
        return None
    return None if failed is None else turn_failure(failed, is_up=False)
