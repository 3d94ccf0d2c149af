"""The next message: order of service and interjection.

Owns:  the order of service between bands and the bound on how long a band may be passed over; the
       four conditions for an interjection, and the text the model reads of it.
Rule 1: the most urgent band is served first; within a band, the oldest message.
Rule 2: after CLAIMS_PASSED_OVER_COUNT_MAX picks in a row that passed over the oldest message, that
        message is served whatever its band. So a message with k older ones before it is served
        after at most (k + 1) × (CLAIMS_PASSED_OVER_COUNT_MAX + 1) picks, however many urgent ones
        keep arriving. A pick counts whether or not it starts a turn: otherwise any sender could
        delay the operator's answer to an agent that waits for its operator.
Rule 3: only an operator prompt, of operator origin, trusted as the operator, in the interject band,
        may enter a running turn. Everything else waits for a turn of its own.
Rule 4: every safe point admits the same messages; the point is recorded for readers of the log.
"""

from collections.abc import Sequence
from typing import TypeAlias

from holon.decide.queue.message_view import render_message
from holon.model.events.reads import QueueHead
from holon.model.limits import CLAIMS_PASSED_OVER_COUNT_MAX
from holon.model.queue import MessageEnvelope, MessageKind, OperatorOrigin, Priority, TrustLevel
from holon.model.record import Record
from holon.model.turns.turn import SafePoint
from holon.model.values import MessageId


class Pick(Record, frozen=True, kw_only=True):
    """The message to serve, and how often in a row the oldest one has been passed over by then."""

    message_id: MessageId
    passed_over: int


def pick_next(heads: Sequence[QueueHead], *, passed_over: int) -> Pick | None:
    """Return the next message to serve, or nothing when the queue is empty."""
    if not heads:
        return None
    oldest = min(heads, key=_age)
    if passed_over >= CLAIMS_PASSED_OVER_COUNT_MAX:
        return Pick(message_id=oldest.message_id, passed_over=0)
    first = min(heads, key=_urgency)
    if first is oldest:
        return Pick(message_id=oldest.message_id, passed_over=0)
    return Pick(message_id=first.message_id, passed_over=passed_over + 1)


def _age(head: QueueHead) -> int:
    return head.seq


def _urgency(head: QueueHead) -> tuple[int, int]:
    return head.priority.band, head.seq


class Interject(Record, tag=True, frozen=True, kw_only=True):
    """Let it in; `text` is the message with its provenance lines."""

    text: str
    point: SafePoint


class LeaveQueued(Record, tag=True, frozen=True, kw_only=True):
    """It waits for its turn."""

    reason: str


InterjectionDecision: TypeAlias = Interject | LeaveQueued


def decide_interjection(message: MessageEnvelope, point: SafePoint) -> InterjectionDecision:
    """Decide whether the message may enter here. The first matching rule wins."""
    if message.priority is not Priority.INTERJECT:
        return LeaveQueued(reason="priority_not_interject")
    if message.kind is not MessageKind.OPERATOR_PROMPT:
        return LeaveQueued(reason="not_an_operator_prompt")
    if not isinstance(message.origin, OperatorOrigin):
        return LeaveQueued(reason="origin_not_operator")
    if message.trust is not TrustLevel.TRUSTED_OPERATOR:
        return LeaveQueued(reason="not_trusted_as_operator")
    return Interject(text=render_message(message), point=point)
