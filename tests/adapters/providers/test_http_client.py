"""The HTTP exchange against a server that sends whatever a test wants."""

import gzip
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeAlias

import anyio
import pytest

from holon.adapters.providers.http import reply as http_reply
from holon.adapters.providers.http.exchange import ExchangeTimeouts, HttpCall, HttpReply
from holon.adapters.providers.http.local_client import RoutingExchange
from holon.adapters.providers.http.remote_client import HttpClientExchange
from holon.adapters.system.clock import SystemClock
from holon.model.limits import PROVIDER_ERROR_BYTES_MAX
from holon.model.providers.attempts import (
    AuthRejectedError,
    ExchangeStage,
    FailureFlags,
    ModelUnavailableError,
    ProviderError,
    ProviderOverloadedError,
    ProviderTimeoutError,
    ProviderUnreachableError,
    RateLimitedError,
    RequestRejectedError,
    TransportDiagnostics,
    UnreadableResponseError,
)
from tests.adapters.providers.byte_server import HOLD, byte_server, head, json_response

pytestmark = pytest.mark.long

SECRET = "sk-very-secret-0123456789"
# Long enough for a busy machine to get as far as each test means to get, and no longer.
SHORT = ExchangeTimeouts(connect_ms=20_000, answer_ms=1_500, idle_ms=500)


Client: TypeAlias = HttpClientExchange | RoutingExchange


# Exchanges has a client of its own for this machine, where all of these servers are.
@pytest.fixture(params=[HttpClientExchange, RoutingExchange], ids=["library", "this machine"])
def client(request: pytest.FixtureRequest) -> type[Client]:
    kind: type[Client] = request.param
    return kind


@pytest.fixture
async def exchange(client: type[Client]) -> AsyncIterator[Client]:
    timeouts = ExchangeTimeouts(connect_ms=5_000, answer_ms=20_000, idle_ms=20_000)
    made = client(timeouts, clock=SystemClock())
    yield made
    await made.aclose()


def call_to(url: str, **headers: str) -> HttpCall:
    return HttpCall(
        provider="acme",
        model_ref="acme/m1",
        url=url,
        headers={"authorization": f"Bearer {SECRET}", **headers},
        body=b'{"model":"m1"}',
    )


async def fetched(exchange: Client, url: str) -> bytes:
    async with exchange.open(call_to(url)) as reply:
        return await reply.read()


async def collected(reply: HttpReply, heard: list[bytes]) -> bytes:
    async for piece in reply.chunks():
        heard += [piece]  # one by one: what came before a failure counts
    return b"".join(heard)


async def failure_of(exchange: Client, url: str) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        await fetched(exchange, url)
    return raised.value


def diagnostics_of(error: ProviderError) -> TransportDiagnostics:
    assert error.diagnostics is not None
    return error.diagnostics


async def test_a_call_is_posted_as_json_and_its_reply_handed_out(
    exchange: Client,
) -> None:
    answer = json_response("200 OK", {"a": 1}, "X-Request-Id: req-7")
    async with byte_server([answer]) as server:
        url = server.url + "/v1/x?key=hidden"
        async with exchange.open(call_to(url, **{"X-Extra": "1"})) as reply:
            assert not reply.is_event_stream
            assert reply.headers["content-type"] == "application/json"
            assert await reply.read() == b'{"a":1}'
            known = reply.diagnostics()
    assert server.seen[0].line == "POST /v1/x?key=hidden HTTP/1.1"
    assert server.seen[0].body == b'{"model":"m1"}'
    sent = server.seen[0].headers
    assert sent["content-type"] == "application/json"
    assert sent["authorization"] == f"bearer {SECRET}"
    assert sent["x-extra"] == "1"
    assert sent["accept-encoding"] == "identity"
    assert known == TransportDiagnostics(
        stage=ExchangeStage.DECODE,
        provider="acme",
        model_ref="acme/m1",
        url=server.url + "/v1/x",
        status=200,
        request_id="req-7",
        bytes_sent=14,
        bytes_received=7,
    )


