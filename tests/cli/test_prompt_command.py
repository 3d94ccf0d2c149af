"""`holon prompt`, over a running server."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from holon.cli import prompt
from holon.cli.console import exit_codes
from holon.cli.console.runtime_call import Target
from holon.client.control_client import ControlError
from holon.client.endpoint import NoRuntimeError
from holon.model.budgets import Budget, BudgetPolicy
from holon.model.events.event import MessageAdmitted
from holon.model.limits import CLIENT_RECONNECTS_COUNT_MAX
from holon.wire.codec import ErrorBody
from tests.cli.operator_desk import HARMLESS, Desk, open_desk
from tests.support.control_server import MAIN

ENDS = ("time_is_up", "too_many_waits", "runtime_ends")
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
    assert "the text is empty" in done.stderr


async def test_a_message_that_a_used_up_budget_holds_is_said_to_be_held(tmp_path: Path) -> None:
    async with open_desk(tmp_path / "home", ONE_TURN) as desk:
        assert await desk.said("prompt", "--wait", "hello") == "Hello yourself.\n", "not held"
        done = await desk.holon("prompt", "hello again")
        assert done.exit_code == exit_codes.OK
        assert done.stdout.startswith("queued for main: ")
        assert done.stderr.startswith("holon: held until 20")
        assert done.stderr.endswith(" UTC: a budget is exhausted\n")


@pytest.mark.parametrize(
    ("by", "why"),
    [
        ("budget_used_up", "a budget is exhausted"),
        ("provider_deferred", "the provider takes no more before then"),
    ],
)
async def test_what_holds_the_message_up_while_it_is_waited_for_is_told_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, by: str, why: str
) -> None:
    held = {"answered": False, "wait_end": "held", "held_by": by}
    first = [held | {"held_until": "2026-01-02T03:04:05Z"}] * 2
    waits_for(monkeypatch, first)
    done = await desk.holon("prompt", "--wait", "hello")
    assert done.stdout == "Hello yourself.\n"
    assert done.stderr == f"holon: held until 2026-01-02 03:04:05 UTC: {why}\n"


async def test_a_wait_whose_time_is_up_is_repeated_for_the_same_message(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits_for(monkeypatch, [{"answered": False, "wait_end": end} for end in ENDS])
    answer = await desk.told("prompt", "--wait", "hello")
    assert (answer["ended"], answer["brief"]["text"]) == ("processed", "Hello yourself.")
    assert (answer["ok"], answer["duplicate"], "answered" in answer) == (True, False, False)
    queued = await desk.server.host.reads.events.events_after(MAIN, 0, limit=512)
    assert sum(isinstance(each.event, MessageAdmitted) for each in queued) == 1


async def test_a_runtime_that_is_away_for_a_moment_is_waited_for(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = ControlError(503, ErrorBody(ok=False, error="it ends", code="shutting_down"))
    waits_for(monkeypatch, [NoRuntimeError("gone"), ending])
    assert await desk.said("prompt", "--wait", "hello") == "Hello yourself.\n"


async def test_a_refusal_while_waiting_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = ControlError(404, ErrorBody(ok=False, error="no such agent", code="agent_not_found"))
    waits_for(monkeypatch, [gone])
    done = await desk.holon("prompt", "--wait", "hello")
    assert done.exit_code == exit_codes.FAILED
    assert "no such agent" in done.stderr


async def test_what_is_no_text_is_bad_usage(desk: Desk) -> None:
    done = await desk.holon("prompt", "-", stdin=b"caf\xe9")
    assert done.exit_code == exit_codes.UNUSABLE
    assert "stdin is not UTF-8 text" in done.stderr


async def test_who_stops_waiting_is_told_where_the_answer_will_be(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits_for(monkeypatch, [KeyboardInterrupt()])
    done = await desk.holon("prompt", "--wait", "--agent", "main", "hello")
    assert done.exit_code == exit_codes.INTERRUPTED
    assert done.stderr == "holon: main goes on; see: holon tail --agent main\n"
    home = str(desk.server.home)
    waits_for(monkeypatch, [KeyboardInterrupt()])
    done = await desk.holon("prompt", "--wait", "--home", home, "hello")
    assert done.stderr == f"holon: main goes on; see: holon tail --home {home}\n"


@pytest.mark.parametrize("form", [(), ("--json",)])
async def test_who_loses_the_runtime_while_waiting_is_told_that_the_prompt_is_kept(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    tries = CLIENT_RECONNECTS_COUNT_MAX + 1
    waits_for(monkeypatch, [NoRuntimeError("nobody answers any more")] * tries)
    done = await desk.holon("prompt", "--wait", "--agent", "main", "hello", *form)
    assert done.exit_code == exit_codes.FAILED
    assert "nobody answers any more" in done.stderr
    told = done.stdout if form else done.stderr
    assert re.search(r"msg_\w+ is queued and will be answered; see: holon tail --agent main", told)


def waits_for(monkeypatch: pytest.MonkeyPatch, first: Sequence[Any]) -> None:
    """Have the first requests that wait end like this, and the next ones reach the runtime."""
    left, control = iter(first), Target.control

    def played(target: Target, tail: str, body: Any = None, **options: Any) -> Any:
        end = next(left, None) if "wait_ms" in (body or {}) else None
        if isinstance(end, BaseException):
            raise end
        return end or control(target, tail, body, **options)

    monkeypatch.setattr(Target, "control", played)
    monkeypatch.setattr(prompt, "_PAUSE_S", 0)
