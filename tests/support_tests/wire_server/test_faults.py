"""Faults do what they say, on every wire, and only when the plan says so."""

import json
from contextlib import suppress
from typing import Any

import anyio
import httpx2
import pytest

from holon.adapters.providers.scripted.script import FAILURES, Script, ScriptedRound
from holon.model.providers.models import TransportKind
from tests.support.manual_clock import ManualClock
from tests.support.wire_server.faults import (
    AnswerFault,
    ErrorInside,
    Fault,
    Gate,
    Refuse,
    html_page,
    rate_limited,
    redirected,
    silent_stream,
    usage_limited,
)
from tests.support.wire_server.server import open_wire_server
from tests.support_tests.wire_server.bodies import (
    ALL,
    CHAT,
    CODEX,
    MESSAGES,
    OWN_PATHS,
    RESPONSES,
    body_for,
    events_in,
    headers_for,
    plain_client,
    post,
)
from tests.support_tests.wire_server.clients import HELLO, LOOK


async def body_of(
    kind: TransportKind, *twists: AnswerFault, stream: bool, script: Script = LOOK
) -> bytes:
    """The body of a twisted answer."""
    fault = Fault(twists=twists)
    async with open_wire_server(script, faults=[fault]) as server, plain_client() as client:
        return (await post(client, server, kind, stream=stream)).content


def found_in(body: bytes) -> list[Any]:
    """Every JSON document in a stream."""
    return [json.loads(data) for data in events_in(body) if data != b"[DONE]"]


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 502, 503, 529])
async def test_a_refusal_has_the_status_and_the_wires_own_form(
    kind: TransportKind, status: int
) -> None:
    fault = Fault(instead=Refuse(status=status, message="because"))
    async with open_wire_server(HELLO, faults=[fault]) as server, plain_client() as client:
        refused = await post(client, server, kind)
        answered = await post(client, server, kind)
    assert refused.status_code == status
    assert refused.json()["error"]["message"] == "because"
    assert answered.status_code == 200


async def test_limits_name_the_moment_to_come_back() -> None:
    faults = [rate_limited(retry_after_seconds=7), usage_limited(resets_in_seconds=3_600)]
    async with open_wire_server(HELLO, faults=faults) as server, plain_client() as client:
        soon, late = [await post(client, server, CODEX) for _ in faults]
    assert (soon.status_code, soon.headers["retry-after"]) == (429, "7")
    assert soon.json()["error"]["code"] == "rate_limit_exceeded"
    assert late.json()["error"]["type"] == "usage_limit_reached"
    assert late.json()["error"]["resets_in_seconds"] == 3_600


async def test_pages_and_redirects_come_as_they_are() -> None:
    faults = [html_page(), redirected("http://127.0.0.1:1/v1/responses")]
    async with open_wire_server(HELLO, faults=faults) as server, plain_client() as client:
        page, moved = [await post(client, server, RESPONSES) for _ in faults]
    assert page.status_code == 200
    assert page.text.startswith("<!doctype html>")
    assert (moved.status_code, moved.headers["location"]) == (
        307,
        "http://127.0.0.1:1/v1/responses",
    )


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_may_come_inside_a_200(kind: TransportKind, stream: bool) -> None:
    if kind is CODEX and not stream:
        return  # it only streams
    fault = Fault(instead=ErrorInside(code="server_is_overloaded", message="too much"))
    async with open_wire_server(HELLO, faults=[fault]) as server, plain_client() as client:
        reply = await post(client, server, kind, stream=stream)
    assert reply.status_code == 200
    last = found_in(reply.content)[-1] if stream else reply.json()
    error = last["response"]["error"] if last.get("type") == "response.failed" else last["error"]
    assert error["message"] == "too much"


@pytest.mark.parametrize("kind", ALL)
async def test_twists_of_a_stream(kind: TransportKind) -> None:
    straight = events_in(await body_of(kind, stream=True))
    twice = events_in(await body_of(kind, AnswerFault.DUPLICATE_EVENTS, stream=True))
    assert twice == [event for event in straight for _ in range(2)]
    missing = events_in(await body_of(kind, AnswerFault.MISSING_TERMINAL, stream=True))
    assert missing == straight[: len(missing)]
    assert 0 < len(missing) < len(straight)
    early = events_in(await body_of(kind, AnswerFault.DONE_EARLY, stream=True))
    assert early == [*missing, b"[DONE]"]
    padded = events_in(await body_of(kind, AnswerFault.UNKNOWN_EVENTS, stream=True))
    assert len(padded) == len(straight) + len(missing)
    crlf = await body_of(kind, AnswerFault.CRLF_LINES, stream=True)
    assert events_in(crlf) == straight
    assert crlf.count(b"\r\n") == crlf.count(b"\n")
    broken = await body_of(kind, AnswerFault.MALFORMED_JSON, stream=True)
    with pytest.raises(json.JSONDecodeError):
        found_in(broken)


@pytest.mark.parametrize("kind", [RESPONSES, CHAT, MESSAGES])
async def test_malformed_json_in_a_whole_answer(kind: TransportKind) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(await body_of(kind, AnswerFault.MALFORMED_JSON, stream=False))


