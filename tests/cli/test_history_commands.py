"""`holon tail`, `transcript` and `events`, over a running server."""

import json
from typing import Any

import pytest

from holon.cli.console import exit_codes
from holon.cli.console.runtime_call import Target
from tests.cli.operator_desk import HARMLESS, Desk


@pytest.mark.requirement("operator-cli:agent-scoped-inspection")
async def test_tail_shows_results_and_as_much_more_as_its_mode_says(desk: Desk) -> None:
    assert await desk.said("tail") == "main has nothing to tell yet\n"
    await desk.said("prompt", "--wait", "look")
    info = await desk.said("tail")
    assert f"  {HARMLESS}\n" in info
    assert "\x1b" not in info
    assert "\u202e" not in info
    assert "ExecCommand" not in info
    verbose = await desk.said("tail", "--display", "4")
    assert "ExecCommand" in verbose
    assert len(verbose) > len(info)
    told = await desk.told("tail", "--display", "debug", "--limit", "2")
    assert (told["agent_id"], len(told["events"])) == ("main", 2)
    assert {"event_seq", "visibility", "category", "title", "summary"} <= set(told["events"][0])


async def test_a_brief_that_comes_while_tail_looks_is_not_shown_without_its_text(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.said("prompt", "--wait", "hello")
    honest, read = Target.read, list[str]()

    def before_it_came(target: Target, tail: str, *rest: Any, **more: Any) -> Any:
        read.append(tail)
        is_early = tail == "briefs" and "events" not in read
        return {"briefs": []} if is_early else honest(target, tail, *rest, **more)

    monkeypatch.setattr(Target, "read", before_it_came)
    assert "Hello yourself." in await desk.said("tail")


async def test_tail_knows_only_the_modes_of_a_conversation(desk: Desk) -> None:
    done = await desk.holon("tail", "--display", "trace")
    assert done.exit_code == exit_codes.UNUSABLE
    assert "info (3)" in done.stderr


async def test_tail_shows_an_unknown_kind_of_event_by_its_name(desk: Desk) -> None:
    from holon.cli.events.presented import presented_event

    odd = {"event_seq": 1, "ts": "2026-01-01T00:00:00Z", "agent_id": "main", "type": "new_kind"}
    seen = presented_event({**odd, "payload": {"kind": "new_kind", "x": 1}})
    assert (seen.presented.summary, seen.presented.visibility) == ("new_kind", "trace")


@pytest.mark.requirement("operator-cli:agent-scoped-inspection")
async def test_a_transcript_tells_a_turn_in_its_order(desk: Desk) -> None:
    assert await desk.said("transcript") == "main has no turns\n"
    await desk.said("prompt", "--wait", "look")
    await desk.said("prompt", "--wait", "hello")
    said = await desk.said("transcript")
    assert [said.index(each) for each in ("look", "echo hi", HARMLESS, "── turn 2", "hello")] == (
        sorted(said.index(each) for each in ("look", "echo hi", HARMLESS, "── turn 2", "hello"))
    )
    page = await desk.told("transcript", "--limit", "1")
    assert [turn["turn_index"] for turn in page["turns"]] == [2]
    assert "── turn 2" not in await desk.said("transcript", "--before", "2")


@pytest.mark.requirement("operator-cli:provider-history-is-kept")
async def test_a_transcript_keeps_the_attempts_at_a_provider_that_failed(desk: Desk) -> None:
    await desk.holon("prompt", "--wait", "fail")
    said = await desk.said("transcript")
    assert "attempt: " in said
    assert "fail_fast" in said
    (entry,) = [
        each
        for each in (await desk.told("transcript"))["turns"][0]["entries"]
        if each.get("failure")
    ]
    assert entry["provider_attempt_timeline"]["attempts"]


@pytest.mark.requirement("operator-cli:events-are-presented")
async def test_the_words_of_an_event_are_those_of_its_presentation(desk: Desk) -> None:
    await desk.said("prompt", "--wait", "hello")
    page = await desk.told("events", "tail", "--order", "asc")
    words = [each["summary"] for each in page["events"]]
    _, *rows = (await desk.said("events", "tail", "--order", "asc")).splitlines()
    assert [row.endswith(said) for row, said in zip(rows, words, strict=True)] == [True] * len(rows)


async def test_events_are_paged_in_either_direction_and_narrowed_by_level(desk: Desk) -> None:
    await desk.said("prompt", "--wait", "hello")
    newest = await desk.told("events", "tail", "--limit", "3")
    assert [each["event_seq"] for each in newest["events"]] == sorted(
        (each["event_seq"] for each in newest["events"]), reverse=True
    )
    oldest = await desk.told("events", "tail", "--after-seq", "0", "--limit", "2")
    assert [each["event_seq"] for each in oldest["events"]] == [1, 2]
    head, *rows = (await desk.said("events", "tail", "--max-level", "turn_result")).splitlines()
    assert head.split()[0] == "SEQ"
    assert [row.split()[3] for row in rows] == ["brief_created"]
    narrowed = await desk.told("events", "tail", "--max-level", "turn_result")
    assert [each["type"] for each in narrowed["events"]] == ["brief_created"]


async def test_a_stream_is_one_object_a_line_from_where_it_is_asked_for(desk: Desk) -> None:
    await desk.said("prompt", "--wait", "hello")
    command = ("events", "stream", "--after-seq", "1", "--max-events", "3")
    lines = (await desk.said(*command)).splitlines()
    assert [json.loads(line)["event_seq"] for line in lines] == [2, 3, 4]


async def test_a_cursor_of_the_future_is_refused_and_not_waited_for(desk: Desk) -> None:
    done = await desk.holon("events", "stream", "--after-seq", "99999")
    assert done.exit_code == exit_codes.FAILED
    assert done.stdout == ""


async def test_json_holds_nothing_a_terminal_would_obey(desk: Desk) -> None:
    await desk.said("prompt", "--wait", "look")
    raw = await desk.said("tail", "--json")
    assert "\\u202e" in raw
    assert "\u202e" not in raw
    assert "\x1b" not in raw
    assert "\u202e" in json.loads(raw)["events"][-1]["body"]


async def test_tail_says_which_prompt_a_brief_answers_and_when_in_which_zone(desk: Desk) -> None:
    message_id = (await desk.told("prompt", "--wait", "hello"))["message_id"]
    head, *_ = (await desk.said("tail")).splitlines()
    assert head[19:24] == " UTC "
    assert head.endswith(f"(answers {message_id}):")
    (told,) = (await desk.told("tail"))["events"]
    assert told["related_message_id"] == message_id
    (turn,) = [line for line in (await desk.said("transcript")).splitlines() if "── turn" in line]
    assert " UTC  " in turn


async def test_the_events_of_all_agents_are_followed_together(desk: Desk) -> None:
    await desk.said("agent", "create", "builder")
    command = ("events", "stream", "--all", "--after-seq", "0", "--max-events", "3")
    told = [json.loads(line) for line in (await desk.said(*command)).splitlines()]
    assert {each["agent_id"] for each in told} == {"main", "builder"}
