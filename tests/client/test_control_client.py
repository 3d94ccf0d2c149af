"""Calls to a real server, refusals, and streams that break."""

import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from holon.client.connection import ForeignServerError, SilentRuntimeError
from holon.client.control_client import ControlClient, ControlError
from holon.client.endpoint import (
    BadEndpointError,
    Endpoint,
    NoRuntimeError,
    TcpEndpoint,
    UnixEndpoint,
)
from holon.client.event_stream import envelope_of, follow
from holon.projections.runtime_status import RuntimeStatus
from holon.wire.responses import Enqueued
from holon.wire.server_sent_events import SseEvent
from tests.support.control_server import MAIN, TOKEN, ControlServer, control_server

STATUS = "/control/runtime/status"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlServer]:
    async with control_server(tmp_path / "home") as running:
        yield running


def endpoint_of(server: ControlServer, *, token: str | None = TOKEN) -> TcpEndpoint:
    return TcpEndpoint("127.0.0.1", server.operator.port, token)


async def test_answers_come_as_the_type_that_was_named_over_either_door(
    server: ControlServer,
) -> None:
    assert server.local.socket_path is not None
    doors: list[Endpoint] = [endpoint_of(server), UnixEndpoint(server.local.socket_path)]
    for door in doors:
        client = ControlClient(door)
        status = await anyio.to_thread.run_sync(partial(client.get, STATUS, RuntimeStatus))
        assert status.home_dir == str(server.home)
        prompt = partial(client.post, f"/control/agents/{MAIN}/prompt", Enqueued, {"text": "hi"})
        enqueued = await anyio.to_thread.run_sync(partial(prompt, idempotency_key="once"))
        assert enqueued.agent_id == MAIN
        assert enqueued.duplicate is (door is doors[1]), "the same key is the same message"


async def test_a_refusal_carries_the_runtimes_own_words(server: ControlServer) -> None:
    stranger = ControlClient(endpoint_of(server, token=None))
    with pytest.raises(ControlError) as refused:
        await anyio.to_thread.run_sync(lambda: stranger.get_json(STATUS))
    assert (refused.value.status, refused.value.body.code) == (401, "unauthorized")
    assert refused.value.hint is not None
    operator = ControlClient(endpoint_of(server))
    with pytest.raises(ControlError) as missing:
        await anyio.to_thread.run_sync(lambda: operator.get_json("/nowhere"))
    assert (missing.value.status, missing.value.body.code) == (404, "not_found")


async def test_an_answer_of_another_shape_is_not_taken_for_the_right_one(
    server: ControlServer,
) -> None:
    client = ControlClient(endpoint_of(server))
    with pytest.raises(ForeignServerError, match="unexpected response"):
        await anyio.to_thread.run_sync(lambda: client.get(STATUS, Enqueued))


def test_nobody_there_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(NoRuntimeError, match="no runtime responds") as nobody:
        ControlClient(UnixEndpoint(tmp_path / "none.sock")).get_json("/")
    assert nobody.value.hint == "start one with: holon daemon start"


