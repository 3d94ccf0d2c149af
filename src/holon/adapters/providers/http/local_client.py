"""The HTTP client for servers on this machine, and the choice between it and the general client.

A model server on this machine answers in less time than a general client takes to send a request,
so these calls have a small client of their own. Everything else (TLS, proxies) goes through
remote_client.

Owns:  connections to loopback addresses and their reuse; the exchange that routes each call, and
       loads the HTTP library only for calls that need it: it is most of a protocol's import cost.
Rule 1: only addresses that are loopback by themselves are contacted, so nothing leaves the machine
        and no proxy is used.
Rule 2: redirects are not followed. A malformed head, header or chunk ends the exchange; nothing is
        guessed.
Rule 3: a connection is reused only when its response was read to the announced end.
"""

import asyncio
import re
import select
import socket
import zlib
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

import anyio

from holon.adapters.providers.http.exchange import (
    UNSENDABLE,
    ErrorMeaning,
    ExchangeFacts,
    ExchangeTimeouts,
    HttpCall,
    HttpReply,
    exchange_error,
    is_usable_url,
    public_url,
)
from holon.adapters.providers.http.reply import (
    CappedReply,
    ErrorMapping,
    ReplyTimeouts,
    headers_of,
    refusal,
    run_step,
)
from holon.model.limits import SECOND_MS
from holon.model.providers.attempts import (
    ExchangeStage,
    ModelUnavailableError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnreachableError,
    UnreadableResponseError,
)
from holon.ports.clock import Clock
from holon.wire.http_response import RECEIVE_BYTES, NotHttpError, ResponseHead, ResponseParser

if TYPE_CHECKING:
    from holon.adapters.providers.http.remote_client import HttpClientExchange


IDLE_COUNT_MAX: Final = 32
IDLE_S_MAX: Final = 5.0
_LOOPBACK_URL: Final = re.compile(
    r"http://(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?(/[\w.~/:?&=+-]*)?", re.A
)
_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32
_COMPRESSED: Final = frozenset({"gzip", "x-gzip", "deflate"})
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t -~]*")
_CONNECT_TIMEOUT: Final = ErrorMeaning(
    ProviderTimeoutError, ExchangeStage.CONNECT, "connecting took too long"
)
_NO_CONNECTION: Final = ErrorMeaning(
    ProviderUnreachableError, ExchangeStage.CONNECT, "could not connect"
)


@lru_cache(maxsize=64)
def is_loopback(url: str) -> bool:
    """Whether a URL is a plain http URL of this machine."""
    return _LOOPBACK_URL.fullmatch(url) is not None and is_usable_url(url)


class _Connection:
    """One connection. Between two answers nothing reads from it, so unread data stays visible."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def connect(cls, host: str, port: int) -> Self:
        """Connect, or raise OSError."""
        loop = asyncio.get_running_loop()
        error: OSError | None = None
        for family, kind, proto, _, address in await loop.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        ):
            sock = socket.socket(family, kind, proto)
            try:
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await loop.sock_connect(sock, address)
            except OSError as failed:
                sock.close()
                error = failed
            except BaseException:
                sock.close()
                raise
            else:
                return cls(sock)
        raise error or ConnectionRefusedError("no address")

    async def send(self, request: bytes) -> "_Body":
        """Send a request and return its answer once the head has arrived."""
        await self._loop.sock_sendall(self._socket, request)
        parser, buffered = ResponseParser(), b""
        while parser.head is None:
            buffered = parser.feed(await self.receive())
        return _Body(self, parser, parser.head, buffered)

    async def receive(self) -> bytes:
        """Wait for data and return it; empty at the end of the stream."""
        return await self._loop.sock_recv(self._socket, RECEIVE_BYTES)

    def is_fresh(self) -> bool:
        """Whether the socket is silent since the last answer: neither closed nor with data."""
        ready = select.poll()
        ready.register(self._socket.fileno(), select.POLLIN)
        return not ready.poll(0)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class _Body:
    """The body of an answer in chunks, decompressed even though compression was not requested.

    It is decompressed chunk by chunk, so that the reader can stop at its cap.
    """

    def __init__(
        self, connection: _Connection, parser: ResponseParser, head: ResponseHead, buffered: bytes
    ) -> None:
        self.head = head
        self._connection = connection
        self._parser = parser
        self._buffered = buffered
        is_compressed = head.headers.get("content-encoding", "").lower() in _COMPRESSED
        self._decompressor = zlib.decompressobj(_GZIP_OR_ZLIB) if is_compressed else None
        self._is_read = False

    @property
    def keeps_alive(self) -> bool:
        """Whether the body was read to its end and the connection can be reused."""
        return self._is_read and self._parser.keeps_alive

    async def __anext__(self) -> bytes:
        piece = await (self._next() if self._decompressor is None else self._decompressed())
        if not piece:
            self._is_read = True
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Do nothing: the connection is released by the exchange."""

    async def _decompressed(self) -> bytes:
        decompressor = self._decompressor
        assert decompressor is not None
        try:
            while piece := decompressor.unconsumed_tail or await self._next():
                if (
                    decompressor.eof
                ):  # trailing data would be buffered without counting against a cap
                    raise NotHttpError("data after the end of a compressed body")
                if data := decompressor.decompress(piece, RECEIVE_BYTES):
                    return data
        except zlib.error as error:
            raise NotHttpError("a body that cannot be decompressed") from error
        if decompressor.unused_data:
            raise NotHttpError("data after the end of a compressed body")
        return b""

    async def _next(self) -> bytes:
        """Return the next chunk as sent; empty at the end."""
        while not self._buffered and not self._parser.is_over:
            self._buffered = self._parser.feed(await self._connection.receive())
        piece, self._buffered = self._buffered, b""
        return piece


