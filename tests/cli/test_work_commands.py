"""Tasks, timers, work items and triggers, over a running server."""

import sys

import pytest

from holon.cli.console import exit_codes
from holon.decide.tasks.commands import spec_of
from tests.cli.operator_desk import Desk


async def test_a_command_runs_as_a_task_and_its_output_is_waited_for(desk: Desk) -> None:
    assert await desk.said("task", "list") == "no tasks\n"
    kept = ("--yield-time-ms", "0", "--max-output-tokens", "500")
    command = "echo hi; printf 'a\\033[2Jb\\n'"
    started = await desk.told("task", "run", "Say hi", "--cmd", command, *kept)
    task_id = started["task"]["task_id"]
    assert await desk.said("task", "output", task_id, "--block") == "hi\nab\n"
    head, row = (await desk.said("task", "list")).splitlines()
    assert (head.split()[0], row.split()[0]) == ("TASK", task_id)
    record = await desk.server.host.reads.tasks.task(task_id)
    assert record is not None
    spec = spec_of(record)
    assert spec is not None
    assert (spec.yield_time_ms, spec.max_output_tokens) == (0, 500)
    facts = await desk.said("task", "status", task_id)
    assert "echo hi" in facts
    assert "completed" in facts
    answer = await desk.told("task", "output", task_id)
    assert (answer["retrieval_status"], answer["task"]["exit_status"]) == ("success", 0)


async def test_a_task_that_takes_input_is_fed_and_stopped(desk: Desk) -> None:
    started = await desk.told("task", "run", "Echo", "--cmd", "cat", "--tty")
    task_id = started["task"]["task_id"]
    waited = await desk.told("task", "output", task_id, "--block", "--timeout-ms", "1")
    assert waited["retrieval_status"] == "timeout"
    unended = await desk.holon("task", "output", task_id, "--block", "--timeout-ms", "1")
    assert unended.stderr == "holon: the task is still running\n"
    given = await desk.told("task", "input", task_id, "--text", "over to you")
    assert (given["accepted_input"], given["bytes_written"]) == (True, len("over to you\n"))
    assert "asked to end" in await desk.said("task", "stop", task_id)
    ended = await desk.told("task", "output", task_id, "--block")
    assert "over to you" in ended["task"]["output_preview"]
    refused = await desk.holon("task", "input", task_id, "--text", "still there?")
    assert (refused.exit_code, refused.stdout) == (exit_codes.FAILED, "")
    assert refused.stderr.startswith("holon: ")


async def test_a_task_without_a_terminal_names_the_option_it_lacks(desk: Desk) -> None:
    slow = ("--cmd", "sleep 60", "--yield-time-ms", "0")
    task_id = (await desk.told("task", "run", "Wait", *slow))["task"]["task_id"]
    refused = await desk.holon("task", "input", task_id, "--text", "hello")
    await desk.said("task", "stop", task_id)
    await desk.told("task", "output", task_id, "--block")
    assert refused.exit_code == exit_codes.FAILED
    assert "started without --tty" in refused.stderr


