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
STANDING_HEADERS: Final[tuple[Header, ...]] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class SocketKind(StrEnum):
    """The kind of socket a connection came through."""

    UNIX = "unix"
    TCP = "tcp"


@dataclass(frozen=True, kw_only=True, slots=True)
class Peer:
    """Who is at the other end. `uid` and `pid` are the kernel's word, on a unix socket only."""

    socket_kind: SocketKind
    address: str
    uid: int | None = None
    pid: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestHead:
    """Everything of a request but its body."""

    method: str
    path: str
    query: str
    headers: tuple[Header, ...]
    peer: Peer

    def values(self, name: bytes) -> list[bytes]:
        """Every value of a header, in order."""
        return [value for key, value in self.headers if key == name]

    def value(self, name: bytes) -> bytes | None:
        """The first value of a header, if it is there."""
        return next((value for key, value in self.headers if key == name), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A whole answer."""

    status: int
    body: bytes = b""
    content_type: bytes = JSON_TYPE
    headers: tuple[Header, ...] = ()
    closes: bool = False  # the connection is not to be used again


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamReply:
    """An answer that goes on until its reader or its source ends."""

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
    """More came than the route takes."""

    code = "body_too_large"


class UnexpectedBodyError(BadInputError):
    """Something came where nothing is taken."""

    code = "body_not_taken"
    hint = "send no body, or {} with content-type: application/json"

    def __init__(self) -> None:
        super().__init__("this route takes no body")


class BodyTooSlowError(HolonError):
    """The body did not arrive in time."""

    code = "request_timeout"
    hint = "send the whole body at once"


class BodyUnreadableError(BadInputError):
    """What came in place of the body cannot be read without doubt."""

    code = "unreadable_body"
    hint = "announce the body's length, or send it in well-formed chunks"


class PeerGoneError(HolonError):
    """The peer hung up before the exchange was over."""

    code = "peer_gone"


class BodySource(Protocol):
    """A request's body, not yet read."""

    async def read(self, *, bytes_max: int) -> bytes:
        """Read all of it.

        Raises BodyTooLargeError, BodyTooSlowError, BodyUnreadableError or PeerGoneError.
        """
        ...


Answerer: TypeAlias = Callable[[RequestHead, BodySource], Awaitable[AnyReply]]
