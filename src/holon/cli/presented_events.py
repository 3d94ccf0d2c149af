"""Events that came over the wire, as an operator reads them.

Owns:  envelopes to presentations, for the commands that show events.
Rule 1: every line for people comes from the one presentation of events; nothing is worded here.
Rule 2: an event this version does not know is shown by its name, never dropped and never fatal.
Rule 3: what a brief amounts to is told by what was committed with it, so that is read with it.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from holon.model.brief import BriefRecord
from holon.model.event import AuditEvent, BriefCreated, Event
from holon.model.ids import AgentId
from holon.model.instant import Instant
from holon.projections.operator_event import (
    NOTHING_BEFORE,
    OperatorEvent,
    OperatorVisibility,
    present_all,
)
from holon.projections.operator_event_rows import Category
from holon.projections.preview import one_line

if TYPE_CHECKING:
    from holon.model.json_value import JsonValue

_COMMITTED_WITH_COUNT: Final = 16  # events that may follow a brief in its commit


class Seen(NamedTuple):
    """One event and how it reads."""

    event_seq: int
    ts: str
    agent_id: str
    presented: OperatorEvent
    answers: str | None = None  # the message a brief is the answer to

    def as_json(self) -> "JsonValue":
        """For a script."""
        told = msgspec.to_builtins(self.presented)
        answers = {} if self.answers is None else {"related_message_id": self.answers}
        head = {"event_seq": self.event_seq, "ts": self.ts, "agent_id": self.agent_id}
        return {**head, **answers, **told}


def seen_events(
    envelopes: Sequence["JsonValue"],
    briefs: Iterable["JsonValue"] = (),
    *,
    following: Sequence["JsonValue"] = (),
) -> list[Seen]:
    """Return how events read, oldest first; `following` is known and not shown."""
    known = {str(brief.id): brief for brief in map(_brief, briefs) if brief is not None}
    found = [_event(each) for each in (*envelopes, *following)]
    events = [event for event in found if event is not None]
    readings = iter(present_all(events, briefs=known, context=NOTHING_BEFORE))
    read = [next(readings) if event is not None else None for event in found]
    return [
        Seen(
            int(each["event_seq"]),
            str(each["ts"]),
            str(each["agent_id"]),
            reading or _unknown(str(each["type"])),
            _answered(each),
        )
        for each, reading in zip(envelopes, read, strict=False)
    ]


def _answered(envelope: "JsonValue") -> str | None:
    told = envelope.get("payload")
    found = told.get("related_message_id") if is_brief(envelope) and told else None
    return found if isinstance(found, str) else None


def is_brief(envelope: "JsonValue") -> bool:
    """Whether an event tells of a brief."""
    return bool(envelope.get("type") == BriefCreated.__struct_config__.tag)


def committed_after(event_seq: int) -> dict[str, str | int | None]:
    """Return the query for what was committed together with an event."""
    return {"after_seq": event_seq, "order": "asc", "limit": _COMMITTED_WITH_COUNT}


def _event(envelope: "JsonValue") -> AuditEvent | None:
    try:
        return AuditEvent(
            log_seq=0,  # of no meaning to a reader
            agent_id=AgentId(str(envelope["agent_id"])),
            event_seq=int(envelope["event_seq"]),
            created_at=msgspec.convert(envelope["ts"], Instant),
            event=msgspec.convert(envelope["payload"], Event),
        )
    except msgspec.ValidationError:
        return None


def _brief(brief: "JsonValue") -> BriefRecord | None:
    try:
        return msgspec.convert(brief, BriefRecord)
    except msgspec.ValidationError:
        return None


def _unknown(kind: str) -> OperatorEvent:
    return OperatorEvent(
        visibility=OperatorVisibility.TRACE,
        category=Category.TRACE,
        title="Event",
        summary=one_line(kind),
        source_event_kind=kind,
    )
