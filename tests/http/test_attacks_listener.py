"""Attacks on the door: names, pages, tokens, connections and framing, over a real server."""

import hashlib
import hmac
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from holon.adapters.system.control_token import FixedToken
from holon.http.access import Authorizer, RateLimiter, ServerNames, Unauthenticated
from holon.http.app import App, RouteTable
from holon.http.context import HttpContext
from holon.http.exchange import Header, Peer, Reply, RequestHead, SocketKind
from holon.http.route import Access, Route
from holon.http.server import connection
from holon.http.table import ROUTES
from holon.model.limits import (
    CONTROL_TOKEN_CHARS_MAX,
    HTTP_AUTH_FAILURES_COUNT_MAX,
    HTTP_AUTH_FAILURES_PER_MINUTE_COUNT,
    HTTP_BODY_BYTES_MAX,
    HTTP_WITHOUT_REQUEST_COUNT_MAX,
)
from tests.support.control_server import MAIN, TOKEN, ControlServer, ServerOptions, control_server
from tests.support.http_caller import JSON, Answer
from tests.support.manual_clock import ManualClock

PROMPT = f"/control/agents/{MAIN}/prompt"
HALF_OPEN_COUNT = 500
PATIENCE_S = 60
PIECE = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"  # of a body in chunks
NAMED = {"agent_id": str(MAIN), "token": "trig_0.x"}


def written(route: Route[HttpContext]) -> str:
    """A path the row answers to."""
    return re.sub(r"\{(\w+)\}", lambda found: NAMED.get(found[1], "none_0"), route.path)


async def raw(server: ControlServer, *parts: bytes) -> bytes:
    """Send bytes as they are, and return all that comes back before the server hangs up."""
    heard = b""
    with anyio.fail_after(PATIENCE_S):
        async with await anyio.connect_tcp(server.stranger.host, server.stranger.port) as stream:
            try:
                for part in parts:
                    await stream.send(part)
            except anyio.BrokenResourceError:
                pass  # refused before it was all sent
            try:
                while True:
                    heard += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return heard


def head_of(server: ControlServer, method: str = "POST", path: str = PROMPT) -> bytes:
    """The head of an operator's request, without the line that ends it."""
    name = f"{server.stranger.host}:{server.stranger.port}"
    return (
        f"{method} {path} HTTP/1.1\r\nhost: {name}\r\nauthorization: Bearer {TOKEN}\r\n"
        "content-type: application/json\r\n"
    ).encode()


async def test_s01_no_route_answers_to_a_name_that_is_not_ours(server: ControlServer) -> None:
    before = await server.host.reads.events.last_log_seq()
    for route in ROUTES:
        request = f"{route.method} {written(route)} HTTP/1.1\r\nhost: evil.example\r\n"
        rest = f"authorization: Bearer {TOKEN}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        heard = await raw(server, (request + rest).encode())
        assert heard.startswith(b"HTTP/1.1 421"), (route.path, heard[:60])
    assert await server.host.reads.events.last_log_seq() == before
    assert not server.shutdown_requested.is_set()


async def test_s02_a_host_that_is_nearly_ours_is_not_ours(server: ControlServer) -> None:
    port = server.stranger.port
    names = [
        "127.0.0.1.evil.com",
        "localhost:1",
        f"LOCALHOST:{port}",
        f"localhost.:{port}",
        f"127.0.0.1:{port}.",
        f"127.1:{port}",
        f"[::1]:{port}",
        f"user@localhost:{port}",
        "localhost",
        "",
    ]
    for name in names:
        asked = f"GET /status HTTP/1.1\r\nhost: {name}\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
        heard = await raw(
            server, asked.encode().replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
        )
        assert heard.startswith((b"HTTP/1.1 421", b"HTTP/1.1 400")), (name, heard[:60])
    for lines in (b"", b"host: localhost:%d\r\nhost: localhost:%d\r\n" % (port, port)):
        heard = await raw(
            server, b"GET /status HTTP/1.1\r\n" + lines + b"connection: close\r\n\r\n"
        )
        assert heard.startswith(b"HTTP/1.1 400"), heard[:60]


