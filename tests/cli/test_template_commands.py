"""Templates, as an operator sees and keeps them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from holon.cli.console import exit_codes
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
    assert (done.exit_code, head.split()) == (0, ["TEMPLATE", "FROM", "STATE", "SUMMARY"])
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
        exit_codes.FAILED,
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
        (("info", "gone"), exit_codes.FAILED),
        (("info", "../x"), exit_codes.FAILED),
        (("info", "a b"), exit_codes.UNUSABLE),
        (("info", "https://github.com/a/b"), exit_codes.UNUSABLE),
        (("remove", "gone"), exit_codes.FAILED),
        (("remove", "/etc"), exit_codes.UNUSABLE),
        (("install", "nothing-here"), exit_codes.FAILED),
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


@pytest.mark.requirement("agent-init:skill-failure-fails-the-template")
@pytest.mark.parametrize("kind", ["local", "builtin"])
def test_a_template_whose_skills_are_missing_is_told_as_such(person: Person, kind: str) -> None:
    folder = a_template(person.home / "ops")
    ref = {"local": {"path": "/no/such/skill"}, "builtin": {"name": "gone"}}[kind]
    named = {"kind": kind, **ref}
    there = {"kind": "github", "package": "acme/x@fix"}  # nobody asks about this one
    (folder / "skills.json").write_text(json.dumps({"skill_refs": [there, named]}))
    [source] = ref.values()
    shown = person.holon("info", str(folder))
    assert shown.exit_code == exit_codes.FOUND_FAULTS
    assert "Runs things." in shown.stdout
    assert f"{kind}:{source} is unusable: " in shown.stderr
    told = json.loads(person.holon("info", str(folder), "--json").stdout)
    assert [each["skill"] for each in told["unusable_skills"]] == [f"{kind}:{source}"]
    refused = person.holon("install", str(folder))
    assert (refused.exit_code, refused.stdout) == (exit_codes.FAILED, "")
    assert refused.stderr.startswith(f"holon: {told['unusable_skills'][0]['problem']}\n")
    assert not (person.templates / "ops").exists()
    (person.templates / "ops").symlink_to(folder)
    listed = person.holon("list").stdout
    [row] = [line for line in listed.splitlines() if line.startswith("ops  ")]
    assert row.split()[1:3] == ["you", "unusable"]
    assert f"ops is unusable: {told['unusable_skills'][0]['problem']}" in listed


def test_a_link_that_leads_nowhere_is_listed_and_can_be_removed(person: Person) -> None:
    person.templates.mkdir(parents=True)
    (person.templates / "ops").symlink_to("/no/such/template")
    listed = person.holon("list").stdout
    assert f"ops is unusable: {person.templates}/ops is a link that leads nowhere" in listed
    assert person.holon("remove", "ops").exit_code == 0


def test_a_relative_path_is_taken_where_a_template_is_named(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    (person.home / "t").mkdir()
    folder = a_template(person.home / "t" / "good")
    monkeypatch.chdir(person.home)
    assert person.told("info", "t/good")["source"] == str(folder)
    assert person.told("info", "./t/good/")["source"] == str(folder)
    assert person.told("install", "t/good")["template"]["template_id"] == "good"


def test_an_address_may_end_in_a_slash_and_its_ref_is_one_segment(person: Person) -> None:
    tree = "https://github.com/acme/agents/tree"
    with serving_repository({"t/ci/AGENTS.md": "# CI\n"}) as (base, _):
        told = person.told("info", f"{tree}/main/t/ci/", HOLON_TEMPLATES_GITHUB_BASE=base)
        lost = person.holon("info", f"{tree}/fix/it/t/ci", HOLON_TEMPLATES_GITHUB_BASE=base)
    assert told["source"] == f"{tree}/main/t/ci"
    assert lost.exit_code == exit_codes.FAILED
    assert "a ref with '/' is not supported" in lost.stderr


@pytest.mark.parametrize("name", ["my template", "../x", ".x", "", "x" * 65])
def test_an_id_that_cannot_be_one_is_refused_with_the_rule(person: Person, name: str) -> None:
    folder = a_template(person.home / "ops")
    done = person.holon("install", str(folder), "--as", name)
    assert done.exit_code == exit_codes.UNUSABLE
    assert f"{name!r} cannot be the id of a template" in done.stderr
    assert "an id begins with a letter or digit" in done.stderr
    assert "choose one with --as" in done.stderr


def test_guidance_that_is_a_directory_is_told_as_such(person: Person) -> None:
    (person.home / "ops" / "AGENTS.md").mkdir(parents=True)
    done = person.holon("info", str(person.home / "ops"))
    assert "AGENTS.md is a directory and not a file" in done.stderr
    assert "a text file AGENTS.md" in done.stderr


def test_removing_one_of_holons_own_says_that_it_comes_back(person: Person) -> None:
    person.holon("list")
    done = person.holon("remove", "holon-release")
    assert done.stdout.startswith("holon-release is removed; it is built in and will be restored")
    assert "holon-release" in person.holon("list").stdout
    assert person.told("remove", "holon-release")["comes_back"] is True


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
    url = "https://github.com/a/b/tree/c/d/"
    done = await desk.holon("agent", "create", "ada", "--template", url)
    assert "no templates" in done.stderr  # the slash is no reason to refuse it
    done = await desk.holon("agent", "create", "ada", "--template", "ops")
    assert done.exit_code == exit_codes.FAILED
    assert "no templates" in done.stderr
    assert (await desk.holon("agent", "status", "ada")).exit_code == exit_codes.FAILED
