"""Starts, stops and restarts a runtime in the background.

Owns:  translating a serve request to a program, its arguments and its environment; `holon daemon
       start`, `stop` and `restart`.
Rule 1: the program gets exactly the requested options, so that both compute the same fingerprint.
Rule 2: a token is never among the arguments, which every user of the machine can read.
Rule 3: one operation per home at a time: a second one waits, and sees the result of the first.
Rule 4: starting a service that already runs with the same effective configuration succeeds; with
        another one it is refused, and so is a path occupied by something else. A start ends
        nothing.
Rule 5: a request is checked completely before anything is stopped.
Rule 6: shutdown is requested first, then the serving process is signalled, and finally killed. A
        runtime that refuses to shut down for this caller is left alone.
Rule 7: an interrupted start leaves no process running that was not reported.
"""

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from holon.adapters.exec.process_table import ProcessIdentity
from holon.adapters.sqlite.store import hold_home
from holon.adapters.system.clock import SystemClock
from holon.adapters.system.detached_process import (
    READY_HANDLE,
    DetachedProcess,
    LivingProcess,
    ReadyOutcome,
)
from holon.adapters.system.failure_files import FailureFiles
from holon.adapters.system.home_checks import home_errors, is_full, require_safe_home
from holon.adapters.system.listening_sockets import prepare_run_folder
from holon.adapters.system.logs import open_log
from holon.adapters.system.private_file import folder_lock, make_home
from holon.adapters.system.run_files import RunFiles
from holon.client.connection import ForeignServerError, SilentRuntimeError
from holon.client.control_client import ControlClient, ControlError
from holon.client.endpoint import EndpointOptions, NoRuntimeError, UnixEndpoint, find_endpoint
from holon.config.environment_names import CALLBACK_BASE_URL, CONTROL_TOKEN
from holon.config.load_settings import Settings
from holon.daemon.health import (
    ForeignProcess,
    NotRunning,
    Running,
    Unresponsive,
    probe_runtime,
    remove_stale,
    said_of_copy,
    told,
)
from holon.daemon.options import options_in_use, replacing_command, require_startable, require_token
from holon.model.errors import HolonError
from holon.model.limits import (
    DAEMON_READY_MS_MAX,
    DAEMON_SIGNAL_MS_MAX,
    DAEMON_STABLE_MS,
    DAEMON_STOP_MS_MAX,
)
from holon.projections.runtime_status import DaemonStatus, FailurePhase, RuntimeStatus
from holon.serve.effective_config import ServeRequest, effective_fingerprint, require_usable_token
from holon.wire.responses import ReadinessAnswer, ShutdownAnswer

SEE_LOGS: Final = "see what happened with: holon daemon logs"
READINESS_PATH: Final = "/control/runtime/readiness"
SHUTDOWN_PATH: Final = "/control/runtime/shutdown"
_UNAUTHORIZED: Final = 401
_LOOKS_COUNT_MAX: Final = 3  # at one that is ready, each as long as a probe may take
_NOTHING_RAN: Final = "no runtime was running"


def launch_arguments(home: Path, asked: ServeRequest) -> list[str]:
    """Return the program and its arguments."""
    access = asked.access
    options: dict[str, str | int | None] = {
        "--home": str(home),
        "--access": access.mode.value,
        "--listen": access.listen,
        "--host": access.host,
        "--port": access.port,
        "--advertise": access.advertise,
        "--token-file": None if asked.token_file is None else str(asked.token_file),
        "--workspace-root": asked.workspace_dir,
        "--agent": asked.default_agent,
        "--log-level": asked.log_level,
        "--ready-handle": READY_HANDLE,
    }
    given = [
        text for name, value in options.items() if value is not None for text in (name, str(value))
    ]
    # -P: a folder the operator happens to stand in is no place to load code from.
    return [sys.executable, "-P", "-m", "holon", "serve", *given]


def launch_environment(environ: Mapping[str, str], asked: ServeRequest) -> dict[str, str]:
    """Return our environment with the requested control token and no other."""
    asked_for = {CONTROL_TOKEN: asked.token, CALLBACK_BASE_URL: asked.access.callback_base}
    found = {name: value for name, value in environ.items() if name not in asked_for}
    return found | {name: value for name, value in asked_for.items() if value is not None}


class DaemonError(HolonError):
    """The daemon could not be started or stopped."""

    code = "daemon_failed"
    hint = SEE_LOGS


class OtherConfigError(HolonError):
    """A runtime serves this home with another configuration."""

    code = "other_config"


