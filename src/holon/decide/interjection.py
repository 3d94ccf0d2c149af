"""Whether a queued message may enter the turn that is running.

Owns:  the four conditions, and the text the model will read.
Rule 1: only an operator prompt, of operator origin, trusted as the operator, in the interject band,
        may enter a running turn. Everything else waits for a turn of its own.
Rule 2: every safe point lets in the same messages; the point is kept so that people can see it.
"""

from typing import TypeAlias

from holon.decide.message_view import render_message
from holon.model.message import MessageEnvelope, MessageKind, Priority
from holon.model.provenance import OperatorOrigin, TrustLevel
from holon.model.record import Record
from holon.model.turn import SafePoint


class Interject(Record, tag=True, frozen=True, kw_only=True):
    """Let it in; `text` is the message with its provenance lines."""

    text: str
    point: SafePoint


class LeaveQueued(Record, tag=True, frozen=True, kw_only=True):
    """It waits for its turn."""

    reason: str


InterjectionDecision: TypeAlias = Interject | LeaveQueued


def decide_interjection(message: MessageEnvelope, point: SafePoint) -> InterjectionDecision:
    """Say whether the message may enter here. First matching rule wins."""
    if message.priority is not Priority.INTERJECT:
        return LeaveQueued(reason="priority_not_interject")
    if message.kind is not MessageKind.OPERATOR_PROMPT:
        return LeaveQueued(reason="not_an_operator_prompt")
    if not isinstance(message.origin, OperatorOrigin):
        return LeaveQueued(reason="origin_not_operator")
    if message.trust is not TrustLevel.TRUSTED_OPERATOR:
        return LeaveQueued(reason="not_trusted_as_operator")
    return Interject(text=render_message(message), point=point)