async def test_a_workspace_nobody_knows_is_looked_for_with_the_same_agent(desk: Desk) -> None:
    done = await desk.holon("workspace", "detach", "ws_none", "--agent", "main")
    assert done.exit_code == exit_codes.FAILED
    assert "holon workspace list --agent main" in done.stderr


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (("task", "status", "task_none"), exit_codes.FAILED, "task_none"),
        (("task", "output", "x", "--timeout-ms", "5"), exit_codes.UNUSABLE, "--block"),
        (("task", "run", "no command"), exit_codes.UNUSABLE, "--cmd"),
        (("timer", "cancel", "timer_none"), exit_codes.FAILED, "timer_none"),
        (("timer", "create"), exit_codes.UNUSABLE, "--after-ms"),
        (("timer", "create", "--every-ms", "5000"), exit_codes.UNUSABLE, "--every-ms needs"),
        (("timer", "create", "--after-ms", "0"), exit_codes.UNUSABLE, "--after-ms"),
        (("timer", "create", "--zone", "UTC", "--after-ms", "5000"), exit_codes.UNUSABLE, "--cron"),
        (
            ("timer", "create", "--cron", "* * * * *", "--after-ms", "1"),
            exit_codes.UNUSABLE,
            "either",
        ),
        (
            ("timer", "create", "--cron", "* * * * *", "--every-ms", "9"),
            exit_codes.UNUSABLE,
            "--every-ms",
        ),
        (("timer", "create", "--cron", "61 * * * *"), exit_codes.UNUSABLE, "minute"),
        (("timer", "create", "--cron", "0 0 30 2 *"), exit_codes.UNUSABLE, "never"),
        (
            ("timer", "create", "--cron", "@daily", "--zone", "Mars/Base"),
            exit_codes.UNUSABLE,
            "Europe/Berlin",
        ),
        (("work-item", "get", "work_none"), exit_codes.FAILED, "work_none"),
        (("work-item", "create", ""), exit_codes.UNUSABLE, "OBJECTIVE"),
    ],
)
async def test_what_cannot_be_done_is_said_in_a_sentence(
    desk: Desk, command: tuple[str, ...], code: int, words: str
) -> None:
    done = await desk.holon(*command)
    assert (done.exit_code, done.stdout) == (code, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


async def test_a_timer_is_set_listed_and_cancelled(desk: Desk) -> None:
    assert await desk.said("timer", "list") == "no timers\n"
    hour, day = str(3_600_000), str(86_400_000)
    created = await desk.told(
        "timer", "create", "--after-ms", hour, "--every-ms", day, "--summary", "Look again"
    )
    timer_id = created["timer"]["id"]
    assert created["timer"]["interval_ms"] == int(day)
    _, row = (await desk.said("timer", "list")).splitlines()
    assert row.startswith(timer_id)
    assert "24.0 h" in row
    assert "Look again" in row
    assert "cancelled" in await desk.said("timer", "cancel", timer_id)
    assert (await desk.told("timer", "list"))["timers"][0]["status"] == "cancelled"


@pytest.mark.requirement("operator-cli:timers-by-cron")
async def test_a_timer_by_cron_is_set_and_its_next_occurrence_is_listed(desk: Desk) -> None:
    asked = ("--cron", "30 9 1 1 *", "--zone", "Europe/Berlin", "--summary", "New year")
    created = (await desk.told("timer", "create", *asked))["timer"]
    assert (created["expression"], created["zone"]) == ("30 9 1 1 *", "Europe/Berlin")
    _, row = (await desk.said("timer", "list")).splitlines()
    assert "30 9 1 1 * (Europe/Berlin)" in row
    assert "-01-01 08:30" in row
    assert "fires at" in await desk.said("timer", "create", "--cron", "@hourly")


async def test_options_without_a_command_set_a_timer_as_they_used_to(desk: Desk) -> None:
    assert "fires at " in await desk.said("timer", "--after-ms", "3600000")


async def test_a_work_item_is_opened_picked_and_completed(desk: Desk) -> None:
    assert await desk.said("work-item", "list") == "no work items\n"
    created = await desk.told("work-item", "create", "Move the docs")
    item_id = created["work_item"]["id"]
    assert item_id in await desk.said("work-item", "list")
    assert "Move the docs" in await desk.said("work-item", "get", item_id)
    assert "current" in await desk.said("work-item", "pick", item_id)
    assert "completed" in await desk.said("work-item", "complete", item_id)
    assert (await desk.told("work-item", "get", item_id))["state"] == "completed"


async def test_a_list_that_goes_on_says_how_to_go_on(desk: Desk) -> None:
    for objective in ("one", "two", "three"):
        await desk.told("work-item", "create", objective)
    first = await desk.holon("work-item", "list", "--limit", "2")
    assert (first.exit_code, len(first.stdout.splitlines())) == (exit_codes.OK, 3)
    cursor = first.stderr.split()[-1]
    rest = await desk.told("work-item", "list", "--after", cursor)
    assert len(rest["work_items"]) == 1


async def test_the_address_of_a_trigger_is_shown_replaced_and_taken_back(desk: Desk) -> None:
    first = (await desk.said("trigger", "url")).strip()
    assert first == (await desk.told("trigger", "url"))["url"]
    path = first.removeprefix(desk.server.context.facts.base_url)
    assert (await desk.server.stranger.post(path)).status == 200
    second = (await desk.said("trigger", "rotate")).strip()
    assert second != first
    assert (await desk.server.stranger.post(path)).status == 404
    assert "no outside system can wake it" in await desk.said("trigger", "revoke")
    done = await desk.holon("trigger", "url")
    assert (done.exit_code, done.stdout) == (exit_codes.FAILED, "")
    assert "holon trigger rotate --agent main\n" in done.stderr, "not somebody else's"


async def test_what_an_agent_runs_is_not_shown_the_address(desk: Desk) -> None:
    connect = f"--connect unix:{desk.server.local.socket_path}"
    asks = f"{sys.executable} -m holon trigger url --agent main {connect} 2>&1"
    started = await desk.told("task", "run", "Ask", "--cmd", asks)
    told = await desk.said("task", "output", started["task"]["task_id"], "--block")
    assert "not act as the operator" in told
    assert "/callbacks/" not in told


async def test_a_work_item_is_changed_and_says_where_it_stands_once(desk: Desk) -> None:
    item_id = (await desk.told("work-item", "create", "Move the docs"))["work_item"]["id"]
    update = ("work-item", "update", item_id)
    await desk.said(*update, "--objective", "Move it all", "--blocked-by", "the release")
    shown = await desk.told("work-item", "get", item_id)
    assert (shown["objective"], shown["blocked_by"]) == ("Move it all", "the release")
    await desk.said(*update, "--unblock")
    assert "blocked_by" not in await desk.told("work-item", "get", item_id)
    assert await desk.said("work-item", "complete", item_id) == f"{item_id}: completed\n"
    for words in ((), ("--unblock", "--blocked-by", "x"), ("--recheck-after-ms", "5000")):
        assert (await desk.holon(*update, *words)).exit_code == exit_codes.UNUSABLE


async def test_triggers_are_listed_without_their_address(desk: Desk) -> None:
    address = (await desk.said("trigger", "url")).strip()
    for shown in (await desk.said("trigger", "list"), await desk.said("trigger", "list", "--json")):
        assert "active" in shown
        assert address not in shown


async def test_names_of_earlier_versions_still_work(desk: Desk) -> None:
    assert await desk.said("agents", "list") == await desk.said("agent", "list")
    assert await desk.said("control", "stop", "main") == "main is stopped\n"
    assert await desk.said("control", "start", "main") == "main may run\n"
    started = await desk.told("task", "Say hi", "--cmd", "echo hi")
    assert await desk.said("task", "output", started["task"]["task_id"], "--block") == "hi\n"
