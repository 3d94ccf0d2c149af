"""Budgets: the rate-limit columns of `agents`, held messages, and the rows of `usage`.

Owns:  the columns of `agents` about their rate limits, `not_before` of held messages, and the rows
       of `usage`; the usage reads.
Rule 1: usage is added up per agent and in total, in the transaction that ends the turn.
Rule 2: the steps of a scope are adjacent, oldest first, and few.
Rule 3: usage is deleted by age and by how much came after it: a turn that ended while the clock was
        ahead does not delete the current day of any agent.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypeAlias, assert_never

from holon.adapters.sqlite.database.row_codec import (
    micros_or_none,
)
from holon.adapters.sqlite.database.statements import (
    ReadSession,
    Statements,
    named_queries,
)
from holon.model.budgets import (
    HoldMessage,
    PauseTurns,
    ReviewHolds,
    UnpauseTurns,
    UpdateTurnRate,
    UsageStep,
)
from holon.model.commits import (
    SettleTurn,
)
from holon.model.limits import (
    BUDGET_WINDOW_MS,
    SELF_STARTED_HOLD_MS_MAX,
    USAGE_STEP_MS,
)
from holon.model.values import (
    AgentId,
    from_micros,
    to_micros,
)

TurnRateChange: TypeAlias = UpdateTurnRate | HoldMessage | PauseTurns | UnpauseTurns | ReviewHolds

USAGE_STEP_MICROS = USAGE_STEP_MS * 1_000
EVERYBODY = ""  # the scope of all agents together
_STEPS_KEPT_COUNT = BUDGET_WINDOW_MS // USAGE_STEP_MS + 1
_MISSING = "agents_row_missing"
_HOLD_MAX = timedelta(milliseconds=SELF_STARTED_HOLD_MS_MAX)


class TurnLimitChanges:
    """Writes what changes about an agent's pace."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("pace")

    def write(self, change: TurnRateChange, *, at: int) -> None:
        """Write one change; `at` is the moment of its commit."""
        match change:
            case UpdateTurnRate(agent_id=agent_id, pace=pace):
                counted = (pace.self_started_count, micros_or_none(pace.self_started_at))
                self._update("remember_pace", (agent_id, *counted, int(pace.gave_up)))
            case HoldMessage():
                self._statements.change_one(
                    self._sql["hold_back"],
                    (change.message_id, change.agent_id, to_micros(change.until)),
                    missing="messages_row_missing",
                )
            case PauseTurns(agent_id=agent_id, hold=hold):
                self._update("hold_turns", (agent_id, to_micros(hold.until)))
            case UnpauseTurns(agent_id=agent_id):
                self._update("hold_turns", (agent_id, None))
            case ReviewHolds():
                self._statements.run(self._sql["review_holds"], (at,))
            case _:
                assert_never(change)

    def count(self, settled: SettleTurn) -> None:
        """Add up what a turn used."""
        step = to_micros(settled.terminal.completed_at) // USAGE_STEP_MICROS
        used = (step, settled.usage.total_tokens, settled.cost_micros)
        self._statements.run(self._sql["count_usage"], (settled.agent_id, *used))
        self._statements.run(self._sql["count_usage"], (EVERYBODY, *used))
        self._statements.run(
            self._sql["forget_usage"], (step - _STEPS_KEPT_COUNT, _STEPS_KEPT_COUNT)
        )

    def _update(self, name: str, parameters: tuple[str | int | None, ...]) -> None:
        self._statements.change_one(self._sql[name], parameters, missing=_MISSING)


class SqliteBudgetReads(ReadSession):
    """What turns used, and whom a budget holds."""

    async def usage(self, agent_id: AgentId | None, *, since: datetime) -> Sequence[UsageStep]:
        """What the turns of one agent, or of all, used since a moment, oldest first."""
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

    async def void_holds(self, *, now: datetime) -> Sequence[AgentId]:
        """Agents with a message whose hold ends later than any can: the clock was set back."""
        found = self._all("void_holds", (to_micros(now + _HOLD_MAX),))
        return [AgentId(str(row[0])) for row in found]
