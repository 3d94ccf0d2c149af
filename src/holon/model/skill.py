"""Skills: what an agent may learn to do by reading.

Owns:  catalog entries and activations.
Rule 1: only metadata is ever in the prompt; the body is read when a skill is used.
"""

from enum import StrEnum

from holon.model.ids import AgentId
from holon.model.instant import Instant
from holon.model.record import Record


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


class SkillEntry(Record, frozen=True, kw_only=True):
    """One skill of the catalog."""

    name: str
    description: str
    scope: SkillScope
    path: str


class SkillActivation(Record, frozen=True, kw_only=True):
    """One skill in use by an agent."""

    agent_id: AgentId
    skill_name: str
    path: str
    source: ActivationSource
    state: ActivationState
    activated_at: Instant
    turn_index: int
