"""Replies that say no.

Owns:  how a status, a code and a sentence become a reply.
Rule 1: a refusal before the body was read ends the connection (the connection sees to it).
"""

from http import HTTPStatus
from typing import Final

from holon.http.exchange import Header, Reply
from holon.wire.codec import encode
from holon.wire.error_body import ErrorBody

INTERNAL_HINT: Final = "the log of the service says more: holon daemon logs"


def refused_reply(
    status: int,
    code: str,
    error: str,
    *,
    hint: str | None = None,
    headers: tuple[Header, ...] = (),
) -> Reply:
    """Build the reply for a request that is not carried out."""
    body = ErrorBody(ok=False, error=error, code=code, hint=hint)
    return error_reply(status, body, headers=headers)


def nothing_here() -> Reply:
    """Build the one reply for whatever is not served: a path, or an address that opens nothing."""
    return refused_reply(
        HTTPStatus.NOT_FOUND,
        "not_found",
        "nothing is served here",
        hint="GET /openapi.json lists what is served",
    )


def error_reply(status: int, body: ErrorBody, *, headers: tuple[Header, ...] = ()) -> Reply:
    """Build the reply that carries this error."""
    return Reply(status=status, body=encode(body), headers=headers)
