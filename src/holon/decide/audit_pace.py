"""What the audit log says about an agent's pace.

Owns:  the events of changes that slow an agent down. The rules are those of decide/audit.
"""

from typing import TypeAlias, assert_never

from holon.decide.audit_turns import Audited
from holon.model.pace_change import (
    HoldMessage,
    HoldTurns,
    ReleaseTurns,
    RememberPace,
    ReviewHolds,
)
from holon.model.pace_event import BudgetFreed, BudgetUsedUp, MessageHeld, SelfStartsEnded

PaceChange: TypeAlias = RememberPace | HoldMessage | HoldTurns | ReleaseTurns | ReviewHolds


def pace_events(change: PaceChange) -> Audited:
    """Return the events a change of pace leaves. Counting alone leaves none."""
    match change:
        case RememberPace(agent_id=agent_id, pace=pace):
            if not pace.gave_up:
                return ()  # the turn that goes with it is the event
            return ((agent_id, SelfStartsEnded(turn_count=pace.self_started_count)),)
        case HoldMessage():
            held = MessageHeld(message_id=change.message_id, until=change.until)
            return ((change.agent_id, held),)
        case HoldTurns(agent_id=agent_id, hold=hold):
            used_up = BudgetUsedUp(
                scope=hold.scope,
                measure=hold.measure,
                used=hold.used,
                allowed=hold.allowed,
                until=hold.until,
            )
            return ((agent_id, used_up),)
        case ReleaseTurns(agent_id=agent_id):
            return ((agent_id, BudgetFreed()),)
        case ReviewHolds():
            return ()  # what the review of each agent finds is said then
        case _:
            assert_never(change)
