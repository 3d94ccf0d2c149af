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
    broken_exchange,
    is_usable_url,
    public_url,
)
from holon.adapters.providers.http.reply import (
    CappedReply,
    ErrorMapping,
    ReplyTimeouts,
    headers_of,
    in_time,
    refusal,
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


KEPT_COUNT_MAX: Final = 32
KEPT_S_MAX: Final = 5.0
_HERE: Final = re.compile(
    r"http://(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?(/[\w.~/:?&=+-]*)?", re.A
)
_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32
_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t -~]*")


@lru_cache(maxsize=64)
def is_here(url: str) -> bool:
    """Whether an address is one this client is for."""
    return _HERE.fullmatch(url) is not None and is_usable_url(url)


class _Connection:
    """One connection. Nothing reads from it between two answers, so the kernel knows what came."""

    def __init__(self, made: socket.socket) -> None:
        self._socket = made
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def to(cls, host: str, port: int) -> Self:
        """Connect, or raise OSError."""
        loop = asyncio.get_running_loop()
        error: OSError | None = None
        for family, kind, proto, _, address in await loop.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        ):
            made = socket.socket(family, kind, proto)
            try:
                made.setblocking(False)
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await loop.sock_connect(made, address)
            except OSError as failed:
                made.close()
                error = failed
            except BaseException:
                made.close()
                raise
            else:
                return cls(made)
        raise error or ConnectionRefusedError("no address")

    async def answered(self, request: bytes) -> "_Body":
        """Send a request and return its answer once the head is there."""
        await self._loop.sock_sendall(self._socket, request)
        parser, came = ResponseParser(), b""
        while parser.head is None:
            came = parser.feed(await self.received())
        return _Body(self, parser, parser.head, came)

    async def received(self) -> bytes:
        """Return what is there, once something is; nothing at the end."""
        return await self._loop.sock_recv(self._socket, RECEIVE_BYTES)

    def is_fresh(self) -> bool:
        """Whether nothing was heard since the last answer: neither an end nor anything else."""
        ready = select.poll()
        ready.register(self._socket.fileno(), select.POLLIN)
        return not ready.poll(0)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