@dataclass(frozen=True, kw_only=True, slots=True)
class Daemon:
    """Controls the daemon of one home. Paths are absolute."""

    settings: Settings
    asked: ServeRequest
    environ: Mapping[str, str]
    ready_ms_max: int = DAEMON_READY_MS_MAX

    @property
    def files(self) -> RunFiles:
        """The run files of the home."""
        return RunFiles(self.settings.home)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the requested configuration."""
        return effective_fingerprint(self.settings, self.asked)

    def start(self) -> DaemonStatus:
        """Start it unless it runs already; raises if it does not run as requested afterwards."""
        self._prepare()
        with folder_lock(self.files.folder):
            return self._start()

    def restart(self) -> DaemonStatus:
        """Replace the process that serves the home by one with this configuration."""
        self._prepare()
        with folder_lock(self.files.folder):
            require_startable(self.files, self.asked)
            stop_now(self.files)
            return self._start()

    def _prepare(self) -> None:
        """Refuse a request that could not be started, before anything is changed."""
        _ = self.fingerprint
        require_safe_home(self.settings.home)
        require_usable_token(self.asked, self.files.token)
        make_home(self.settings.home)
        with home_errors(self.settings.home):
            prepare_run_folder(self.files.folder)

    def _start(self) -> DaemonStatus:
        match probe_runtime(self.files):
            case Running(status=status) as found:
                self._require_same(status)
                FailureFiles(self.files).clear()
                already = told(self.files, found, fingerprint=self.fingerprint)
                return _saying(already, f"already running as process {status.pid}", ok=True)
            case Unresponsive(process=process):
                raise DaemonError(
                    f"process {process.pid} serves this home and does not respond",
                    hint="see: holon daemon logs; to replace it: holon daemon restart",
                )
            case ForeignProcess(what=what):
                raise DaemonError(what, hint="nothing was changed; stop it, or move it away")
            case NotRunning():
                require_token(self.asked)
                held = hold_home(self.settings.home)  # not while `holon run`, say, has it
                try:
                    remove_stale(self.files)
                finally:
                    held.release()
                return self._launch()

    def _require_same(self, status: RuntimeStatus) -> None:
        if status.config_fingerprint != self.fingerprint or not self._token_opens(status):
            command = replacing_command(self.asked, options_in_use(self.files))
            raise OtherConfigError(
                f"process {status.pid} already serves {self.settings.home} with another"
                " configuration",
                hint=f"to replace it with this configuration: {command}",
            )

    def _token_opens(self, status: RuntimeStatus) -> bool:
        """Whether the requested token is the current one; fingerprints exclude it."""
        if self.asked.token is None or status.http_addr is None:
            return True
        wanted = EndpointOptions(connect=f"http://{status.http_addr}", token=self.asked.token)
        try:
            client = ControlClient(find_endpoint(self.settings.home, wanted, {}))
            return client.get(READINESS_PATH, ReadinessAnswer).ok
        except ControlError as error:
            if error.status == _UNAUTHORIZED:
                return False
            raise

    def _launch(self) -> DaemonStatus:
        began = SystemClock().now()
        home = self.settings.home
        with home_errors(home):
            log = open_log(self.files.log)
        try:
            process = DetachedProcess(
                launch_arguments(home, self.asked),
                launch_environment(self.environ, self.asked),
                log=log,
            )
        finally:
            os.close(log)
        with closing(process):
            try:
                return self._watched(process, began)
            except KeyboardInterrupt:
                process.end(grace_ms=DAEMON_SIGNAL_MS_MAX)
                remove_stale(self.files)
                raise

    def _watched(self, process: DetachedProcess, began: datetime) -> DaemonStatus:
        """Wait until it is ready, and confirm that it stays up."""
        match process.wait_ready(ms_max=self.ready_ms_max):
            case ReadyOutcome.READY:
                pass
            case ReadyOutcome.ENDED:
                process.ends_within(DAEMON_SIGNAL_MS_MAX)  # it may still be writing down why
                process.end(grace_ms=DAEMON_SIGNAL_MS_MAX)
                raise self._failed(began, "it ended during startup")
            case ReadyOutcome.TOO_LONG:
                process.end(grace_ms=DAEMON_SIGNAL_MS_MAX)
                seconds = self.ready_ms_max // 1_000
                raise self._failed(began, f"it was not ready after {seconds} s")
        if process.ends_within(DAEMON_STABLE_MS):
            process.end(grace_ms=0)
            raise self._failed(began, "it ended right after startup")
        for _ in range(_LOOKS_COUNT_MAX):  # it may be busy with what the last process left
            found = probe_runtime(self.files)
            if not isinstance(found, Unresponsive):
                break
        if not isinstance(found, Running) or found.status.pid != process.pid:
            process.end(grace_ms=DAEMON_SIGNAL_MS_MAX)
            raise self._failed(began, "it started but does not respond")
        status = told(self.files, found, fingerprint=self.fingerprint)
        return _saying(status, f"started as process {process.pid}")

    def _failed(self, began: datetime, what: str) -> DaemonError:
        """Return the error of a failed start, recorded unless the runtime did so itself."""
        failures = FailureFiles(self.files)
        remove_stale(self.files)
        for phase in (FailurePhase.STARTUP, FailurePhase.SHUTDOWN):
            known = failures.of(phase)
            if known is not None and known.occurred_at >= began:
                return DaemonError(f"the runtime did not start: {known.summary}")
        hint = SEE_LOGS
        if is_full(self.settings.home):  # then neither the log nor a failure file could say so
            what += f", and the disk of {self.settings.home} is full"
            hint = "make room there, then start it again"
        failures.note(FailurePhase.STARTUP, what, now=SystemClock().now())
        return DaemonError(f"the runtime did not start: {what}", hint=hint)


def stop(home: Path) -> DaemonStatus:
    """Stop the runtime of a home, if there is one; raises if it cannot be stopped."""
    files = RunFiles(home)
    if not files.folder.is_dir():
        return _saying(told(files, NotRunning(()), fingerprint=None), _NOTHING_RAN, ok=True)
    with folder_lock(files.folder):
        message = stop_now(files)
    return _saying(told(files, probe_runtime(files), fingerprint=None), message, ok=True)


def stop_now(files: RunFiles) -> str:
    """Stop it while holding the lock of the run directory, and return the outcome."""
    began = SystemClock().now()
    match probe_runtime(files):
        case NotRunning(left_behind=left):
            copied = said_of_copy(files)
            remove_stale(files)
            FailureFiles(files).clear()
            if copied is not None:
                return copied
            return "removed the files of an earlier runtime" if left else _NOTHING_RAN
        case ForeignProcess(what=what):
            raise DaemonError(what, hint="nothing was changed; stop it, or move it away")
        case Unresponsive(process=process):
            return _end(files, process, began, ask=False)
        case Running(status=status, process=process):
            if process is None:
                raise DaemonError(f"cannot determine which process serves {status.home_dir}")
            return _end(files, process, began, ask=True)


def _end(files: RunFiles, identity: ProcessIdentity, began: datetime, *, ask: bool) -> str:
    process = LivingProcess.find(identity)
    if process is None:
        remove_stale(files)
        return "the runtime ended by itself"
    with closing(process):
        how = _ended(files, process, ask=ask)
    remove_stale(files)
    failures = FailureFiles(files)
    if how is not None:
        failures.note(FailurePhase.SHUTDOWN, how, now=SystemClock().now())
        return how
    failed = failures.of(FailurePhase.SHUTDOWN)
    if failed is not None and failed.occurred_at >= began:
        return f"process {identity.pid} ended, not in good order: {failed.summary}"
    failures.clear()
    return f"process {identity.pid} ended in good order"


def _ended(files: RunFiles, process: LivingProcess, *, ask: bool) -> str | None:
    """End a process; return the problem, if any."""
    pid = process.identity.pid
    if ask and _asked_to_end(files) and process.ends_within(DAEMON_STOP_MS_MAX):
        return None
    process.signal(signal.SIGTERM)
    if process.ends_within(DAEMON_SIGNAL_MS_MAX):
        return f"process {pid} did not end in time and was told to by a signal" if ask else None
    process.signal(signal.SIGKILL)
    if process.ends_within(DAEMON_SIGNAL_MS_MAX):
        return f"process {pid} did not end when asked and was killed"
    raise DaemonError(f"process {pid} does not end, even when killed")


def _asked_to_end(files: RunFiles) -> bool:
    """Request shutdown; False if the runtime could not be reached. A refusal is raised."""
    try:
        return ControlClient(UnixEndpoint(files.socket)).post(SHUTDOWN_PATH, ShutdownAnswer).ok
    except (NoRuntimeError, SilentRuntimeError, ForeignServerError):
        return False


def _saying(status: DaemonStatus, message: str, *, ok: bool | None = None) -> DaemonStatus:
    return replace(status, message=message, ok=status.ok if ok is None else ok)
