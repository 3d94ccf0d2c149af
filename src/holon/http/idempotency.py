"""The key under which a sender repeats itself safely.

Owns:  reading the Idempotency-Key header.
Rule 1: one key or none; two keys are two opinions.
"""

from typing import Final

from holon.http.route import Call
from holon.model.errors import BadInputError

HEADER: Final = b"idempotency-key"


class BadIdempotencyHeaderError(BadInputError):
    """The header cannot be read."""

    code = "bad_idempotency_key"


def idempotency_key(call: Call) -> str | None:
    """Return the key the request carries, if it carries one."""
    values = call.head.values(HEADER)
    if not values:
        return None
    if len(values) > 1:
        raise BadIdempotencyHeaderError("the Idempotency-Key is given twice")
    try:
        return values[0].decode("ascii")
    except UnicodeDecodeError:
        raise BadIdempotencyHeaderError("an Idempotency-Key is ASCII text") from None
