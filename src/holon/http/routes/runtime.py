"""Runtime routes: root, OpenAPI document, handshake, status and shutdown.

Owns:  the routes `holon daemon` works with, and those that describe the service to a client.
Rule 1: root and handshake tell an unauthenticated caller how to authenticate, and nothing about the
        agents.
Rule 2: shutdown stops no agent. Running work finishes or is cut off, stays durable either way, and
        continues when the next runtime starts.
Rule 3: every status states which protections against an agent's commands hold and which do not.
"""

from functools import cache
from typing import Final

from holon.http.context import HttpContext
from holon.http.exchange import Reply, SocketKind
from holon.http.openapi import openapi_document
from holon.http.route import Access, Call, Route
from holon.model.errors import StoreFullError
from holon.model.values import JsonValue
from holon.model.workspaces import ExecutionPolicy, ExecutionProfile
from holon.projections.runtime_status import (
    RuntimeProblem,
    RuntimeStatus,
    activity_summary,
    turn_failure,
)
from holon.wire.codec import encode
from holon.wire.responses import (
    AuthFacts,
    Front,
    FrontLinks,
    Handshake,
    HandshakeRuntime,
    Protocol,
    ReadinessAnswer,
    ShutdownAnswer,
)

CAPABILITIES: Final = (
    "agents.list",
    "agents.state",
    "agents.events",
    "agents.control",
    "tui.remote",
)


def described(working: tuple[Route[HttpContext], ...]) -> tuple[Route[HttpContext], ...]:
    """Return these rows, and one that describes all of them and itself."""

    @cache
    def written(version: str) -> bytes:
        return encode(openapi_document(routes, version=version))

    async def openapi(context: HttpContext, call: Call) -> Reply:
        del call
        return Reply(status=200, body=written(context.facts.version))

    row: Route[HttpContext] = Route(
        method="GET",
        path="/openapi.json",
        access=Access.READ,
        summary="The OpenAPI document of this API: every route, type and error.",
        answer=openapi,
        returns=dict[str, JsonValue],
        tags=("runtime",),
    )
    routes = (*working, row)
    return routes


async def front(context: HttpContext, call: Call) -> Front:
    """Say what this is, and where to go on."""
    del call
    links = FrontLinks(handshake="/handshake", openapi="/openapi.json")
    return Front(ok=True, name="holon", version=context.facts.version, links=links)


FRONT_ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    Route(
        method="GET",
        path="/",
        access=Access.OPEN,
        summary="The entry point: name, version and links.",
        answer=front,
        returns=Front,
        tags=("runtime",),
    ),
)


async def handshake(context: HttpContext, call: Call) -> Handshake:
    """Introduce the server."""
    local = call.head.peer.socket_kind is SocketKind.UNIX
    facts = context.facts
    return Handshake(
        ok=True,
        protocol=Protocol(name="holon-control", version=1),
        auth=AuthFacts(mode="local" if local else "bearer", required=not local),
        capabilities=CAPABILITIES,
        version=facts.version,
        runtime=HandshakeRuntime(
            default_agent=facts.default_agent,
            workspace_dir=facts.workspace_dir,
            home_dir=facts.home_dir,
            listen=facts.http_addr,
            advertise_url=facts.advertise_url,
        )
        if local
        else None,
    )


HANDSHAKE_ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    Route(
        method="GET",
        path="/handshake",
        access=Access.OPEN,
        summary="The handshake: protocol version and required authentication.",
        answer=handshake,
        returns=Handshake,
        tags=("runtime",),
    ),
)


async def readiness(context: HttpContext, call: Call) -> ReadinessAnswer:
    """Report that requests are accepted, which is the case once recovery is complete."""
    del call
    return ReadinessAnswer(
        ok=True, ready=True, pid=context.facts.pid, version=context.facts.version
    )


async def status(context: HttpContext, call: Call) -> RuntimeStatus:
    """Say who runs here, with what, how busy, what was used, and what went wrong last."""
    del call
    facts, reads = context.facts, context.host.reads
    failed = await reads.events.last_failure()
    problems = context.host.problems
    return RuntimeStatus(
        ok=True,
        healthy=not any(isinstance(each, StoreFullError) for each in problems),
        pid=facts.pid,
        home_dir=facts.home_dir,
        socket_path=facts.socket_path,
        http_addr=facts.http_addr,
        started_at=facts.started_at,
        config_fingerprint=facts.config_fingerprint,
        version=facts.version,
        activity=activity_summary(await reads.agents.runtime_activity()),
        startup_surface=_startup_surface(context),
        runtime_surface=_runtime_surface(),
        budgets=await context.host.governor.runtime_usage(),
        last_failure=None if failed is None else turn_failure(failed),
        problems=tuple(
            RuntimeProblem(code=each.code, message=each.message, hint=each.hint)
            for each in problems
        ),
    )


async def shutdown(context: HttpContext, call: Call) -> ShutdownAnswer:
    """Begin to end, and say so."""
    del call
    context.request_shutdown()
    return ShutdownAnswer(ok=True, message="ending; no agent is stopped by it")


def _startup_surface(context: HttpContext) -> dict[str, str]:
    facts = context.facts
    facts_shown = {"base_url": facts.base_url, "default_agent": str(facts.default_agent)}
    if facts.advertise_url is not None:
        facts_shown["advertise_url"] = facts.advertise_url
    if facts.workspace_dir is not None:
        facts_shown["workspace_dir"] = facts.workspace_dir
    return facts_shown


def _runtime_surface() -> dict[str, str]:
    policy = ExecutionPolicy()
    return {
        "execution_backend": ExecutionProfile().backend,
        "confinement": policy.path_confinement.value,
        "network_confinement": policy.network_confinement.value,
        "secret_isolation": policy.secret_isolation.value,
    }


RUNTIME_CONTROL_ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    Route(
        method="GET",
        path="/control/runtime/readiness",
        access=Access.READ,
        summary="Whether the runtime accepts requests.",
        answer=readiness,
        returns=ReadinessAnswer,
        tags=("runtime",),
    ),
    Route(
        method="GET",
        path="/control/runtime/status",
        access=Access.READ,
        summary="The status of the runtime: identity, configuration, activity and last failure.",
        answer=status,
        returns=RuntimeStatus,
        tags=("runtime",),
    ),
    Route(
        method="POST",
        path="/control/runtime/shutdown",
        access=Access.CONTROL,
        summary="Shut the runtime down cleanly; agents are not stopped.",
        answer=shutdown,
        returns=ShutdownAnswer,
        status=202,
        tags=("runtime",),
    ),
)
