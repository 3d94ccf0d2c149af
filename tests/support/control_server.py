"""A complete server in the test process: a host, its control plane, and its callers.

Owns:  the general fixture of tests over HTTP: a real home, real sockets on an ephemeral port and in
       a folder of their own, a scripted model, and a caller of each kind.
"""

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import msgspec

from holon.adapters.system.clock import SystemClock
from holon.adapters.system.control_token import FixedToken, TriggerKeyFile
from holon.adapters.system.listening_sockets import bind_tcp, bind_unix
from holon.adapters.system.secrets import SecretRegistry
from holon.http.access import DeliveryRates, IngressLimits
from holon.http.context import HttpContext, RuntimeFacts
from holon.model.values import AgentId
from holon.ports.clock import Clock
from holon.ports.providers import ModelDirectory
from holon.runtime.host import Host
from holon.serve.compose import HostOptions, open_host
from holon.serve.control_server import serve_control_plane
from tests.support.http_caller import Caller
from tests.support.scripted_provider import Script, ScriptedProvider
from tests.support.single_model import SingleModel

TOKEN: Final = "an-operator-token-for-tests"
MAIN: Final = AgentId("main")
_HOST: Final = "127.0.0.1"


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerOptions:
    """What a test may choose. The clock is the server's, not the host's."""

    models: ModelDirectory | None = None
    host: HostOptions = field(default_factory=HostOptions)
    clock: Clock = field(default_factory=SystemClock)
    webhook_secrets: Mapping[str, bytes | None] = field(default_factory=dict)
    github_signers: frozenset[str] = frozenset()
    rates: DeliveryRates = field(default_factory=DeliveryRates)
    default_agent: AgentId = MAIN


@dataclass(frozen=True, kw_only=True, slots=True)
class ControlServer:
    """A server under test and its callers."""

    host: Host
    home: Path
    context: HttpContext
    registry: SecretRegistry  # what must never be written down
    operator: Caller  # over TCP, with the token
    stranger: Caller  # over TCP, without
    local: Caller  # over the unix socket
    shutdown_requested: anyio.Event


@asynccontextmanager
async def control_server(
    home: Path, options: ServerOptions | None = None
) -> AsyncIterator[ControlServer]:
    """Serve a home while the block runs; the default agent exists."""
    chosen, registry = options or ServerOptions(), SecretRegistry()
    models = chosen.models or SingleModel(ScriptedProvider(Script(), SystemClock()))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holon-")))
        tcp = stack.enter_context(bind_tcp(_HOST, 0))
        unix = stack.enter_context(bind_unix(folder / "holon.sock"))
        port = tcp.getsockname()[1]
        settings = msgspec.structs.replace(
            chosen.host,
            redactor=registry,
            trigger_key=TriggerKeyFile(home, registry.learn),
            trigger_base_url=f"http://{_HOST}:{port}",
        )
        async with open_host(home, models, settings) as host:
            await host.provisioner.ensure(chosen.default_agent)
            ending = anyio.Event()
            context = HttpContext(
                host=host,
                clock=chosen.clock,
                facts=_facts(home, folder / "holon.sock", port, chosen.default_agent),
                request_shutdown=ending.set,
                outside=IngressLimits(
                    chosen.clock,
                    webhook_secrets=chosen.webhook_secrets,
                    github_signers=chosen.github_signers,
                    rates=chosen.rates,
                ),
            )
            names = frozenset({f"{_HOST}:{port}".encode(), f"localhost:{port}".encode()})
            serve = partial(serve_control_plane, token=FixedToken(TOKEN), names=names)
            async with anyio.create_task_group() as answering:
                answering.start_soon(serve, context, (tcp, unix))
                stranger = Caller(host=_HOST, port=port)
                yield ControlServer(
                    host=host,
                    home=home,
                    context=context,
                    registry=registry,
                    stranger=stranger,
                    operator=replace(
                        stranger, standing=((b"authorization", b"Bearer " + TOKEN.encode()),)
                    ),
                    local=Caller(socket_path=folder / "holon.sock"),
                    shutdown_requested=ending,
                )
                answering.cancel_scope.cancel()


def _facts(home: Path, socket_path: Path, port: int, default_agent: AgentId) -> RuntimeFacts:
    return RuntimeFacts(
        version="0",
        pid=0,
        home_dir=str(home),
        socket_path=str(socket_path),
        http_addr=f"{_HOST}:{port}",
        base_url=f"http://{_HOST}:{port}",
        started_at=SystemClock().now(),
        config_fingerprint="test",
        default_agent=default_agent,
    )
