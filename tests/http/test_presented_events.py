"""Events as they are replayed: how they read, what they are about, and how much is left out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holon.adapters.sqlite.events import SqliteEventReads
from holon.adapters.system.clock import SystemClock
from holon.model.events.event import AuditEvent, BriefCreated, ClosureDecided
from tests.http.serving import settled
from tests.projections.presented import present_all
from tests.runtime.cast import calls, rule, says
from tests.support.control_server import MAIN, ControlServer, ServerOptions, control_server
from tests.support.scripted_provider import Script, ScriptedProvider
from tests.support.single_model import SingleModel

EVENTS = f"/agents/{MAIN}/events"
STREAMS = (f"{EVENTS}/stream", "/events/stream")
PRESENTED = ("visibility", "category", "title", "summary")
Wire = dict[str, Any]


async def page(server: ControlServer, query: str) -> Wire:
    answer = await server.operator.get(f"{EVENTS}?{query}")
    assert answer.status == 200, answer.body
    told: Wire = answer.json()
    return told


async def followed(server: ControlServer, path: str, *, count: int) -> list[Wire]:
    async with server.operator.stream(path) as stream:
        return [(await stream.event()).json() for _ in range(count)]


def without_place(envelope: Wire) -> Wire:
    return {name: told for name, told in envelope.items() if name != "event_log_epoch"}


@pytest.mark.requirement("events:presented-on-the-wire")
async def test_every_event_says_how_it_reads_on_pages_and_streams(server: ControlServer) -> None:
    await settled(server)
    told = (await page(server, "after_seq=0"))["events"]
    assert all(each[name] for each in told for name in PRESENTED)
    found = await server.host.reads.events.events_after(MAIN, 0, limit=512)
    assert [each["category"] for each in told] == [str(p.category) for p in present_all(found)]
    (brief,) = [each for each in told if each["type"] == "brief_created"]
    kept = await server.host.reads.events.brief(brief["payload"]["brief_id"])
    assert kept is not None
    assert (brief["summary"], brief["body"]) == (kept.text, kept.text)
    assert brief["visibility"] == "turn_result"
    for path in STREAMS:
        streamed = await followed(server, f"{path}?after_seq=0", count=len(told))
        assert list(map(without_place, streamed)) == list(map(without_place, told))


@pytest.mark.requirement("events:presented-alone")
async def test_a_brief_reads_the_same_wherever_a_page_begins(server: ControlServer) -> None:
    await settled(server, "ask")
    whole = (await page(server, "after_seq=0"))["events"]
    (brief,) = [each for each in whole if each["type"] == "brief_created"]
    assert brief["payload"]["visibility"] == brief["visibility"]
    (alone,) = (await page(server, f"after_seq={brief['event_seq'] - 1}&limit=1"))["events"]
    assert alone == brief


@pytest.mark.requirement("events:presented-alone")
async def test_a_brief_of_an_older_version_is_read_from_what_is_around_it(
    server: ControlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await settled(server)

    def older(event: AuditEvent) -> AuditEvent:
        told = event.event
        if isinstance(told, BriefCreated):
            told = msgspec.structs.replace(told, visibility=None, turn_id=None)
        if isinstance(told, ClosureDecided):
            told = msgspec.convert(
                {"kind": "closure_decided", "outcome": "waiting"}
                | {"waiting_reason": "awaiting_operator_input"},
                ClosureDecided,
            )
        return msgspec.structs.replace(event, event=told)

    sliced, following = SqliteEventReads.events_page, SqliteEventReads.events_after

    async def old_slice(self: Any, *asked: Any) -> Any:
        found = await sliced(self, *asked)
        return msgspec.structs.replace(found, events=tuple(map(older, found.events)))

    async def old_events(self: Any, *asked: Any, limit: int) -> Sequence[AuditEvent]:
        return [older(each) for each in await following(self, *asked, limit=limit)]

    monkeypatch.setattr(SqliteEventReads, "events_page", old_slice)
    monkeypatch.setattr(SqliteEventReads, "events_after", old_events)
    whole = (await page(server, "after_seq=0"))["events"]
    (brief,) = [each for each in whole if each["type"] == "brief_created"]
    (alone,) = (await page(server, f"after_seq={brief['event_seq'] - 1}&limit=1"))["events"]
    assert (brief["visibility"], alone) == ("action_required", brief)


@pytest.mark.requirement("events:narrowed-by-level")
async def test_a_narrowed_page_says_how_far_it_looked(server: ControlServer) -> None:
    await settled(server)
    _, newest = await server.host.reads.events.event_bounds(MAIN)
    seen: list[str] = []
    after, has_newer = 0, True
    while has_newer:
        told = await page(server, f"after_seq={after}&limit=3&max_level=turn_result")
        assert told["newest_seq"] == min(after + 3, newest)
        seen += [each["type"] for each in told["events"]]
        after, has_newer = told["newest_seq"], told["has_newer"]
    assert seen == ["brief_created"]
    refused = await server.operator.get(f"{EVENTS}?max_level=loud")
    assert (refused.status, refused.json()["code"]) == (400, "bad_query")


@pytest.mark.requirement("events:narrowed-by-level")
@pytest.mark.parametrize("path", STREAMS)
async def test_a_narrowed_stream_passes_over_the_rest_and_says_how_far(
    server: ControlServer, path: str
) -> None:
    await settled(server)
    _, newest = await server.host.reads.events.event_bounds(MAIN)
    async with server.operator.stream(f"{path}?after_seq=0&max_level=turn_result") as stream:
        events, last = list[str](), 0
        while last < newest:
            frame = await stream.frame()
            assert frame is not None
            if frame.event is not None:
                events.append(frame.event)
            if frame.id is not None:
                assert int(frame.id) > last
                last = int(frame.id)
    assert (events, last) == (["brief_created"], newest)


@pytest.mark.requirement("events:provenance-of-the-turn")
async def test_an_event_of_a_turn_carries_what_the_turn_is_about(server: ControlServer) -> None:
    item = await server.host.work.create(MAIN, objective="deploy")
    await server.host.work.focus(item.id)
    message_id = await settled(server)
    told = (await page(server, "after_seq=0&limit=512"))["events"]
    (turn,) = [
        each["payload"]["turn_id"]
        for each in told
        if each["type"] == "turn_started" and each["payload"]["message_id"] == message_id
    ]
    turns = [each for each in told if each["provenance"].get("turn_id") == turn]
    assert {"assistant_round_recorded", "turn_terminal", "brief_created"} <= {
        each["type"] for each in turns
    }
    for each in turns:
        about = each["provenance"]
        assert (about["message_id"], about["work_item_id"]) == (message_id, item.id), each["type"]
        assert about["authority_class"] == "operator_instruction"


@pytest.mark.requirement("events:provenance-of-the-turn")
async def test_what_a_turn_did_besides_carries_what_the_turn_is_about(tmp_path: Path) -> None:
    script = Script(
        rules=(rule("go", calls("CreateWorkItem", objective="tell all"), says("done")),)
    )
    model = SingleModel(ScriptedProvider(script, SystemClock()))
    async with control_server(tmp_path / "home", ServerOptions(models=model)) as server:
        await _told_with_the_turn(server)


async def _told_with_the_turn(server: ControlServer) -> None:
    item = await server.host.work.create(MAIN, objective="deploy")
    await server.host.work.focus(item.id)
    message_id = await settled(server, "go")
    told = (await page(server, "after_seq=0&limit=512"))["events"]
    begun = next(
        at
        for at, each in enumerate(told)
        if each["type"] == "turn_started" and each["payload"]["message_id"] == message_id
    )
    ended = next(
        at for at, each in enumerate(told) if at > begun and each["type"] == "closure_decided"
    )
    written = [each for each in told[begun:ended] if each["type"] == "work_item_written"]
    (created,) = [each for each in written if each["payload"]["work_item_id"] != item.id]
    turn_id = told[begun]["provenance"]["turn_id"]
    for each in (created, told[ended], *told[begun : ended + 1]):
        about = each["provenance"]
        assert (about.get("turn_id"), about.get("message_id")) == (turn_id, message_id), each
        assert about["authority_class"] == "operator_instruction"
    assert created["provenance"]["work_item_id"] == created["payload"]["work_item_id"]
    assert told[ended]["provenance"]["work_item_id"] == item.id
