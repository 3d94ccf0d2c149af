"""The values of one HTTP exchange: peer, request head, body source and reply.

Owns:  what passes between the connection (bytes) and the application (meaning).
Rule 1: header names are lower case, values are the received bytes; nothing here trusts them.
Rule 2: a reply is whole, or a stream whose chunks are produced on demand, or pending: awaited while
        the peer stays connected.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

import anyio

from holon.model.errors import BadInputError, HolonError

Header: TypeAlias = tuple[bytes, bytes]

JSON_TYPE: Final = b"application/json"
EVENT_STREAM_TYPE: Final = b"text/event-stream"

# What every reply carries: nothing of ours is cached, framed by others or guessed at.
DEFAULT_HEADERS: Final[tuple[Header, ...]] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class SocketKind(StrEnum):
    """The kind of socket a connection was accepted on."""

    UNIX = "unix"
    TCP = "tcp"


@dataclass(frozen=True, kw_only=True, slots=True)
class Peer:
    """The remote end. `uid` and `pid` come from the kernel, on a Unix socket only."""

    socket_kind: SocketKind
    address: str
    uid: int | None = None
    pid: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestHead:
    """A request without its body."""

    method: str
    path: str
    query: str
    headers: tuple[Header, ...]
    peer: Peer

    def values(self, name: bytes) -> list[bytes]:
        """Every value of a header, in order."""
        return [value for key, value in self.headers if key == name]

    def value(self, name: bytes) -> bytes | None:
        """The first value of a header, or None."""
        return next((value for key, value in self.headers if key == name), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A complete response."""

    status: int
    body: bytes = b""
    content_type: bytes = JSON_TYPE
    headers: tuple[Header, ...] = ()
    closes: bool = False  # the connection must be closed afterwards


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamReply:
    """A response that lasts until its reader or its source ends."""

    chunks: AsyncGenerator[bytes, None]
    content_type: bytes = EVENT_STREAM_TYPE
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PendingReply:
    """An answer that is waited for. `made` waits inside the scope it is given and nowhere else.

    The scope is cancelled when the service ends: the reply is then what can be said at once. A peer
    that hangs up cancels `made` itself.
    """

    made: Callable[[anyio.CancelScope], Awaitable[Reply]]


AnyReply: TypeAlias = Reply | StreamReply | PendingReply


class BodyTooLargeError(HolonError):
    """The body exceeds the limit of its route."""

    code = "body_too_large"


class UnexpectedBodyError(BadInputError):
    """A route without a body received one."""

    code = "body_not_taken"
    hint = "send no body, or {} with content-type: application/json"

    def __init__(self) -> None:
        super().__init__("this route accepts no body")


class BodyTooSlowError(HolonError):
    """The body did not arrive in time."""

    code = "request_timeout"
    hint = "send the whole body at once"


class BodyUnreadableError(BadInputError):
    """The framing of the body is ambiguous or malformed."""

    code = "unreadable_body"
    hint = "send Content-Length, or well-formed chunks"


class PeerGoneError(HolonError):
    """The peer disconnected before the exchange was complete."""

    code = "peer_gone"


class BodySource(Protocol):
    """A request's body, not yet read."""

    async def read(self, *, bytes_max: int) -> bytes:
        """Read all of it.

        Raises BodyTooLargeError, BodyTooSlowError, BodyUnreadableError or PeerGoneError.
        """
        ...


Answerer: TypeAlias = Callable[[RequestHead, BodySource], Awaitable[AnyReply]]
