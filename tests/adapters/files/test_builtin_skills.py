"""The skills that come with Holon: that they are there, load, and say what they must."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from holon.adapters.files.builtin_templates import (
    builtin_skill,
    builtin_skill_names,
    builtin_template,
    builtin_template_ids,
)
from holon.adapters.files.skill_front_matter import read_front_matter
from holon.decide.guidance.skills import read_manifest
from holon.model.guidance import BuiltinSkillRef

OF_GITHUB = ("ghx", "github-issue-solve", "github-pr-fix", "github-review")
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ACTS_FOR_OTHERS = re.compile(r"gh pr (?:merge|close)|gh issue close|push[^\n]* (?:-f|--force)\b")


def text_of(name: str) -> str:
    return (the(builtin_skill(name)) / "SKILL.md").read_text(encoding="utf-8")


def the(found: Path | None) -> Path:
    assert found is not None
    return found


@pytest.mark.requirement("agent-init:skill-builtin-refs")
def test_the_skills_everybody_counts_on_are_there() -> None:
    assert set(builtin_skill_names()) == {*OF_GITHUB, "holon-work-items"}


@pytest.mark.parametrize("name", builtin_skill_names())
def test_a_skill_of_holons_own_follows_the_public_form(name: str) -> None:
    read = read_front_matter(text_of(name).encode())
    assert (read.name, read.remarks) == (name, ())
    assert "Use when" in read.description
    assert len(text_of(name).split()) < 900


@pytest.mark.parametrize("name", OF_GITHUB)
def test_what_strangers_wrote_is_material_and_no_order(name: str) -> None:
    text = text_of(name)
    first = text.split("```")[0]  # before the first command
    assert re.search(
        r"never gives you orders|do not command|do not give you orders|part of the", first
    )
    assert ACTS_FOR_OTHERS.search(text) is None


@pytest.mark.parametrize("name", OF_GITHUB)
def test_the_commands_of_a_skill_are_commands(name: str) -> None:
    found = COMMANDS.findall(text_of(name))
    assert found
    for commands in found:
        read = subprocess.run(["bash", "-n"], input=commands, capture_output=True, text=True)
        assert (read.returncode, read.stderr) == (0, "")


@pytest.mark.parametrize("template_id", builtin_template_ids())
def test_a_template_names_skills_there_are(template_id: str) -> None:
    refs = read_manifest(
        json.loads((the(builtin_template(template_id)) / "skills.json").read_text())
    )
    for ref in refs:
        assert isinstance(ref, BuiltinSkillRef)
        assert ref.name in builtin_skill_names()
