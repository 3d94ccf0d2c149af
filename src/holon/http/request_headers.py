"""The headers handlers read, as rows of the table name them.

Owns:  each header's spelling, its form, and what it says, in one place.
Rule 1: a header a handler reads stands in its route's row; a test follows the handlers to compare.
Rule 2: the body's type and the credentials are not here: a row's `takes` and `access` say them.
"""

from typing import Final

from holon.http.access import HUB_SIGNATURE, SIGNATURE_HEADERS
from holon.http.event_stream import LAST_EVENT_ID
from holon.http.idempotency import HEADER
from holon.http.outside_labels import (
    CAUSATION,
    CORRELATION,
    DELIVERY_IDS,
    EVENT,
    GITHUB_EVENT,
    RESOURCE,
    SOURCE,
)
from holon.http.route import RequestHeader
from holon.model.limits import IDEMPOTENCY_KEY_CHARS_MAX

_VISIBLE: Final = "^[!-~]+$"
_DIGITS: Final = "^[0-9]+$"


def _id(name: str, says: str) -> RequestHeader:
    return RequestHeader(
        name=name, says=says, pattern=_VISIBLE, chars_max=IDEMPOTENCY_KEY_CHARS_MAX
    )


KEY: Final = _id(
    "Idempotency-Key",
    "The id under which a sender repeats itself: what came once under it is done once.",
)
WEBHOOK_ID: Final = _id("Webhook-Id", "The same, as Standard Webhooks names it; it is signed.")
GITHUB_DELIVERY: Final = _id("X-GitHub-Delivery", "The same, as GitHub names it.")
WEBHOOK_TIMESTAMP: Final = RequestHeader(
    name="Webhook-Timestamp",
    says="When a signed request was sent, in seconds since 1970; it is signed.",
    pattern=_DIGITS,
)
WEBHOOK_SIGNATURE: Final = RequestHeader(
    name="Webhook-Signature",
    says="`v1,` and HMAC-SHA256 of id, timestamp and body, joined by dots, in base64 or hex.",
)
HOLON_SIGNATURE: Final = RequestHeader(
    name="X-Holon-Signature", says="Another name of Webhook-Signature; one of them, not both."
)
SOURCE_NAME: Final = RequestHeader(
    name="X-Holon-Source",
    says="Who sends. For a signed webhook, whose secret counts; else a label.",
)
RESOURCE_NAME: Final = RequestHeader(name="X-Holon-Resource", says="What it is about, as a label.")
EVENT_NAME: Final = RequestHeader(name="X-Holon-Event", says="What happened, as a label.")
GITHUB_EVENT_NAME: Final = RequestHeader(
    name="X-GitHub-Event", says="The same, as GitHub names it."
)
HUB_SIGNATURE_256: Final = RequestHeader(
    name="X-Hub-Signature-256",
    says="`sha256=` and HMAC-SHA256 of the body in hex, of a source that is set up for it.",
)
CORRELATION_ID: Final = RequestHeader(
    name="X-Correlation-Id", says="What it belongs to, as a label."
)
CAUSATION_ID: Final = RequestHeader(name="X-Causation-Id", says="What led to it, as a label.")
RESUME_AFTER: Final = RequestHeader(
    name="Last-Event-ID",
    says="The id of the last event seen; the stream goes on after it. Counts before `after_seq`."
    " With `event_log_epoch` and a colon before it, a restored home refuses it.",
    pattern="^([0-9a-z]{8,64}:)?[0-9]+$",
)

CLIENT_NAME: Final = RequestHeader(
    name="User-Agent",
    says="Who calls; `holon-cli` marks a prompt as one of the command line.",
)

REPEATABLE: Final = (KEY,)
RESUMABLE: Final = (RESUME_AFTER,)
DELIVERED: Final = (KEY, WEBHOOK_ID, GITHUB_DELIVERY, SOURCE_NAME, CORRELATION_ID, CAUSATION_ID)
SIGNED: Final = (WEBHOOK_TIMESTAMP, WEBHOOK_SIGNATURE, HOLON_SIGNATURE, HUB_SIGNATURE_256)
TELLS_EVENT: Final = (EVENT_NAME, GITHUB_EVENT_NAME)

# What is told is what is read.
assert (KEY.key, RESUME_AFTER.key) == (HEADER, LAST_EVENT_ID)
assert (KEY.key, WEBHOOK_ID.key, GITHUB_DELIVERY.key) == DELIVERY_IDS
assert (WEBHOOK_SIGNATURE.key, HOLON_SIGNATURE.key) == SIGNATURE_HEADERS
assert (SOURCE_NAME.key, RESOURCE_NAME.key, EVENT_NAME.key) == (SOURCE, RESOURCE, EVENT)
assert (GITHUB_EVENT_NAME.key, HUB_SIGNATURE_256.key) == (GITHUB_EVENT, HUB_SIGNATURE)
assert (CORRELATION_ID.key, CAUSATION_ID.key) == (CORRELATION, CAUSATION)
