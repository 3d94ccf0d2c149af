"""ExecCommandBatch: several commands in order, each with its own place in one receipt."""

from typing import Any

import pytest

from holon.model.limits import COMMAND_BATCH_ITEMS_COUNT_MAX
from tests.runtime.cast import calls, rule, says
from tests.runtime.house import House, run_house
from tests.runtime.shellwork import receipts, shell_setup, tasks
from tests.support.scripted_shell import CommandScript

COMMANDS = {
    "ok": CommandScript(after_ms=10, stdout=b"fine\n"),
    "bad": CommandScript(after_ms=10, exit_status=3, stderr=b"oh\n"),
    "slow": CommandScript(after_ms=3_600_000, stdout=b"so far\n"),
    "stubborn": CommandScript(after_ms=3_600_000, ignores_terminate=True),
    "broken": CommandScript(cannot_start="no such shell"),
    "chatty": CommandScript(stdout=b"x" * 1_000_000),
    "zeros": CommandScript(stdout=b"\0" * 20_000),
    "serve &": CommandScript(stdout=b"4711\n", leaves_running=True),
}


def batch(*commands: str | dict[str, Any], **other: Any) -> House:
    """One batch, with what came of it."""

    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(600_000)

    items = [{"cmd": each} if isinstance(each, str) else each for each in commands]
    script = [rule("begin", calls("ExecCommandBatch", items=items, **other), says("done"))]
    return run_house(story, script=script, setup=shell_setup(commands=COMMANDS))


def receipt(house: House) -> dict[str, Any]:
    """The grouped receipt."""
    [told] = receipts(house)
    assert told["ok"] is True
    found: dict[str, Any] = told["result"]
    return found


@pytest.mark.requirement("command-tools:batch-is-sequential-and-grouped")
def test_every_item_runs_in_order_and_has_its_place_in_the_receipt() -> None:
    house = batch("ok", "bad", "ok")
    told = receipt(house)
    assert [item["status"] for item in told["items"]] == ["completed", "failed", "completed"]
    assert [item["index"] for item in told["items"]] == [0, 1, 2]
    assert (told["item_count"], told["completed_count"], told["failed_count"]) == (3, 2, 1)
    assert told["items"][0]["result"]["stdout_preview"] == "fine\n"
    assert told["items"][1]["result"]["exit_status"] == 3
    assert told["items"][1]["error_kind"] == "command_failed"
    assert all(item["duration_ms"] == 10 for item in told["items"])
    assert told["summary_text"].splitlines()[1].startswith("[1] failed")
    assert len({process.run_id for process in house.shell.started}) == 3
    assert house.shell.kept == []


@pytest.mark.requirement("command-tools:batch-stops-on-error-when-asked")
@pytest.mark.parametrize("bad", ["bad", "broken", "slow", {"cmd": "ok", "workdir": "/etc"}])
def test_with_stop_on_error_what_follows_is_skipped(bad: str | dict[str, Any]) -> None:
    house = batch("ok", bad, "ok", stop_on_error=True)
    told = receipt(house)
    assert told["items"][0]["status"] == "completed"
    assert told["items"][1]["status"] in {"failed", "rejected"}
    assert told["items"][2] == {"index": 2, "cmd": "ok", "status": "skipped"}
    assert told["skipped_count"] == 1


@pytest.mark.requirement("command-tools:batch-items-are-ended-in-time")
@pytest.mark.parametrize("slow", ["slow", "stubborn"])
def test_an_item_that_takes_too_long_is_ended_and_reported_and_no_task(slow: str) -> None:
    house = batch({"cmd": slow, "yield_time_ms": 500}, "ok")
    told = receipt(house)
    assert told["items"][0]["status"] == "failed"
    assert told["items"][0]["error_kind"] == "command_timed_out"
    assert told["items"][1]["status"] == "completed"
    assert tasks(house) == []
    assert house.shell.running == []


def test_an_item_that_cannot_start_fails_alone() -> None:
    told = receipt(batch("broken", {"cmd": "ok", "workdir": ".."}, "ok"))
    assert [item["status"] for item in told["items"]] == ["failed", "rejected", "completed"]
    assert told["items"][0]["error_kind"] == "command_spawn_failed"
    assert told["items"][1]["error_kind"] == "execution_root_violation"
    assert told["rejected_count"] == 1


