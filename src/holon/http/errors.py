"""Maps errors and refusals to HTTP status codes, in one table.

Owns:  the status of each refusal and each error; the reply made of a status, a code and a message.
Rule 1: a refusal before the body was read closes the connection (http/server/connection does it).
Rule 2: an error without a row is a bug: 500 without details, and a line in the log.
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

from holon.http.exchange import Header, Reply
from holon.model.errors import (
    BadInputError,
    ForbiddenTransitionError,
    HolonError,
    RefusalCode,
    RefusedError,
    StoreBrokenError,
    StoreBusyError,
    StoreClosedError,
    StoreFullError,
)
from holon.ports.agents import AgentHomeError, SourceUnreachableError
from holon.ports.memory import MemoryIndexError
from holon.runtime.events.feed import (
    CursorAheadError,
    CursorLostError,
    LogEpochChangedError,
    SubscriberLaggedError,
)
from holon.wire.codec import ErrorBody, encode

INTERNAL_HINT: Final = "the log of the service says more: holon daemon logs"
REFUSALS: Final[Mapping[RefusalCode, HTTPStatus]] = MappingProxyType(
    {
        RefusalCode.AGENT_NOT_FOUND: HTTPStatus.NOT_FOUND,
        RefusalCode.AGENT_STOPPED: HTTPStatus.CONFLICT,
        RefusalCode.AGENT_ARCHIVED: HTTPStatus.NOT_FOUND,
        RefusalCode.AGENT_EXISTS: HTTPStatus.CONFLICT,
        RefusalCode.KIND_ORIGIN_MISMATCH: HTTPStatus.FORBIDDEN,
        RefusalCode.ADMISSION_MISMATCH: HTTPStatus.FORBIDDEN,
        RefusalCode.PUBLIC_CEILING: HTTPStatus.FORBIDDEN,
        RefusalCode.BODY_TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        RefusalCode.METADATA_TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        RefusalCode.LABEL_TOO_LONG: HTTPStatus.BAD_REQUEST,
        RefusalCode.QUEUE_FULL: HTTPStatus.TOO_MANY_REQUESTS,
        RefusalCode.IDEMPOTENCY_CONFLICT: HTTPStatus.CONFLICT,
        RefusalCode.BAD_IDEMPOTENCY_KEY: HTTPStatus.BAD_REQUEST,
        RefusalCode.TRANSITION_FORBIDDEN: HTTPStatus.CONFLICT,
        RefusalCode.TIMER_NOT_FOUND: HTTPStatus.NOT_FOUND,
        RefusalCode.BAD_DURATION: HTTPStatus.BAD_REQUEST,
        RefusalCode.BAD_SCHEDULE: HTTPStatus.BAD_REQUEST,
        RefusalCode.QUOTA_REACHED: HTTPStatus.TOO_MANY_REQUESTS,
        RefusalCode.WORK_ITEM_NOT_FOUND: HTTPStatus.NOT_FOUND,
        RefusalCode.WORK_ITEM_COMPLETED: HTTPStatus.CONFLICT,
        RefusalCode.BAD_OBJECTIVE: HTTPStatus.BAD_REQUEST,
        RefusalCode.TASK_NOT_FOUND: HTTPStatus.NOT_FOUND,
        RefusalCode.NO_CURRENT_RUN: HTTPStatus.CONFLICT,
        RefusalCode.STALE_RUN_ID: HTTPStatus.CONFLICT,
        RefusalCode.BRIEF_NOT_FOUND: HTTPStatus.NOT_FOUND,
        RefusalCode.MESSAGE_NOT_FOUND: HTTPStatus.NOT_FOUND,
        RefusalCode.MEMORY_SOURCE_NOT_FOUND: HTTPStatus.NOT_FOUND,
        RefusalCode.WORKSPACE_NOT_FOUND: HTTPStatus.NOT_FOUND,
        RefusalCode.WORKSPACE_ACTIVE: HTTPStatus.CONFLICT,
        RefusalCode.WORKSPACE_OCCUPIED: HTTPStatus.CONFLICT,
        RefusalCode.AT_AGENT_HOME: HTTPStatus.CONFLICT,
        RefusalCode.WORKSPACE_PATH_INVALID: HTTPStatus.BAD_REQUEST,
        RefusalCode.WORKSPACE_PATH_MISSING: HTTPStatus.BAD_REQUEST,
        RefusalCode.WORKSPACE_PATH_NOT_DIRECTORY: HTTPStatus.BAD_REQUEST,
        RefusalCode.WORKSPACE_PATH_UNREADABLE: HTTPStatus.BAD_REQUEST,
        RefusalCode.WORKSPACE_PATH_PRIVATE: HTTPStatus.BAD_REQUEST,
        RefusalCode.SKILL_NOT_FOUND: HTTPStatus.NOT_FOUND,
        RefusalCode.SKILL_ALREADY_INSTALLED: HTTPStatus.CONFLICT,
        RefusalCode.SKILL_CHANGED: HTTPStatus.CONFLICT,
        RefusalCode.BUSY: HTTPStatus.SERVICE_UNAVAILABLE,
        RefusalCode.SHUTTING_DOWN: HTTPStatus.SERVICE_UNAVAILABLE,
    }
)
_STATUSES: Final[tuple[tuple[type[HolonError], HTTPStatus], ...]] = (
    (BadInputError, HTTPStatus.BAD_REQUEST),
    (ForbiddenTransitionError, HTTPStatus.CONFLICT),
    (CursorAheadError, HTTPStatus.CONFLICT),  # before its parent, as the next one
    (LogEpochChangedError, HTTPStatus.CONFLICT),
    (CursorLostError, HTTPStatus.NOT_FOUND),
    (SubscriberLaggedError, HTTPStatus.CONFLICT),
    (StoreBusyError, HTTPStatus.SERVICE_UNAVAILABLE),  # before its parent
    (StoreFullError, HTTPStatus.INSUFFICIENT_STORAGE),
    (AgentHomeError, HTTPStatus.INSUFFICIENT_STORAGE),
    (SourceUnreachableError, HTTPStatus.BAD_GATEWAY),
    (StoreClosedError, HTTPStatus.SERVICE_UNAVAILABLE),
    (StoreBrokenError, HTTPStatus.SERVICE_UNAVAILABLE),
    (MemoryIndexError, HTTPStatus.SERVICE_UNAVAILABLE),
)


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


_log = logging.getLogger(__name__)


def reply_for(error: HolonError) -> Reply:
    """Return the reply for an error."""
    if isinstance(error, RefusedError):
        return _refusal(error)
    status = status_of(type(error))
    if status is None:
        _log.error("an error that has no status: %s: %s", error.code, error.message)
        return refused_reply(
            HTTPStatus.INTERNAL_SERVER_ERROR,
            "internal_error",
            "internal error in Holon",
            hint=INTERNAL_HINT,
        )
    field = error.field if isinstance(error, BadInputError) else None
    body = ErrorBody(ok=False, error=error.message, code=error.code, hint=error.hint, field=field)
    return error_reply(status, body)


def status_of(error: type[HolonError]) -> HTTPStatus | None:
    """Return the status of an error's class; nothing when a caller never learns of it."""
    return next((status for kind, status in _STATUSES if issubclass(error, kind)), None)


def _refusal(error: RefusedError) -> Reply:
    refusal = error.refusal
    body = ErrorBody(
        ok=False,
        error=refusal.message,
        code=refusal.code.value,
        hint=refusal.hint,
        field=refusal.field,
        resume_path=refusal.resume_path,
    )
    return error_reply(REFUSALS[refusal.code], body)
