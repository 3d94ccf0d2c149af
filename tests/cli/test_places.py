"""Paths and words that cannot be meant are refused where they are typed."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holon.cli.console import exit_codes
from holon.cli.main import main

NO_TEXT = os.fsdecode(b"\xff")


def refused(*arguments: str, **variables: str) -> Result:
    done = CliRunner().invoke(main, list(arguments), env=variables)
    assert done.exit_code == exit_codes.UNUSABLE, done.output
    assert isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.fixture
def gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Standing in a directory that somebody has removed."""
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    yield
    os.chdir(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        ("task", "status", NO_TEXT),
        ("timer", "list", "--after", NO_TEXT),
        ("memory", "search", NO_TEXT),
        ("prompt", NO_TEXT),
        ("daemon", "start", "--token-file", NO_TEXT),
        (NO_TEXT,),
    ],
)
def test_what_is_not_text_is_refused_wherever_it_stands(arguments: tuple[str, ...]) -> None:
    assert "is not UTF-8 text" in refused(*arguments).stderr


def test_an_empty_home_is_not_the_directory_one_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused("config", "set", "model.default", "scripted/hello", "--home", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", [("config", "list"), ("daemon", "start"), ("debug", "check")])
def test_a_home_whose_name_is_not_text_is_refused(tmp_path: Path, command: tuple[str, ...]) -> None:
    assert "--home" in refused(*command, HOLON_HOME=str(tmp_path / NO_TEXT)).stderr
    assert not list(tmp_path.iterdir())


def test_a_directory_whose_name_is_not_text_is_nowhere_to_run_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / NO_TEXT
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert "--cwd" in refused("run", "--cwd", ".", "hi", HOLON_HOME=str(tmp_path / "h")).stderr


@pytest.mark.usefixtures("gone")
@pytest.mark.parametrize(
    "arguments",
    [
        ("workspace", "attach", "."),
        ("template", "info", "./ops"),
        ("template", "install", "ops"),
        ("config", "list", "--home", "h"),
    ],
)
def test_who_stands_in_a_directory_that_is_gone_is_told_so(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = refused(*arguments, HOLON_HOME=str(tmp_path / "h"), HOME=str(tmp_path))
    assert "the current directory no longer exists" in done.stderr


def test_nobody_who_says_where_home_is_is_told_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HOLON_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert "set HOME" in refused("config", "list").stderr
