"""Work reminders: whether the running turn is due one, and what it says.

Owns:  the reads behind a reminder, and the round of the last check.
Rule 1: decide/work/reminder decides. A check that led to no reminder is not repeated before the
        cooldown is over.
"""

from holon.decide.turns.commits import LaneLease
from holon.decide.turns.step import TurnState
from holon.decide.work.reminder import (
    ReminderContext,
    ReminderFacts,
    decide_reminder,
    is_cooled_down,
    is_reminder_due,
    reminder_commit,
)
from holon.model.commits import Commit
from holon.model.limits import ESTIMATED_TOKEN_BYTES
from holon.model.providers.models import ModelRef
from holon.model.turns.transcript import AssistantRound
from holon.model.work import ReminderPolicy, WorkItemRecord, WorkItemState
from holon.ports.clock import Clock
from holon.ports.reads import StoreReads
from holon.runtime.providers.routing import ModelRouting
from holon.runtime.turns.log import LiveLog


class ReminderCheck:
    """Checks one turn for due reminders."""

    def __init__(
        self,
        lease: LaneLease,
        *,
        reads: StoreReads,
        clock: Clock,
        routing: ModelRouting,
        policy: ReminderPolicy,
    ) -> None:
        self._reads = reads
        self._clock = clock
        self._routing = routing
        self._policy = policy
        self._lease = lease
        self._checked_at_round: int | None = None

    async def due_commit(
        self, state: TurnState, live: LiveLog, override: ModelRef | None
    ) -> Commit | None:
        """Return the commit to make before the model is asked again, if any."""
        policy = self._policy
        if not is_reminder_due(state, policy):
            return None
        checked_at, now_at = self._checked_at_round, state.round_count
        if checked_at is not None and not is_cooled_down(checked_at, now_at, policy):
            return None
        self._checked_at_round = now_at
        item = await self._current_item()
        if item is None:
            return None
        facts = ReminderFacts(
            item=item,
            prompt_tokens=_prompt_tokens(live, now_at),
            prompt_tokens_max=self._routing.prompt_tokens_max(override),
        )
        place = ReminderContext(
            lease=self._lease, turn=live.turn, after_round=now_at, position=live.next_position
        )
        decision = decide_reminder(facts, policy)
        return reminder_commit(place, item, decision, now=self._clock.now())

    async def _current_item(self) -> WorkItemRecord | None:
        reads = self._reads
        agent = await reads.agents.agent(self._lease.agent_id)
        focus = agent.focus.current_work_item_id if agent is not None else None
        item = await reads.work.work_item(focus) if focus is not None else None
        return item if item is not None and item.state is WorkItemState.OPEN else None


def _prompt_tokens(live: LiveLog, round_number: int) -> int:
    """Estimate the next prompt: the newest round's usage plus its tool results."""
    rounds = (entry.data for entry in reversed(live.log.entries))
    newest = next((data for data in rounds if isinstance(data, AssistantRound)), None)
    results = sum(len(receipt.content.encode()) for receipt in live.receipts(round_number))
    used = newest.spoke.usage.total_tokens if newest is not None else 0
    return used + results // ESTIMATED_TOKEN_BYTES
