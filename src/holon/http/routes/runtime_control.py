"""The runtime itself: is it well, and please end.

Owns:  the routes `holon daemon` works with.
Rule 1: asking the runtime to end stops no agent. What they do is cut off or finished, kept either
        way, and goes on when the next runtime starts.
Rule 2: what protects from an agent's commands, and what does not, is said in every status.
"""

from typing import Final

from holon.http.plane import Plane
from holon.http.route import Access, Call, Route
from holon.model.errors import StoreFullError
from holon.model.workspace import ExecutionPolicy, ExecutionProfile
from holon.projections.runtime_status import (
    RuntimeProblem,
    RuntimeStatus,
    activity_summary,
    turn_failure,
)
from holon.wire.runtime_responses import ReadinessAnswer, ShutdownAnswer


async def readiness(plane: Plane, call: Call) -> ReadinessAnswer:
    """Say that requests are taken: nobody is answered before recovery is done."""
    del call
    return ReadinessAnswer(ok=True, ready=True, pid=plane.facts.pid, version=plane.facts.version)


async def status(plane: Plane, call: Call) -> RuntimeStatus:
    """Say who runs here, with what, how busy, what was used, and what went wrong last."""
    del call
    facts, reads = plane.facts, plane.host.reads
    failed = await reads.last_failure()
    problems = plane.host.problems
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
        activity=activity_summary(await reads.runtime_activity()),
        startup_surface=_startup_surface(plane),
        runtime_surface=_runtime_surface(),
        budgets=await plane.host.pace.look_at_all(),
        last_failure=None if failed is None else turn_failure(failed),
        problems=tuple(
            RuntimeProblem(code=each.code, message=each.message, hint=each.hint)
            for each in problems
        ),
    )


async def shutdown(plane: Plane, call: Call) -> ShutdownAnswer:
    """Begin to end, and say so."""
    del call
    plane.request_shutdown()
    return ShutdownAnswer(ok=True, message="ending; no agent is stopped by it")


def _startup_surface(plane: Plane) -> dict[str, str]:
    facts = plane.facts
    found = {"base_url": facts.base_url, "default_agent": str(facts.default_agent)}
    if facts.advertise_url is not None:
        found["advertise_url"] = facts.advertise_url
    if facts.workspace_dir is not None:
        found["workspace_dir"] = facts.workspace_dir
    return found


def _runtime_surface() -> dict[str, str]:
    policy = ExecutionPolicy()
    return {
        "execution_backend": ExecutionProfile().backend,
        "confinement": policy.path_confinement.value,
        "network_confinement": policy.network_confinement.value,
        "secret_isolation": policy.secret_isolation.value,
    }


ROUTES: Final[tuple[Route[Plane], ...]] = (
    Route(
        method="GET",
        path="/control/runtime/readiness",
        access=Access.READ,
        summary="Whether the runtime takes requests.",
        answer=readiness,
        returns=ReadinessAnswer,
        tags=("runtime",),
    ),
    Route(
        method="GET",
        path="/control/runtime/status",
        access=Access.READ,
        summary="Who runs here, with what, how busy it is, and what went wrong last.",
        answer=status,
        returns=RuntimeStatus,
        tags=("runtime",),
    ),
    Route(
        method="POST",
        path="/control/runtime/shutdown",
        access=Access.CONTROL,
        summary="End the runtime in good order; no agent is stopped by it.",
        answer=shutdown,
        returns=ShutdownAnswer,
        status=202,
        tags=("runtime",),
    ),
)