async def test_a_stream_is_handed_out_as_it_arrives(exchange: Client) -> None:
    answer = head("200 OK", kind="text/event-stream; charset=utf-8")
    async with (
        byte_server([answer, b"data: a\n\n", b"data: b\n\n"]) as server,
        exchange.open(call_to(server.url)) as reply,
    ):
        assert reply.is_event_stream
        assert await collected(reply, []) == b"data: a\n\ndata: b\n\n"


@pytest.mark.requirement("provider-http:no-redirects")
async def test_a_redirect_is_refused_and_the_credential_goes_nowhere(
    exchange: Client,
) -> None:
    async with byte_server([json_response("200 OK", {})]) as elsewhere:
        moved = json_response("307 Temporary Redirect", {}, f"location: {elsewhere.url}/steal")
        async with byte_server([moved]) as server:
            error = await failure_of(exchange, server.url)
    assert isinstance(error, RequestRejectedError)
    assert diagnostics_of(error).flags == FailureFlags(is_redirect=True, status=307)
    assert "redirect" in (error.hint or "")
    assert elsewhere.seen == []


@pytest.mark.requirement("provider-http:statuses-are-classified")
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("401 Unauthorized", AuthRejectedError),
        ("403 Forbidden", AuthRejectedError),
        ("404 Not Found", RequestRejectedError),
        ("429 Too Many Requests", RateLimitedError),
        ("500 Internal Server Error", ProviderOverloadedError),
        ("529 Overloaded", ProviderOverloadedError),
    ],
)
async def test_a_refusal_has_its_class_and_its_facts(
    exchange: Client, status: str, kind: type[ProviderError]
) -> None:
    answer = json_response(status, {"error": {"message": "no"}}, "request-id: r1", "retry-after: 3")
    async with byte_server([answer]) as server:
        error = await failure_of(exchange, server.url)
    assert type(error) is kind
    number = int(status[:3])
    assert error.retry_after_ms == 3_000
    assert diagnostics_of(error) == TransportDiagnostics(
        stage=ExchangeStage.RESPONSE_BODY,
        provider="acme",
        model_ref="acme/m1",
        url=f"{server.url}",
        status=number,
        flags=FailureFlags(status=number),
        request_id="r1",
        retry_after_ms=3_000,
        bytes_sent=14,
        bytes_received=26,
    )


async def test_a_refusal_whose_body_never_ends_is_still_that_refusal(
    client: type[Client],
) -> None:
    timeouts = ExchangeTimeouts(connect_ms=1_000, answer_ms=20_000)
    exchange = client(timeouts, clock=SystemClock())
    cut = head("429 Too Many Requests", "content-length: 100")
    flood = head("503 Busy") + b"x" * (PROVIDER_ERROR_BYTES_MAX * 3)
    async with byte_server([cut, b'{"err', HOLD]) as silent, byte_server([flood]) as loud:
        assert isinstance(await failure_of(exchange, silent.url), RateLimitedError)
        busy = await failure_of(exchange, loud.url)
    await exchange.aclose()
    assert isinstance(busy, ProviderOverloadedError)
    assert len(busy.message) < 500


@pytest.mark.requirement("provider-http:no-secret-in-errors")
async def test_a_credential_the_server_repeats_is_masked(exchange: Client) -> None:
    plain = call_to("").headers["authorization"].removeprefix("Bearer ").removeprefix("sk-")
    answer = json_response("401 Unauthorized", {"error": {"message": f"bad key {SECRET}"}})
    async with byte_server([answer]) as server:
        error = await failure_of(exchange, server.url)
    assert plain not in repr((error.message, error.hint, error.diagnostics))


@pytest.mark.requirement("provider-http:no-secret-in-errors")
@pytest.mark.parametrize("value", ["Bearer sk-secret\n", "Bearer sk-secret-ü"])
async def test_an_unsendable_credential_is_not_quoted(exchange: Client, value: str) -> None:
    async with byte_server([]) as server:
        call = call_to(server.url, authorization=value)
        with pytest.raises(ModelUnavailableError) as raised:
            async with exchange.open(call):
                pass
    error = raised.value
    assert "secret" not in repr((error.message, error.hint, error.diagnostics, error.__cause__))
    assert error.__suppress_context__


