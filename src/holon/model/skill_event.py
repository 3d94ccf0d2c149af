"""The runtime events about skills.

Owns:  what the audit log can say about skills. The rules are those of model/event.
"""

from typing import TypeAlias

import msgspec

from holon.model.ids import TurnId
from holon.model.record import Record
from holon.model.skill import LoadReason


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
