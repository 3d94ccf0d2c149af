"""`holon prompt`, over a running server."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holon.cli import awaited_answer, exit_codes
from holon.client.endpoint import NoRuntimeError
from holon.client.event_stream import follow
from holon.model.budget import Budget, BudgetPolicy
from holon.wire.server_sent_events import SseEvent
from tests.cli.operator_desk import HARMLESS, Desk, open_desk

ONE_TURN = BudgetPolicy(agent=Budget(turns_per_hour=1))


async def test_what_is_said_is_queued_and_told_by_its_id(desk: Desk) -> None:
    receipt = await desk.told("prompt", "hello")
    assert (receipt["ok"], receipt["agent_id"]) == (True, "main")
    assert receipt["message_id"] in await desk.said("events", "tail")


async def test_the_same_key_is_the_same_message_and_answers_again(desk: Desk) -> None:
    command = ("prompt", "--idempotency-key", "once", "hello")
    first, again = await desk.told(*command), await desk.told(*command)
    assert (again["message_id"], again["duplicate"]) == (first["message_id"], True)
    assert "already there" in await desk.said(*command)
    assert await desk.said(*command, "--wait") == "Hello yourself.\n"
    assert await desk.said(*command, "--wait") == "Hello yourself.\n", "ended before it was asked"
    other = await desk.holon("prompt", "--idempotency-key", "once", "something else")
    assert other.exit_code == exit_codes.FAILED


async def test_an_answer_that_is_waited_for_is_printed_without_what_a_terminal_obeys(
    desk: Desk,
) -> None:
    assert await desk.said("prompt", "--wait", "look") == f"{HARMLESS}\n"
    answer = await desk.told("prompt", "--wait", "look")
    assert (answer["ended"], answer["brief"]["kind"]) == ("processed", "result")


async def test_a_turn_that_fails_is_told_and_ends_with_one(desk: Desk) -> None:
    done = await desk.holon("prompt", "--wait", "fail")
    assert done.exit_code == exit_codes.FAILED
    assert done.stdout.strip()
    as_json = await desk.holon("prompt", "--wait", "--json", "fail")
    told = json.loads(as_json.stdout)
    assert (as_json.exit_code, told["ok"], told["ended"]) == (exit_codes.FAILED, False, "processed")


async def test_an_interjection_with_nothing_running_is_answered_as_a_message(desk: Desk) -> None:
    assert await desk.said("prompt", "--interject", "--wait", "hello") == "Hello yourself.\n"


async def test_the_text_may_come_from_stdin(desk: Desk) -> None:
    assert await desk.said("prompt", "--wait", "-", stdin="please look\n") == f"{HARMLESS}\n"


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_nothing_to_say_is_bad_usage(desk: Desk, text: str) -> None:
    done = await desk.holon("prompt", "-", stdin=text)
    assert done.exit_code == exit_codes.UNUSABLE
    assert "nothing to say" in done.stderr


async def test_a_message_that_a_used_up_budget_holds_is_said_to_be_held(tmp_path: Path) -> None:
    async with open_desk(tmp_path / "home", ONE_TURN) as desk:
        assert await desk.said("prompt", "--wait", "hello") == "Hello yourself.\n", "not held"
        done = await desk.holon("prompt", "hello again")
        assert done.exit_code == exit_codes.OK
        assert done.stdout.startswith("queued for main: ")
        assert done.stderr.startswith("holon: held until 20")
        assert done.stderr.endswith(" UTC: a budget is used up\n")


async def test_a_budget_found_used_up_while_somebody_waits_is_told_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = (
        '{"event_seq": 1, "ts": "2026-01-02T03:04:04Z", "agent_id": "main", "type": "x",'
        ' "payload": {"kind": "budget_used_up", "until": "2026-01-02T03:04:05Z"}}'
    )

    def followed(*args: Any, **kwargs: Any) -> Iterator[SseEvent]:
        yield from [SseEvent(event="budget_used_up", data=held)] * 2
        yield from follow(*args, **kwargs)

    monkeypatch.setattr(awaited_answer, "follow", followed)
    done = await desk.holon("prompt", "--wait", "hello")
    assert done.stdout == "Hello yourself.\n"
    assert done.stderr == "holon: held until 2026-01-02 03:04:05 UTC: a budget is used up\n"


async def test_what_is_no_text_is_bad_usage(desk: Desk) -> None:
    done = await desk.holon("prompt", "-", stdin=b"caf\xe9")
    assert done.exit_code == exit_codes.UNUSABLE
    assert "stdin is not UTF-8 text" in done.stderr


async def test_who_stops_waiting_is_told_where_the_answer_will_be(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_args: Any, **_kwargs: Any) -> Iterator[SseEvent]:
        raise KeyboardInterrupt

    monkeypatch.setattr(awaited_answer, "follow", interrupted)
    done = await desk.holon("prompt", "--wait", "--agent", "main", "hello")
    assert done.exit_code == exit_codes.INTERRUPTED
    assert done.stderr == "holon: main goes on; see: holon tail --agent main\n"
    home = str(desk.server.home)
    done = await desk.holon("prompt", "--wait", "--home", home, "hello")
    assert done.stderr == f"holon: main goes on; see: holon tail --home {home}\n"


async def test_a_provider_that_puts_the_message_off_is_told(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_off = (
        '{"event_seq": 1, "ts": "2026-01-02T03:04:04Z", "agent_id": "main", "type": "x",'
        ' "payload": {"kind": "provider_deferred", "until": "2026-01-02T03:04:05Z"}}'
    )

    def followed(*args: Any, **kwargs: Any) -> Iterator[SseEvent]:
        yield from [SseEvent(event="provider_deferred", data=put_off)] * 2
        yield from follow(*args, **kwargs)

    monkeypatch.setattr(awaited_answer, "follow", followed)
    done = await desk.holon("prompt", "--wait", "hello")
    assert done.stdout == "Hello yourself.\n"
    [line] = done.stderr.splitlines()
    assert line.startswith("holon: held until 2026-01-02 03:04:05 UTC: the provider ")


@pytest.mark.parametrize("form", [(), ("--json",)])
async def test_who_loses_the_runtime_while_waiting_is_told_that_the_prompt_is_kept(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    def gone(*_args: Any, **_kwargs: Any) -> Iterator[SseEvent]:
        raise NoRuntimeError("nobody answers any more")

    monkeypatch.setattr(awaited_answer, "follow", gone)
    done = await desk.holon("prompt", "--wait", "--agent", "main", "hello", *form)
    assert done.exit_code == exit_codes.FAILED
    assert "nobody answers any more" in done.stderr
    told = done.stdout if form else done.stderr
    assert re.search(r"msg_\w+ is queued and will be answered; see: holon tail --agent main", told)