@pytest.mark.requirement("command-tools:batch-items-are-restricted")
@pytest.mark.parametrize("field", ["tty", "accepts_input"])
def test_what_only_a_single_command_has_refuses_the_whole_batch(field: str) -> None:
    house = batch("ok", {"cmd": "ok", field: True})
    [told] = receipts(house)
    assert (told["ok"], told["kind"]) == (False, "unsupported_batch_command_field")
    assert told["field"] == f"items[1].{field}"
    assert house.shell.started == []


@pytest.mark.requirement("command-tools:batch-items-are-restricted")
@pytest.mark.parametrize(
    "arguments",
    [
        {"commands": [{"cmd": "ok", "tty": True}]},
        {"arguments": {"items": [{"cmd": "ok", "tty": True}]}},
        {"items": [{"command": "ok", "tty": True}]},
        {"items": ['{"cmd": "ok", "tty": true}']},
        {"items": '[{"cmd": "ok", "tty": true}]'},
        {"items": {"cmd": "ok", "tty": True}},
    ],
    ids=["renamed", "wrapped", "item-renamed", "item-as-text", "list-as-text", "one-item"],
)
def test_it_is_refused_however_the_batch_is_spelled(arguments: dict[str, Any]) -> None:
    async def story(house: House) -> None:
        await house.prompt("begin")
        await house.rest(600_000)

    script = [rule("begin", calls("ExecCommandBatch", **arguments), says("done"))]
    house = run_house(story, script=script, setup=shell_setup(commands=COMMANDS))
    [told] = receipts(house)
    assert (told["kind"], told["field"]) == ("unsupported_batch_command_field", "items[0].tty")
    assert house.shell.started == []


@pytest.mark.parametrize("count", [0, COMMAND_BATCH_ITEMS_COUNT_MAX + 1])
def test_a_batch_of_nothing_or_of_too_much_is_refused(count: int) -> None:
    house = batch(*["ok"] * count)
    [told] = receipts(house)
    assert (told["ok"], told["kind"]) == (False, "invalid_tool_input")
    assert house.shell.started == []


def test_a_full_batch_of_long_output_stays_within_one_result() -> None:
    house = batch(*[{"cmd": "chatty", "max_output_tokens": 64_000}] * COMMAND_BATCH_ITEMS_COUNT_MAX)
    told = receipt(house)
    assert all(item["result"]["truncated"] for item in told["items"])
    assert sum(len(item["result"]["stdout_preview"]) for item in told["items"]) < 260_000


@pytest.mark.requirement("command-tools:output-is-bounded")
def test_a_full_batch_of_output_that_json_makes_larger_keeps_every_item_and_file() -> None:
    house = batch(*[{"cmd": "zeros", "max_output_tokens": 64_000}] * COMMAND_BATCH_ITEMS_COUNT_MAX)
    told = receipt(house)
    assert all(item["result"]["truncated"] for item in told["items"])
    assert len(house.shell.kept) == COMMAND_BATCH_ITEMS_COUNT_MAX


@pytest.mark.requirement("command-tools:batch-is-sequential-and-grouped")
@pytest.mark.parametrize("long", [{"cmd": "#" * 80_000}, {"cmd": "ok", "workdir": "/" * 80_000}])
def test_long_arguments_do_not_push_what_came_of_them_out_of_the_receipt(
    long: dict[str, Any],
) -> None:
    told = receipt(batch(*[long] * 11, "ok"))
    assert told["items"][-1]["result"]["stdout_preview"] == "fine\n"
    assert all(len(item["cmd"]) < 3_000 for item in told["items"])


@pytest.mark.requirement("command-tools:nothing-nameless-runs-on")
def test_what_an_item_leaves_running_is_ended_and_told_of_that_item() -> None:
    house = batch("serve &", "ok")
    first, second = receipt(house)["items"]
    assert "ended" in first["result"]["notes"][0]
    assert "notes" not in second["result"]
    assert not any(process.left_running for process in house.shell.started)
