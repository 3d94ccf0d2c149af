"""Guidance: instruction files and skills an agent reads.

Owns:  loaded instructions, their sources and problems, and taint marks; skill catalogs, references,
       activations and installations; the members of the union `Change` (model/commits) and the
       audit events about both.
Rule 1: instruction text goes into the prompt and nowhere else; surfaces show its source.
Rule 2: the prompt lists only a skill's metadata; its body is read when the skill is used.
Rule 3: a skill is identified by the path of its SKILL.md, since two scopes may hold skills of the
        same name. File names in another case (skill.md) are the same file.
Rule 4: the end of a turn (SettleTurn) keeps or drops the skills the turn activated; that has no
        change and no event of its own.
"""

from enum import StrEnum
from typing import Final, Literal, TypeAlias

import msgspec

from holon.model.errors import BadInputError
from holon.model.queue import AuthorityClass
from holon.model.record import Record
from holon.model.values import AgentId, Instant, TurnId

SKILL_FILES: Final = ("SKILL.md", "skill.md", "Skill.md")  # the first that exists counts


class InstructionSource(StrEnum):
    """Whose guidance it is; the order of members is the order in a prompt."""

    USER_GLOBAL = "user_global"
    AGENT = "agent"
    WORKSPACE = "workspace"


class InstructionKind(StrEnum):
    """Which file it stands in."""

    AGENTS_MD = "agents_md"
    CLAUDE_MD = "claude_md"