@pytest.mark.parametrize(
    "url",
    [
        "",
        "no/url",
        "ftp://127.0.0.1/x",
        "http://",
        "http://[bad",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:x",
    ],
)
async def test_an_address_that_is_none_makes_the_model_unusable(exchange: Client, url: str) -> None:
    assert isinstance(await failure_of(exchange, url), ModelUnavailableError)


@pytest.mark.requirement("provider-http:connection-failures-are-retryable")
async def test_a_refused_connection_is_unreachable(exchange: Client) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets the port
        place = f"127.0.0.1:{taken.getsockname()[1]}/v1"
        error = await failure_of(exchange, f"http://user:{SECRET}@{place}?k={SECRET}")
    assert isinstance(error, ProviderUnreachableError)
    known = diagnostics_of(error)
    assert known.stage is ExchangeStage.CONNECT
    assert known.flags == FailureFlags(is_connect=True)
    assert known.url == f"http://{place}"
    assert known.source_chain
    assert all(len(line) <= 400 and "\n" not in line for line in known.source_chain)
    assert SECRET not in repr((error.message, known))


@pytest.mark.requirement("provider-http:connection-failures-are-retryable")
@pytest.mark.parametrize(
    ("steps", "stage", "is_body"),
    [
        ([], ExchangeStage.RESPONSE_HEAD, False),
        ([b"HTTP/1.1 200"], ExchangeStage.RESPONSE_HEAD, False),
        ([head("200 OK", "content-length: 9"), b"123"], ExchangeStage.RESPONSE_BODY, True),
        (
            [head("200 OK", "transfer-encoding: chunked"), b"5\r\nab"],
            ExchangeStage.RESPONSE_BODY,
            True,
        ),
    ],
)
async def test_a_connection_that_ends_early_is_unreachable(
    exchange: Client, steps: list[bytes], stage: ExchangeStage, is_body: bool
) -> None:
    async with byte_server(steps) as server:
        error = await failure_of(exchange, server.url)
    assert isinstance(error, ProviderUnreachableError)
    assert diagnostics_of(error).stage is stage
    assert diagnostics_of(error).flags == FailureFlags(
        is_body=is_body, status=200 if is_body else None
    )


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        head("200 OK", "transfer-encoding: chunked") + b"nonsense\r\n",
        head("200 OK", "content-encoding: gzip") + b"not gzip at all",
    ],
)
async def test_what_is_not_http_is_unreadable(exchange: Client, answer: bytes) -> None:
    async with byte_server([answer]) as server:
        error = await failure_of(exchange, server.url)
    assert isinstance(error, UnreadableResponseError)


async def test_an_answer_packed_without_being_asked_is_unpacked(
    exchange: Client,
) -> None:
    packed = head("200 OK", "content-encoding: gzip") + gzip.compress(b"{}")
    async with byte_server([packed]) as server:
        assert await fetched(exchange, server.url) == b"{}"


@pytest.mark.requirement("provider-http:timeouts-are-retryable")
@pytest.mark.parametrize(
    ("steps", "stage", "is_body"),
    [
        ([HOLD], ExchangeStage.RESPONSE_HEAD, False),
        ([head("200 OK") + b"{", HOLD], ExchangeStage.RESPONSE_BODY, True),
    ],
)
async def test_an_answer_that_does_not_come_in_time_is_a_timeout(
    client: type[Client], steps: list[bytes], stage: ExchangeStage, is_body: bool
) -> None:
    exchange = client(SHORT, clock=SystemClock())
    async with byte_server(steps) as server:
        error = await failure_of(exchange, server.url)
    await exchange.aclose()
    assert isinstance(error, ProviderTimeoutError)
    assert diagnostics_of(error).stage is stage
    assert diagnostics_of(error).flags == FailureFlags(
        is_timeout=True, is_body=is_body, status=200 if is_body else None
    )


