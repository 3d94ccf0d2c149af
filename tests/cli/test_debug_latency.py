"""`holon debug latency`: from what is on record, with or without a runtime."""

import json
from pathlib import Path

import pytest
from anyio import to_thread
from click.testing import CliRunner, Result

from holon.cli.console import exit_codes
from holon.cli.main import main
from tests.cli.operator_desk import open_desk


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["debug", "latency", "--home", str(home), *arguments])


async def test_the_time_of_turns_is_told_part_by_part_also_while_a_runtime_runs(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with open_desk(home) as desk:
        none_yet = await to_thread.run_sync(run, home)
        assert none_yet.stdout == "no turn of main begins and ends in its newest 2 events\n"
        await desk.said("prompt", "--wait", "look")
        await desk.said("prompt", "--wait", "hello")
        live = json.loads((await to_thread.run_sync(run, home, "--json")).stdout)
    assert (live["agent_id"], live["turn_count"]) == ("main", 2)
    at_rest, text, one = [
        await to_thread.run_sync(run, home, *more) for more in (("--json",), (), ("--limit", "1"))
    ]
    assert json.loads(at_rest.stdout) == live, "the same rows give the same figures"
    turns, parts = text.stdout.split("\n\n")
    assert turns.splitlines()[0].split()[:2] == ["TURN", "ENDED"]
    assert [line.split()[0] for line in parts.splitlines()[1:3]] == ["total", "queue"]
    assert len(one.stdout.split("\n\n")[0].splitlines()) == 2


@pytest.mark.requirement("console:latency-of-the-newest-events")
async def test_only_so_many_of_the_newest_events_are_looked_at(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with open_desk(home) as desk:
        await desk.said("prompt", "--wait", "look")
        await desk.said("prompt", "--wait", "hello")
    every, few = [
        json.loads((await to_thread.run_sync(run, home, "--json", "--events-limit", most)).stdout)
        for most in ("500", "5")
    ]
    assert (every["turn_count"], few["turn_count"], few["event_count"]) == (2, 0, 5)
    refused = await to_thread.run_sync(run, home, "--events-limit", "0")
    assert refused.exit_code == exit_codes.UNUSABLE


def test_no_database_ends_with_two(tmp_path: Path) -> None:
    done = run(tmp_path / "nowhere")
    assert done.exit_code == exit_codes.UNUSABLE
    assert "there is no database" in done.stderr


def test_an_agent_that_is_not_there_is_said_not_to_be(home: Path) -> None:
    done = run(home, "--agent", "nope")
    assert (done.exit_code, done.stdout) == (exit_codes.FAILED, "")
    assert done.stderr.startswith("holon: there is no agent nope\n")
