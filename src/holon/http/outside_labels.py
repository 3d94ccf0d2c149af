"""What an outsider's request says about itself.

Owns:  which headers are kept as provenance, and the id under which a sender repeats itself.
Rule 1: a label is short printable ASCII or it is left out; it is shown to people and to models as
        the sender's word, and nothing is ever chosen by it.
"""

import re
from typing import Final

from holon.decide.trigger_delivery import BadDeliveryIdError, delivery_key_of, evidence_of
from holon.http.route import Call
from holon.model.limits import TRIGGER_LABEL_CHARS_MAX
from holon.model.trigger import TriggerDelivery
from holon.model.wake import TriggerDeliveryMode

SOURCE: Final = b"x-holon-source"
RESOURCE: Final = b"x-holon-resource"
EVENT: Final = b"x-holon-event"
GITHUB_EVENT: Final = b"x-github-event"
CORRELATION: Final = b"x-correlation-id"
CAUSATION: Final = b"x-causation-id"
CONTENT_TYPE: Final = b"content-type"

# By whom the id is given; the first one that is there counts.
DELIVERY_IDS: Final = (b"idempotency-key", b"webhook-id", b"x-github-delivery")

_PRINTABLE: Final = re.compile(rb"[ -~]+")


def label(call: Call, name: bytes) -> str | None:
    """Return a header as a label, or nothing when it cannot be one."""
    value = call.head.value(name)
    if value is None or _PRINTABLE.fullmatch(value) is None:
        return None
    return value[:TRIGGER_LABEL_CHARS_MAX].decode("ascii").strip() or None


def delivery_id(call: Call) -> str | None:
    """Return the id a sender repeats itself under; raises BadDeliveryIdError."""
    for name in DELIVERY_IDS:
        values = call.head.values(name)
        if len(values) > 1:
            raise BadDeliveryIdError("the delivery id is given twice")
        if values:
            return values[0].decode("latin-1")
    return None


def event_label(call: Call) -> str | None:
    """Return what happened, as the sender names it."""
    return label(call, EVENT) or label(call, GITHUB_EVENT)


def read_delivery(call: Call, *, addressed_mode: TriggerDeliveryMode) -> TriggerDelivery:
    """Return the delivery a request to a trigger's address is; raises BadDeliveryIdError."""
    given = delivery_id(call)
    return TriggerDelivery(
        addressed_mode=addressed_mode,
        delivery_key=None if given is None else delivery_key_of(given),
        body=evidence_of(call.raw),
        content_type=label(call, CONTENT_TYPE),
        source=label(call, SOURCE),
        resource=label(call, RESOURCE),
        correlation_id=label(call, CORRELATION),
        causation_id=label(call, CAUSATION),
    )
