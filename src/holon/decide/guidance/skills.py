"""Skills: activation by use, installation manifests and references.

Owns:  which skills a tool call used, and the activations that makes; the refusal to uninstall a
       skill that was not installed; reading a template's skills.json, and `owner/repo@skill`.
Rule 1: discovery alone activates nothing. A command that succeeded and names a discovered skill's
        SKILL.md, or a file below its `scripts`, does; one that failed, or still runs, does not.
Rule 2: `path` is what the command named, `entrypoint_path` the skill's SKILL.md. Where links lead
        to a skill, its real path names it too. A pattern counts for the skills whose folders it
        matches only if it spells SKILL.md or a script: one that matches everything, such as
        `ls skills/*/*`, reads none.
Rule 3: within one turn a skill is activated once for each reason.
Rule 4: only a skill in the agent's own folder can be uninstalled. For any other skill the agent may
        discover, the refusal names its scope and path, so that a person can decide.
Rule 5: a manifest with one bad entry is refused as a whole, since an agent with only some of its
        skills is of no use.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import msgspec

from holon.decide.agents.templates import is_repository, is_simple_name
from holon.model.errors import Refusal, RefusalCode
from holon.model.guidance import (
    ActivateSkill,
    ActivationSource,
    ActivationState,
    BadSkillRefError,
    BuiltinSkillRef,
    GithubSkillRef,
    LoadReason,
    LocalSkillRef,
    SkillActivation,
    SkillCatalog,
    SkillEntry,
    SkillRef,
    SkillScope,
)
from holon.model.limits import (
    SKILL_ACTIVATIONS_READ_COUNT_MAX,
    TEMPLATE_SKILLS_COUNT_MAX,
    WORKSPACE_PATH_CHARS_MAX,
)
from holon.model.record import Record
from holon.model.values import AgentId, JsonValue, TurnId

if TYPE_CHECKING:
    from holon.decide.guidance.command_words import Surroundings

_ANY_ENTRYPOINT: Final = "skill.md"
SCRIPTS: Final = "scripts"
_WITHIN_SCRIPTS: Final = f"/{SCRIPTS}/"
_NAME_CHARS_MAX: Final = 120
_WHOSE: Final = {
    SkillScope.USER: "one of the user's",
    SkillScope.AGENT: "one of the agent's that was put there by hand",
    SkillScope.WORKSPACE: "one of the workspace's",
}
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


class RanCommand(Record, frozen=True, kw_only=True):
    """A command that succeeded; `workdir` is as requested."""

    cmd: str
    workdir: str | None = None


class SkillUse(Record, frozen=True, kw_only=True):
    """A skill that was read, or whose script was run."""

    entry: SkillEntry
    load_reason: LoadReason
    path: str


class TurnOfUse(Record, frozen=True, kw_only=True):
    """The turn in which skills are used."""

    agent_id: AgentId
    turn_id: TurnId
    turn_index: int


def commands_of(tool_name: str, arguments: JsonValue, result: JsonValue) -> tuple[RanCommand, ...]:
    """Return the commands of a call that ended well and may have used a skill."""
    if not isinstance(arguments, dict) or not isinstance(result, dict):
        return ()
    match tool_name:
        case "ExecCommand":
            ran = _single(arguments, result)
        case "ExecCommandBatch":
            ran = _batch(arguments, result)
        case _:
            return ()
    return tuple(each for each in ran if _may_use(each))


def _may_use(ran: RanCommand) -> bool:
    """Whether a command could name a part of a skill at all; almost none does."""
    if SCRIPTS in ran.cmd or SCRIPTS in (ran.workdir or ""):
        return True
    return _ANY_ENTRYPOINT in ran.cmd.lower()


def _single(
    arguments: Mapping[str, JsonValue], result: Mapping[str, JsonValue]
) -> list[RanCommand]:
    ended_well = result.get("disposition") == "completed" and result.get("exit_status") == 0
    return [_ran(arguments.get("cmd", arguments.get("command")), arguments)] if ended_well else []


def _batch(arguments: Mapping[str, JsonValue], result: Mapping[str, JsonValue]) -> list[RanCommand]:
    requested, done = arguments.get("items", arguments.get("commands")), result.get("items")
    if not isinstance(requested, list) or not isinstance(done, list):
        return []
    return [
        _ran(done_item.get("cmd"), item if isinstance(item, dict) else {})
        for done_item, item in zip(done, requested, strict=False)
        if isinstance(done_item, dict) and done_item.get("status") == "completed"
    ]


def _ran(cmd: JsonValue, arguments: Mapping[str, JsonValue]) -> RanCommand:
    workdir = arguments.get("workdir", arguments.get("cwd"))
    return RanCommand(
        cmd=cmd if isinstance(cmd, str) else "",
        workdir=workdir if isinstance(workdir, str) and workdir else None,
    )


def uses_of(
    commands: Sequence[RanCommand], catalog: SkillCatalog, around: "Surroundings"
) -> tuple[SkillUse, ...]:
    """Return the skills the commands used, each once for each reason, in order.

    A pattern may fit very many: no more come into use than are ever read back.
    """
    # A run without skills need not load the reading of commands.
    from holon.decide.guidance.command_words import named_paths

    skills = {_folder(each.real_path or each.path): each for each in catalog.entries}
    skills |= {_folder(each.path): each for each in catalog.entries}
    by_reason: dict[tuple[str, LoadReason], SkillUse] = {}
    for ran in commands:
        for path, is_pattern in named_paths(ran.cmd, _within(around, ran.workdir)):
            uses = _uses_matching(path, skills) if is_pattern else _uses_at(path, skills)
            for use in uses:
                by_reason.setdefault((use.entry.path, use.load_reason), use)
    return tuple(by_reason.values())[:SKILL_ACTIVATIONS_READ_COUNT_MAX]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _within(around: "Surroundings", workdir: str | None) -> "Surroundings":
    if workdir is None:
        return around
    cwd = workdir if workdir.startswith("/") else f"{around.cwd}/{workdir}"
    return msgspec.structs.replace(around, cwd=cwd)


def _uses_at(path: str, skills: Mapping[str, SkillEntry]) -> Iterator[SkillUse]:
    if path.lower().endswith(f"/{_ANY_ENTRYPOINT}"):
        entry = skills.get(_folder(path))
        if entry is not None and path in (entry.path, entry.real_path):
            yield SkillUse(entry=entry, load_reason=LoadReason.READ_SKILL_MD, path=path)
    place = path.find(_WITHIN_SCRIPTS)
    while place >= 0:
        entry = skills.get(path[:place])
        if entry is not None:
            yield SkillUse(entry=entry, load_reason=LoadReason.RUN_SKILL_SCRIPT, path=path)
        place = path.find(_WITHIN_SCRIPTS, place + 1)


def _uses_matching(pattern: str, skills: Mapping[str, SkillEntry]) -> Iterator[SkillUse]:
    """Yield what a pattern names: it is matched against the folders of the given skills."""
    above, _, last = pattern.rpartition("/")
    if last.lower() == _ANY_ENTRYPOINT:
        for folder in skills:
            if _matches(above, folder):
                yield from _uses_at(f"{folder}/{last}", skills)
    above, within, script = pattern.partition(_WITHIN_SCRIPTS)
    if within:
        for folder in skills:
            if _matches(above, folder):
                yield from _uses_at(f"{folder}{within}{script}", skills)


def _matches(pattern: str, path: str) -> bool:
    """Whether a shell would find this path by this pattern."""
    wanted, steps = pattern.split("/"), path.split("/")
    return len(wanted) == len(steps) and all(map(_matches_step, wanted, steps))


def _matches_step(pattern: str, step: str) -> bool:
    if step.startswith(".") and not pattern.startswith("."):
        return False  # no pattern finds what is hidden
    return fnmatchcase(step, pattern)


def activation_of(
    use: SkillUse, existing: Sequence[SkillActivation], turn: TurnOfUse, *, now: datetime
) -> ActivateSkill | None:
    """Return what a use makes active; nothing when the turn has it already for that reason.

    `known` are the existing activations of this skill.
    """
    before = next((each for each in existing if each.load_reason is use.load_reason), None)
    if before is not None and before.turn_id == turn.turn_id:
        return None
    activation = SkillActivation(
        agent_id=turn.agent_id,
        skill_name=use.entry.name,
        path=use.path,
        entrypoint_path=use.entry.path,
        load_reason=use.load_reason,
        source=ActivationSource.IMPLICIT_FROM_CATALOG,
        state=ActivationState.TURN_ACTIVE,
        activated_at=now,
        turn_id=turn.turn_id,
        turn_index=turn.turn_index,
        is_lasting=before is not None,
    )
    return ActivateSkill(activation=activation)


def refuse_not_installed(name: str, catalog: SkillCatalog, *, root: str) -> Refusal | None:
    """Return whose skill it is if it cannot be removed from `root`, or None if it can."""
    for entry in catalog.entries:
        folder = entry.path.rpartition("/")[0]
        above, _, folder_name = folder.rpartition("/")
        if above != root and name in (entry.name, folder_name):
            return Refusal(
                code=RefusalCode.SKILL_NOT_FOUND,
                message=(
                    f"the skill {name[:_NAME_CHARS_MAX]!r} is not installed for this agent:"
                    f" it is {_WHOSE[entry.scope]}, at {entry.path}"
                ),
                hint=f"if it is no longer needed, remove {folder}",
                field="name",
            )
    return None


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
    repository, _, skill = text.rpartition("@")
    owner, _, repo = repository.partition("/")
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
            hint=f"{_package_hint(text)}, one on this machine by an existing directory"
            if "/" in text
            else None,
        )
    return BuiltinSkillRef(name=text)


def _package_hint(text: str) -> str:
    """Return how to name a skill on GitHub, with the repository where the text has one."""
    match = _REPOSITORY.fullmatch(text[:WORKSPACE_PATH_CHARS_MAX])
    if match is None or not is_repository(match.group(1), match.group(2)):
        return "name a skill on GitHub as owner/repo@skill"
    return f"name a skill on GitHub as owner/repo@skill, here {'/'.join(match.groups())}@…"


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
