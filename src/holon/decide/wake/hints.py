"""Wake hints: trigger, coalesce, park or ignore.

Owns:  the choice between waking now, folding into a parked hint, parking, and ignoring, and the
       commit of each; resolving waits by what arrived. A wait on a work item counts like one of the
       agent's own, also when the agent has more items than a snapshot weighs.
Rule 1: a hint wakes an agent only when it has nothing else to do. It never interrupts.
Rule 2: one hint is parked per source. A repeat adds to its revision; the newest body stands, and a
        repeat without a body keeps the earlier one.
Rule 3: sources never displace each other. When too many are parked, the new one is refused.
Rule 4: a hint never crosses the stopped boundary; its sender gets the way to resume.
"""

from typing import Final, TypeAlias

import msgspec

from holon.decide.agents.lifecycle import admits, refuse_stopped, refuse_unknown
from holon.model.agents import AgentStatus
from holon.model.commits import (
    AgentAdmits,
    Commit,
    Expect,
    MoveWait,
    ParkWakeHint,
    RecordEvent,
    WakeHintAtRevision,
)
from holon.model.errors import NotJsonError, Refusal, RefusalCode
from holon.model.events.reads import AgentSnapshot
from holon.model.limits import WAKE_HINT_BODY_BYTES_MAX, WAKE_HINT_SOURCES_COUNT_MAX
from holon.model.queue import MessageEnvelope
from holon.model.record import Record
from holon.model.values import JsonValue, MessageId, require_json
from holon.model.wake import (
    WaitKind,
    WaitRecord,
    WaitState,
    WakeDisposition,
    WakeHint,
    WakeHintIgnored,
)

_ELIGIBLE: Final = frozenset({AgentStatus.AWAKE_IDLE, AgentStatus.ASLEEP})

# Fields a hint may leave out because an earlier one from the same source has set them.
_CARRIED: Final = (
    "description",
    "source",
    "resource",
    "external_trigger_id",
    "wait_id",
    "correlation_id",
    "causation_id",
)


class TriggerNow(Record, frozen=True, kw_only=True):
    """The agent is free: queue a system tick for the hint."""

    hint: WakeHint


class Coalesce(Record, frozen=True, kw_only=True):
    """The source has a hint parked already; this one replaces it."""

    hint: WakeHint


class Park(Record, frozen=True, kw_only=True):
    """Keep the hint until the agent is free."""

    hint: WakeHint


class IgnoreHint(Record, frozen=True, kw_only=True):
    """Keep nothing. `refusal` names the next step when one exists."""

    reason: str
    refusal: Refusal | None = None


WakeDecision: TypeAlias = TriggerNow | Coalesce | Park | IgnoreHint


def decide_wake(
    status: AgentStatus | None,
    *,
    busy: bool,
    parked: WakeHint | None,
    parked_count: int,
    incoming: WakeHint,
) -> WakeDecision:
    """Decide on `incoming`, given the hint its source has parked, if any."""
    if status is None:
        return IgnoreHint(reason="agent_not_found", refusal=refuse_unknown(incoming.agent_id))
    if not admits(status):
        return IgnoreHint(reason="agent_stopped", refusal=refuse_stopped(incoming.agent_id))
    if (too_large := _refuse_body(incoming.body)) is not None:
        return IgnoreHint(reason="body_too_large", refusal=too_large)
    if parked is not None:
        return Coalesce(hint=_fold(parked, incoming))
    if parked_count >= WAKE_HINT_SOURCES_COUNT_MAX:
        return IgnoreHint(reason="too_many_sources")
    if busy or status not in _ELIGIBLE:
        return Park(hint=incoming)
    return TriggerNow(hint=incoming)


