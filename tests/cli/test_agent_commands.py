"""Agents, as an operator sees, makes and steers them over a running server."""

import json

import pytest
from anyio import to_thread
from click.testing import CliRunner

from holon.cli.console import exit_codes
from holon.cli.main import main
from holon.model.providers.attempts import ModelUnavailableError
from holon.model.providers.models import ModelRef
from holon.ports.providers import Candidate
from tests.cli.operator_desk import Desk
from tests.support.single_model import SingleModel


async def test_an_agent_is_made_listed_and_looked_at(desk: Desk) -> None:
    assert await desk.said("agent", "create", "builder") == "created agent builder\n"
    head, *rows = (await desk.said("agent", "list")).splitlines()
    assert head.split()[:4] == ["AGENT", "STATUS", "POSTURE", "QUEUED"]
    assert [row.split()[0] for row in rows] == ["builder", "main"]
    listed = await desk.told("agent", "list", "--limit", "1")
    assert [each["identity"]["agent_id"] for each in listed["agents"]] == ["builder"]
    assert "main" not in await desk.said("agent", "list", "--limit", "1")
    assert "agent " in await desk.said("agent", "status", "builder")


@pytest.mark.parametrize("name", ["", "b/1", "Builder", "x" * 65])
async def test_what_cannot_be_a_name_is_refused_before_anybody_is_asked(
    desk: Desk, name: str
) -> None:
    done = await desk.holon("agent", "create", name)
    assert (done.exit_code, done.stdout) == (exit_codes.UNUSABLE, "")
    assert "agent id" in done.stderr
    assert "%2F" not in done.stderr


@pytest.mark.requirement("operator-cli:agent-scoped-inspection")
async def test_status_is_about_the_default_agent_unless_one_is_named(desk: Desk) -> None:
    await desk.said("agent", "create", "builder")
    mine = await desk.told("status")
    assert mine["identity"]["agent_id"] == "main"
    facts = dict(line.split("  ", 1) for line in (await desk.said("status")).splitlines())
    assert facts["agent"].strip() == "main"
    other = await desk.told("status", "--agent", "builder")
    assert other["identity"]["agent_id"] == "builder"
    assert (await desk.told("agent", "status", "builder")) == other


@pytest.mark.parametrize("command", [("status", "--agent", "nobody"), ("agent", "stop", "nobody")])
async def test_an_unknown_agent_ends_with_the_runtimes_sentence(
    desk: Desk, command: tuple[str, ...]
) -> None:
    done = await desk.holon(*command)
    assert (done.exit_code, done.stdout) == (exit_codes.FAILED, "")
    assert "nobody" in done.stderr
    assert done.stderr.startswith("holon: ")


async def test_what_is_said_to_a_stopped_agent_comes_back_with_the_way_to_resume_it(
    desk: Desk,
) -> None:
    assert await desk.said("agent", "stop", "main") == "main is stopped\n"
    done = await desk.holon("prompt", "hello")
    assert done.exit_code == exit_codes.FAILED
    assert "stopped" in done.stderr.splitlines()[0]
    assert done.stderr.splitlines()[1].endswith("holon agent resume main")
    assert "holon agent resume main" in await desk.said("status")
    assert await desk.said("agent", "start", "main") == "main may run\n"
    assert await desk.said("prompt", "--wait", "hello") == "Hello yourself.\n"


async def test_there_is_nothing_to_abort_while_nothing_runs(desk: Desk) -> None:
    done = await desk.holon("agent", "abort", "main")
    assert done.exit_code == exit_codes.FAILED
    assert done.stderr.startswith("holon: ")


async def test_a_model_is_chosen_shown_and_given_back(desk: Desk) -> None:
    before = await desk.told("agent", "model", "get")
    assert (before["agent_id"], before["source"]) == ("main", "runtime_default")
    chosen = before["effective_model"]
    said = await desk.said("agent", "model", "set", chosen)
    assert "you, for this agent" in said
    assert (await desk.told("agent", "model", "get"))["override_model"] == chosen
    assert json.loads(await desk.said("agent", "model", "clear", "--json")) == before


async def test_a_name_that_could_be_a_path_is_refused_as_it_was_typed(desk: Desk) -> None:
    done = await desk.holon("status", "--agent", "../x?y#z")
    assert done.exit_code == exit_codes.UNUSABLE
    assert done.stderr.startswith("holon: '../x?y#z' is not a valid agent id\n")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("status", "--agent", "nobody"), "agent_not_found"),
        (("status", "--agent", "../x"), "bad_id"),
        (("timer", "create"), "bad_usage"),
        (("timer", "create", "--after-ms", "soon"), "bad_usage"),
        (("status", "--nope"), "bad_usage"),
        (("dance",), "bad_usage"),
        (("prompt", "hello", "--agent", "nobody"), "agent_not_found"),
    ],
)
async def test_a_script_is_told_of_a_failure_in_json_and_a_person_in_words(
    desk: Desk, command: tuple[str, ...], code: str
) -> None:
    done = await desk.holon(*command, "--json")
    told = json.loads(done.stdout)
    assert (told["ok"], told["code"]) == (False, code)
    assert told["error"] in done.stderr
    assert done.exit_code != exit_codes.OK


async def test_stopping_and_starting_twice_is_as_good_as_once(desk: Desk) -> None:
    assert await desk.said("agent", "start", "main") == "main is already running\n"
    assert await desk.said("agent", "stop", "main") == "main is stopped\n"
    assert await desk.said("agent", "stop", "main") == "main is already stopped\n"
    assert await desk.said("agent", "start", "main") == "main may run\n"


async def test_a_model_the_catalog_does_not_know_is_taken_with_a_warning(desk: Desk) -> None:
    done = await desk.holon("agent", "model", "set", "openai/gpt-of-next-year")
    assert done.exit_code == exit_codes.OK
    assert "openai/gpt-of-next-year is not in the catalog" in done.stderr
    listed = await desk.holon("agent", "model", "set", "openai/gpt-5.4")
    assert (listed.exit_code, listed.stderr) == (exit_codes.OK, "")


@pytest.mark.parametrize("name", ["nosuch/model", "nonsense"])
async def test_a_model_that_cannot_be_used_is_refused(
    desk: Desk, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(_models: object, ref: ModelRef) -> Candidate:
        raise ModelUnavailableError(f"there is no provider {ref.provider}")

    monkeypatch.setattr(SingleModel, "find", nowhere)
    done = await desk.holon("agent", "model", "set", name)
    assert (done.exit_code, done.stdout) == (exit_codes.UNUSABLE, "")
    assert name in done.stderr
    assert "override_model" not in await desk.told("agent", "model", "get")


async def test_a_wrong_token_leads_to_the_option_that_gives_the_right_one(desk: Desk) -> None:
    facts = desk.server.context.facts
    command = ("status", "--connect", facts.base_url, "--token", "wrong")
    done = await to_thread.run_sync(CliRunner().invoke, main, command)
    assert done.exit_code == exit_codes.FAILED
    assert "--token-file" in done.stderr


@pytest.mark.requirement("lifecycle:pause-and-resume-are-control-actions")
async def test_an_agent_is_paused_and_resumed_from_the_command_line(desk: Desk) -> None:
    assert await desk.said("agent", "pause", "main") == "main is paused\n"
    assert await desk.said("agent", "pause", "main") == "main is already paused\n"
    assert (await desk.told("prompt", "hello"))["ok"] is True
    assert "holon agent resume main" in await desk.said("status")
    assert await desk.said("agent", "resume", "main") == "main may run\n"
    assert await desk.said("agent", "resume", "main") == "main is already running\n"
