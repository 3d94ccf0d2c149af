"""Templates, as an operator sees and keeps them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from holon.cli import exit_codes
from holon.cli.main import main
from tests.adapters.files.archives import serving_repository
from tests.cli.operator_desk import Desk


class Person:
    """Somebody with a home of their own."""

    def __init__(self, root: Path) -> None:
        self.home = root
        self.templates = root / ".agents" / "templates"

    def holon(self, *arguments: str, **environ: str) -> Result:
        home = {"HOME": str(self.home), "HOLON_HOME": str(self.home / "holon")}
        done = CliRunner().invoke(main, ["template", *arguments], env={**home, **environ})
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done

    def told(self, *arguments: str, **environ: str) -> Any:
        done = self.holon(*arguments, "--json", **environ)
        assert (done.exit_code, done.stderr) == (0, ""), done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def a_template(folder: Path) -> Path:
    folder.mkdir()
    (folder / "AGENTS.md").write_text("# Ops\n\nRuns \x1b]0;owned\x07things.\n")
    return folder


def test_templates_are_listed_for_people_and_programs(person: Person) -> None:
    done = person.holon("list")
    head, *rows = done.stdout.splitlines()
    assert (done.exit_code, head.split()) == (0, ["TEMPLATE", "FROM", "SUMMARY"])
    assert rows[0].split()[0] == "holon-default"
    (person.templates / "holon-release" / "AGENTS.md").write_text("mine")
    listed = {each["template_id"]: each for each in person.told("list")["templates"]}
    assert len(listed) == 5
    assert (listed["holon-release"]["modified"], listed["holon-default"]["modified"]) == (
        True,
        False,
    )


def test_a_template_is_shown_whole_and_harmless(person: Person) -> None:
    folder = a_template(person.home / "ops")
    shown = person.holon("info", str(folder)).stdout
    assert "Runs things." in shown
    assert "\x1b" not in shown
    told = person.told("info", "holon-developer")
    assert told["skills"] == ["builtin:holon-work-items", "builtin:ghx", "builtin:github-pr-fix"]
    assert told["agents_md"].startswith("# Developer")


@pytest.mark.requirement("agent-init:template-is-a-named-directory")
def test_a_template_is_installed_and_removed(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_template(person.home / "ops")
    monkeypatch.chdir(person.home)
    assert person.holon("install", "ops").stdout == f"ops is in {person.templates}/ops\n"
    assert person.told("install", "./ops", "--as", "two")["template"]["template_id"] == "two"
    taken = person.holon("install", "ops")
    assert (taken.exit_code, "already a template ops" in taken.stderr) == (
        exit_codes.UNUSABLE,
        True,
    )
    assert person.told("remove", "ops")["removed"] is True
    assert person.holon("remove", "two").stdout == "two is removed\n"
    assert os.listdir(person.templates) == []


def test_a_template_is_installed_from_a_tree(person: Person) -> None:
    with serving_repository({"t/ci/AGENTS.md": "# CI\n"}) as (base, _):
        url = "https://github.com/acme/agents/tree/main/t/ci"
        told = person.told("install", url, HOLON_TEMPLATES_GITHUB_BASE=base)
    assert told["template"]["template_id"] == "ci"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("info", "gone"), exit_codes.UNUSABLE),
        (("info", "../x"), exit_codes.UNUSABLE),
        (("remove", "gone"), exit_codes.UNUSABLE),
        (("remove", "/etc"), exit_codes.UNUSABLE),
        (("install", "nothing-here"), exit_codes.UNUSABLE),
        (("install", "https://evil.example/x"), exit_codes.UNUSABLE),
        (("install", "https://github.com/a/b/tree/c/d"), exit_codes.FAILED),
    ],
)
def test_what_cannot_be_done_ends_with_a_sentence(
    person: Person, arguments: tuple[str, ...], code: int
) -> None:
    done = person.holon(*arguments, HOLON_TEMPLATES_GITHUB_BASE="http://127.0.0.1:1")
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr.startswith("holon: ")
    assert "Traceback" not in done.stderr


@pytest.mark.requirement("agent-init:no-refresh-action")
def test_there_is_no_action_that_applies_a_template_again() -> None:
    shown = CliRunner().invoke(main, ["template", "--help"]).stdout
    names = [line.split()[0] for line in shown.partition("Commands:")[2].splitlines() if line]
    assert names == ["info", "install", "list", "remove"]


@pytest.mark.parametrize(
    "typed", [["template", "info"], ["template", "remove"], ["agent", "create", "x", "--template"]]
)
def test_a_shell_completes_the_names_of_templates(
    person: Person, typed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    person.holon("list")
    monkeypatch.setenv("HOME", str(person.home))
    complete = ShellComplete(main, {}, "holon", "_HOLON_COMPLETE")
    offered = [each.value for each in complete.get_completions(typed, "holon-re")]
    assert offered == ["holon-release", "holon-reviewer"]


async def test_an_agent_is_not_made_from_a_template_that_is_none(desk: Desk) -> None:
    done = await desk.holon("agent", "create", "ada", "--template", "http://github.com/a/b")
    assert done.exit_code == exit_codes.UNUSABLE
    assert "selects no template" in done.stderr
    done = await desk.holon("agent", "create", "ada", "--template", "ops")
    assert done.exit_code == exit_codes.FAILED
    assert "no templates" in done.stderr
    assert (await desk.holon("agent", "status", "ada")).exit_code == exit_codes.FAILED
