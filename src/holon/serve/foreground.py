"""`holon serve`: one service process, from startup to drained shutdown.

Owns:  the tuning of the process for a long life, on asyncio's own event loop (docs/decisions/0015);
       deferred loading of modules; the order of startup and shutdown.
Rule 1: the thread switch interval is short, so that the thread that made a commit durable does not
        wait long for a busy event loop.
Rule 2: an upgrade replaces files under a running service. A module imported after it would be of
        another version, so all modules are loaded early.
Rule 3: that happens on a separate thread, well after the service is ready, and delays no request.
Rule 4: the home is locked first and held until the end, then the port is bound, so that a conflict
        fails before anything runs; no request is answered before recovery is complete.
Rule 5: the files under `run` are written only while the home's lock is held. Those that identify
        the service are written once it is ready and removed at a clean shutdown.
Rule 6: shutdown is a drain that stops no agent. Running work gets a grace period and is then cut
        off; it continues from its last durable step at the next start. A second request to end ends
        at once.
Rule 7: the files that identify the service are checked while it runs: a removed record is written
        again. Without its socket it cannot be reached or ended, so it ends with an error.
Rule 8: a failed start or shutdown is recorded until one succeeds.
"""

import gc
import importlib
import os
import pkgutil
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskStatus

import holon
from holon import __version__
from holon.adapters.sqlite.store import LockedHome, hold_home
from holon.adapters.system.clock import SystemClock
from holon.adapters.system.detached_process import tell_ready
from holon.adapters.system.failure_files import FailureFiles
from holon.adapters.system.home_checks import home_errors, require_safe_home
from holon.adapters.system.home_identity import FileIdentity, HomeIdentity, place_of
from holon.adapters.system.journal import JournalFile
from holon.adapters.system.listening_sockets import (
    bind_tcp,
    bind_unix,
    prepare_run_folder,
)
from holon.adapters.system.private_file import make_home
from holon.adapters.system.processes import (
    become_private,
    give_back_memory,
    keep_one_heap,
    raise_open_files,
)
from holon.adapters.system.run_files import (
    RunFiles,
    RuntimeRecord,
    UnsafePathError,
    own_identity,
)
from holon.adapters.system.secrets import SecretRegistry
from holon.config.load_settings import Settings
from holon.http.access import IngressLimits
from holon.http.context import HttpContext, RuntimeFacts
from holon.model.errors import HomeLostError, StoreUnwritableError
from holon.model.limits import (
    HOME_WATCH_MS,
    MEMORY_RELEASE_MS,
    MINUTE_MS,
    SECOND_MS,
    SHUTDOWN_GRACE_MS_MAX,
)
from holon.model.queue import SignatureForm
from holon.ports.clock import Clock
from holon.ports.journal import Journal, LogLevel
from holon.runtime.host import Host
from holon.serve.access_plan import AccessPlan, plan_access
from holon.serve.compose import Hooks
from holon.serve.configured_host import ConfiguredHost, open_configured_host
from holon.serve.control_server import serve_control_plane
from holon.serve.effective_config import (
    ServeRequest,
    effective_fingerprint,
    recorded_options,
    service_token,
)
from holon.serve.service_journal import LifecycleFailures, service_journal, sum_up, tell_refusals
from holon.serve.service_tracer import service_tracer

SWITCH_S: Final = 0.001  # a fifth of what Python gives a thread before another has its turn
# Between two searches for garbage. Cancelled tasks leave cycles: with 50,000 a busy service held
# 130,000 objects that were garbage, and its memory kept rising by such peaks.
ALLOCATIONS_COUNT: Final = 10_000
LOAD_AFTER_MS: Final = MINUTE_MS
_OTHERS: Final = (
    *("holon.cli", "holon.client", "holon.daemon", "tests.support", "holon.__main__"),
    "holon.adapters.telemetry",  # needs packages that may be missing; is loaded at once or never
)


def run_service(serve: Callable[[], Awaitable[None]]) -> None:
    """Run the service on an event loop tuned for a long life."""
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(ALLOCATIONS_COUNT)
    gc.freeze()  # what was loaded stays: no collection needs to look at it again
    anyio.run(serve)


async def load_the_rest(clock: Clock, journal: Journal) -> None:
    """Wait until the service has settled, then import the remaining modules."""
    await clock.sleep_for(LOAD_AFTER_MS)
    broken = await anyio.to_thread.run_sync(load_whole_program, abandon_on_cancel=True)
    for name, why in broken.items():
        journal.note("not_loaded", f"{name} cannot be loaded: {why}", level=LogLevel.WARNING)


def load_whole_program() -> dict[str, str]:
    """Import every module a service may need; return the failures by module."""
    broken: dict[str, str] = {}
    for name in names_of_a_service():
        try:
            importlib.import_module(name)
        except ImportError as error:
            broken[name] = str(error)
    return broken


