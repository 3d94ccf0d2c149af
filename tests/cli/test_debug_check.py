"""`holon debug check` as a person and as a script see it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import CliRunner, Result

from holon.adapters.sqlite.database.home_lock import database_path
from holon.adapters.sqlite.database.migrate import known_migrations
from holon.cli.console import exit_codes
from holon.cli.main import main
from tests.adapters.sqlite.check.story import TWO_FAULTS, plant, tell


def run(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, ["debug", "check", *arguments], env=env)


def start(*arguments: str, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """Run the real command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "holon", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=env,
    )


@pytest.mark.requirement("check:command-tells-the-outcome")
def test_a_clean_home_ends_with_zero_and_counts(home: Path) -> None:
    done = start("debug", "check", "--home", str(home))
    assert done.returncode == exit_codes.OK
    assert done.stdout.startswith("clean: 2 agents, 6 messages, 2 turns, 3 tool calls,")
    assert done.stderr == ""


@pytest.mark.requirement("check:command-tells-the-outcome")
def test_violations_end_with_one_and_a_line_each(home: Path) -> None:
    plant(database_path(home), *TWO_FAULTS)
    done = start("debug", "check", "--home", str(home))
    assert done.returncode == exit_codes.FOUND_FAULTS
    first, second = done.stdout.splitlines()
    assert first.startswith("I5 main: event_seq jumps from ")
    assert second == "I8 task_run: is running: Object missing required field `id` at $"
    assert done.stderr == ""


@pytest.mark.requirement("check:command-tells-the-outcome")
def test_no_database_ends_with_two_and_a_sentence(tmp_path: Path) -> None:
    done = start("debug", "check", "--home", str(tmp_path / "nowhere"))
    assert done.returncode == exit_codes.UNUSABLE
    assert done.stdout == ""
    assert done.stderr.startswith("holon: there is no database at ")
    assert "--home or HOLON_HOME" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "nowhere").exists()


def test_the_home_comes_from_the_environment_or_is_the_users_own(home: Path) -> None:
    assert run(env={"HOLON_HOME": str(home)}).exit_code == exit_codes.OK
    (home.parent / "user").mkdir()
    home.rename(home.parent / "user" / ".holon")
    user = {"HOLON_HOME": "", "HOME": str(home.parent / "user")}
    assert run(env=user).exit_code == exit_codes.OK


def newer(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 999)
    connection.close()


def foreign(path: Path) -> None:
    path.write_text("not a database", encoding="utf-8")


@pytest.mark.requirement("check:foreign-files-are-refused")
@pytest.mark.parametrize(
    ("spoil", "words"), [(newer, "schema version 999"), (foreign, "not a Holon database")]
)
def test_a_file_it_cannot_check_ends_with_two(home: Path, spoil: Any, words: str) -> None:
    spoil(database_path(home))
    for form in ((), ("--json",)):
        result = run("--home", str(home), *form)
        assert result.exit_code == exit_codes.UNUSABLE
        assert words in result.stderr
        assert bool(result.stdout) is bool(form)


def test_a_home_that_is_a_file_is_bad_usage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert run("--home", str(tmp_path / "file")).exit_code == exit_codes.UNUSABLE


@pytest.mark.requirement("check:command-speaks-json")
@pytest.mark.parametrize("faults", [(), TWO_FAULTS], ids=["clean", "with violations"])
def test_json_has_the_shape_the_help_promises(home: Path, faults: tuple[str, ...]) -> None:
    if faults:
        plant(database_path(home), *faults)
    result = run("--home", str(home), "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == (exit_codes.FOUND_FAULTS if faults else exit_codes.OK)
    assert set(report) == {
        "clean",
        "database",
        "schema_version",
        "as_of",
        "counts",
        "violations",
    }
    assert report["clean"] is not bool(faults)
    assert report["database"] == str(database_path(home))
    assert report["schema_version"] == known_migrations()[-1].version
    assert report["as_of"] == "2026-01-01T00:00:00Z"
    assert report["counts"]["messages"] == 6
    assert [v["invariant"] for v in report["violations"]] == (["I5", "I8"] if faults else [])
    assert all(set(v) == {"invariant", "subject", "detail"} for v in report["violations"])
    promised = run("--help").stdout
    assert all(f'"{key}"' in promised for key in report)


def test_a_violation_that_quotes_odd_text_stays_one_line_of_json(home: Path) -> None:
    plant(database_path(home), tell("main", '{"kind":"so\\nng\\u2028"}'))
    report = json.loads(run("--home", str(home), "--json").stdout)
    (violation,) = report["violations"]
    assert "cannot be read" in violation["detail"]
    (line,) = run("--home", str(home)).stdout.splitlines()
    assert r"so\nng\u2028" in line
