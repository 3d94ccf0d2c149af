"""Typed calls to the control API.

Owns:  one request and its response; the error for a refused request.
Rule 1: a response is bounded and decoded to the type the caller names; unknown fields of a newer
        runtime are ignored where that type allows it.
Rule 2: a refusal raises an error with the runtime's code, message and hint.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Final, TypeVar
from urllib.parse import urlencode

import msgspec

from holon.client.connection import (
    Connection,
    ForeignServerError,
    HttpResponse,
    connection_errors,
    shown,
)
from holon.client.endpoint import Endpoint, TcpEndpoint
from holon.model.errors import DecodeError, HolonError
from holon.model.limits import CLIENT_ANSWER_BYTES_MAX, CLIENT_ANSWER_MS_MAX, SECOND_MS
from holon.model.queue import CLI_CLIENT
from holon.model.values import JsonValue
from holon.wire.codec import ErrorBody, decode, encode

T = TypeVar("T")
Query = Mapping[str, str | int | None]
_OK: Final = range(200, 300)


class ControlError(HolonError):
    """The runtime refused the request."""

    code = "refused"

    def __init__(self, status: int, body: ErrorBody) -> None:
        super().__init__(body.error, hint=body.hint)
        self.status = status
        self.body = body


class ControlClient:
    """Calls one runtime, with a connection per call, so nothing has to be closed."""

    def __init__(
        self, endpoint: Endpoint, *, timeout_s: float = CLIENT_ANSWER_MS_MAX / SECOND_MS
    ) -> None:
        self.endpoint = endpoint
        self.timeout_s = timeout_s
        self.server_pid: int | None = None  # of the last call, over a socket file

    def call(
        self,
        method: str,
        path: str,
        returns: type[T],
        *,
        body: object = None,
        query: Query | None = None,
        idempotency_key: str | None = None,
    ) -> T:
        """Send a request and return the response; raises ControlError if it was refused."""
        extra = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        data = None if body is None else encode(body)
        return self._decoded(self._sent(method, _target(path, query), data, extra), returns)

    def get(self, path: str, returns: type[T], *, query: Query | None = None) -> T:
        """Send a GET request and decode the response."""
        return self.call("GET", path, returns, query=query)

    def get_json(self, path: str, *, query: Query | None = None) -> JsonValue:
        """Send a GET request and return the decoded JSON."""
        content = self._sent("GET", _target(path, query), None, {})
        try:
            return msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise ForeignServerError(f"{shown(self.endpoint)} did not respond with JSON") from None

    def post(
        self,
        path: str,
        returns: type[T],
        body: object = None,
        *,
        idempotency_key: str | None = None,
    ) -> T:
        """Send a POST request and decode the response."""
        return self.call("POST", path, returns, body=body, idempotency_key=idempotency_key)

    @contextmanager
    def open_stream(
        self, path: str, query: Query | None, *, timeout_s: float
    ) -> Iterator[HttpResponse]:
        """Open a streaming response while the block runs."""
        connection = Connection(self.endpoint, timeout_s=timeout_s)
        with closing(connection), connection_errors(self.endpoint):
            accept = {"Accept": "text/event-stream"}
            answer = connection.send("GET", self._prefixed(_target(path, query)), headers=accept)
            if answer.status not in _OK:
                raise _refusal(answer.status, answer.read(CLIENT_ANSWER_BYTES_MAX))
            yield answer

    def _sent(
        self, method: str, target: str, data: bytes | None, extra: Mapping[str, str]
    ) -> bytes:
        connection = Connection(self.endpoint, timeout_s=self.timeout_s)
        headers = {"Connection": "close", "User-Agent": CLI_CLIENT, **extra}
        if data is not None:
            headers["Content-Type"] = "application/json"
        with closing(connection), connection_errors(self.endpoint):
            try:
                answer = connection.send(
                    method, self._prefixed(target), headers=headers, body=data or b""
                )
                content = answer.read(CLIENT_ANSWER_BYTES_MAX)
            finally:
                self.server_pid = connection.server_pid
        if answer.status not in _OK:
            raise _refusal(answer.status, content)
        return content

    def _decoded(self, content: bytes, returns: type[T]) -> T:
        try:
            return decode(content, returns)
        except DecodeError as error:
            raise ForeignServerError(
                f"{shown(self.endpoint)} sent an unexpected response: {error.message}",
                hint="it may be a runtime of another version",
            ) from None

    def _prefixed(self, target: str) -> str:
        return self.endpoint.prefix + target if isinstance(self.endpoint, TcpEndpoint) else target


def _target(path: str, query: Query | None) -> str:
    given = {name: value for name, value in (query or {}).items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _refusal(status: int, content: bytes) -> ControlError:
    """Return the error body of the runtime, as far as it can be decoded."""
    try:
        found = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        found = {}
    known = {name: _text(found.get(name)) for name in ErrorBody.__struct_fields__ if name != "ok"}
    error, code = known.pop("error"), known.pop("code")
    body = ErrorBody(
        ok=False,
        error=error or f"the runtime answered with status {status}",
        code=code or "bad_answer",
        **known,
    )
    return ControlError(status, body)


def _text(raw: msgspec.Raw | None) -> str | None:
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=str)
    except (msgspec.DecodeError, UnicodeError):
        return None