def names_of_a_service() -> Iterator[str]:
    """Yield the name of every module a service may need."""
    for found in pkgutil.walk_packages(holon.__path__, f"{holon.__name__}.", onerror=_no_matter):
        if not found.name.startswith(_OTHERS):
            yield found.name


def _no_matter(name: str) -> None:
    """Ignore a package that cannot be imported here: the import itself reports it."""
    del name


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadinessSignals:
    """How a service reports that it is ready."""

    announce: Callable[[RuntimeFacts], None]
    ready_handle: int | None = None  # a pipe of the parent process that waits for readiness


async def serve(
    settings: Settings,
    environ: Mapping[str, str],
    asked: ServeRequest,
    *,
    signs: ReadinessSignals,
    hooks: Hooks | None = None,
) -> None:
    """Serve until shutdown; raises before anything runs if a precondition fails."""
    plan = plan_access(asked.access)
    umask = become_private()
    require_safe_home(settings.home)
    make_home(settings.home)
    files = RunFiles(settings.home)
    with home_errors(settings.home):
        prepare_run_folder(files.folder)
    hooks = hooks or Hooks()
    secrets, level = hooks.secrets, asked.log_level or settings.log_level
    with (
        _holding(settings.home) as held,  # nothing is written down in a home of another process
        service_journal(files, level, secrets) as journal,
        LifecycleFailures(
            FailureFiles(files), SystemClock(), journal=journal, redactor=secrets
        ) as failures,
    ):
        raise_open_files()
        keep_one_heap()
        told = _ServiceReporting(journal=journal, secrets=secrets, failures=failures, signs=signs)
        service = _Service(settings, asked, plan, files=files, told=told)
        with bind_tcp(plan.host, plan.port) as tcp:
            async with (
                anyio.create_task_group() as beside,
                service_tracer(environ, journal, secrets) as tracer,
            ):
                await beside.start(_end_on_signal, service.ending)
                async with open_configured_host(
                    settings,
                    environ,
                    workspace_root=asked.workspace_dir,
                    umask=umask,
                    hooks=msgspec.structs.replace(hooks, journal=journal, tracer=tracer),
                    trigger_base_url=plan.base_url(tcp.getsockname()[1]),
                    held=held,
                ) as served:
                    await service.run(served, tcp)
                beside.cancel_scope.cancel()


@dataclass(frozen=True, kw_only=True, slots=True)
class _ServiceReporting:
    """Where a service reports: journal, failure files and readiness."""

    journal: JournalFile
    secrets: SecretRegistry
    failures: LifecycleFailures
    signs: ReadinessSignals


