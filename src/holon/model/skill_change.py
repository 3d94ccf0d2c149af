"""The changes to which skills an agent uses.

Owns:  those members of the union `Change` (model/commit) that are about skills.
Rule 1: the end of a turn (SettleTurn) keeps or drops what the turn made active; there is no change
        of its own for that, and no event.
"""

from typing import TypeAlias

from holon.model.record import Record
from holon.model.skill import SkillActivation


class ActivateSkill(Record, tag=True, frozen=True, kw_only=True):
    """A turn used a skill: it is turn_active until the turn ends."""

    activation: SkillActivation


class RestoreSkills(Record, tag=True, frozen=True, kw_only=True):
    """Every session_active skill of every agent now comes from an earlier process."""


SkillChange: TypeAlias = ActivateSkill | RestoreSkills
