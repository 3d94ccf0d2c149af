"""Memory from a terminal, over a running server."""

import pytest

from holon.cli.console import exit_codes
from tests.cli.operator_desk import HARMLESS, Desk


@pytest.mark.requirement("memory-index:surfaces")
async def test_a_memory_is_searched_read_looked_at_and_rebuilt(desk: Desk) -> None:
    await desk.holon("prompt", "please look", "--wait")
    notes = desk.server.home / "agents" / "main" / "memory"
    notes.mkdir(parents=True, exist_ok=True)
    (notes / "self.md").write_text("我负责看管灯塔的日志。\n", encoding="utf-8")
    said = await desk.said("memory", "search", "灯塔日志")
    assert said.splitlines()[0].startswith("agent_memory:self  [external_evidence]")
    found = await desk.told("memory", "search", "saw", "--all-workspaces", "--limit", "3")
    ref = found["results"][0]["source_ref"]
    assert ref.startswith("brief:")
    assert HARMLESS in await desk.said("memory", "get", ref), "control characters stay out"
    status = await desk.told("memory", "status")
    assert (status["state"], status["agent_id"]) == ("ready", "main")
    rebuilt = await desk.holon("memory", "rebuild")
    assert (rebuilt.exit_code, rebuilt.stdout.split(":")[0]) == (0, "ready"), rebuilt.output
    begun = await desk.told("memory", "rebuild", "--no-wait")
    assert begun["ok"] is True


@pytest.mark.requirement("memory-index:surfaces")
async def test_what_cannot_be_found_is_said_in_a_sentence(desk: Desk) -> None:
    assert await desk.said("memory", "search", '" OR 1=1') == "nothing found\n"
    for arguments, code, words in (
        (("get", "brief:none"), exit_codes.FAILED, "nothing in the agent's memory"),
        (("get", "../secret"), exit_codes.UNUSABLE, "not a source_ref"),
        (("search", "x", "--agent", "nobody"), exit_codes.FAILED, "no agent nobody"),
        (("status", "--agent", "nobody"), exit_codes.FAILED, "no agent nobody"),
    ):
        done = await desk.holon("memory", *arguments)
        assert (done.exit_code, done.stdout) == (code, ""), arguments
        assert words in done.stderr


async def test_before_the_first_search_there_is_no_index(desk: Desk) -> None:
    none = "there is no index yet: the first search makes it\n"
    assert await desk.said("memory", "status") == none
    assert await desk.said("memory", "status") == none, "looking makes none"
    await desk.said("memory", "search", "lighthouse")
    assert (await desk.said("memory", "status")).startswith("ready: ")


async def test_a_memory_file_that_cannot_be_searched_is_told_by_status_too(desk: Desk) -> None:
    notes = desk.server.home / "agents" / "main" / "memory"
    notes.mkdir(parents=True, exist_ok=True)
    (notes / "self.md").unlink(missing_ok=True)
    (notes / "self.md").mkdir()
    searched = await desk.told("memory", "search", "x")
    looked = await desk.told("memory", "status")
    assert searched["notes"] == looked["notes"] != []
    assert "note: memory/self.md is not searched" in await desk.said("memory", "status")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("memory", "search", ""), "the query is empty"),
        (("memory", "search", " "), "the query is empty"),
        (("memory", "search", "x" * 1_001), "the query is 1001 characters long"),
        (("memory", "get", ""), "REF is empty"),
        (("debug", "prompt", ""), "TEXT is empty"),
    ],
)
async def test_what_no_runtime_would_take_is_refused_in_words(
    desk: Desk, arguments: tuple[str, ...], words: str
) -> None:
    done = await desk.holon(*arguments)
    assert (done.exit_code, done.stdout) == (exit_codes.UNUSABLE, "")
    said, hint = done.stderr.splitlines()
    assert said == f"holon: {words}"
    assert "$." not in hint
