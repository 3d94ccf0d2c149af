"""Turns whose conversation exceeds every model's window: the wait they leave.

Owns:  the wait such a turn leaves on its work item, and what ends that wait.
Rule 1: a turn that fails because the conversation is too long would fail again. Its work item is
        not offered any more; it waits for the operator, and the failure brief says so.
Rule 2: besides the operator, other models and a shorter conversation end the wait: the models are
        recorded with it, and a compaction by a later turn ends it.
Rule 3: one item waits for each such turn: the one in focus, or else the one the turn was offered.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from holon.decide.work.projection import is_runnable
from holon.model.commits import Change, MoveWait
from holon.model.events.briefs import FailureArtifact
from holon.model.events.reads import AgentSnapshot, WeighedItem
from holon.model.providers.attempts import ContextTooLongError
from holon.model.providers.models import ModelRef
from holon.model.queue import MessageEnvelope
from holon.model.turns.compaction import RememberContext
from holon.model.turns.turn import TerminalKind
from holon.model.values import WaitId
from holon.model.wake import WaitKind, WaitRecord, WaitState

SOURCE: Final = ContextTooLongError.code  # the source of every such wait
_KINDS: Final = frozenset({SOURCE, TerminalKind.BASELINE_OVER_BUDGET.value})


def is_too_long(failure: FailureArtifact | None) -> bool:
    """Whether a turn failed because its conversation did not fit."""
    return failure is not None and failure.kind in _KINDS


def item_to_hold(snapshot: AgentSnapshot, message: MessageEnvelope) -> WeighedItem | None:
    """Return the item that would be offered again right after a turn on this message, if any."""
    current = snapshot.current
    if current is not None and is_runnable(current.item, current.waits):
        return current
    offered = (each for each in snapshot.queued if each.item.id == message.work_item_id)
    return next((each for each in offered if is_runnable(each.item, each.waits)), None)


def too_long_wait(
    weighed: WeighedItem, wait_id: WaitId, models: Sequence[ModelRef], *, now: datetime
) -> WaitRecord:
    """Return the wait that keeps the item from being offered."""
    return WaitRecord(
        id=wait_id,
        agent_id=weighed.item.agent_id,
        kind=WaitKind.OPERATOR,
        waiting_for=_waiting_for(models),
        created_at=now,
        deadline_at=None,
        work_item_id=weighed.item.id,
        source_id=SOURCE,
    )


def waiting_text(weighed: WeighedItem) -> str:
    """The sentence of the failure brief about the item."""
    return (
        f"Work item {weighed.item.id} waits for you: it is not taken up again by itself. Send the"
        " agent a message, change the item, or give the agent a model with a larger context"
        " window."
    )


def ended_by_compaction(
    snapshot: AgentSnapshot, changes: Sequence[Change], failure: FailureArtifact | None
) -> tuple[MoveWait, ...]:
    """End the waits of an agent whose conversation became shorter in a turn that did fit."""
    shorter = any(isinstance(change, RememberContext) for change in changes)
    if not shorter or is_too_long(failure):
        return ()
    return tuple(_resolved(wait, by="conversation_compacted") for wait in _open(snapshot.waits))


def ended_by_other_models(
    waits: Sequence[WaitRecord], models: Sequence[ModelRef]
) -> tuple[MoveWait, ...]:
    """End the waits that were opened with other models than these."""
    now_waiting_for = _waiting_for(models)
    return tuple(
        _resolved(wait, by="model_changed")
        for wait in _open(waits)
        if wait.waiting_for != now_waiting_for
    )


def _open(waits: Sequence[WaitRecord]) -> tuple[WaitRecord, ...]:
    return tuple(
        wait for wait in waits if wait.source_id == SOURCE and wait.state is WaitState.ACTIVE
    )


def _waiting_for(models: Sequence[ModelRef]) -> str:
    """A name for the models, so that the wait itself shows whether they have changed."""
    named = ", ".join(str(model) for model in models)
    return f"the operator, a shorter conversation, or other models than {named}"


def _resolved(wait: WaitRecord, *, by: str) -> MoveWait:
    return MoveWait(agent_id=wait.agent_id, wait_id=wait.id, state=WaitState.RESOLVED, by=by)