@pytest.mark.parametrize("kind", [RESPONSES, CHAT, MESSAGES])
async def test_twists_of_what_is_said(kind: TransportKind) -> None:
    async def text(twist: AnswerFault) -> str:
        return (await body_of(kind, twist, stream=False)).decode()

    assert "Let me look." not in await text(AnswerFault.EMPTY_CONTENT)
    assert len(await text(AnswerFault.HUGE_TEXT)) > 10 * 1024 * 1024
    assert len(await text(AnswerFault.HUGE_ARGUMENTS)) > 1024 * 1024
    assert "never clos" in await text(AnswerFault.BROKEN_ARGUMENTS)
    assert (await text(AnswerFault.DUPLICATE_CALL_IDS)).count("call_mine") == 2
    assert "NoSuchTool" in await text(AnswerFault.UNKNOWN_TOOL)
    assert "call_mine" not in await text(AnswerFault.STOP_FOR_NO_CALL)
    assert json.loads(await text(AnswerFault.NO_USAGE)).get("usage") is None


@pytest.mark.parametrize("chunk_bytes", [1, 3, 1_000_000])
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_is_the_same_in_pieces_of_any_size(chunk_bytes: int, stream: bool) -> None:
    fault = Fault(chunk_bytes=chunk_bytes)
    async with open_wire_server(HELLO, faults=[fault]) as server, plain_client() as client:
        pieces = await post(client, server, CHAT, stream=stream)
    whole = await body_of(CHAT, stream=stream, script=HELLO)
    assert pieces.content == whole


async def test_a_connection_is_cut_at_the_byte_that_is_named() -> None:
    async with open_wire_server(HELLO) as server, plain_client() as client:
        for cut_at in (0, 1, 20, 200, 400):
            server.plan(Fault(cut_at_byte=cut_at, reset=cut_at == 200))
            with pytest.raises(httpx2.TransportError):
                await post(client, server, CHAT, stream=True)
        assert (await post(client, server, CHAT)).status_code == 200


async def test_a_cut_sends_exactly_the_bytes_before_it() -> None:
    body = json.dumps(body_for(CHAT)).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\n"
    async with (
        open_wire_server(HELLO, faults=[Fault(cut_at_byte=33)]) as server,
        await anyio.connect_tcp("127.0.0.1", server.port) as stream,
    ):
        await stream.send(head + f"content-length: {len(body)}\r\n\r\n".encode() + body)
        received = b""
        with suppress(anyio.EndOfStream):
            while True:
                received += await stream.receive()
    assert len(received) == 33
    assert received.startswith(b"HTTP/1.1 200")


async def test_the_test_holds_the_gates() -> None:
    head, body = Gate(), Gate()
    fault = Fault(head_gate=head, body_gate=body, gate_at_byte=10)
    async with open_wire_server(HELLO, faults=[fault]) as server, plain_client() as client:
        url = server.base_url(CHAT) + OWN_PATHS[CHAT]
        asked: Any = {"json": body_for(CHAT, stream=True), "headers": headers_for(CHAT)}
        received = bytearray()

        async def listen() -> None:
            async with client.stream("POST", url, **asked) as reply:
                async for piece in reply.aiter_bytes():
                    received.extend(piece)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            await head.reached.wait()
            assert not body.reached.is_set()
            head.open()
            await body.reached.wait()
            assert len(received) <= 10
            body.open()
    assert received.endswith(b"data: [DONE]\n\n")


async def test_a_silent_stream_ends_when_its_client_leaves() -> None:
    async with (
        open_wire_server(HELLO, faults=[silent_stream(after_bytes=30)]) as server,
        plain_client() as client,
    ):
        url = server.base_url(CHAT) + OWN_PATHS[CHAT]
        asked: Any = {"json": body_for(CHAT, stream=True), "headers": headers_for(CHAT)}
        received = 0
        async with client.stream("POST", url, **asked) as reply:
            async for piece in reply.aiter_raw():
                received += len(piece)
                if received == 30:
                    break
        with anyio.fail_after(10):
            await server.requests[0].left.wait()


async def test_delays_are_the_clocks() -> None:
    clock = ManualClock()
    fault = Fault(head_after_ms=5_000, between_ms=1_000, chunk_bytes=1_000_000)
    async with (
        open_wire_server(HELLO, faults=[fault], clock=clock) as server,
        plain_client() as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(post, client, server, CHAT)
        await server.wait_for_requests(1)
        for expected_ms in (5_000, 1_000):
            while (due := clock.next_deadline()) is None:
                await anyio.lowlevel.checkpoint()
            assert (due - clock.now()).total_seconds() * 1_000 == expected_ms
            clock.advance(expected_ms)


STATUSES = {
    "auth_rejected": 401,
    "context_length_exceeded": 400,
    "invalid_response": 200,
    "rate_limited": 429,
    "request_rejected": 400,
    "server_error": 500,
    "usage_limit_reached": 429,
}


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("code", sorted(STATUSES))
async def test_a_failure_of_the_script_shows_on_every_wire(kind: TransportKind, code: str) -> None:
    assert set(FAILURES) - set(STATUSES) == {"timeout", "connection"}
    line = ScriptedRound(fail=code, fail_times=1, text="at last")
    async with open_wire_server(Script(rounds=(line,))) as server, plain_client() as client:
        failed = await post(client, server, kind)
        answered = await post(client, server, kind)
    assert failed.status_code == STATUSES[code]
    assert b"at last" not in failed.content
    assert answered.status_code == 200
    assert len(server.requests) == 2


async def test_a_script_may_go_silent_or_break_the_connection() -> None:
    rounds = (ScriptedRound(fail="connection"),)
    async with open_wire_server(Script(rounds=rounds)) as server, plain_client() as client:
        with pytest.raises(httpx2.TransportError):
            await post(client, server, CHAT)
    rounds = (ScriptedRound(fail="timeout"),)
    async with open_wire_server(Script(rounds=rounds)) as server, plain_client() as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(post, client, server, CHAT)
            await server.wait_for_requests(1)
            tasks.cancel_scope.cancel()
        with anyio.fail_after(10):
            await server.requests[0].left.wait()
