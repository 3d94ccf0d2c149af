"""Reading a whole log, each event at its place."""

from collections.abc import Sequence

from holon.model.events.event import AuditEvent
from holon.projections.events.presented import OperatorEvent, context_at, present


def present_all(events: Sequence[AuditEvent]) -> list[OperatorEvent]:
    """Return how one agent's events, oldest first, read."""
    return [present(each.event, context_at(events, each.event_seq)) for each in events]
