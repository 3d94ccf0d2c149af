"""What a shell is given, and what it is answered."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from holon.cli.main import COMMANDS, main

COMPLETED = """
import sys
from holon.cli.main import main
main(prog_name="holon")
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script_that_asks_holon(shell: str) -> None:
    done = CliRunner().invoke(main, ["completion", shell])
    assert done.exit_code == 0
    assert f"_HOLON_COMPLETE={shell}_complete" in done.stdout


def test_an_unknown_shell_is_bad_usage() -> None:
    assert CliRunner().invoke(main, ["completion", "tcsh"]).exit_code == 2


def completed(words: str, index: int) -> set[str]:
    """Ask a real process what may stand there."""
    asked = {"_HOLON_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(index)}
    done = subprocess.run(
        [sys.executable, "-c", COMPLETED],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    return {line.partition(",")[2] for line in done.stdout.splitlines()}


def test_commands_and_options_are_completed() -> None:
    assert completed("holon ", 1) == set(COMMANDS)
    assert completed("holon ti", 1) == {"timer"}
    assert completed("holon timer c", 2) == {"cancel", "create"}
    assert "--follow" in completed("holon tail --f", 2)
