"""Cursors that say on which timeline they were given out."""

import pytest

from tests.http.serving import settled
from tests.support.control_server import MAIN, ControlServer

PAGE = f"/agents/{MAIN}/events"
STREAMS = (f"{PAGE}/stream", "/events/stream")
OTHER = "0123456789abcdef"


async def epoch_of(server: ControlServer) -> str:
    epoch = (await server.operator.get(f"{PAGE}?after_seq=0")).json()["event_log_epoch"]
    assert isinstance(epoch, str)
    return epoch


@pytest.mark.requirement("events:every-event-names-its-timeline")
async def test_pages_and_envelopes_name_the_timeline(server: ControlServer) -> None:
    await settled(server)
    epoch = await epoch_of(server)
    page = (await server.operator.get(f"{PAGE}?after_seq=0&event_log_epoch={epoch}")).json()
    assert {each["event_log_epoch"] for each in page["events"]} == {epoch}
    for path in STREAMS:
        async with server.operator.stream(f"{path}?after_seq=0") as stream:
            frame = await stream.event()
            assert frame.json()["event_log_epoch"] == epoch
            assert frame.id == "1", "the id is a plain number, as ever"


@pytest.mark.requirement("events:another-timeline-is-refused")
@pytest.mark.parametrize("path", [PAGE, *STREAMS])
async def test_a_cursor_of_another_timeline_is_refused_and_says_where_to_go_on(
    server: ControlServer, path: str
) -> None:
    await settled(server)
    epoch = await epoch_of(server)
    answer = await server.operator.get(f"{path}?after_seq=1&event_log_epoch={OTHER}")
    assert (answer.status, answer.json()["code"]) == (409, "log_epoch_changed")
    assert f"event_log_epoch={epoch}" in answer.json()["hint"]


@pytest.mark.requirement("events:another-timeline-is-refused")
@pytest.mark.parametrize("path", STREAMS)
async def test_an_id_may_carry_its_timeline(server: ControlServer, path: str) -> None:
    await settled(server)
    epoch = await epoch_of(server)
    for cursor in ("1", f"{epoch}:1"):
        header = (b"last-event-id", cursor.encode())
        async with server.operator.stream(path, headers=[header]) as stream:
            assert (await stream.event()).id == "2"
    other = (b"last-event-id", f"{OTHER}:1".encode())
    answer = await server.operator.send("GET", path, headers=[other])
    assert (answer.status, answer.json()["code"]) == (409, "log_epoch_changed")
    for bad in (":1", f"{epoch}:", f"{epoch}:x", "::1"):
        header = (b"last-event-id", bad.encode())
        answer = await server.operator.send("GET", path, headers=[header])
        assert answer.status in (400, 409), bad
