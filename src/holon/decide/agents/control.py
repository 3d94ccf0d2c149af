"""Operator control of an agent's lifecycle: stop, pause, resume, abort, model override.

Owns:  whether such a request changes anything, the refusal if not, and the commit it makes.
Rule 1: a request for the posture the agent already has changes nothing and fences no lane.
Rule 2: the running turn is settled in the same commit that fences its lane, so no turn is left
        half done.
Rule 3: another model may answer at once: what waits for a provider, or for a model with a larger
        window, is released.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final

import msgspec

from holon.decide.agents.lifecycle import may_run, refuse_archived, resume_path
from holon.decide.queue.commits import StatusRequest, control_commit
from holon.decide.turns.context_too_long import ended_by_other_models
from holon.model.agents import AgentSignal, AgentStatus, IdentityStatus
from holon.model.commits import (
    Change,
    Commit,
    ReleaseDeferred,
    SetAgentStatus,
    SetModelOverride,
    WaitInState,
)
from holon.model.errors import ForbiddenTransitionError, Refusal, RefusalCode
from holon.model.events.reads import AgentSnapshot
from holon.model.limits import ID_CHARS_MAX
from holon.model.providers.models import ModelRef
from holon.model.record import Record
from holon.model.values import AgentId
from holon.model.wake import WaitState

# The postures in which a request of this name changes nothing.
_ALREADY: Final[Mapping[str, frozenset[AgentStatus]]] = MappingProxyType(
    {
        "stop": frozenset({AgentStatus.STOPPED}),
        "pause": frozenset({AgentStatus.PAUSED}),
        "resume": frozenset({AgentStatus.BOOTING, *filter(may_run, AgentStatus)}),
    }
)
SIGNALS: Final[Mapping[str, AgentSignal]] = MappingProxyType(
    {
        "stop": AgentSignal.STOP_REQUESTED,
        "pause": AgentSignal.PAUSE_REQUESTED,
        "resume": AgentSignal.RESUME_REQUESTED,
        "abort": AgentSignal.RUN_SETTLED,
    }
)


class ControlRequest(Record, frozen=True, kw_only=True):
    """A request to move an agent's posture: `action` is one of those in SIGNALS."""

    agent_id: AgentId
    action: str
    request_id: str
    run_id: str | None = None  # the one turn that is to be ended; any if none is named


def refuse_target(snapshot: AgentSnapshot) -> Refusal | None:
    """Decline a request about an agent that is kept for its history only."""
    if snapshot.agent.identity.status is IdentityStatus.ARCHIVED:
        return refuse_archived(snapshot.agent.identity.agent_id)
    return None


def is_already(snapshot: AgentSnapshot, request: ControlRequest) -> bool:
    """Whether the agent already has the requested posture."""
    return snapshot.agent.posture.status in _ALREADY.get(request.action, ())


def decide_control(
    snapshot: AgentSnapshot, request: ControlRequest, *, settled: Commit | None, now: datetime
) -> Commit | Refusal:
    """Move the posture; `settled` settles the running turn when it is to be cut off."""
    open_turn_id = snapshot.agent.focus.open_turn_id
    if request.action == "abort" and settled is None:
        return _no_run(request.agent_id)
    if request.run_id is not None and open_turn_id != request.run_id:
        return _another_run(request.agent_id, request.run_id)
    # The posture is moved once, by the request itself.
    cut: tuple[Change, ...] = ()
    if settled is not None:
        cut = tuple(each for each in settled.changes if not isinstance(each, SetAgentStatus))
    status_request = StatusRequest(
        request_id=request.request_id,
        action=request.action,
        signals=(SIGNALS[request.action],),
        reason=reason_of(request),
        also=cut,
    )
    try:
        commit = control_commit(snapshot, status_request, now=now)
    except ForbiddenTransitionError as forbidden:
        return _forbidden(request, forbidden)
    expects = () if settled is None else settled.expects
    return msgspec.structs.replace(commit, expects=(*commit.expects, *expects))


def reason_of(request: ControlRequest) -> str:
    """Return the reason recorded for the posture change, or for a turn that was cut off."""
    return f"operator asked to {request.action}"


def model_commit(
    commit_id: str,
    snapshot: AgentSnapshot,
    model: str | None,
    *,
    models: tuple[ModelRef, ...],
    now: datetime,
) -> Commit:
    """Give the agent its own model, or the default back; `models` are those it asks from now on."""
    agent_id = snapshot.agent.identity.agent_id
    ended_waits = ended_by_other_models(snapshot.waits, models)
    return Commit(
        commit_id=commit_id,
        at=now,
        changes=(
            SetModelOverride(agent_id=agent_id, model=model),
            ReleaseDeferred(agent_id=agent_id),
            *ended_waits,
        ),
        expects=tuple(
            WaitInState(wait_id=move.wait_id, state=WaitState.ACTIVE) for move in ended_waits
        ),
    )


def _no_run(agent_id: AgentId) -> Refusal:
    return Refusal(
        code=RefusalCode.NO_CURRENT_RUN,
        message=f"agent {agent_id} is not running a turn",
        hint=(
            f"there is nothing to abort; `holon agent status {agent_id}`"
            f" (GET /agents/{agent_id}/status) shows what it does"
        ),
    )


def _another_run(agent_id: AgentId, run_id: str) -> Refusal:
    return Refusal(
        code=RefusalCode.STALE_RUN_ID,
        message=f"agent {agent_id} no longer runs {run_id[:ID_CHARS_MAX]}",
        hint=(
            f"look at `holon agent status {agent_id}` (GET /agents/{agent_id}/status) for the run"
            " that is under way"
        ),
        field="run_id",
    )


def _forbidden(request: ControlRequest, forbidden: ForbiddenTransitionError) -> Refusal:
    agent_id = request.agent_id
    return Refusal(
        code=RefusalCode.TRANSITION_FORBIDDEN,
        message=f"agent {agent_id} is {forbidden.state}: it cannot {request.action}",
        hint=(
            f"look at `holon agent status {agent_id}` (GET /agents/{agent_id}/status); a stopped"
            f" agent is resumed with `holon agent resume {agent_id}` (POST {resume_path(agent_id)})"
        ),
    )
