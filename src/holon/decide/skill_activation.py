"""When a skill comes into use.

Owns:  which skills a tool call used, and which activations that makes.
Rule 1: discovery alone activates nothing. A command that ended well and names a discovered skill's
        SKILL.md, or a file below its `scripts`, does; one that failed, or still runs, does not.
Rule 2: `path` is what the command named, `entrypoint_path` the skill's SKILL.md. Where links lead
        to a skill, its real path names it too. A pattern counts for the skills whose folders it
        fits, if it says SKILL.md or a script in so many words: one that fits just everything, as
        `ls skills/*/*` has it, reads none.
Rule 3: within one turn a skill is activated once for each reason.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Final

from holon.decide.command_words import Surroundings, named_paths
from holon.model.ids import AgentId, TurnId
from holon.model.json_value import JsonValue
from holon.model.limits import SKILL_ACTIVATIONS_READ_COUNT_MAX
from holon.model.record import Record
from holon.model.skill import (
    ActivationSource,
    ActivationState,
    LoadReason,
    SkillActivation,
    SkillCatalog,
    SkillEntry,
)
from holon.model.skill_change import ActivateSkill

_ANY_ENTRYPOINT: Final = "skill.md"
SCRIPTS: Final = "scripts"
_WITHIN_SCRIPTS: Final = f"/{SCRIPTS}/"


class RanCommand(Record, frozen=True, kw_only=True):
    """A command that ended well; `workdir` is as it was asked for."""

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


def commands_of(tool_name: str, asked: JsonValue, result: JsonValue) -> tuple[RanCommand, ...]:
    """Return the commands of a call that ended well and may have used a skill."""
    if not isinstance(asked, dict) or not isinstance(result, dict):
        return ()
    match tool_name:
        case "ExecCommand":
            ran = _single(asked, result)
        case "ExecCommandBatch":
            ran = _batch(asked, result)
        case _:
            return ()
    return tuple(each for each in ran if _may_use(each))


def _may_use(ran: RanCommand) -> bool:
    """Whether a command could name a part of a skill at all; almost none does."""
    if SCRIPTS in ran.cmd or SCRIPTS in (ran.workdir or ""):
        return True
    return _ANY_ENTRYPOINT in ran.cmd.lower()


def _single(asked: Mapping[str, JsonValue], result: Mapping[str, JsonValue]) -> list[RanCommand]:
    ended_well = result.get("disposition") == "completed" and result.get("exit_status") == 0
    return [_ran(asked.get("cmd", asked.get("command")), asked)] if ended_well else []


def _batch(asked: Mapping[str, JsonValue], result: Mapping[str, JsonValue]) -> list[RanCommand]:
    asked_items, done = asked.get("items", asked.get("commands")), result.get("items")
    if not isinstance(asked_items, list) or not isinstance(done, list):
        return []
    return [
        _ran(told.get("cmd"), item if isinstance(item, dict) else {})
        for told, item in zip(done, asked_items, strict=False)
        if isinstance(told, dict) and told.get("status") == "completed"
    ]


def _ran(cmd: JsonValue, asked: Mapping[str, JsonValue]) -> RanCommand:
    workdir = asked.get("workdir", asked.get("cwd"))
    return RanCommand(
        cmd=cmd if isinstance(cmd, str) else "",
        workdir=workdir if isinstance(workdir, str) and workdir else None,
    )


def uses_of(
    commands: Sequence[RanCommand], catalog: SkillCatalog, around: Surroundings
) -> tuple[SkillUse, ...]:
    """Return the skills the commands used, each once for each reason, in order.

    A pattern may fit very many: no more come into use than are ever read back.
    """
    skills = {_folder(each.real_path or each.path): each for each in catalog.entries}
    skills |= {_folder(each.path): each for each in catalog.entries}
    found: dict[tuple[str, LoadReason], SkillUse] = {}
    for ran in commands:
        for path, is_pattern in named_paths(ran.cmd, _within(around, ran.workdir)):
            uses = _uses_fitting(path, skills) if is_pattern else _uses_at(path, skills)
            for use in uses:
                found.setdefault((use.entry.path, use.load_reason), use)
    return tuple(found.values())[:SKILL_ACTIVATIONS_READ_COUNT_MAX]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _within(around: Surroundings, workdir: str | None) -> Surroundings:
    if workdir is None:
        return around
    cwd = workdir if workdir.startswith("/") else f"{around.cwd}/{workdir}"
    return Surroundings(cwd=cwd, variables=around.variables)


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


def _uses_fitting(pattern: str, skills: Mapping[str, SkillEntry]) -> Iterator[SkillUse]:
    """Yield what a pattern names: it is tried on the folders of the skills there are."""
    above, _, last = pattern.rpartition("/")
    if last.lower() == _ANY_ENTRYPOINT:
        for folder in skills:
            if _fits(above, folder):
                yield from _uses_at(f"{folder}/{last}", skills)
    above, within, script = pattern.partition(_WITHIN_SCRIPTS)
    if within:
        for folder in skills:
            if _fits(above, folder):
                yield from _uses_at(f"{folder}{within}{script}", skills)


def _fits(pattern: str, path: str) -> bool:
    """Whether a shell would find this path by this pattern."""
    wanted, steps = pattern.split("/"), path.split("/")
    return len(wanted) == len(steps) and all(map(_fits_step, wanted, steps))


def _fits_step(pattern: str, step: str) -> bool:
    if step.startswith(".") and not pattern.startswith("."):
        return False  # no pattern finds what is hidden
    return fnmatchcase(step, pattern)


def activation_of(
    use: SkillUse, known: Sequence[SkillActivation], turn: TurnOfUse, *, now: datetime
) -> ActivateSkill | None:
    """Return what a use makes active; nothing when the turn has it already for that reason.

    `known` are the activations of this skill there are.
    """
    before = next((each for each in known if each.load_reason is use.load_reason), None)
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