class InstructionMetadata(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The source of guidance, without its text."""

    source: InstructionSource
    kind: InstructionKind
    path: str
    bytes: int
    sha256: str
    truncated: bool


class LoadedInstructions(Record, frozen=True, kw_only=True):
    """One guidance file. `bytes` is its size on disk; `truncated` means that `text` is less."""

    source: InstructionSource
    kind: InstructionKind
    path: str
    text: str
    bytes: int
    sha256: str
    truncated: bool = False

    @property
    def metadata(self) -> InstructionMetadata:
        """What surfaces may show of it."""
        return InstructionMetadata(
            source=self.source,
            kind=self.kind,
            path=self.path,
            bytes=self.bytes,
            sha256=self.sha256,
            truncated=self.truncated,
        )


class LoadedGuidance(Record, frozen=True, kw_only=True):
    """Everything that was loaded, and what prevented the rest."""

    files: tuple[LoadedInstructions, ...] = ()
    problems: tuple[str, ...] = ()


class TaintedInstructions(Record, frozen=True, kw_only=True):
    """The newest change of an agent's own sources that outside content may have caused.

    It was seen in a turn that was shown such content. `change_count` counts all such changes in
    have ever been.
    """

    path: str  # below the agent's home
    changed_at: Instant
    turn_id: TurnId
    change_count: int


class InstructionSourceChanged(
    Record, tag_field="kind", tag="instruction_source_changed", frozen=True, kw_only=True
):
    """A file that tells the agent how to behave has changed since the last check.

    `effect_id` names the call after which it was seen; without one the change happened between
    turns. A digest is absent where the file is missing. `tainted` means that the turn was shown
    outside content.
    """

    path: str  # below the agent's home
    old_sha256: str | None
    new_sha256: str | None
    turn_id: TurnId
    authority_class: AuthorityClass
    tainted: bool
    effect_id: str | None = None


class NoteInstructionChange(Record, tag=True, frozen=True, kw_only=True):
    """Record a change, and keep it for the operator if outside content may have caused it."""

    agent_id: AgentId
    event: InstructionSourceChanged


class SkillScope(StrEnum):
    """Where a skill was found."""

    USER = "user"
    AGENT = "agent"
    WORKSPACE = "workspace"


class ActivationSource(StrEnum):
    """How a skill came to be active."""

    EXPLICIT = "explicit"
    IMPLICIT_FROM_CATALOG = "implicit_from_catalog"
    RESTORED = "restored"
    INHERITED = "inherited"


class ActivationState(StrEnum):
    """How long an activation lasts."""

    TURN_ACTIVE = "turn_active"
    SESSION_ACTIVE = "session_active"


class LoadReason(StrEnum):
    """What made a skill active."""

    READ_SKILL_MD = "read_skill_md"
    RUN_SKILL_SCRIPT = "run_skill_script"
    PROMPT_INJECTION = "prompt_injection"  # reserved: no body is put into a prompt today


class SkillEntry(Record, frozen=True, kw_only=True):
    """One skill of the catalog; `path` is that of its SKILL.md.

    `real_path` is where links on that path lead, if it has any: a command may name it as well.
    """

    name: str
    description: str
    scope: SkillScope
    path: str
    real_path: str | None = None


class SkillCatalog(Record, frozen=True, kw_only=True):
    """The skills an agent may discover, and the problems with others.

    `problems` are the first ones, with a line that counts the others; `problems_count`
    counts all.
    """

    entries: tuple[SkillEntry, ...] = ()
    problems: tuple[str, ...] = ()
    problems_count: int = 0
    user_home: str | None = None  # what `~` stands for in a command


class PassedOverRoot(Record, frozen=True, kw_only=True):
    """A folder of skills that is not used, because another one of its scope comes first.

    `hidden_skills` are the first of those that are found there and nowhere else in the scope.
    """

    scope: SkillScope
    path: str
    used_path: str
    hidden_skills: tuple[str, ...] = ()
    hidden_count: int = 0


class SkillActivation(Record, frozen=True, kw_only=True):
    """One skill in use by an agent.

    `path` is what was read or run, `entrypoint_path` always the skill's SKILL.md. A skill that was
    session_active when a turn used it again `is_lasting`: it stays active however that turn ends.
    """

    agent_id: AgentId
    skill_name: str
    path: str
    entrypoint_path: str
    load_reason: LoadReason
    source: ActivationSource
    state: ActivationState
    activated_at: Instant
    turn_id: TurnId
    turn_index: int
    is_lasting: bool = False


class ActivateSkill(Record, tag=True, frozen=True, kw_only=True):
    """A turn used a skill: it is turn_active until the turn ends."""

    activation: SkillActivation


class RestoreSkills(Record, tag=True, frozen=True, kw_only=True):
    """Every session_active skill of every agent now comes from an earlier process."""


SkillChange: TypeAlias = ActivateSkill | RestoreSkills


class SkillActivated(Record, tag_field="kind", tag="skill_activated", frozen=True, kw_only=True):
    """A turn read a skill's SKILL.md or ran one of its scripts.

    `path` is what was read or run, `entrypoint_path` always the skill's SKILL.md.
    """

    skill_name: str
    load_reason: LoadReason
    path: str
    entrypoint_path: str
    turn_id: TurnId
    was_session_active: bool = msgspec.field(default_factory=bool)


class SkillInstalled(Record, tag_field="kind", tag="skill_installed", frozen=True, kw_only=True):
    """A skill was put into the agent's home."""

    skill_name: str
    path: str
    source_kind: str  # builtin | local | github
    source: str
    sha256: str


class SkillUninstalled(
    Record, tag_field="kind", tag="skill_uninstalled", frozen=True, kw_only=True
):
    """A skill was taken out of the agent's home."""

    skill_name: str
    path: str


SkillEvent: TypeAlias = SkillActivated | SkillInstalled | SkillUninstalled


class BadSkillRefError(BadInputError):
    """A skill cannot be referred to like this, or is not there; nothing was installed."""

    code = "bad_skill_ref"


class BuiltinSkillRef(Record, frozen=True, kw_only=True):
    """A skill that comes with Holon."""

    name: str
    kind: Literal["builtin"] = "builtin"

    @property
    def source(self) -> str:
        """The reference as text."""
        return self.name


class LocalSkillRef(Record, frozen=True, kw_only=True):
    """A directory with a SKILL.md, by its absolute path."""

    path: str
    kind: Literal["local"] = "local"
    copies: bool = False  # else it is linked, and follows later changes of its source

    @property
    def source(self) -> str:
        """The reference as text."""
        return self.path


class GithubSkillRef(Record, frozen=True, kw_only=True):
    """A skill of a repository, as `owner/repo@skill`."""

    owner: str
    repo: str
    skill: str
    kind: Literal["github"] = "github"

    @property
    def source(self) -> str:
        """The reference as text."""
        return f"{self.owner}/{self.repo}@{self.skill}"


SkillRef: TypeAlias = BuiltinSkillRef | LocalSkillRef | GithubSkillRef


class SkillFolder(Record, frozen=True, kw_only=True):
    """A skill in a directory of skills; without a source it was made there.

    `is_changed`: it differs from what was installed, so it is replaced only on request.
    """

    name: str
    path: str
    kind: str | None = None
    source: str | None = None
    is_changed: bool = msgspec.field(default_factory=bool)


class InstalledSkill(Record, frozen=True, kw_only=True):
    """A skill in its place. `sha256` is of its SKILL.md as it was then."""

    name: str
    path: str
    kind: str
    source: str
    sha256: str
