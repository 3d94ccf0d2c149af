"""The root command: light to start, and it explains itself."""

import subprocess
import sys
from collections.abc import Callable

import click
import pytest
from click.testing import CliRunner

from holon import __version__
from holon.cli.console import exit_codes
from holon.cli.main import COMMANDS, main
from holon.model.errors import BadInputError, HolonError, HomeInUseError, StoreError

LOADED = """
import sys
sys.argv = ["holon", *{arguments!r}]
from holon.cli.main import main
try:
    main()
except SystemExit:
    pass
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("apsw", "msgspec", "anyio")
             or name.startswith(("holon.model", "holon.adapters", "holon.config"))),
      file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["--version"], ["config", "schema"]])
def test_an_output_without_room_is_told_in_a_sentence(arguments: list[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "holon", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    said = "holon: cannot write the output: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["debug", "check", "--help"],
        ["config", "--help"],
        ["config", "set", "--help"],
        ["config", "providers", "set", "--help"],
        ["config", "credentials", "set", "--help"],
        ["prompt", "--help"],
        ["status", "--help"],
        ["tail", "--help"],
        ["events", "stream", "--help"],
        ["agent", "model", "set", "--help"],
        ["task", "output", "--help"],
        ["timer", "create", "--help"],
        ["work-item", "list", "--help"],
        ["trigger", "url", "--help"],
        ["completion", "--help"],
    ],
)
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
    listed = " ".join(CliRunner().invoke(main, ["--help"]).stdout.split())
    for name, lazy in COMMANDS.items():
        own = CliRunner().invoke(main, [name, "--help"])
        assert own.exit_code == 0
        assert lazy.summary in " ".join(own.stdout.split())
        assert lazy.summary in listed
    assert "Examples:" in listed


def test_an_unknown_command_is_bad_usage() -> None:
    result = CliRunner().invoke(main, ["dance"])
    assert result.exit_code == 2
    assert "No such command 'dance'" in result.stderr


def raising(error: Exception) -> click.Command:
    def fail() -> None:
        raise error

    return click.Command("fail", callback=fail)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            BadInputError("no such thing", hint="try another"),
            2,
            "holon: no such thing\n       try another\n",
        ),
        (HomeInUseError("it is taken"), 2, "holon: it is taken\n"),
        (StoreError("the disk is gone"), 1, "holon: the disk is gone\n"),
    ],
)
def test_an_error_of_ours_ends_with_a_sentence(
    error: HolonError, code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "get_command", lambda _context, _name: raising(error))
    result = CliRunner().invoke(main, ["fail"])
    assert (result.exit_code, result.stdout, result.stderr) == (code, "", said)


def test_an_error_that_is_not_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "get_command", lambda _context, _name: raising(KeyError("bug")))
    assert isinstance(CliRunner().invoke(main, ["fail"]).exception, KeyError)


def interrupted(*_args: object, **_kwargs: object) -> str:
    raise KeyboardInterrupt


def asked_and_interrupted() -> None:
    with pytest.MonkeyPatch.context() as patched:  # the runner has put its own there
        patched.setattr("click.termui.hidden_prompt_func", interrupted)
        click.prompt("Secret", hide_input=True)


@pytest.mark.parametrize("callback", [interrupted, asked_and_interrupted])
def test_ctrl_c_ends_every_command_with_the_same_number(
    callback: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = click.Command("x", callback=callback)
    monkeypatch.setattr(main, "get_command", lambda _context, _name: command)
    result = CliRunner().invoke(main, ["x"])
    assert result.exit_code == exit_codes.INTERRUPTED
    assert result.stderr.endswith("holon: interrupted\n")


def test_no_answer_to_a_question_is_no_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    asking = click.Command("ask", callback=lambda: click.prompt("Secret"))
    monkeypatch.setattr(main, "get_command", lambda _context, _name: asking)
    assert CliRunner().invoke(main, ["ask"], input="").exit_code == exit_codes.FAILED


LOADING = """
import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "holon.cli.main":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from holon.__main__ import start
start()
"""


def test_ctrl_c_while_the_command_is_loaded_is_told_in_a_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADING], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (exit_codes.INTERRUPTED, "holon: interrupted\n")
