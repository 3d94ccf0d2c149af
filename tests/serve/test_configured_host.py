"""A host as its settings say: what they decide about tools reaches the commands."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec
import pytest

from holon.config.load_settings import load_settings
from holon.model.events.event import ToolExecuted
from holon.serve.configured_host import open_configured_host
from tests.runtime.cast import prompt_for
from tests.support.builders import MAIN, an_identity

PATIENCE_S: Final = 60
WRITTEN_BYTES: Final = 100_000
SCRIPT: Final = """
rules:
  - rounds:
      - calls: [{name: ExecCommand, input: {cmd: "head -c 100000 /dev/zero | tr '\\\\0' x"%s}}]
      - text: Done.
"""


async def told_of_long_output(home: Path, environ: dict[str, str], asked: str = "") -> Any:
    """What a model reads about a command that writes a lot, on a host with these variables."""
    script = home / "script.yaml"
    script.write_text(SCRIPT % asked, encoding="utf-8")
    settings = load_settings(home, environ, {"model.default": f"scripted/{script}"})
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(home)}
    with anyio.fail_after(PATIENCE_S):
        async with open_configured_host(settings, surroundings) as served:
            host = served.host
            await host.control.create_agent(an_identity())
            await host.admit(prompt_for("go"))
            async for audit in host.events.follow(MAIN, after=0):
                if isinstance(audit.event, ToolExecuted):
                    log = await host.reads.turns.turn_log(audit.event.turn_id)
                    assert log is not None
                    receipt = log.calls[0].receipt
                    assert receipt is not None
                    return msgspec.json.decode(receipt.content)["result"]
    raise AssertionError("the log came to an end")


@pytest.mark.requirement("command-tools:output-budget-is-configured")
@pytest.mark.parametrize(
    ("environ", "asked", "shown_bytes"),
    [
        ({}, "", 32_000),
        ({"HOLON_DEFAULT_TOOL_OUTPUT_TOKENS": "500"}, "", 2_000),
        ({"HOLON_DEFAULT_TOOL_OUTPUT_TOKENS": "500"}, ", max_output_tokens: 1000", 4_000),
        ({"HOLON_MAX_TOOL_OUTPUT_TOKENS": "1000"}, "", 4_000),
        ({"HOLON_MAX_TOOL_OUTPUT_TOKENS": "1000"}, ", max_output_tokens: 9000", 4_000),
    ],
)
async def test_a_model_is_shown_as_much_of_a_commands_output_as_the_settings_say(
    environ: dict[str, str], asked: str, shown_bytes: int, tmp_path: Path
) -> None:
    result = await told_of_long_output(tmp_path, environ, asked)
    assert result["truncated"] is True
    assert result["stdout_preview"].count("x") == shown_bytes
    [artifact] = result["artifacts"]
    assert Path(artifact["path"]).stat().st_size == WRITTEN_BYTES


@pytest.mark.requirement("command-tools:output-budget-is-configured")
@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        (
            "HOLON_DEFAULT_TOOL_OUTPUT_TOKENS",
            "lots",
            "runtime.default_tool_output_tokens: expected",
        ),
        ("HOLON_DEFAULT_TOOL_OUTPUT_TOKENS", "99", "a whole number from 100 to 100000"),
        ("HOLON_MAX_TOOL_OUTPUT_TOKENS", "100001", "runtime.max_tool_output_tokens: expected"),
        ("HOLON_MAX_TOOL_OUTPUT_TOKENS", "-1", "(from $HOLON_MAX_TOOL_OUTPUT_TOKENS)"),
        (
            "HOLON_DEFAULT_TOOL_OUTPUT_TOKENS",
            "70000",
            "is more than runtime.max_tool_output_tokens",
        ),
    ],
)
def test_a_budget_that_makes_no_sense_is_bad_usage_and_changes_nothing(
    variable: str, value: str, sentence: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    bare = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HOLON_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-m", "holon", "run", "hi", "--model", "scripted/hello"],
        env={**bare, variable: value},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not (home / "state").exists()
