"""What the audit log says about skills, and how a turn's end moves them.

Owns:  the events of changes to skills, and the fold of what a turn made active.
Rule 1: the end of a turn leaves no event of its own for a skill: folding TurnEnded moves them.
"""

from collections.abc import Mapping
from typing import Final, assert_never

from holon.model.event import Event
from holon.model.ids import AgentId
from holon.model.skill import ActivationState
from holon.model.skill_change import ActivateSkill, RestoreSkills, SkillChange
from holon.model.skill_event import SkillActivated
from holon.model.turn import TerminalKind

DROPPED: Final = ""  # no end: it may be used again
USED_AGAIN: Final = "turn_active_again"  # in this turn, and session_active before it


def skill_events(change: SkillChange) -> tuple[tuple[AgentId, Event], ...]:
    """Return the events a change leaves, each with the agent whose log it goes to."""
    match change:
        case ActivateSkill(activation=used):
            activated = SkillActivated(
                skill_name=used.skill_name,
                load_reason=used.load_reason,
                path=used.path,
                entrypoint_path=used.entrypoint_path,
                turn_id=used.turn_id,
                was_session_active=used.is_lasting,
            )
            return ((used.agent_id, activated),)
        case RestoreSkills():
            return ()
        case _:
            assert_never(change)


def skill_key(event: SkillActivated) -> str:
    """Return what tells one activation of an agent from another."""
    return f"{event.load_reason} {event.entrypoint_path}"


def state_when_used(event: SkillActivated) -> str:
    """Return where an activation stands while its turn runs."""
    return USED_AGAIN if event.was_session_active else ActivationState.TURN_ACTIVE


def states_at_turn_end(states: Mapping[str, str], terminal: TerminalKind) -> dict[str, str]:
    """Return where the end of a turn leaves the activations it moves."""
    kept = ActivationState.SESSION_ACTIVE
    fresh = kept if terminal is TerminalKind.COMPLETED else DROPPED
    after = {ActivationState.TURN_ACTIVE: fresh, USED_AGAIN: kept}
    return {key: after[state] for key, state in states.items() if state in after}
