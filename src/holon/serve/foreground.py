"""`holon serve`: a host with its control plane, for as long as the process lives.

Owns:  the order in which a service comes up and goes down.
Rule 1: the home is looked at first, then the port is taken, so that what is in the way fails before
        anything runs; nobody is answered before recovery is done.
Rule 2: the files under `run` are touched only by the owner of the home (its lock is held by then);
        those that say who serves are written once it is ready and removed when it ends well.
Rule 3: going down is a drain: no agent is stopped by it. What runs gets a moment to finish and is
        otherwise cut; it goes on from its last durable step when the service comes back. Who asks
        a second time gets the end at once.
Rule 4: a start or an end that failed is written down, until one goes well.
"""

import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from holon import __version__
from holon.adapters.system.clock import SystemClock
from holon.adapters.system.control_token import GivenToken, TokenFile
from holon.adapters.system.detached_process import tell_ready
from holon.adapters.system.failure_files import FailureFiles
from holon.adapters.system.home_checks import require_safe_home
from holon.adapters.system.listening_sockets import bind_tcp, bind_unix, prepare_run_folder
from holon.adapters.system.private_file import make_home
from holon.adapters.system.process_limits import become_private, raise_open_files
from holon.adapters.system.run_files import RunFiles, RuntimeRecord, own_identity
from holon.config.load_settings import Settings
from holon.http.outside_door import OutsideDoor
from holon.http.plane import Plane, RuntimeFacts
from holon.model.limits import SECOND_MS, SHUTDOWN_GRACE_MS_MAX
from holon.runtime.agent_birth import ensure_agent
from holon.runtime.host import Host
from holon.serve.access_plan import AccessPlan, plan_access
from holon.serve.configured_host import ConfiguredHost, open_configured_host
from holon.serve.control_server import serve_control_plane
from holon.serve.effective_config import ServeRequest, effective_fingerprint
from holon.serve.lifecycle_failures import LifecycleFailures


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceSigns:
    """How a service tells that it is up."""

    announce: Callable[[RuntimeFacts], None]
    ready_handle: int | None = None  # of whoever started us and waits for a word


async def serve(
    settings: Settings, environ: Mapping[str, str], asked: ServeRequest, *, signs: ServiceSigns
) -> None:
    """Serve until asked to end; raises before anything runs when something is in the way."""
    plan = plan_access(asked.access)
    umask = become_private()
    require_safe_home(settings.home)
    make_home(settings.home)
    files = RunFiles(settings.home)
    prepare_run_folder(files.folder)
    with LifecycleFailures(FailureFiles(files), SystemClock()) as failures:
        raise_open_files()
        service = _Service(settings, asked, plan, files=files, failures=failures, signs=signs)
        with bind_tcp(plan.host, plan.port) as tcp:
            async with anyio.create_task_group() as beside:
                await beside.start(_end_on_signal, service.ending)
                async with open_configured_host(
                    settings, environ, workspace_root=asked.workspace_dir, umask=umask
                ) as served:
                    await service.run(served, tcp)
                beside.cancel_scope.cancel()


class _Service:
    """One life of a service."""

    def __init__(
        self,
        settings: Settings,
        asked: ServeRequest,
        plan: AccessPlan,
        *,
        files: RunFiles,
        failures: LifecycleFailures,
        signs: ServiceSigns,
    ) -> None:
        self._settings = settings
        self._asked = asked
        self._plan = plan
        self._files = files
        self._failures = failures
        self._signs = signs
        self._token = _token(asked, files.token)
        self.ending = anyio.Event()

    async def run(self, served: ConfiguredHost, tcp: socket.socket) -> None:
        """Answer until asked to end, then let what runs come to rest."""
        await ensure_agent(served.host, self._asked.default_agent, SystemClock())
        facts = self._facts(port=tcp.getsockname()[1])
        with _listening_on(self._files.socket) as local, tcp:
            async with anyio.create_task_group() as answering:
                answering.start_soon(self._answer, served, facts, (tcp, local))
                self._files.write_record(_record_of(facts))
                self._failures.started()
                if self._signs.ready_handle is not None:
                    tell_ready(self._signs.ready_handle)
                self._signs.announce(facts)
        await _drain(served.host)
        self._files.remove_record(pid=facts.pid)

    async def _answer(
        self, served: ConfiguredHost, facts: RuntimeFacts, sockets: tuple[socket.socket, ...]
    ) -> None:
        plane = Plane(
            host=served.host,
            clock=SystemClock(),
            facts=facts,
            request_shutdown=self.ending.set,
            outside=OutsideDoor(SystemClock(), webhook_secrets=served.webhook_secrets),
        )
        names = self._plan.host_names(sockets[0].getsockname()[1])
        await serve_control_plane(
            plane, sockets, token=self._token, names=names, ending=self.ending
        )

    def _facts(self, *, port: int) -> RuntimeFacts:
        plan, home = self._plan, self._settings.home
        return RuntimeFacts(
            version=__version__,
            pid=os.getpid(),
            home_dir=str(home),
            socket_path=str(self._files.socket),
            http_addr=f"{plan.host}:{port}",
            base_url=plan.advertise or f"http://{plan.host}:{port}",
            started_at=SystemClock().now(),
            config_fingerprint=effective_fingerprint(self._settings, self._asked),
            default_agent=self._asked.default_agent,
            workspace_dir=self._asked.workspace_dir,
            advertise_url=plan.advertise,
        )


async def _drain(host: Host) -> None:
    """Let what runs finish, for a moment."""
    with anyio.move_on_after(SHUTDOWN_GRACE_MS_MAX / SECOND_MS):
        await host.drain()


async def _end_on_signal(
    ending: anyio.Event, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for number in signals:
            if ending.is_set():
                os._exit(128 + number)  # asked twice: what is durable is durable
            ending.set()


@contextmanager
def _listening_on(path: Path) -> Iterator[socket.socket]:
    """Listen on a socket file, and take it away afterwards if it is still this one."""
    with bind_unix(path) as bound:
        made = path.stat(follow_symlinks=False).st_ino
        try:
            yield bound
        finally:
            if path.exists() and path.stat(follow_symlinks=False).st_ino == made:
                path.unlink(missing_ok=True)


def _token(asked: ServeRequest, own: Path) -> GivenToken | TokenFile:
    if asked.token is not None:
        return GivenToken(asked.token)
    file = TokenFile(asked.token_file or own)
    if asked.token_file is None:
        file.make_if_missing()
    file.text()  # refuse one that others can read before anything runs
    return file


def _record_of(facts: RuntimeFacts) -> RuntimeRecord:
    identity = own_identity()
    return RuntimeRecord(
        pid=identity.pid,
        start_ticks=identity.start_ticks,
        boot_id=identity.boot_id,
        home_dir=facts.home_dir,
        socket_path=facts.socket_path,
        http_addr=facts.http_addr,
        config_fingerprint=facts.config_fingerprint,
        version=facts.version,
        started_at=facts.started_at,
    )
