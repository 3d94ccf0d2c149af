"""Skills: what an agent may learn to do by reading.

Owns:  catalog entries and activations.
Rule 1: only metadata is ever in the prompt; the body is read when a skill is used.
Rule 2: a skill is known by the path of its SKILL.md: two scopes may hold skills of one name. Some
        write its name in other cases, which is the same file to them.
"""

from enum import StrEnum
from typing import Final

from holon.model.ids import AgentId, TurnId
from holon.model.instant import Instant
from holon.model.record import Record

SKILL_FILES: Final = ("SKILL.md", "skill.md", "Skill.md")  # the first that is there counts


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
    """The skills an agent may discover, and what stood in the way of others.

    `problems` are the first ones, with a line that says how many more there are; `problems_count`
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
