"""What a template's skills.json may say."""

import pytest

from holon.decide.guidance.skills import parse_skill_ref, read_manifest
from holon.model.guidance import BadSkillRefError, BuiltinSkillRef, GithubSkillRef, LocalSkillRef
from holon.model.values import JsonValue


@pytest.mark.requirement("agent-init:skill-refs-are-typed")
@pytest.mark.requirement("agent-init:skill-github-package")
@pytest.mark.requirement("agent-init:skill-builtin-refs")
def test_the_three_kinds_of_references_are_read_in_order() -> None:
    refs = read_manifest(
        {
            "skill_refs": [
                {"kind": "local", "path": "/srv/skills/deploy"},
                {"kind": "github", "package": "vercel-labs/agent-skills@react-best-practices"},
                {"kind": "builtin", "name": "holon-work-items"},
            ]
        }
    )
    assert refs == (
        LocalSkillRef(path="/srv/skills/deploy"),
        GithubSkillRef(owner="vercel-labs", repo="agent-skills", skill="react-best-practices"),
        BuiltinSkillRef(name="holon-work-items"),
    )
    assert [ref.source for ref in refs][1] == "vercel-labs/agent-skills@react-best-practices"


def test_no_references_are_fine() -> None:
    assert read_manifest({"skill_refs": []}) == ()


@pytest.mark.requirement("agent-init:skills-json-has-one-field")
@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "x",
        1,
        {},
        {"skills": []},
        {"skill_refs": {}},
        {"skill_refs": [], "version": 1},
        {"skill_refs": None},
        {"skill_refs": [{}] * 33},
    ],
)
def test_a_manifest_of_another_shape_is_refused(value: JsonValue) -> None:
    with pytest.raises(BadSkillRefError):
        read_manifest(value)


@pytest.mark.requirement("agent-init:skill-refs-are-typed")
@pytest.mark.requirement("agent-init:skill-local-path-is-absolute")
@pytest.mark.requirement("agent-init:skill-needs-no-metadata")
@pytest.mark.parametrize(
    "entry",
    [
        None,
        "deploy",
        {},
        {"kind": "local"},
        {"kind": "npm", "package": "x"},
        {"kind": "local", "path": "skills/deploy"},
        {"kind": "local", "path": "./deploy"},
        {"kind": "local", "path": "~/deploy"},
        {"kind": "local", "path": "/srv/../etc"},
        {"kind": "local", "path": "/srv/\0"},
        {"kind": "local", "path": 7},
        {"kind": "local", "path": "/srv/deploy", "name": "x"},
        {"kind": "local", "name": "x"},
        {"kind": "builtin", "name": "../x"},
        {"kind": "builtin", "name": ""},
        {"kind": "github", "package": "acme/agents"},
        {"kind": "github", "package": "acme@deploy"},
        {"kind": "github", "package": "acme/agents/x@deploy"},
        {"kind": "github", "package": "acme/agents@../x"},
        {"kind": "github", "package": "acme/agents@-x"},
        {"kind": "github", "package": "-acme/agents@x"},
        {"kind": "github", "package": "https://github.com/acme/agents@x"},
        {"kind": "github", "repo": "acme/agents", "path": "x"},
        {"kind": ["local"], "path": "/x"},
    ],
)
def test_one_bad_entry_spoils_the_manifest(entry: JsonValue) -> None:
    good: JsonValue = {"kind": "builtin", "name": "holon-work-items"}
    with pytest.raises(BadSkillRefError):
        read_manifest({"skill_refs": [good, entry]})


@pytest.mark.parametrize("kind", [None, "github"])
@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("https://github.com/acme/skills", "here acme/skills@"),
        ("https://github.com/acme/skills.git", "here acme/skills@"),
        ("https://www.github.com/acme/skills/tree/main/fix", "here acme/skills@"),
        ("git@github.com:acme/skills.git", "here acme/skills@"),
        ("github.com/acme/skills", "here acme/skills@"),
        ("acme/skills", "here acme/skills@"),
        ("https://example.com/acme/skills", "as owner/repo@skill"),
    ],
)
def test_an_address_gets_a_hint_at_how_a_skill_is_named(
    text: str, hint: str, kind: str | None
) -> None:
    with pytest.raises(BadSkillRefError) as refused:
        parse_skill_ref(text, kind=kind)
    assert hint in (refused.value.hint or "")
