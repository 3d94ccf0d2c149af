"""Replies that say no.

Owns:  how a status, a code and a sentence become a reply.
Rule 1: a refusal before the body was read ends the connection (the connection sees to it).
"""

from holon.http.exchange import Header, Reply
from holon.wire.codec import encode
from holon.wire.error_body import ErrorBody


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


def error_reply(status: int, body: ErrorBody, *, headers: tuple[Header, ...] = ()) -> Reply:
    """Build the reply that carries this error."""
    return Reply(status=status, body=encode(body), headers=headers)
