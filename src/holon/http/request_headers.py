"""The request headers that handlers read.

Owns:  spelling, form and description of each header; reading the Idempotency-Key, the delivery id
       of a sender, and the headers that are stored as labels.
Rule 1: a label is short printable ASCII, otherwise it is dropped; it is shown to people and models
        as an unverified statement of the sender, and no decision uses it.
Rule 2: a route's row lists every header its handler reads; a test compares them.
Rule 3: the content type and the credentials are not listed: a row's `takes` and `access` state
        them.
Rule 4: at most one idempotency key; two are refused as ambiguous.
"""

import re
from typing import Final

from holon.decide.wake.triggers import BadDeliveryIdError, delivery_key_of, evidence_of
from holon.http.access import HUB_SIGNATURE, SIGNATURE_HEADERS
from holon.http.events.stream import LAST_EVENT_ID
from holon.http.route import Call, RequestHeader
from holon.model.errors import BadInputError
from holon.model.limits import IDEMPOTENCY_KEY_CHARS_MAX, TRIGGER_LABEL_CHARS_MAX
from holon.model.wake import TriggerDelivery, TriggerDeliveryMode

SOURCE: Final = b"x-holon-source"
RESOURCE: Final = b"x-holon-resource"
EVENT: Final = b"x-holon-event"
GITHUB_EVENT: Final = b"x-github-event"
CORRELATION: Final = b"x-correlation-id"
CAUSATION: Final = b"x-causation-id"
CONTENT_TYPE: Final = b"content-type"
IDEMPOTENCY: Final = b"idempotency-key"

# Who gives the id; the first header that is present counts.
DELIVERY_IDS: Final = (IDEMPOTENCY, b"webhook-id", b"x-github-delivery")

_PRINTABLE: Final = re.compile(rb"[ -~]+")
_VISIBLE: Final = "^[!-~]+$"
_DIGITS: Final = "^[0-9]+$"
WEBHOOK_TIMESTAMP: Final = RequestHeader(
    name="Webhook-Timestamp",
    says="The time of a signed request, in seconds since 1970; covered by the signature.",
    pattern=_DIGITS,
)
WEBHOOK_SIGNATURE: Final = RequestHeader(
    name="Webhook-Signature",
    says="`v1,` and HMAC-SHA256 of id, timestamp and body, joined by dots, in base64 or hex.",
)
HOLON_SIGNATURE: Final = RequestHeader(
    name="X-Holon-Signature", says="An alias of Webhook-Signature; send only one of them."
)
SOURCE_NAME: Final = RequestHeader(
    name="X-Holon-Source",
    says="The sender. For a signed webhook it selects the secret; otherwise a label.",
)
RESOURCE_NAME: Final = RequestHeader(name="X-Holon-Resource", says="The subject, as a label.")
EVENT_NAME: Final = RequestHeader(name="X-Holon-Event", says="The event, as a label.")
GITHUB_EVENT_NAME: Final = RequestHeader(
    name="X-GitHub-Event", says="The same, as named by GitHub."
)
HUB_SIGNATURE_256: Final = RequestHeader(
    name="X-Hub-Signature-256",
    says="`sha256=` and HMAC-SHA256 of the body in hex, of a source configured for it.",
)
CORRELATION_ID: Final = RequestHeader(
    name="X-Correlation-Id", says="The correlation id, as a label."
)
CAUSATION_ID: Final = RequestHeader(name="X-Causation-Id", says="The causation id, as a label.")
RESUME_AFTER: Final = RequestHeader(
    name="Last-Event-ID",
    says="The id of the last event received; the stream resumes after it. Overrides `after_seq`."
    " With the prefix `<event_log_epoch>:`, a restored home refuses it.",
    pattern="^([0-9a-z]{8,64}:)?[0-9]+$",
)
CLIENT_NAME: Final = RequestHeader(
    name="User-Agent",
    says="The client; `holon-cli` marks a prompt as one of the command line.",
)
RESUMABLE: Final = (RESUME_AFTER,)
SIGNED: Final = (WEBHOOK_TIMESTAMP, WEBHOOK_SIGNATURE, HOLON_SIGNATURE, HUB_SIGNATURE_256)
TELLS_EVENT: Final = (EVENT_NAME, GITHUB_EVENT_NAME)


class BadIdempotencyHeaderError(BadInputError):
    """The header cannot be read."""

    code = "bad_idempotency_key"


def idempotency_key(call: Call) -> str | None:
    """Return the key the request carries, if it carries one."""
    values = call.head.values(IDEMPOTENCY)
    if not values:
        return None
    if len(values) > 1:
        raise BadIdempotencyHeaderError("the Idempotency-Key is given twice")
    try:
        return values[0].decode("ascii")
    except UnicodeDecodeError:
        raise BadIdempotencyHeaderError("an Idempotency-Key is ASCII text") from None


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


def _id(name: str, says: str) -> RequestHeader:
    return RequestHeader(
        name=name, says=says, pattern=_VISIBLE, chars_max=IDEMPOTENCY_KEY_CHARS_MAX
    )


KEY: Final = _id(
    "Idempotency-Key",
    "The id of a request: repeated requests with the same id take effect once.",
)
WEBHOOK_ID: Final = _id(
    "Webhook-Id", "The same, as named by Standard Webhooks; it is covered by the signature."
)
GITHUB_DELIVERY: Final = _id("X-GitHub-Delivery", "The same, as named by GitHub.")


REPEATABLE: Final = (KEY,)
DELIVERED: Final = (KEY, WEBHOOK_ID, GITHUB_DELIVERY, SOURCE_NAME, CORRELATION_ID, CAUSATION_ID)

# The described headers are those that are read.
assert (KEY.key, RESUME_AFTER.key) == (IDEMPOTENCY, LAST_EVENT_ID)
assert (KEY.key, WEBHOOK_ID.key, GITHUB_DELIVERY.key) == DELIVERY_IDS
assert (WEBHOOK_SIGNATURE.key, HOLON_SIGNATURE.key) == SIGNATURE_HEADERS
assert (SOURCE_NAME.key, RESOURCE_NAME.key, EVENT_NAME.key) == (SOURCE, RESOURCE, EVENT)
assert (GITHUB_EVENT_NAME.key, HUB_SIGNATURE_256.key) == (GITHUB_EVENT, HUB_SIGNATURE)
assert (CORRELATION_ID.key, CAUSATION_ID.key) == (CORRELATION, CAUSATION)
