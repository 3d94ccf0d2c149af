"""Decodes event envelopes to their presentation.

Owns:  the decoding, for the commands that show events.
Rule 1: every text comes from the presentation the runtime serves; none is written here.
Rule 2: an event whose presentation this version cannot decode is shown by its kind, never dropped
        and never an error.
"""

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from holon.model.events.briefs import OperatorVisibility
from holon.model.text_size import one_line
from holon.projections.events.presented import Category, OperatorEvent

if TYPE_CHECKING:
    from holon.model.values import JsonValue

_PRESENTED = ("visibility", "category", "title", "summary", "body")


class PresentedEvent(NamedTuple):
    """An event with its presentation."""

    event_seq: int
    ts: str
    agent_id: str
    presented: OperatorEvent
    answers: str | None = None  # the message a brief is the answer to

    def as_json(self) -> "JsonValue":
        """Return the event as JSON."""
        told = msgspec.to_builtins(self.presented)
        answers = {} if self.answers is None else {"related_message_id": self.answers}
        head = {"event_seq": self.event_seq, "ts": self.ts, "agent_id": self.agent_id}
        return {**head, **answers, **told}


def presented_event(envelope: "JsonValue") -> PresentedEvent:
    """Decode an envelope."""
    return PresentedEvent(
        int(envelope["event_seq"]),
        str(envelope["ts"]),
        str(envelope["agent_id"]),
        _presented(envelope),
        _answered(envelope),
    )


def _presented(envelope: "JsonValue") -> OperatorEvent:
    kind = str(envelope["type"])
    told = {name: envelope[name] for name in _PRESENTED if name in envelope}
    try:
        return msgspec.convert({**told, "source_event_kind": kind}, OperatorEvent)
    except msgspec.ValidationError:
        return OperatorEvent(
            visibility=OperatorVisibility.TRACE,
            category=Category.TRACE,
            title="Event",
            summary=one_line(kind),
            source_event_kind=kind,
        )


def _answered(envelope: "JsonValue") -> str | None:
    told = envelope.get("payload")
    found = told.get("related_message_id") if told else None
    return found if isinstance(found, str) else None