class LocalHttpExchange:
    """HTTP exchanges with this machine. One for the whole runtime; close it at the end."""

    def __init__(self, timeouts: ExchangeTimeouts, *, clock: Clock) -> None:
        self._timeouts = timeouts
        self._clock = clock
        self._idle: dict[str, list[tuple[float, _Connection]]] = defaultdict(list)

    async def aclose(self) -> None:
        """Close every connection."""
        idle, self._idle = self._idle, defaultdict(list)
        for _, connection in (each for connections in idle.values() for each in connections):
            connection.close()

    @asynccontextmanager
    async def open(self, call: HttpCall) -> AsyncIterator[HttpReply]:
        """Send the call and hand out its reply; leaving the block ends the exchange."""
        facts = ExchangeFacts(
            provider=call.provider, model_ref=call.model_ref, url=public_url(call.url)
        )
        timeouts = ReplyTimeouts.since(anyio.current_time(), self._timeouts, _ERROR_MAPPING)
        request = _request(call, facts)
        connection = await self._connection_to(call, facts, timeouts.deadline_s)
        body: _Body | None = None
        try:
            send = partial(connection.send, request)
            body = await run_step(send, facts, timeouts.deadline_s, _ERROR_MAPPING)
            head = body.head
            facts.received_head(head.status, head.headers, bytes_sent=len(call.body))
            reply = CappedReply(head.headers, body, facts, timeouts)
            if not 200 <= head.status < 300:
                wait_ms = self._timeouts.connect_ms
                raise await refusal(call, reply, facts, wait_ms=wait_ms, clock=self._clock)
            yield reply
        finally:
            self._release(call.url, connection, is_ready=body is not None and body.keeps_alive)

    async def _connection_to(
        self, call: HttpCall, facts: ExchangeFacts, deadline_s: float
    ) -> _Connection:
        address = urlsplit(call.url)
        idle = self._idle[address.netloc]
        now_s = anyio.current_time()
        while idle:
            until_s, connection = idle.pop()
            if now_s < until_s and connection.is_fresh():
                return connection
            connection.close()
        connect_s = min(self._timeouts.connect_ms / SECOND_MS, deadline_s - now_s)
        try:
            with anyio.fail_after(connect_s):
                return await _Connection.connect(address.hostname or "", address.port or 80)
        except TimeoutError as error:
            raise exchange_error(error, _CONNECT_TIMEOUT, facts) from None
        except (OSError, OverflowError) as error:
            raise exchange_error(error, _NO_CONNECTION, facts) from None

    def _release(self, url: str, connection: _Connection, *, is_ready: bool) -> None:
        idle = self._idle[urlsplit(url).netloc]
        if is_ready and len(idle) < IDLE_COUNT_MAX:
            idle.append((anyio.current_time() + IDLE_S_MAX, connection))
        else:
            # Close at once, even under cancellation, so that the server stops generating.
            connection.close()


def _provider_error(error: Exception, facts: ExchangeFacts) -> ProviderError:
    """Map an exception after connecting to a ProviderError."""
    in_body = facts.stage is ExchangeStage.RESPONSE_BODY
    stage = ExchangeStage.RESPONSE_BODY if in_body else ExchangeStage.RESPONSE_HEAD
    meaning = ErrorMeaning(ProviderUnreachableError, stage, "the connection broke")
    if isinstance(error, NotHttpError):
        sentence = "the provider sent malformed HTTP"
        meaning = ErrorMeaning(UnreadableResponseError, stage, sentence)
    return exchange_error(error, meaning, facts)


_ERROR_MAPPING: Final = ErrorMapping((OSError, NotHttpError), _provider_error)


def _request(call: HttpCall, facts: ExchangeFacts) -> bytes:
    """Return a call as it is written to the socket, or raise ModelUnavailableError."""
    address = urlsplit(call.url)
    target = f"{address.path or '/'}{'?' if address.query else ''}{address.query}"
    lines = [f"{name}: {value}" for name, value in headers_of(call).items()]
    if not all(_HEADER.fullmatch(line) for line in lines):
        unsendable = ErrorMeaning(ModelUnavailableError, ExchangeStage.REQUEST, UNSENDABLE)
        raise exchange_error(ValueError("a header"), unsendable, facts) from None
    first = [f"POST {target} HTTP/1.1", f"host: {address.netloc}"]
    last = [f"content-length: {len(call.body)}", "", ""]
    return "\r\n".join([*first, *lines, *last]).encode("ascii") + call.body


class RoutingExchange:
    """An HttpExchange for any address. Close it at the end."""

    def __init__(self, timeouts: ExchangeTimeouts, *, clock: Clock) -> None:
        self._timeouts = timeouts
        self._clock = clock
        self._here = LocalHttpExchange(timeouts, clock=clock)
        self._elsewhere: HttpClientExchange | None = None

    def open(self, call: HttpCall) -> AbstractAsyncContextManager[HttpReply]:
        """Send the call and hand out its reply; leaving the block ends the exchange."""
        if is_loopback(call.url):
            return self._here.open(call)
        if self._elsewhere is None:
            from holon.adapters.providers.http.remote_client import HttpClientExchange

            self._elsewhere = HttpClientExchange(self._timeouts, clock=self._clock)
        return self._elsewhere.open(call)

    async def aclose(self) -> None:
        """Close every connection."""
        elsewhere, self._elsewhere = self._elsewhere, None
        await self._here.aclose()
        if elsewhere is not None:
            await elsewhere.aclose()
