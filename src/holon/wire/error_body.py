"""The one shape of an error over HTTP.

Owns:  the body every refused request gets, and the event under which a stream ends with one.
Rule 1: `code` is stable and for programs; `error` is a sentence; `hint` says what to do next.
"""

from typing import Final, Literal

from holon.model.record import Record

STREAM_CLOSED: Final = "stream_closed"


class ErrorBody(Record, frozen=True, kw_only=True):
    """Why a request was not carried out. Nothing was changed."""

    ok: Literal[False]
    error: str
    code: str
    hint: str | None = None
    field: str | None = None
    agent_id: str | None = None
    resume_path: str | None = None
