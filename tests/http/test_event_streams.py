"""Streams of events over a real server: nothing missing, nothing twice, and a reason at the end."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskStatus

from holon.adapters.sqlite.events import SqliteEventReads
from holon.adapters.sqlite.store import open_store
from holon.adapters.system.clock import SystemClock
from holon.http.events import stream as event_stream
from holon.http.events import stream as token_watch
from holon.http.events.frames import EventFrames
from holon.http.events.stream import TokenWatch
from holon.model.events.retention import RetentionPolicy
from holon.model.values import later
from holon.runtime.events import feed
from holon.wire.codec import STREAM_CLOSED
from tests.http.serving import make_agent, settled
from tests.support.control_server import MAIN, ControlServer, control_server
from tests.support.http_caller import StreamedAnswer
from tests.support.manual_clock import ManualClock

STREAM = f"/agents/{MAIN}/events/stream"
ALL = "/events/stream"


async def numbers(stream: StreamedAnswer, *, upto: int) -> list[int]:
    """The ids of a stream until one is reached."""
    seen: list[int] = []
    while not seen or seen[-1] < upto:
        frame = await stream.event()
        assert frame.id is not None, frame
        seen.append(int(frame.id))
    return seen


async def in_order(stream: StreamedAnswer, *, after: int = 0, upto: int) -> None:
    """Read a stream up to a number, and insist on every number on the way."""
    for expected in range(after + 1, upto + 1):
        assert (await stream.event()).id == str(expected)


async def newest(server: ControlServer) -> int:
    return (await server.host.reads.events.event_bounds(MAIN))[1]


@pytest.mark.requirement("http:stream-has-no-gap-and-no-repeat")
async def test_a_stream_goes_on_where_the_last_one_ended(server: ControlServer) -> None:
    await settled(server)
    middle = await newest(server)
    async with server.operator.stream(f"{STREAM}?after_seq=0") as stream:
        first = await numbers(stream, upto=middle)
    await settled(server, "again")
    end = await newest(server)
    header = (b"last-event-id", str(middle).encode())
    async with server.operator.stream(f"{STREAM}?after_seq=0", headers=[header]) as stream:
        rest = await numbers(stream, upto=end)
    assert first + rest == list(range(1, end + 1))


@pytest.mark.requirement("http:stream-has-no-gap-and-no-repeat")
async def test_what_happens_while_one_reads_arrives(server: ControlServer) -> None:
    begun = await newest(server)
    async with server.operator.stream(STREAM) as stream, server.local.stream(STREAM) as second:
        for each in (stream, second):
            opened = await each.frame()
            assert opened is not None
            assert opened.data == "open"
        await settled(server)
        end = await newest(server)
        expected = list(range(begun + 1, end + 1))
        assert await numbers(stream, upto=end) == expected
        assert await numbers(second, upto=end) == expected
    assert server.host.events.follower_count <= 2


@pytest.mark.requirement("http:stream-has-no-gap-and-no-repeat")
@pytest.mark.parametrize("path", [STREAM, ALL])
async def test_what_happens_while_one_catches_up_comes_after_what_was_missed(
    server: ControlServer, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    await settled(server)
    monkeypatch.setattr(feed, "EVENT_PAGE_COUNT_DEFAULT", 3)
    async with server.operator.stream(f"{path}?after_seq=0") as stream:
        await in_order(stream, upto=1)
        await settled(server, "again")
        await in_order(stream, after=1, upto=await newest(server))


@pytest.mark.requirement("http:lagging-reader-is-never-skipped-ahead")
async def test_a_reader_that_was_held_up_gets_no_gap_but_the_end(
    server: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, held, released = await newest(server), anyio.Event(), anyio.Event()
    framed = EventFrames.of_agent

    async def slowly(*asked: Any) -> bytes:
        held.set()
        await released.wait()
        return await framed(*asked)

    monkeypatch.setattr(EventFrames, "of_agent", slowly)
    async with server.operator.stream(STREAM) as stream:
        await stream.frame()
        await settled(server)
        await held.wait()
        await settled(server, "again")
        monkeypatch.setattr(feed, "FEED_LAG_EVENTS_MAX", 2)
        released.set()
        seen = begun
        while (frame := await stream.event()).event != STREAM_CLOSED:
            seen += 1
            assert frame.id == str(seen), "an event was left out"
    assert begun < seen < await newest(server)
    assert frame.json()["code"] == "subscriber_lagged"


async def test_a_frame_is_the_envelope_of_the_page(server: ControlServer) -> None:
    await settled(server)
    told = (await server.operator.get(f"/agents/{MAIN}/events?after_seq=0")).json()
    async with server.operator.stream(f"{STREAM}?after_seq=0") as stream:
        for envelope in told["events"]:
            frame = await stream.event()
            assert frame.json() == envelope
            assert (frame.event, frame.id) == (envelope["type"], str(envelope["event_seq"]))


async def test_the_stream_of_all_shows_every_public_agent(server: ControlServer) -> None:
    start = await server.host.reads.events.last_log_seq()
    other = await make_agent(server, "other")
    child = await make_agent(server, "child", private=True)
    await settled(server, agent_id=child)
    await settled(server, agent_id=other)
    await settled(server)
    end = await server.host.reads.events.last_log_seq()
    expected = [
        each
        for each in await server.host.reads.events.log_after(start, limit=512)
        if each.agent_id != child
    ]
    async with server.operator.stream(f"{ALL}?after_seq={start}&projection=local_debug") as stream:
        for each in expected:
            frame = await stream.event()
            told = frame.json()
            assert frame.id == str(each.log_seq)
            assert (told["agent_id"], told["event_seq"]) == (each.agent_id, each.event_seq)
    assert expected[-1].log_seq <= end
    assert {each.agent_id for each in expected} == {MAIN, other}


async def test_a_silent_stream_says_that_it_lives(
    server: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "EVENT_HEARTBEAT_MS", 10)
    async with server.operator.stream(STREAM) as stream:
        seen = [await stream.frame() for _ in range(3)]
    assert [each.data for each in seen if each is not None] == ["open", "heartbeat", "heartbeat"]


async def test_a_reader_that_falls_behind_is_told_and_let_go(
    server: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await settled(server)
    monkeypatch.setattr(feed, "FEED_LAG_EVENTS_MAX", 2)
    for path in (STREAM, ALL):
        refused = await server.operator.get(f"{path}?after_seq=0")
        assert (refused.status, refused.json()["code"]) == (409, "subscriber_lagged")
    async with server.operator.stream(STREAM) as stream:
        await stream.frame()
        monkeypatch.setattr(feed, "FEED_LAG_EVENTS_MAX", -1)
        await server.operator.post(f"/control/agents/{MAIN}/prompt", {"text": "more"})
        while (frame := await stream.event()).event != STREAM_CLOSED:
            continue
        assert frame.json()["code"] == "subscriber_lagged"
        assert frame.json()["hint"]
        assert await stream.frame() is None


async def test_a_pruned_place_is_not_found(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with control_server(home) as server:
        await settled(server)
    store = open_store(home)
    policy = RetentionPolicy(age_ms=1, events_count_min=1, turns_count_min=1)
    tomorrow = later(SystemClock().now(), by_ms=86_400_000)
    while (await store.reads.events.event_bounds(MAIN))[0] == 0:
        await store.prune(policy, now=tomorrow)
    await store.close()
    async with control_server(home) as server:
        for path in (f"/agents/{MAIN}/events", STREAM, ALL):
            answer = await server.operator.get(f"{path}?after_seq=0")
            assert (answer.status, answer.json()["code"]) == (404, "cursor_not_found")
        end = await server.host.reads.events.last_log_seq()
        async with server.operator.stream(f"{ALL}?after_seq={end - 1}") as stream:
            assert await numbers(stream, upto=end) == [end]


async def test_s13_a_stream_ends_when_its_token_is_rotated(
    server: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "EVENT_HEARTBEAT_MS", 10)
    async with server.operator.stream(STREAM) as stream, server.local.stream(STREAM) as local:
        await stream.frame()
        monkeypatch.setattr("holon.adapters.system.control_token.FixedToken.digest", lambda _: b"")
        assert (await server.operator.get("/status")).status == 401
        closed = await stream.event()
        assert (closed.event, closed.json()["code"]) == (STREAM_CLOSED, "unauthorized")
        assert await stream.frame() is None
        for _ in range(3):  # nobody needs a token there
            assert await local.frame() is not None


async def test_s13_silent_streams_end_by_one_look_at_the_token_for_all(
    server: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_watch, "TOKEN_LOOK_MS", 10)
    async with server.operator.stream(STREAM) as stream, server.operator.stream(ALL) as other:
        for each in (stream, other):
            await each.frame()
        monkeypatch.setattr("holon.adapters.system.control_token.FixedToken.digest", lambda _: b"")
        for each in (stream, other):
            closed = await each.frame()  # the very next: no heartbeat was waited for
            assert closed is not None
            assert (closed.event, closed.json()["code"]) == (STREAM_CLOSED, "unauthorized")


async def test_a_token_is_looked_at_only_while_there_are_streams_that_need_one() -> None:
    clock = ManualClock()
    looks: list[int] = []
    woken: list[int] = []

    class Token:
        def digest(self) -> bytes | None:
            looks.append(1)
            return b""

    watch = TokenWatch()
    async with anyio.create_task_group() as watching:
        watching.start_soon(watch.run, Token(), clock, lambda: woken.append(1))
        await anyio.wait_all_tasks_blocked()
        clock.advance(60_000)
        assert (looks, woken) == ([], [])
        with watch.watched(), watch.watched():
            await anyio.wait_all_tasks_blocked()
            clock.advance(token_watch.TOKEN_LOOK_MS)
            await anyio.wait_all_tasks_blocked()
            assert (len(looks), len(woken)) == (2, 1)
        for _ in range(3):
            clock.advance(60_000)
            await anyio.wait_all_tasks_blocked()
        assert len(looks) == 3
        watching.cancel_scope.cancel()


@pytest.mark.parametrize("value", [b"x", b"-1", b"1_0", b"", b"9" * 30, b"\xd9\xa1"])
async def test_s30_a_last_event_id_is_a_number(server: ControlServer, value: bytes) -> None:
    header = (b"last-event-id", value)
    answer = await server.operator.send("GET", STREAM, headers=[header])
    assert (answer.status, answer.json()["code"]) == (400, "bad_last_event_id")


async def test_readers_at_one_place_share_one_look(
    server: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    looked = SqliteEventReads.events_page

    async def counted(self: SqliteEventReads, agent_id: object, query: object) -> object:
        looks.append(1)
        return await looked(self, agent_id, query)  # type: ignore[arg-type]

    monkeypatch.setattr(SqliteEventReads, "events_page", counted)
    async with anyio.create_task_group() as reading:
        arrived: list[list[int]] = []

        async def read(*, task_status: TaskStatus[None]) -> None:
            async with server.local.stream(STREAM) as stream:
                await stream.frame()
                task_status.started()
                arrived.append(await numbers(stream, upto=end))

        end = await newest(server) + 1
        for _ in range(20):
            await reading.start(read)
        looks.clear()
        await server.host.control.pause(MAIN)
    assert [each[0] for each in arrived] == [end] * 20
    assert len(looks) < 20
