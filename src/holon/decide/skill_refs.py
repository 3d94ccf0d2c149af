"""References to skills, as people and templates write them.

Owns:  reading a template's skills.json, and `owner/repo@skill`.
Rule 1: a manifest with one bad entry is bad as a whole: nobody wants an agent with some of its
        skills.
"""

import re
from typing import Final

import msgspec

from holon.decide.template_selector import is_repository, is_simple_name
from holon.model.json_value import JsonValue
from holon.model.limits import TEMPLATE_SKILLS_COUNT_MAX, WORKSPACE_PATH_CHARS_MAX
from holon.model.skill_ref import (
    BadSkillRefError,
    BuiltinSkillRef,
    GithubSkillRef,
    LocalSkillRef,
    SkillRef,
)

_FIELDS: Final = {"builtin": "name", "local": "path", "github": "package"}
_FORMS: Final = (
    'each entry is {"kind": "builtin", "name": …}, {"kind": "local", "path": "/…"}'
    ' or {"kind": "github", "package": "owner/repo@skill"}'
)
_QUOTED_CHARS_MAX: Final = 120
_REPOSITORY: Final = re.compile(
    r"(?:(?:\w+://|git@)?(?:www\.)?github\.com[/:])?"
    r"([^\s/@:]+)/([^\s/@?#]+?)(?:\.git)?(?:/.*)?"
)


def read_manifest(value: JsonValue) -> tuple[SkillRef, ...]:
    """Return the references a skills.json holds, or raise BadSkillRefError."""
    if not isinstance(value, dict) or set(value) != {"skill_refs"}:
        raise BadSkillRefError(
            "skills.json is not an object with the one field skill_refs", hint=_FORMS
        )
    refs = value["skill_refs"]
    if not isinstance(refs, list):
        raise BadSkillRefError("skill_refs in skills.json is not an array", hint=_FORMS)
    if len(refs) > TEMPLATE_SKILLS_COUNT_MAX:
        raise BadSkillRefError(f"skills.json has more than {TEMPLATE_SKILLS_COUNT_MAX} entries")
    return tuple(_ref(each) for each in refs)


def parse_package(text: str) -> GithubSkillRef:
    """Return the skill that `owner/repo@skill` names, or raise BadSkillRefError."""
    where, _, skill = text.rpartition("@")
    owner, _, repo = where.partition("/")
    if not is_repository(owner, repo) or not is_simple_name(skill):
        raise BadSkillRefError(
            f"{text[:_QUOTED_CHARS_MAX]!r} is not owner/repo@skill", hint=_package_hint(text)
        )
    return GithubSkillRef(owner=owner, repo=repo, skill=skill)


def parse_skill_path(text: str) -> LocalSkillRef:
    """Return the skill in a local directory, or raise BadSkillRefError."""
    clean = text.isprintable() and len(text) <= WORKSPACE_PATH_CHARS_MAX
    if not text.startswith("/") or ".." in text.split("/") or not clean:
        raise BadSkillRefError(
            f"{text[:_QUOTED_CHARS_MAX]!r} is not an absolute path",
            hint="a skill on this machine is named by its absolute path, without '..'",
        )
    return LocalSkillRef(path=text)


def parse_skill_ref(text: str, *, kind: str | None = None, copies: bool = False) -> SkillRef:
    """Return the skill a person names; without a kind, by the form of the name."""
    if kind == "local" or (kind is None and text.startswith("/")):
        return msgspec.structs.replace(parse_skill_path(text), copies=copies)
    if copies:
        raise BadSkillRefError("only a skill on this machine is linked or copied")
    if kind == "github" or (kind is None and "@" in text):
        return parse_package(text)
    return parse_builtin(text)


def parse_builtin(text: str) -> BuiltinSkillRef:
    """Return the skill of Holon's own with this name, or raise BadSkillRefError."""
    if not is_simple_name(text):
        raise BadSkillRefError(
            f"{text[:_QUOTED_CHARS_MAX]!r} is not the name of a skill",
            hint=f"{_package_hint(text)}, one on this machine by a directory that is there"
            if "/" in text
            else None,
        )
    return BuiltinSkillRef(name=text)


def _package_hint(text: str) -> str:
    """Return how to name a skill on GitHub, with the repository where the text has one."""
    found = _REPOSITORY.fullmatch(text[:WORKSPACE_PATH_CHARS_MAX])
    if found is None or not is_repository(found.group(1), found.group(2)):
        return "name a skill on GitHub as owner/repo@skill"
    return f"name a skill on GitHub as owner/repo@skill, here {'/'.join(found.groups())}@…"


def _ref(value: JsonValue) -> SkillRef:
    kind = value.get("kind") if isinstance(value, dict) else None
    field = _FIELDS.get(kind) if isinstance(kind, str) else None
    if not isinstance(value, dict) or field is None or set(value) != {"kind", field}:
        raise BadSkillRefError("skills.json has an entry that names no skill", hint=_FORMS)
    named = value[field]
    if not isinstance(named, str):
        raise BadSkillRefError(f"skills.json has an entry whose {field} is no text", hint=_FORMS)
    if kind == "local":
        return parse_skill_path(named)
    return parse_package(named) if kind == "github" else parse_builtin(named)
