"""One HTTP/1.1 connection over h11: bytes to requests, replies to bytes, with deadlines.

Owns:  the HTTP/1.1 exchange on one stream and its deadlines; the fair queue in which
       unauthenticated peers wait before their bytes are parsed.
Rule 1: the fair queue admits a few waiters per pass of the event loop, so that the operator's
        socket, agents and timers wait for a few unauthenticated peers at most, whatever they send.
Rule 2: each peer has its own queue, served round-robin: a peer with many connections or many
        requests delays another peer by one turn at most.
Rule 3: a cancelled waiter leaves its queue.
Rule 4: no byte of a body is read, and no `100 Continue` sent, before the application asks for it.
Rule 5: a body that was not read to its end closes the connection. A bounded part of it is discarded
        first, so that a peer that is still sending receives the reply instead of a reset.
Rule 6: a peer that is slow to ask, to send or to receive is cut off. One cancel scope around the
        connection holds the current deadline, since a scope per wait costs more than most of what
        happens in between.
Rule 7: a stream ended by the service terminates its chunked body: its reader can tell it from a
        broken connection.
Rule 8: input that cannot be parsed unambiguously is refused and the connection closed.
Rule 9: a TCP peer passes the fair queue before each step that parses its input, and again with each
        request, until the request carries valid credentials.
"""

import math
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import replace
from http import HTTPStatus
from typing import Final, TypeAlias

import anyio
import h11
from anyio.abc import ByteStream
from anyio.lowlevel import checkpoint

from holon.http.access import has_body
from holon.http.errors import refused_reply
from holon.http.exchange import (
    DEFAULT_HEADERS,
    Answerer,
    AnyReply,
    BodyTooLargeError,
    BodyTooSlowError,
    BodyUnreadableError,
    Header,
    Peer,
    PeerGoneError,
    PendingReply,
    Reply,
    RequestHead,
    SocketKind,
    StreamReply,
)
from holon.model.limits import (
    HTTP_BODY_MS_MAX,
    HTTP_FAIR_QUEUE_ADMITTED_COUNT,
    HTTP_HEAD_BYTES_MAX,
    HTTP_HEAD_MS_MAX,
    HTTP_IDLE_MS_MAX,
    HTTP_LINGER_BYTES_MAX,
    HTTP_LINGER_MS_MAX,
    HTTP_RECEIVE_BYTES,
    HTTP_SEND_MS_MAX,
    SECOND_MS,
)

AuthCheck: TypeAlias = Callable[[RequestHead], bool]  # whether a head carries valid credentials
_GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)


class FairQueue:
    """Round-robin admission of unauthenticated peers to parsing."""

    def __init__(self) -> None:
        self._queues: OrderedDict[str, dict[anyio.Event, None]] = OrderedDict()
        self._arrival = anyio.Event()

    async def turn(self, address: str) -> None:
        """Return when it is the turn of a waiter of this peer."""
        mine = anyio.Event()
        self._queues.setdefault(address, {})[mine] = None
        self._arrival.set()
        try:
            await mine.wait()
        finally:
            self._leave(address, mine)

    async def run(self) -> None:
        """Admit a few waiters per pass of the event loop, until cancelled."""
        while True:
            await self._arrival.wait()
            while self._queues:
                # One would be too few: under load a pass runs turns and takes milliseconds.
                for _ in range(HTTP_FAIR_QUEUE_ADMITTED_COUNT):
                    if self._queues:
                        self._admit_next()
                await checkpoint()
            self._arrival = anyio.Event()

    def _admit_next(self) -> None:
        """Admit the first waiter of the next peer."""
        address, line = next(iter(self._queues.items()))
        first = next(iter(line))
        self._queues.move_to_end(address)
        self._leave(address, first)
        first.set()

    def _leave(self, address: str, waiting: anyio.Event) -> None:
        line = self._queues.get(address)
        if line is None:
            return
        line.pop(waiting, None)
        if not line:
            del self._queues[address]


def never_authenticated(head: RequestHead) -> bool:
    """Treat every peer as unauthenticated."""
    del head
    return False