def _refuse_body(body: JsonValue) -> Refusal | None:
    size_bytes = len(msgspec.json.encode(body))
    if size_bytes > WAKE_HINT_BODY_BYTES_MAX:
        return Refusal(
            code=RefusalCode.BODY_TOO_LARGE,
            message=f"the body takes {size_bytes} bytes",
            hint=f"send at most {WAKE_HINT_BODY_BYTES_MAX} bytes, or a pointer to the content",
            field="body",
        )
    try:
        require_json([[[body]]])  # a tick lists its hints three levels down
    except NotJsonError:
        return Refusal(
            code=RefusalCode.BODY_TOO_LARGE,
            message="the body is nested too deeply",
            hint="send flatter content, or a pointer to it",
            field="body",
        )
    return None


def _fold(parked: WakeHint, incoming: WakeHint) -> WakeHint:
    unsaid = {name for name in _CARRIED if getattr(incoming, name) is None}
    if incoming.body is None:
        unsaid |= {"body", "content_type"}
    return msgspec.structs.replace(
        incoming,
        revision=parked.revision + 1,
        created_at=parked.created_at,
        **{name: getattr(parked, name) for name in unsaid},
    )


def take_hint(
    commit_id: str, snapshot: AgentSnapshot, hint: WakeHint
) -> tuple[WakeDisposition, Commit | Refusal]:
    """Decide on a hint for an agent, and return the commit for it."""
    status = snapshot.agent.posture.status
    parked = next((each for each in snapshot.hints if each.source_key == hint.source_key), None)
    decision = decide_wake(
        status,
        busy=status is AgentStatus.AWAKE_RUNNING or bool(snapshot.heads),
        parked=parked,
        parked_count=len(snapshot.hints),
        incoming=hint,
    )
    match decision:
        case TriggerNow(hint=kept):
            return WakeDisposition.TRIGGERED, _parking(commit_id, kept, None)
        case Coalesce(hint=kept):
            return WakeDisposition.COALESCED, _parking(commit_id, kept, parked)
        case Park(hint=kept):
            return WakeDisposition.PARKED, _parking(commit_id, kept, None)
        case IgnoreHint(refusal=refusal) if refusal is not None:
            return WakeDisposition.IGNORED, refusal
        case IgnoreHint(reason=reason):
            return WakeDisposition.IGNORED, _ignoring(commit_id, hint, reason)


def _parking(commit_id: str, hint: WakeHint, parked: WakeHint | None) -> Commit:
    expects: list[Expect] = [AgentAdmits(agent_id=hint.agent_id)]
    if parked is not None:
        unmoved = WakeHintAtRevision(
            agent_id=hint.agent_id, source_key=hint.source_key, revision=parked.revision
        )
        expects.append(unmoved)
    return Commit(
        commit_id=commit_id,
        at=hint.updated_at,
        changes=(ParkWakeHint(hint=hint),),
        expects=tuple(expects),
    )


def _ignoring(commit_id: str, hint: WakeHint, reason: str) -> Commit:
    event = WakeHintIgnored(source_key=hint.source_key, reason=reason)
    return Commit(
        commit_id=commit_id,
        at=hint.updated_at,
        changes=(RecordEvent(agent_id=hint.agent_id, event=event),),
    )


def waits_ended_by(snapshot: AgentSnapshot, message: MessageEnvelope) -> tuple[MoveWait, ...]:
    """Resolve the open waits a message names, or that it was queued to end; each once."""
    return tuple(
        _resolved(wait, by=message.id)
        for wait in snapshot.waits
        if wait.id == message.wait_id or wait.triggered_by == message.id
    )


def answered_operator_waits(snapshot: AgentSnapshot, *, by: MessageId) -> tuple[MoveWait, ...]:
    """Resolve every wait an operator message ends, agent-scoped or on a work item."""
    return tuple(
        _resolved(wait, by=by)
        for wait in snapshot.waits
        if wait.kind is WaitKind.OPERATOR and wait.state is WaitState.ACTIVE
    )


def _resolved(wait: WaitRecord, *, by: MessageId) -> MoveWait:
    return MoveWait(agent_id=wait.agent_id, wait_id=wait.id, state=WaitState.RESOLVED, by=by)
