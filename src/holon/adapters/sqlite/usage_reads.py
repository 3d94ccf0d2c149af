"""Reading what turns used.

Owns:  nothing but order: a scope's steps lie next to each other, oldest first, and are few.
"""

from collections.abc import Sequence
from datetime import datetime

from holon.adapters.sqlite.pace_changes import EVERYBODY, USAGE_STEP_MICROS
from holon.adapters.sqlite.read_session import ReadSession
from holon.model.budget import UsageStep
from holon.model.ids import AgentId
from holon.model.instant import from_micros, to_micros


class SqliteUsageReads(ReadSession):
    """The budgets' part of the port."""

    async def usage(self, agent_id: AgentId | None, *, since: datetime) -> Sequence[UsageStep]:
        """What the agent's turns used since a moment, or everybody's, oldest first."""
        scope = EVERYBODY if agent_id is None else agent_id
        found = self._all("usage", (scope, to_micros(since) // USAGE_STEP_MICROS))
        return [
            UsageStep(
                began_at=from_micros(step * USAGE_STEP_MICROS),
                turn_count=turn_count,
                tokens=tokens,
                cost_micros=cost_micros,
            )
            for step, turn_count, tokens, cost_micros in found
            if isinstance(step, int)
            and isinstance(turn_count, int)
            and isinstance(tokens, int)
            and isinstance(cost_micros, int)
        ]

    async def is_anybody_held(self) -> bool:
        """Whether a used-up budget holds some agent."""
        return self._one("held_agent") is not None

    async def agent_count(self, *, limit: int) -> int:
        """How many agents there are; counting stops at `limit`."""
        found = self._one("agent_count", (limit,))
        count = None if found is None else found[0]
        return count if isinstance(count, int) else 0
