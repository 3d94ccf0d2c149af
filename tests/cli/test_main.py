"""The root command: light to start, and it explains itself."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from holon import __version__
from holon.cli.main import COMMANDS, main

LOADED = """
import sys
sys.argv = ["holon", *{arguments!r}]
from holon.cli.main import main
try:
    main()
except SystemExit:
    pass
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("apsw", "msgspec", "anyio")
             or name.startswith(("holon.model", "holon.adapters"))), file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["debug", "check", "--help"]])
def test_help_and_version_load_neither_the_store_nor_the_model(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(arguments=arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "[]\n"


def test_version_is_the_packages_own() -> None:
    result = CliRunner().invoke(main, ["--version"])
    assert result.stdout == f"holon {__version__}\n"


def test_every_command_is_listed_with_the_line_it_gives_of_itself() -> None:
    listed = CliRunner().invoke(main, ["--help"]).stdout
    for name, lazy in COMMANDS.items():
        own = CliRunner().invoke(main, [name, "--help"])
        assert own.exit_code == 0
        assert lazy.summary in own.stdout
        assert lazy.summary in listed
    assert "Examples:" in listed


def test_an_unknown_command_is_bad_usage() -> None:
    result = CliRunner().invoke(main, ["dance"])
    assert result.exit_code == 2
    assert "No such command 'dance'" in result.stderr