class Connection:
    """Serves the requests of one stream, one after another."""

    def __init__(
        self,
        stream: ByteStream,
        peer: Peer,
        answer: Answerer,
        *,
        fair_queue: FairQueue | None = None,
        is_authenticated: AuthCheck = never_authenticated,
    ) -> None:
        self._stream = stream
        self.peer: Final = peer
        self._answer = answer
        self._fair_queue = fair_queue if peer.socket_kind is SocketKind.TCP else None
        self._is_authenticated = is_authenticated
        self._authenticated = peer.socket_kind is SocketKind.UNIX  # identified by the kernel
        self._wire = h11.Connection(h11.SERVER, max_incomplete_event_size=HTTP_HEAD_BYTES_MAX)
        self.resting_since_s: float | None = anyio.current_time()  # nothing while it is answered
        self._request_count = 0
        self._disconnected = False
        self._wants_body = True  # a response to HEAD has no body
        self._patience = anyio.CancelScope()
        # Around the wait for a stream's next piece, or for what a late reply waits for.
        self._streams = anyio.CancelScope()

    def end_stream(self) -> None:
        """End a stream between two of its pieces, or a wait, if there is one, and begin none."""
        self._streams.cancel()

    @property
    def has_requested(self) -> bool:
        """Whether the peer has sent a request yet."""
        return self._request_count > 0

    @property
    def is_unauthenticated(self) -> bool:
        """Whether the peer has not shown who it is, with its newest request at the latest."""
        return not self._authenticated

    async def serve(self) -> None:
        """Answer until either side has had enough."""
        with self._patience:
            try:
                while await self._exchange():
                    self._wire.start_next_cycle()
            except (*_GONE, PeerGoneError):
                return

    async def _exchange(self) -> bool:
        """Answer one request; False when the connection is of no more use."""
        self.resting_since_s = anyio.current_time()
        try:
            head = await self._head()
        except h11.RemoteProtocolError as unreadable:
            await self._send(_unreadable(unreadable.error_status_hint))
            await self._linger()
            return False
        if head is None:
            return False
        self.resting_since_s = None
        self._request_count += 1
        self._authenticated = self.peer.socket_kind is SocketKind.UNIX or self._is_authenticated(
            head
        )
        self._wants_body = head.method != "HEAD"
        if not has_body(head):
            self._wire.next_event()  # its end: there is nothing to be read, now or later
        await self._send(await self._answer(head, self))
        if self._wire.their_state in (h11.SEND_BODY, h11.ERROR):
            await self._linger()
        return self._wire.our_state is h11.DONE and self._wire.their_state is h11.DONE

    async def _head(self) -> RequestHead | None:
        """The next request, or nothing when the peer hung up between two."""
        if self.has_requested and not self._wire.trailing_data[0]:
            await self._receive(until_s=_from_now(HTTP_IDLE_MS_MAX))
        until_s = _from_now(HTTP_HEAD_MS_MAX)
        while True:
            await self._turn()
            _refuse_doubtful_lines(self._wire.trailing_data[0])
            match self._wire.next_event():
                case h11.Request() as request:
                    return _head_of(request, self.peer)
                case h11.NEED_DATA:
                    await self._receive(until_s=until_s)
                case _:
                    return None

    async def _receive(self, *, until_s: float = math.inf) -> None:
        self._patience.deadline = until_s
        try:
            data = await self._stream.receive(HTTP_RECEIVE_BYTES)
        except anyio.EndOfStream:
            data = b""
        self._patience.deadline = math.inf
        self._disconnected = not data
        self._wire.receive_data(data)

    async def _turn(self) -> None:
        """Wait until what this peer sent may be read."""
        if self._fair_queue is not None and not self._authenticated and self._wire.trailing_data[0]:
            await self._fair_queue.turn(self.peer.address)

    async def _linger(self) -> None:
        """Discard unread input: closing a socket with unread bytes may reset the sent reply."""
        self.resting_since_s = anyio.current_time()
        await self._stream.send_eof()
        left = HTTP_LINGER_BYTES_MAX
        with anyio.move_on_after(HTTP_LINGER_MS_MAX / SECOND_MS):
            while left > 0:
                left -= len(await self._stream.receive(HTTP_RECEIVE_BYTES))

    async def read(self, *, bytes_max: int) -> bytes:
        """Read the body of the request under way."""
        self.resting_since_s = anyio.current_time()  # from here on it is the peer that is slow
        try:
            body = await self._body(bytes_max, until_s=_from_now(HTTP_BODY_MS_MAX))
        except TimeoutError:
            raise BodyTooSlowError("the body did not arrive in time") from None
        except _GONE:
            raise PeerGoneError("the peer broke off in the middle of its body") from None
        except h11.RemoteProtocolError:
            if self._disconnected:
                raise PeerGoneError("the peer hung up in the middle of its body") from None
            raise BodyUnreadableError("the body is not as its head announced it") from None
        self.resting_since_s = None
        return body

    async def _body(self, bytes_max: int, *, until_s: float) -> bytes:
        if self._wire.their_state is not h11.SEND_BODY:
            return b""
        if self._wire.they_are_waiting_for_100_continue:
            await self._write(h11.InformationalResponse(status_code=100, headers=[]))
        body = bytearray()
        while True:
            await self._turn()
            match self._wire.next_event():
                case h11.Data(data=data):
                    body += data
                    if len(body) > bytes_max:
                        raise BodyTooLargeError(f"the body is larger than {bytes_max} bytes")
                case h11.EndOfMessage():
                    return bytes(body)
                case h11.NEED_DATA:
                    with anyio.fail_after(until_s - anyio.current_time()):
                        await self._receive()
                case _:
                    raise PeerGoneError("the peer hung up in the middle of its body")

    async def _send(self, reply: AnyReply) -> None:
        match reply:
            case Reply():
                await self._send_whole(reply)
            case StreamReply():
                await self._send_stream(reply)
            case PendingReply():
                await self._send_late(reply)

    async def _send_whole(self, reply: Reply) -> None:
        headers = [
            *DEFAULT_HEADERS,
            *reply.headers,
            (b"content-length", str(len(reply.body)).encode()),
        ]
        if reply.body:
            headers.append((b"content-type", reply.content_type))
        if reply.closes or self._wire.their_state not in (h11.DONE, h11.MUST_CLOSE):
            headers.append((b"connection", b"close"))
        body = reply.body if self._wants_body else b""
        await self._write(_response(reply.status, headers), h11.Data(data=body), h11.EndOfMessage())

    async def _send_stream(self, reply: StreamReply) -> None:
        headers = (
            *DEFAULT_HEADERS,
            *reply.headers,
            (b"content-type", reply.content_type),
            (b"connection", b"close"),
        )
        async with aclosing(reply.chunks) as chunks, anyio.create_task_group() as sending:
            sending.start_soon(self._watch_reader, sending.cancel_scope)
            await self._send_chunks(_response(HTTPStatus.OK, headers), chunks)
            sending.cancel_scope.cancel()

    async def _send_late(self, reply: PendingReply) -> None:
        """Send the reply once it is made; a peer that hangs up meanwhile ends the making."""
        whole: Reply | None = None
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(self._watch_reader, waiting.cancel_scope)
            whole = await reply.made(self._streams)
            waiting.cancel_scope.cancel()
        if whole is not None:
            # What the peer sent meanwhile was thrown away, so the connection cannot go on.
            await self._send_whole(replace(whole, closes=True))

    async def _send_chunks(self, head: h11.Response, chunks: AsyncGenerator[bytes, None]) -> None:
        """Send chunks until the source ends or the peer stops receiving."""
        try:
            await self._write(head)
            while (chunk := await self._next_of(chunks)) is not None:
                await self._write(h11.Data(data=chunk))
            await self._write(h11.EndOfMessage())
        except _GONE:
            return

    async def _next_of(self, chunks: AsyncGenerator[bytes, None]) -> bytes | None:
        """The next piece, or nothing at the end; only this wait is ever given up, never a write."""
        if self._streams.cancel_called:
            return None
        with anyio.CancelScope() as self._streams:
            return await anext(chunks, None)
        return None

    async def _watch_reader(self, scope: anyio.CancelScope) -> None:
        """A reader says nothing while it reads; the end of its side ends the stream."""
        try:
            while await self._stream.receive(HTTP_RECEIVE_BYTES):
                continue
        except _GONE:
            scope.cancel()

    async def _write(self, *events: h11.Event) -> None:
        data = b"".join(self._wire.send(event) or b"" for event in events)
        self._patience.deadline = _from_now(HTTP_SEND_MS_MAX)
        await self._stream.send(data)
        self._patience.deadline = math.inf