@contextmanager
def answering(answers: Sequence[bytes]) -> Iterator[tuple[TcpEndpoint, list[bytes]]]:
    """A server that gives each connection the next answer and hangs up; and what it was asked."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            for each in answers:
                peer, _ = listening.accept()
                with peer:
                    asked.append(peer.recv(65_536).split(b"\r\n")[0])
                    peer.sendall(each)

        thread = threading.Thread(target=answer)
        thread.start()
        yield TcpEndpoint("127.0.0.1", listening.getsockname()[1]), asked
        thread.join()


def streamed(text: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{text}".encode()


@pytest.mark.parametrize("said", [b"", b"hello\r\n", b"HTTP/1.1 999 what\r\n"])
def test_something_that_is_no_runtime_is_told_as_such(said: bytes) -> None:
    with answering([said]) as (endpoint, _), pytest.raises((ForeignServerError, ControlError)):
        ControlClient(endpoint).get_json("/")


@pytest.mark.parametrize("path", ["/a b", "/a\r\nx: y", "/ü", "/\x00"])
def test_a_path_that_could_be_read_as_more_than_a_path_is_never_sent(path: str) -> None:
    with pytest.raises(BadEndpointError):
        ControlClient(TcpEndpoint("127.0.0.1", 9)).get_json(path)


def test_silence_has_an_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        endpoint = TcpEndpoint("127.0.0.1", listening.getsockname()[1])
        with pytest.raises(SilentRuntimeError, match="does not respond"):
            ControlClient(endpoint, timeout_s=0.05).get_json("/")


def test_a_look_at_a_service_that_hangs_gives_up_long_before_a_change_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holon.client.connection.CLIENT_READ_MS_MAX", 50)
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as hangs:
        hangs.bind(str(path))
        hangs.listen()
        client = ControlClient(UnixEndpoint(path), timeout_s=3_600)
        with pytest.raises(
            SilentRuntimeError, match=r"the service on .* does not respond"
        ) as silent:
            client.get_json("/status")
        with pytest.raises(SilentRuntimeError), client.open_stream("/", None, timeout_s=3_600):
            pass
        hasty = ControlClient(UnixEndpoint(path), timeout_s=0.1)
        monkeypatch.setattr("holon.client.connection.CLIENT_READ_MS_MAX", 3_600_000)
        with pytest.raises(SilentRuntimeError):
            hasty.get_json("/status")
    assert silent.value.hint is not None
    assert "holon daemon status" in silent.value.hint
    assert "holon daemon logs" in silent.value.hint


def test_a_stream_goes_on_after_the_last_event_that_came() -> None:
    answers = [
        streamed(": hello\n\nid: 7\nevent: brief_created\ndata: {\ndata: }\n\nid: 8\ndata: cut"),
        streamed("id: 8\nevent: x\ndata: again\n\n"),
        b'HTTP/1.1 404 Not Found\r\ncontent-length: 28\r\n\r\n{"code":"cursor_not_found"}\n',
    ]
    pauses: list[float] = []
    with answering(answers) as (endpoint, asked):
        stream = follow(
            ControlClient(endpoint), "/s", pause=pauses.append, query={"after_seq": 6, "max": None}
        )
        assert next(stream) == SseEvent(id="7", event="brief_created", data="{\n}")
        assert next(stream) == SseEvent(id="8", event="x", data="again")
        with pytest.raises(ControlError) as lost:
            next(stream)
    assert lost.value.body.code == "cursor_not_found"
    assert [line.split()[1] for line in asked] == [
        b"/s?after_seq=6",
        b"/s?after_seq=7",
        b"/s?after_seq=8",
    ]
    assert len(pauses) == 2


@pytest.mark.requirement("events:narrowed-by-level")
def test_a_stream_goes_on_after_what_was_passed_over() -> None:
    answers = [streamed("id: 7\n\n"), streamed("id: 9\nevent: x\ndata: again\n\n")]
    pauses: list[float] = []
    with answering(answers) as (endpoint, asked):
        stream = follow(ControlClient(endpoint), "/s", pause=pauses.append)
        assert next(stream) == SseEvent(id="9", event="x", data="again")
    assert [line.split()[1] for line in asked] == [b"/s", b"/s?after_seq=7"]


def test_why_a_runtime_ended_a_stream_is_no_event() -> None:
    last_word = 'event: stream_closed\ndata: {"ok":false,"code":"subscriber_lagged"}\n\n'
    answers = [streamed(f"id: 7\ndata: {{}}\n\n{last_word}"), streamed("id: 8\ndata: {}\n\n")]
    with answering(answers) as (endpoint, asked):
        stream = follow(ControlClient(endpoint), "/s", pause=lambda _: None)
        assert [next(stream).id, next(stream).id] == ["7", "8"]
    assert asked[1].split()[1] == b"/s?after_seq=7"


SOUND: dict[str, Any] = {"event_seq": 1, "ts": "x", "agent_id": "a", "type": "x", "payload": {}}


@pytest.mark.parametrize(
    "sent",
    [
        "{nope",
        "[]",
        "1",
        '"\\ud800"',
        "[" * 100_000,
        json.dumps(SOUND | {"event_seq": "1"}),
        json.dumps(SOUND | {"event_seq": True}),
        json.dumps(SOUND | {"payload": []}),
        json.dumps(SOUND | {"ts": None}),
        *(json.dumps({k: v for k, v in SOUND.items() if k != name}) for name in SOUND),
    ],
    ids=lambda sent: sent[:60],
)
def test_what_is_no_event_is_told_in_a_sentence(sent: str) -> None:
    with pytest.raises(ForeignServerError, match="invalid events"):
        envelope_of(SseEvent(id="1", event="x", data=sent))
    assert envelope_of(SseEvent(id="1", event="x", data=json.dumps(SOUND))) == SOUND


def test_a_stream_that_never_began_fails_at_once(tmp_path: Path) -> None:
    client = ControlClient(UnixEndpoint(tmp_path / "none.sock"))
    with pytest.raises(NoRuntimeError):
        next(follow(client, "/s", pause=lambda _: None))
