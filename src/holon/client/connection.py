"""A connection of the command line to a runtime: sends a request, reads the response.

Owns:  HTTP/1.1 as far as a client needs it, over a Unix socket or TCP; the check of the server's
       identity. `http.client` takes longer to import than most commands take to run.
Rule 1: over a Unix socket nothing is sent before the kernel has confirmed that the server runs as
        our user: a request may contain operator data.
Rule 2: every failure to get a response is one of three errors: no runtime, a server that is not a
        runtime, or a runtime that does not respond.
Rule 3: over a Unix socket a read-only request has a short timeout, so that a hanging service is
        detected quickly. A request that changes something may take longer.
Rule 4: a truncated response is never taken for a complete one.
"""

import os
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from holon.adapters.system.listening_sockets import socket_address
from holon.client.endpoint import (
    START_ONE,
    BadEndpointError,
    Endpoint,
    NoRuntimeError,
    TcpEndpoint,
    UnixEndpoint,
)
from holon.model.errors import HolonError
from holon.model.limits import CLIENT_READ_MS_MAX, SECOND_MS
from holon.wire.http_response import RECEIVE_BYTES, NotHttpError, ResponseParser

_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid
_NOBODY: Final = (ConnectionRefusedError, FileNotFoundError)


class ForeignServerError(HolonError):
    """The server is not a Holon runtime, or belongs to another user."""

    code = "foreign_server"
    hint = "see who it is; nothing was changed"


class SilentRuntimeError(HolonError):
    """The runtime did not respond in time."""

    code = "silent_runtime"
    hint = "look at: holon daemon status, holon daemon logs"


class HttpResponse:
    """A response; its body is read on demand."""

    def __init__(self, status: int, pieces: Iterator[bytes]) -> None:
        self.status = status
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        """Yield the body as it arrives."""
        return self._pieces

    def read(self, bytes_max: int) -> bytes:
        """Return the body, up to a bound."""
        content = bytearray()
        for piece in self._pieces:
            content += piece
            if len(content) >= bytes_max:
                break
        return bytes(content[:bytes_max])


class Connection:
    """A connection for one request."""

    def __init__(self, endpoint: Endpoint, *, timeout_s: float) -> None:
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self.server_pid: int | None = None  # over a socket file

    def send(
        self, method: str, target: str, *, headers: Mapping[str, str], body: bytes = b""
    ) -> HttpResponse:
        """Send a request and return the response, with its body unread."""
        lines = {"Host": _host_name(self._endpoint), **_credentials(self._endpoint), **headers}
        if body or method not in ("GET", "HEAD"):
            lines["Content-Length"] = str(len(body))
        request = _request(f"{method} {target} HTTP/1.1", lines) + body
        self._socket = self._connected()
        with suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(request)  # declined before all of it was read: why is to be had
        self._socket.settimeout(self._patience_s(method))
        parser, came = ResponseParser(), b""
        while parser.head is None:
            heard = self._socket.recv(RECEIVE_BYTES)
            if not heard:
                raise NotHttpError("it closed the connection without a response")
            came = parser.feed(heard)
        self._socket.settimeout(self._timeout_s)
        return HttpResponse(parser.head.status, _pieces(self._socket, parser, came))

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()

    def _patience_s(self, method: str) -> float:
        """Return the timeout of the response head."""
        if method != "GET" or not isinstance(self._endpoint, UnixEndpoint):
            return self._timeout_s
        return min(self._timeout_s, CLIENT_READ_MS_MAX / SECOND_MS)

    def _connected(self) -> socket.socket:
        match self._endpoint:
            case UnixEndpoint(path=path):
                made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                made.settimeout(self._timeout_s)
                self._socket = made
                with socket_address(str(path)) as address:
                    made.connect(address)
                packed = made.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
                self.server_pid, uid, _ = _CREDENTIALS.unpack(packed)
                if uid != os.getuid():
                    raise ForeignServerError(f"user {uid} listens on {path}")
                return made
            case TcpEndpoint(host=host, port=port, secure=secure):
                made = socket.create_connection((host, port), timeout=self._timeout_s)
                self._socket = made
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return _wrapped(made, host) if secure else made


def _pieces(made: socket.socket, parser: ResponseParser, came: bytes) -> Iterator[bytes]:
    """Yield the body; its beginning may have arrived with the head."""
    while True:
        if came:
            yield came
        if parser.is_over:
            return
        came = parser.feed(made.recv(RECEIVE_BYTES))


def _wrapped(made: socket.socket, host: str) -> socket.socket:
    import ssl  # loading it takes longer than a call

    return ssl.create_default_context().wrap_socket(made, server_hostname=host)


def _request(first: str, lines: Mapping[str, str]) -> bytes:
    """Return the head of a request; values with line breaks are refused."""
    text = "\r\n".join([first, *(f"{name}: {value}" for name, value in lines.items())])
    parts = [first, *lines.values()]
    if first.count(" ") != 2 or not all(part.isascii() and part.isprintable() for part in parts):
        raise BadEndpointError("invalid character in a path, token or header")
    return f"{text}\r\n\r\n".encode("ascii")


def _host_name(endpoint: Endpoint) -> str:
    if isinstance(endpoint, UnixEndpoint):
        return "localhost"
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return host if endpoint.port == (443 if endpoint.secure else 80) else f"{host}:{endpoint.port}"


def _credentials(endpoint: Endpoint) -> dict[str, str]:
    if isinstance(endpoint, UnixEndpoint) or endpoint.token is None:
        return {}
    return {"Authorization": f"Bearer {endpoint.token}"}


@contextmanager
def connection_errors(endpoint: Endpoint) -> Iterator[None]:
    """Translate socket errors to client errors."""
    where = shown(endpoint)
    try:
        yield
    except _NOBODY:
        raise NoRuntimeError(f"no runtime responds on {where}", hint=START_ONE) from None
    except TimeoutError:
        raise SilentRuntimeError(f"the service on {where} does not respond") from None
    except NotHttpError as error:
        raise ForeignServerError(f"the server on {where} is not a Holon runtime: {error}") from None
    except OSError as error:
        why = error.strerror or str(error)
        raise SilentRuntimeError(f"the connection to {where} broke: {why}") from None


def shown(endpoint: Endpoint) -> str:
    """Return the address as text."""
    return str(endpoint.path) if isinstance(endpoint, UnixEndpoint) else endpoint.shown()