def _from_now(ms: int) -> float:
    return anyio.current_time() + ms / SECOND_MS


def _refuse_doubtful_lines(data: bytes) -> None:
    """Where a header, or the head, ends is read differently by different readers."""
    head, _, _ = data.partition(b"\r\n\r\n")
    if b"\n " in head or b"\n\t" in head:
        raise h11.RemoteProtocolError("a folded header")
    if head.count(b"\n") != head.count(b"\r\n"):
        raise h11.RemoteProtocolError("a line that ends in a newline alone")


def _head_of(request: h11.Request, peer: Peer) -> RequestHead:
    path, _, query = request.target.decode("ascii").partition("?")
    return RequestHead(
        method=request.method.decode("ascii"),
        path=path,
        query=query,
        headers=tuple((bytes(name), bytes(value)) for name, value in request.headers),
        peer=peer,
    )


def _response(status: int, headers: Iterable[Header]) -> h11.Response:
    return h11.Response(
        status_code=status, headers=list(headers), reason=HTTPStatus(status).phrase.encode()
    )


def _unreadable(status: int) -> Reply:
    if status == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
        return refused_reply(status, "header_too_large", "the request's head is too large")
    return refused_reply(HTTPStatus.BAD_REQUEST, "bad_request", "this is not a request of HTTP/1.1")