class _Service:
    """One service, from startup to shutdown."""

    def __init__(
        self,
        settings: Settings,
        asked: ServeRequest,
        plan: AccessPlan,
        *,
        files: RunFiles,
        told: _ServiceReporting,
    ) -> None:
        self._settings = settings
        self._asked = asked
        self._plan = plan
        self._files = files
        self._told = told
        with home_errors(settings.home):
            self._token = service_token(asked, files.token, told.secrets)
        self.ending = anyio.Event()
        self._is_lost = False

    async def run(self, served: ConfiguredHost, tcp: socket.socket) -> None:
        """Answer requests until shutdown, then drain."""
        await served.host.provisioner.ensure(self._asked.default_agent)
        facts = self._facts(port=tcp.getsockname()[1])
        record = _record_of(facts, self._asked, served.host.home_id)
        try:
            await self._answer_and_drain(served, facts, record, tcp)
        finally:  # also when the store failed: a service that ended is not taken for a living one
            self._files.remove_record(pid=facts.pid)

    async def _answer_and_drain(
        self,
        served: ConfiguredHost,
        facts: RuntimeFacts,
        record: RuntimeRecord,
        tcp: socket.socket,
    ) -> None:
        with _listening_on(self._files.socket) as local, tcp:
            made = place_of(self._files.socket, follow=False)
            async with anyio.create_task_group() as answering:
                answering.start_soon(self._answer, served, facts, (tcp, local))
                answering.start_soon(self._keep_found, record, made)
                answering.start_soon(self._give_back_memory)
                with home_errors(self._settings.home):
                    self._files.write_record(record)
                self._tell_ready(facts)
        self._told.journal.note("draining", "was asked to end; what runs gets a moment")
        if not await _drain(served.host):
            self._told.journal.note(
                "drain_cut", "what still ran is cut off and goes on at the next start"
            )
        if self._is_lost:
            raise HomeLostError(f"{self._files.socket} was removed while a service listened there")

    async def _give_back_memory(self) -> None:
        """Periodically return freed memory to the system, until shutdown; takes milliseconds."""
        while not self.ending.is_set():
            with anyio.move_on_after(MEMORY_RELEASE_MS / SECOND_MS):
                await self.ending.wait()
            await anyio.to_thread.run_sync(give_back_memory)

    async def _keep_found(self, record: RuntimeRecord, made: FileIdentity | None) -> None:
        """Until the end begins, see that commands find this service; begin the end if they cannot.

        A home that is gone as a whole is noticed by its store.
        """
        files = self._files
        while not self.ending.is_set():
            with anyio.move_on_after(HOME_WATCH_MS / SECOND_MS):
                await self.ending.wait()
            with suppress(OSError, UnsafePathError):
                if not self.ending.is_set() and files.folder.is_dir() and not files.record.exists():
                    files.write_record(record)
                if files.home.is_dir() and place_of(files.socket, follow=False) != made:
                    self._is_lost = not self.ending.is_set()
                    self.ending.set()

    def _tell_ready(self, facts: RuntimeFacts) -> None:
        told = self._told
        told.failures.started()
        told.journal.note(
            "ready",
            f"serves {facts.home_dir} at http://{facts.http_addr} and {facts.socket_path}",
            version=facts.version,
            config_fingerprint=facts.config_fingerprint,
        )
        if told.signs.ready_handle is not None:
            tell_ready(told.signs.ready_handle)
        told.signs.announce(facts)

    async def _answer(
        self, served: ConfiguredHost, facts: RuntimeFacts, sockets: tuple[socket.socket, ...]
    ) -> None:
        context = HttpContext(
            host=served.host,
            clock=SystemClock(),
            facts=facts,
            request_shutdown=self.ending.set,
            outside=IngressLimits(
                SystemClock(),
                webhook_secrets=served.webhook_secrets,
                github_signers=[
                    source
                    for source, setting in self._settings.webhooks.items()
                    if setting.signature is SignatureForm.GITHUB
                ],
            ),
        )
        names = self._plan.host_names(sockets[0].getsockname()[1])
        async with anyio.create_task_group() as beside:
            beside.start_soon(sum_up, self._told.journal, context.traffic, context.clock)
            beside.start_soon(load_the_rest, context.clock, self._told.journal)
            await serve_control_plane(
                context, sockets, token=self._token, names=names, ending=self.ending
            )
            beside.cancel_scope.cancel()
        tell_refusals(self._told.journal, context.traffic)

    def _facts(self, *, port: int) -> RuntimeFacts:
        plan, home = self._plan, self._settings.home
        return RuntimeFacts(
            version=__version__,
            pid=os.getpid(),
            home_dir=str(home),
            socket_path=str(self._files.socket),
            http_addr=plan.address(port),
            base_url=plan.base_url(port),
            started_at=SystemClock().now(),
            config_fingerprint=effective_fingerprint(self._settings, self._asked),
            default_agent=self._asked.default_agent,
            workspace_dir=self._asked.workspace_dir,
            advertise_url=plan.advertise,
        )


@contextmanager
def _holding(home: Path) -> Iterator[LockedHome | None]:
    """Have a home from here on; raises HomeInUseError when another process has it.

    Yields nothing where no lock can be taken: why is written down when the store is opened.
    """
    held = None
    with suppress(StoreUnwritableError):
        held = hold_home(home)
    try:
        yield held
    finally:
        if held is not None:
            held.release()


async def _drain(host: Host) -> bool:
    """Give running work a grace period; False if it did not finish."""
    with anyio.move_on_after(SHUTDOWN_GRACE_MS_MAX / SECOND_MS) as moment:
        await host.drain()
    return not moment.cancelled_caught


async def _end_on_signal(
    ending: anyio.Event, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    with anyio.open_signal_receiver(*_asking_to_end()) as signals:
        task_status.started()
        async for number in signals:
            if ending.is_set():
                os._exit(128 + number)  # asked twice: what is durable is durable
            ending.set()


def _asking_to_end() -> tuple[signal.Signals, ...]:
    """The shutdown signals; SIGHUP is one too, unless nohup ignores it."""
    polite = (signal.SIGTERM, signal.SIGINT)
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return polite if ignored else (*polite, signal.SIGHUP)


@contextmanager
def _listening_on(path: Path) -> Iterator[socket.socket]:
    """Listen on a socket file, and remove it afterwards if it is still the same file."""
    with bind_unix(path) as bound:
        made = path.stat(follow_symlinks=False).st_ino
        try:
            yield bound
        finally:
            with suppress(OSError):  # on a disk that is read-only it stays, and is stale
                if path.stat(follow_symlinks=False).st_ino == made:
                    path.unlink(missing_ok=True)


def _record_of(facts: RuntimeFacts, asked: ServeRequest, home_id: str) -> RuntimeRecord:
    identity, place = own_identity(), place_of(Path(facts.home_dir))
    return RuntimeRecord(
        pid=identity.pid,
        start_ticks=identity.start_ticks,
        boot_id=identity.boot_id,
        home_dir=facts.home_dir,
        home=None
        if place is None
        else HomeIdentity(id=home_id, path=facts.home_dir, device=place.device, inode=place.inode),
        socket_path=facts.socket_path,
        http_addr=facts.http_addr,
        config_fingerprint=facts.config_fingerprint,
        version=facts.version,
        started_at=facts.started_at,
        options=msgspec.to_builtins(recorded_options(asked)),
    )