class _Body:
    """The body of an answer in pieces, unpacked although nobody asked for it to be packed.

    It is unpacked piece by piece, so that its reader can stop at its cap.
    """

    def __init__(
        self, connection: _Connection, parser: ResponseParser, head: ResponseHead, came: bytes
    ) -> None:
        self.head = head
        self._connection = connection
        self._parser = parser
        self._came = came
        packed = head.headers.get("content-encoding", "").lower() in _PACKED
        self._unpacking = zlib.decompressobj(_GZIP_OR_ZLIB) if packed else None
        self._is_read = False

    @property
    def keeps_alive(self) -> bool:
        """Whether it was read to its end, with the connection ready for the next request."""
        return self._is_read and self._parser.keeps_alive

    async def __anext__(self) -> bytes:
        piece = await (self._next() if self._unpacking is None else self._unpacked())
        if not piece:
            self._is_read = True
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Nothing is held that would have to be let go."""

    async def _unpacked(self) -> bytes:
        unpacking = self._unpacking
        assert unpacking is not None
        try:
            while piece := unpacking.unconsumed_tail or await self._next():
                if unpacking.eof:  # it would be kept for nobody, and no cap would count it
                    raise NotHttpError("something behind the end of a packed body")
                if unpacked := unpacking.decompress(piece, RECEIVE_BYTES):
                    return unpacked
        except zlib.error as error:
            raise NotHttpError("a body that cannot be unpacked") from error
        if unpacking.unused_data:
            raise NotHttpError("something behind the end of a packed body")
        return b""

    async def _next(self) -> bytes:
        """Return the next piece as it was sent; nothing at the end."""
        while not self._came and not self._parser.is_over:
            self._came = self._parser.feed(await self._connection.received())
        piece, self._came = self._came, b""
        return piece


class LocalHttpExchange:
    """Speaks HTTP with this machine. One for the whole runtime; close it at the end."""

    def __init__(self, timeouts: ExchangeTimeouts, *, clock: Clock) -> None:
        self._timeouts = timeouts
        self._clock = clock
        self._kept: dict[str, list[tuple[float, _Connection]]] = defaultdict(list)

    async def aclose(self) -> None:
        """Close every connection."""
        kept, self._kept = self._kept, defaultdict(list)
        for _, connection in (each for connections in kept.values() for each in connections):
            connection.close()

    @asynccontextmanager
    async def open(self, call: HttpCall) -> AsyncIterator[HttpReply]:
        """Send the call and hand out its reply; leaving the block ends the exchange."""
        facts = ExchangeFacts(
            provider=call.provider, model_ref=call.model_ref, url=public_url(call.url)
        )
        patience = ReplyTimeouts.since(anyio.current_time(), self._timeouts, _JUDGE)
        request = _request(call, facts)
        connection = await self._connected(call, facts, patience.deadline_s)
        body: _Body | None = None
        try:
            send = partial(connection.answered, request)
            body = await in_time(send, facts, patience.deadline_s, _JUDGE)
            head = body.head
            facts.received_head(head.status, head.headers, bytes_sent=len(call.body))
            reply = CappedReply(head.headers, body, facts, patience)
            if not 200 <= head.status < 300:
                wait_ms = self._timeouts.connect_ms
                raise await refusal(call, reply, facts, wait_ms=wait_ms, clock=self._clock)
            yield reply
        finally:
            self._let_go(call.url, connection, is_ready=body is not None and body.keeps_alive)

    async def _connected(
        self, call: HttpCall, facts: ExchangeFacts, deadline_s: float
    ) -> _Connection:
        place = urlsplit(call.url)
        kept = self._kept[place.netloc]
        now_s = anyio.current_time()
        while kept:
            until_s, connection = kept.pop()
            if now_s < until_s and connection.is_fresh():
                return connection
            connection.close()
        connect_s = min(self._timeouts.connect_ms / SECOND_MS, deadline_s - now_s)
        try:
            with anyio.fail_after(connect_s):
                return await _Connection.to(place.hostname or "", place.port or 80)
        except TimeoutError as error:
            raise broken_exchange(error, _TOO_SLOW, facts) from None
        except (OSError, OverflowError) as error:
            raise broken_exchange(error, _NO_CONNECTION, facts) from None

    def _let_go(self, url: str, connection: _Connection, *, is_ready: bool) -> None:
        kept = self._kept[urlsplit(url).netloc]
        if is_ready and len(kept) < KEPT_COUNT_MAX:
            kept.append((anyio.current_time() + KEPT_S_MAX, connection))
        else:
            # At once: who leaves early may be cancelled, and no server should go on for nobody.
            connection.close()


_TOO_SLOW: Final = ErrorMeaning(
    ProviderTimeoutError, ExchangeStage.CONNECT, "connecting took too long"
)
_NO_CONNECTION: Final = ErrorMeaning(
    ProviderUnreachableError, ExchangeStage.CONNECT, "could not connect"
)


def _told(error: Exception, facts: ExchangeFacts) -> ProviderError:
    """Return the ProviderError for what broke an exchange after it was connected."""
    in_body = facts.stage is ExchangeStage.RESPONSE_BODY
    stage = ExchangeStage.RESPONSE_BODY if in_body else ExchangeStage.RESPONSE_HEAD
    meaning = ErrorMeaning(ProviderUnreachableError, stage, "the connection broke")
    if isinstance(error, NotHttpError):
        said = "the provider does not speak proper HTTP"
        meaning = ErrorMeaning(UnreadableResponseError, stage, said)
    return broken_exchange(error, meaning, facts)


_JUDGE: Final = ErrorMapping((OSError, NotHttpError), _told)


def _request(call: HttpCall, facts: ExchangeFacts) -> bytes:
    """Return a call as it is written to the socket, or raise ModelUnavailableError."""
    place = urlsplit(call.url)
    target = f"{place.path or '/'}{'?' if place.query else ''}{place.query}"
    lines = [f"{name}: {value}" for name, value in headers_of(call).items()]
    if not all(_HEADER.fullmatch(line) for line in lines):
        unsendable = ErrorMeaning(ModelUnavailableError, ExchangeStage.REQUEST, UNSENDABLE)
        raise broken_exchange(ValueError("a header"), unsendable, facts) from None
    first = [f"POST {target} HTTP/1.1", f"host: {place.netloc}"]
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
        if is_here(call.url):
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
