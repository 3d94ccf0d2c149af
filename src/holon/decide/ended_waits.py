"""Which waits a message ends, whoever owns them.

Owns:  resolving waits by what came. A wait on a work item counts like one of the agent's own, also
       when there are more items than a snapshot weighs.
"""

from holon.model.commit import MoveWait
from holon.model.ids import MessageId
from holon.model.message import MessageEnvelope
from holon.model.snapshot import AgentSnapshot
from holon.model.wait import WaitKind, WaitRecord, WaitState


def waits_ended_by(snapshot: AgentSnapshot, message: MessageEnvelope) -> tuple[MoveWait, ...]:
    """Resolve the open waits a message names, or that it was queued to end; each once."""
    return tuple(
        _resolved(wait, by=message.id)
        for wait in snapshot.waits
        if wait.id == message.wait_id or wait.triggered_by == message.id
    )


def answered_operator_waits(snapshot: AgentSnapshot, *, by: MessageId) -> tuple[MoveWait, ...]:
    """Resolve every wait the operator's word ends, agent-scoped or on a work item."""
    return tuple(
        _resolved(wait, by=by)
        for wait in snapshot.waits
        if wait.kind is WaitKind.OPERATOR and wait.state is WaitState.ACTIVE
    )


def _resolved(wait: WaitRecord, *, by: MessageId) -> MoveWait:
    return MoveWait(agent_id=wait.agent_id, wait_id=wait.id, state=WaitState.RESOLVED, by=by)
