"""The faults of a wire server, as data.

Owns:  faults and their parts: another answer, a corrupted answer, or a faulty delivery.
Rule 1: no fault depends on timing luck. A delay is controlled by a clock or a gate: the test opens
        the gate, and can wait until the server has reached it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import anyio


class Gate:
    """A place where the server waits until the test lets it pass."""

    def __init__(self) -> None:
        self.reached = anyio.Event()
        self._opened = anyio.Event()

    def open(self) -> None:
        """Let the server pass."""
        self._opened.set()

    async def passed(self) -> None:
        """Stand before the gate until it is open."""
        self.reached.set()
        await self._opened.wait()


class AnswerFault(StrEnum):
    """Something wrong with the answer itself."""

    # With what is said.
    EMPTY_CONTENT = "empty_content"
    HUGE_TEXT = "huge_text"
    HUGE_ARGUMENTS = "huge_arguments"
    BROKEN_ARGUMENTS = "broken_arguments"
    DUPLICATE_CALL_IDS = "duplicate_call_ids"
    UNKNOWN_TOOL = "unknown_tool"
    STOP_FOR_NO_CALL = "stop_for_no_call"
    NO_USAGE = "no_usage"
    # With how it is written down.
    MALFORMED_JSON = "malformed_json"
    # With a stream alone.
    DUPLICATE_EVENTS = "duplicate_events"
    MISSING_TERMINAL = "missing_terminal"
    DONE_EARLY = "done_early"
    UNKNOWN_EVENTS = "unknown_events"
    CRLF_LINES = "crlf_lines"


@dataclass(frozen=True, kw_only=True, slots=True)
class Refuse:
    """The wire's own error, with this status.

    `code` is the error's name on the wire; without one, the usual name of the status.
    """

    status: int
    code: str | None = None
    message: str = "The server refuses, because it was told to."
    headers: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, str | int] = field(default_factory=dict)  # put into the error object


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorInside:
    """A 200 whose body is the wire's error, or whose stream breaks off with one."""

    code: str | None = None
    message: str = "Something went wrong after all."
    details: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Raw:
    """Any answer at all: a page of HTML, a redirect, bytes that mean nothing."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


Instead: TypeAlias = Refuse | ErrorInside | Raw


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """How one request is treated. Without any field it is answered as it should be.

    Bytes are counted from the first one of the status line for `cut_at_byte`, and from the first
    one of the body for `gate_at_byte`. `reset` ends a cut connection with a reset.
    """

    instead: Instead | None = None
    twists: tuple[AnswerFault, ...] = ()
    head_gate: Gate | None = None
    head_after_ms: int = 0
    body_gate: Gate | None = None
    gate_at_byte: int = 0
    between_ms: int = 0
    chunk_bytes: int | None = None
    cut_at_byte: int | None = None
    reset: bool = False


FINE = Fault()


def rate_limited(*, retry_after_seconds: int | None = None) -> Fault:
    """Too many requests, with or without the moment to come back."""
    headers = {} if retry_after_seconds is None else {"retry-after": str(retry_after_seconds)}
    return Fault(instead=Refuse(status=429, message="Rate limit reached.", headers=headers))


def usage_limited(*, resets_in_seconds: int) -> Fault:
    """The account is used up until a named moment."""
    return Fault(
        instead=Refuse(
            status=429,
            code="usage_limit_reached",
            message="The usage limit has been reached",
            details={"plan_type": "plus", "resets_in_seconds": resets_in_seconds},
        )
    )


def redirected(to: str, *, status: int = 307) -> Fault:
    """Sent elsewhere."""
    return Fault(instead=Raw(status=status, headers={"location": to}))


def html_page(*, status: int = 200) -> Fault:
    """A page for people, from something that stands in front of the model."""
    page = b"<!doctype html><html><body><h1>Bad gateway</h1></body></html>"
    return Fault(instead=Raw(status=status, headers={"content-type": "text/html"}, body=page))


def silent_stream(*, after_bytes: int) -> Fault:
    """A stream that stops moving and stays open."""
    return Fault(body_gate=Gate(), gate_at_byte=after_bytes)