FOREIGN: dict[str, Header] = {
    "s03 another site": (b"origin", b"https://evil"),
    "s04 no site": (b"origin", b"null"),
    "s04 a longer name": (b"origin", b"http://localhost.evil.com"),
    "s04 a user of that name": (b"origin", b"http://127.0.0.1@evil"),
    "s07 a page of another site": (b"sec-fetch-site", b"cross-site"),
    "s07 a page of a neighbour": (b"sec-fetch-site", b"same-site"),
}


@pytest.mark.parametrize("name", FOREIGN)
async def test_s03_s04_s07_a_foreign_page_is_refused_also_with_the_token(
    server: ControlServer, name: str
) -> None:
    before = await server.host.reads.events.last_log_seq()
    for caller in (server.operator, server.local):
        answer = await caller.post(PROMPT, {"text": "a"}, headers=[FOREIGN[name]])
        assert (answer.status, answer.json()["code"]) == (403, "foreign_origin")
    assert await server.host.reads.events.last_log_seq() == before


@pytest.mark.parametrize(
    "media", [b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data", None]
)
async def test_s05_what_a_form_can_post_is_no_request(
    server: ControlServer, media: bytes | None
) -> None:
    headers = [] if media is None else [(b"content-type", media)]
    for caller in (server.operator, server.local):
        answer = await caller.send("POST", PROMPT, body=b'{"text":"a"}', headers=headers)
        assert (answer.status, answer.json()["code"]) == (415, "unsupported_media_type")
    twice = [JSON, (b"content-type", b"text/plain")]
    assert (await server.operator.send("POST", PROMPT, body=b"{}", headers=twice)).status == 415


async def test_s08_no_route_becomes_a_web_socket(server: ControlServer) -> None:
    upgrade: list[Header] = [(b"connection", b"Upgrade"), (b"upgrade", b"websocket")]
    upgrade += [
        (b"sec-websocket-version", b"13"),
        (b"sec-websocket-key", b"AAAAAAAAAAAAAAAAAAAAAA=="),
    ]
    for route in ROUTES:
        answer = await server.operator.send(route.method, written(route), headers=upgrade)
        assert (answer.status, answer.json()["code"]) == (400, "no_upgrade"), route.path


NO_CREDENTIALS: dict[str, tuple[str, list[Header]]] = {
    "none": ("", []),
    "another scheme": ("", [(b"authorization", b"Basic " + TOKEN.encode())]),
    "the scheme in small letters": ("", [(b"authorization", b"bearer " + TOKEN.encode())]),
    "without a scheme": ("", [(b"authorization", TOKEN.encode())]),
    "in the query": (f"?token={TOKEN}", []),
    "in the query, by its other name": (f"?access_token={TOKEN}", []),
    "in a cookie": ("", [(b"cookie", b"token=" + TOKEN.encode())]),
    "twice": ("", [(b"authorization", b"Bearer " + TOKEN.encode())] * 2),
    "for a proxy": ("", [(b"proxy-authorization", b"Bearer " + TOKEN.encode())]),
}


@pytest.mark.parametrize("name", NO_CREDENTIALS)
async def test_s09_a_token_counts_in_its_one_place(
    server: ControlServer, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    query, headers = NO_CREDENTIALS[name]
    for path in ("/status", "/control/runtime/status"):
        answer = await server.stranger.send("GET", path + query, headers=headers)
        assert (answer.status, answer.header(b"www-authenticate")) == (401, b"Bearer")
        assert TOKEN.encode() not in answer.body
    refused = await server.operator.get(f"/status{query}")
    assert refused.status == (400 if query else 200)
    assert TOKEN.encode() not in refused.body
    assert TOKEN not in caplog.text


ODD_TOKENS: dict[str, tuple[bytes, tuple[int, ...]]] = {
    "not ASCII": (b"\xff\xfe" + TOKEN.encode(), (401,)),
    "other digits": ("١٢٣٤".encode() * 8, (401,)),
    "a NUL": (TOKEN.encode() + b"\x00", (400, 401)),
    "a megabyte": (b"x" * 1_000_000, (431,)),
    "as long as a head may be": (b"x" * 20_000, (401,)),
    "a newline": (TOKEN.encode() + b"\n", (400, 401)),
    "nothing": (b"", (401,)),
    "a blank before it": (b" " + TOKEN.encode(), (401,)),
    "more after a blank": (TOKEN.encode() + b" x", (401,)),
}


@pytest.mark.parametrize("name", ODD_TOKENS)
async def test_s10_odd_bytes_for_a_token_are_a_wrong_token(
    server: ControlServer, name: str
) -> None:
    value, statuses = ODD_TOKENS[name]
    own = f"GET /status HTTP/1.1\r\nhost: localhost:{server.stranger.port}\r\n".encode()
    heard = await raw(
        server, own + b"connection: close\r\nauthorization: Bearer " + value + b"\r\n\r\n"
    )
    assert heard.split(b" ")[1] in [str(status).encode() for status in statuses], heard[:80]


def authorizer(token: str = TOKEN) -> Authorizer:
    return Authorizer(owner_uid=0, token=FixedToken(token), runs_for_an_agent=lambda _: False)


def test_a_token_may_be_as_long_as_its_rule_says() -> None:
    longest = "x" * CONTROL_TOKEN_CHARS_MAX
    assert authorizer(longest).accepts(b"Bearer " + longest.encode())


@pytest.mark.parametrize("tail", [b" ", b"\n", b"\t", b"\x00", b"\r\n"])
def test_s10_what_trails_a_token_makes_it_another(tail: bytes) -> None:
    assert authorizer().accepts(b"Bearer " + TOKEN.encode())
    assert not authorizer().accepts(b"Bearer " + TOKEN.encode() + tail)


WRONG_TOKENS = {
    "first byte": "X" + TOKEN[1:],
    "last byte": TOKEN[:-1] + "X",
    "all bytes": "X" * len(TOKEN),
    "shorter": TOKEN[:-1],
    "longer": TOKEN + "X",
    "one byte": "X",
    "right": TOKEN,
}


def test_s11_the_work_on_a_token_does_not_depend_on_how_much_of_it_is_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One digest of what came, one comparison of equal lengths that looks at every byte."""
    compared: list[tuple[int, int]] = []
    hashed: list[int] = []
    compare, sha256 = hmac.compare_digest, hashlib.sha256
    keeper = authorizer()
    expected = sha256(TOKEN.encode()).digest()
    monkeypatch.setattr(FixedToken, "digest", lambda _: expected)

    def counting(given: bytes, held: bytes) -> bool:
        compared.append((len(given), len(held)))
        return compare(given, held)

    def hashing(data: bytes) -> Any:
        hashed.append(len(data))
        return sha256(data)

    monkeypatch.setattr("holon.http.access.hmac.compare_digest", counting)
    monkeypatch.setattr("holon.http.access.hashlib.sha256", hashing)
    opened = {name: keeper.accepts(b"Bearer " + t.encode()) for name, t in WRONG_TOKENS.items()}
    assert compared == [(32, 32)] * len(WRONG_TOKENS)
    assert hashed == [len(text) for text in WRONG_TOKENS.values()]
    assert [name for name, is_open in opened.items() if is_open] == ["right"]


def guess(token: str, address: str = "127.0.0.1") -> RequestHead:
    return RequestHead(
        method="GET",
        path="/status",
        query="",
        headers=((b"host", b"h"), (b"authorization", b"Bearer " + token.encode())),
        peer=Peer(socket_kind=SocketKind.TCP, address=address),
    )


class NoBody:
    """A request without a body."""

    async def read(self, *, bytes_max: int) -> bytes:
        return b""


async def test_s12_ten_thousand_guesses_are_slowed_down_and_lock_nobody_out(
    server: ControlServer,
) -> None:
    clock = ManualClock()
    app = App(
        table=RouteTable(ROUTES),
        context=server.context,
        authorizer=authorizer(),
        names=ServerNames(hosts=frozenset({b"h"})),
        failed_attempts=RateLimiter(
            clock=clock,
            burst=HTTP_AUTH_FAILURES_COUNT_MAX,
            per_minute=HTTP_AUTH_FAILURES_PER_MINUTE_COUNT,
        ),
    )

    async def status_of(head: RequestHead) -> int:
        reply = await app.answer(head, NoBody())
        assert isinstance(reply, Reply)
        return reply.status

    statuses = [await status_of(guess(f"guess-{number}")) for number in range(10_000)]
    assert statuses[:HTTP_AUTH_FAILURES_COUNT_MAX] == [401] * HTTP_AUTH_FAILURES_COUNT_MAX
    assert set(statuses[HTTP_AUTH_FAILURES_COUNT_MAX:]) == {429}
    assert await status_of(guess(TOKEN, "10.0.0.7")) == 200
    assert await status_of(guess(TOKEN)) == 200
    assert await status_of(guess("guess", "10.0.0.7")) == 401
    clock.advance(60_000)
    assert await status_of(guess("guess")) == 401


async def test_s12_the_limit_holds_over_the_wire_whatever_else_a_guess_carries(
    tmp_path: Path,
) -> None:
    async with control_server(tmp_path / "home", ServerOptions(clock=ManualClock())) as server:
        answers: list[Answer] = []
        for number in range(HTTP_AUTH_FAILURES_COUNT_MAX + 3):
            headers = [
                (b"authorization", b"Bearer %d" % number),
                (b"x-forwarded-for", b"%d" % number),
            ]
            answers.append(await server.stranger.send("GET", "/status", headers=headers))
        assert [a.status for a in answers[-4:]] == [401, 429, 429, 429]
        assert answers[-1].header(b"retry-after") is not None
        assert (await server.operator.get("/status")).status == 200
        assert (await server.local.get("/status")).status == 200
        assert (await server.stranger.get("/handshake")).status == 200


def test_s12_only_guesses_are_counted() -> None:
    nothing = RequestHead(
        method="GET",
        path="/",
        query="",
        headers=(),
        peer=Peer(socket_kind=SocketKind.TCP, address="a"),
    )
    assert authorizer().authorize(Access.READ, nothing) == Unauthenticated(guessed=False)
    assert authorizer().authorize(Access.READ, guess("x")) == Unauthenticated(guessed=True)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([JSON, (b"content-length", b"1000000000000")], b"413"),
        ([JSON, (b"content-length", b"1" * 30)], b"400"),
        ([JSON, (b"content-encoding", b"gzip"), (b"content-length", b"50")], b"415"),
        ([JSON, (b"transfer-encoding", b"gzip, chunked")], b"400"),
    ],
)
async def test_s23_a_body_is_refused_before_a_byte_of_it_is_read(
    server: ControlServer, headers: list[Header], status: bytes
) -> None:
    head = head_of(server).replace(b"content-type: application/json\r\n", b"")
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    heard = await raw(server, head + lines + b"\r\n")
    assert heard.startswith(b"HTTP/1.1 " + status), heard[:80]


async def test_s23_a_body_without_end_is_cut_off_near_its_bound(server: ControlServer) -> None:
    """What is buffered on its way is the kernel's; the server takes no more than the bound."""
    sent, heard = 0, b""
    with anyio.fail_after(PATIENCE_S):
        async with await anyio.connect_tcp(server.stranger.host, server.stranger.port) as stream:
            await stream.send(head_of(server) + b"transfer-encoding: chunked\r\n\r\n")
            try:
                while sent < 2**30:
                    await stream.send(PIECE)
                    sent += len(PIECE)
            except anyio.BrokenResourceError:
                pass
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                heard = await stream.receive()  # a reset may overtake the answer
    assert HTTP_BODY_BYTES_MAX <= sent < 2**26
    assert heard[:12] in (b"", b"HTTP/1.1 413")
    assert (await server.operator.get("/status")).status == 200


async def test_s24_hundreds_who_never_ask_keep_nobody_out(
    server: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = b"GET /status HTTP/1.1\r\nhost: localhost\r\nx-slow: "
    streams = []
    with anyio.fail_after(PATIENCE_S):
        for _ in range(HALF_OPEN_COUNT):
            stream = await anyio.connect_tcp(server.stranger.host, server.stranger.port)
            streams.append(stream)
            await stream.send(half)
            if len(streams) % 100 == 0:
                assert (await server.operator.get("/status")).status == 200
                assert (await server.local.get("/status")).status == 200
        assert server.context.traffic.open_count() <= HTTP_WITHOUT_REQUEST_COUNT_MAX + 2
        for stream in streams[: HALF_OPEN_COUNT - HTTP_WITHOUT_REQUEST_COUNT_MAX - 10]:
            assert await hung_up(stream)  # the oldest made room
        with monkeypatch.context() as hasty:
            hasty.setattr(connection, "HTTP_HEAD_MS_MAX", 1)
            async with await anyio.connect_tcp(server.stranger.host, server.stranger.port) as late:
                await late.send(half)
                assert await hung_up(late)
        for stream in streams:
            await stream.aclose()
    assert (await server.operator.get("/status")).status == 200


async def send_without_end(stream: anyio.abc.SocketStream) -> None:
    while True:
        await stream.send(b"x" * 10_000)


async def hung_up(stream: anyio.abc.SocketStream) -> bool:
    try:
        await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return True
    return False


async def test_s23_who_is_refused_while_still_sending_hears_why_and_not_a_reset(
    server: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HTTP_LINGER_MS_MAX", PATIENCE_S * 1_000)
    assert server.local.socket_path is not None
    foreign = b"origin: https://evil\r\ncontent-length: 200000\r\n\r\n"
    with anyio.fail_after(PATIENCE_S):
        async with await anyio.connect_unix(server.local.socket_path) as stream:
            await stream.send(head_of(server) + foreign)
            assert (await stream.receive()).startswith(b"HTTP/1.1 403")
            assert await hung_up(stream)
            for _ in range(20):  # would be a broken pipe if the other end were gone
                await stream.send(b"x" * 10_000)
        async with await anyio.connect_unix(server.local.socket_path) as endless:
            await endless.send(head_of(server) + foreign)
            with pytest.raises(anyio.BrokenResourceError):
                await send_without_end(endless)


CHUNKED = b"transfer-encoding: chunked\r\n"
SMUGGLED: dict[str, tuple[bytes, bytes]] = {
    "a length and chunks": (CHUNKED + b"content-length: 4\r\n\r\n0\r\n\r\n", b"400"),
    "two lengths": (b"content-length: 4\r\ncontent-length: 5\r\n\r\n{}", b"400"),
    "a length with a sign": (b"content-length: +2\r\n\r\n{}", b"400"),
    "chunks twice": (CHUNKED * 2 + b"\r\n0\r\n\r\n", b"400"),
    "chunks by another spelling": (b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n", b"400"),
    "a folded header": (b"x: a\r\n b\r\ncontent-length: 2\r\n\r\n{}", b"400"),
    "a blank before the colon": (b"content-length : 2\r\n\r\n{}", b"400"),
    "a head of 300 kB": (b"x: " + b"a" * 300_000 + b"\r\n\r\n", b"431"),
    "ten thousand headers": (b"x: y\r\n" * 10_000 + b"\r\n", b"431"),
    "a chunk of no size": (CHUNKED + b"\r\nxyz\r\n{}\r\n0\r\n\r\n", b"400"),
    "a chunk with a signed size": (CHUNKED + b"\r\n-2\r\n{}\r\n0\r\n\r\n", b"400"),
    "a chunk longer than it says": (CHUNKED + b"\r\n1\r\n{}\r\n0\r\n\r\n", b"400"),
    "a chunk with a mile of extension": (CHUNKED + b"\r\n2;" + b"a" * 40_000, b"400"),
    "an extension with a bare newline": (CHUNKED + b"\r\n2;a\nb\r\n{}\r\n0\r\n\r\n", b"400"),
}


@pytest.mark.parametrize("name", SMUGGLED)
async def test_s25_a_request_within_a_request_is_refused_and_the_line_closed(
    server: ControlServer, name: str
) -> None:
    rest, status = SMUGGLED[name]
    before = await server.host.reads.events.last_log_seq()
    inner = head_of(server, "GET", "/status") + b"\r\n"
    heard = await raw(server, head_of(server) + rest + inner)
    assert heard.startswith(b"HTTP/1.1 " + status), heard[:80]
    assert heard.count(b"HTTP/1.1 ") == 1, "what came after it is nobody's request"
    assert await server.host.reads.events.last_log_seq() == before
