"""Letting go of messages that an agent will never get to see.

Owns:  the commit that takes the oldest of them out of what waits to be shown.
Rule 1: nothing goes without a word: the same commit leaves an event that says how many, and which.
Rule 2: a turn that began meanwhile may have shown them; then nothing is let go.
"""

from collections.abc import Sequence
from datetime import datetime

from holon.model.agent import AgentState
from holon.model.agent_event import UnseenLetGo
from holon.model.commit import Commit, MarkSeen, RecordEvent
from holon.model.expectation import AgentGeneration
from holon.model.ids import MessageId


def let_go_commit(agent: AgentState, oldest: Sequence[MessageId], *, now: datetime) -> Commit:
    """Show none of these messages any more, and say so."""
    agent_id = agent.identity.agent_id
    let_go = UnseenLetGo(
        message_count=len(oldest), first_message_id=oldest[0], last_message_id=oldest[-1]
    )
    return Commit(
        commit_id=f"unseen:{agent_id}:{oldest[-1]}",
        at=now,
        changes=(
            MarkSeen(agent_id=agent_id, message_ids=tuple(oldest)),
            RecordEvent(agent_id=agent_id, event=let_go),
        ),
        expects=(AgentGeneration(agent_id=agent_id, generation=agent.generation),),
    )