@pytest.mark.requirement("provider-http:timeouts-are-retryable")
async def test_a_stream_that_falls_silent_is_cut(client: type[Client]) -> None:
    exchange = client(SHORT, clock=SystemClock())
    heard: list[bytes] = []
    answer = head("200 OK", kind="text/event-stream")
    async with (
        byte_server([answer + b"data: a\n\n", HOLD]) as server,
        exchange.open(call_to(server.url)) as reply,
    ):
        with pytest.raises(ProviderTimeoutError) as raised:
            await collected(reply, heard)
    await exchange.aclose()
    assert b"".join(heard) == b"data: a\n\n"
    assert diagnostics_of(raised.value).stage is ExchangeStage.RESPONSE_BODY
    assert diagnostics_of(raised.value).bytes_received == 9


async def test_an_answer_beyond_its_cap_is_not_read_to_its_end(
    exchange: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_reply, "PROVIDER_ANSWER_BYTES_MAX", 1_000)
    async with byte_server([head("200 OK") + b"x" * 1_000_000]) as server:
        error = await failure_of(exchange, server.url)
    assert isinstance(error, UnreadableResponseError)
    assert error.message == "the answer has more than 1000 bytes"


async def test_the_operators_proxy_is_used_for_other_machines(
    exchange: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with byte_server([json_response("200 OK", {"by": "proxy"})]) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert await fetched(exchange, "http://provider.invalid/v1") == b'{"by":"proxy"}'
    assert len(proxy.seen) == 1


async def test_a_proxy_that_cannot_be_used_is_said_so(
    exchange: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("all_proxy", "gopher://127.0.0.1:70")
    error = await failure_of(exchange, "http://provider.invalid/v1")
    assert isinstance(error, ModelUnavailableError)
    assert "proxy" in error.message


async def test_a_proxy_named_by_the_environment_is_not_used_for_this_machine(
    exchange: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with byte_server([json_response("500 Proxied", {})]) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        async with byte_server([json_response("200 OK", {})]) as server:
            assert await fetched(exchange, server.url) == b"{}"
    assert proxy.seen == []


async def test_a_cancelled_call_leaves_the_exchange_usable(exchange: Client) -> None:
    async with (
        byte_server([head("200 OK"), b"{", HOLD]) as server,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(fetched, exchange, server.url)
        while not server.seen:
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    async with byte_server([json_response("200 OK", {})]) as server:
        assert await fetched(exchange, server.url) == b"{}"


@pytest.mark.requirement("provider-http:certificates-are-verified")
async def test_a_server_nobody_vouches_for_is_sent_nothing(
    exchange: Client, tmp_path: Path
) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate and is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    told = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    named = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out"]
    subprocess.run([openssl, *told, *named, str(certificate)], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    async with byte_server([json_response("200 OK", {})], tls=context) as server:
        error = await failure_of(exchange, server.url)
    assert isinstance(error, ProviderUnreachableError)
    assert "certificate verify failed" in error.message.lower()
    assert diagnostics_of(error).flags == FailureFlags(is_connect=True)
    assert server.seen == []


def test_a_wire_is_imported_without_the_http_library_or_a_vendor_s() -> None:
    look = (
        "import sys; import holon.adapters.providers.openai_chat.transport; "
        "print([name for name in ('httpx2', 'openai', 'anthropic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", look], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.requirement("provider-http:timeouts-are-retryable")
async def test_a_stream_that_only_stays_alive_ends_at_its_own_deadline(
    client: type[Client],
) -> None:
    whole = ExchangeTimeouts(connect_ms=20_000, answer_ms=20_000, idle_ms=600_000, stream_ms=1)
    exchange = client(whole, clock=SystemClock())
    pings = head("200 OK", kind="text/event-stream") + b": still here\n\n"
    async with byte_server([pings, HOLD]) as server:
        with pytest.raises(ProviderTimeoutError):
            async with exchange.open(call_to(server.url)) as reply:
                _ = [piece async for piece in reply.chunks()]
    await exchange.aclose()
