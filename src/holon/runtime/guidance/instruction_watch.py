"""Notices when the files change that an agent lives by.

Owns:  the looks at an agent's instruction sources around calls and at the end of turns, and the
       events about what they saw.
Rule 1: what changed is told by the commit that records the call's result, or the turn's end. Where
        that call was cut off before, the next one tells it.
Rule 2: only calls with an effect outside the database are looked at. What is different before such
        a call was changed while nobody looked, by the operator or a command that went on: it is
        told without a call.
Rule 3: the first look of a process is what later ones are compared with. A call that a crash cut
        off stays on record as cut off; what it wrote is part of that first look.
Rule 4: of the agents that acted last it is known what was seen; for one that has not acted for long
        the next look is a first one again.
"""

from collections.abc import Mapping

import msgspec

from holon.decide.guidance.instructions import InstructionCheck, changes_between
from holon.decide.queue.message_view import is_tainted
from holon.model.commits import Change
from holon.model.guidance import NoteInstructionChange
from holon.model.limits import INSTRUCTION_CHECKS_COUNT_MAX, INSTRUCTIONS_UNREPORTED_COUNT_MAX
from holon.model.lru import Lru
from holon.model.turns.tools import ToolCallRecord
from holon.model.turns.transcript import TurnLog
from holon.model.values import AgentId, TurnId
from holon.ports.guidance import InstructionSources
from holon.ports.reads import StoreReads
from holon.runtime.workspaces.place import AgentPlaces
from holon.tools.guidance import turn_worth
from holon.tools.registry import ToolRegistry
from holon.tools.tool import ToolExecution


class InstructionWatch:
    """Watches the homes of one host's agents."""

    def __init__(
        self,
        *,
        reads: StoreReads,
        tools: ToolRegistry,
        agent_places: AgentPlaces,
        instruction_sources: InstructionSources,
    ) -> None:
        self._reads = reads
        self._tools = tools
        self._agent_places = agent_places
        self._instruction_sources = instruction_sources
        self._seen: Lru[AgentId, Mapping[str, str]] = Lru(INSTRUCTION_CHECKS_COUNT_MAX)
        self._untold: dict[AgentId, tuple[Change, ...]] = {}

    async def begin(self, call: ToolCallRecord) -> None:
        """Look before a call, so that what it changes can be told from what was changed before."""
        if self._is_looked_at(call.name):
            seen = await self._changes(call.agent_id, call.turn_id)
            untold = (*self._untold.get(call.agent_id, ()), *seen)  # of a call that was cut off
            self._untold[call.agent_id] = untold[-INSTRUCTIONS_UNREPORTED_COUNT_MAX:]

    async def noticed(self, call: ToolCallRecord, execution: ToolExecution) -> ToolExecution:
        """Return the execution with the events about what changed."""
        if not self._is_looked_at(call.name):
            return execution
        before = self._untold.pop(call.agent_id, ())
        during = await self._changes(call.agent_id, call.turn_id, effect_id=call.effect_id)
        if not before and not during:
            return execution
        changes = (*execution.changes, *before, *during)
        return msgspec.structs.replace(execution, changes=changes)

    async def ending(self, log: TurnLog) -> tuple[Change, ...]:
        """Return the events about what changed until the end of a turn that acted."""
        if not any(self._is_looked_at(each.call.name) for each in log.calls):
            return ()
        before = self._untold.pop(log.turn.agent_id, ())
        return (*before, *await self._changes(log.turn.agent_id, log.turn.turn_id))

    def _is_looked_at(self, name: str) -> bool:
        tools = self._tools
        return name in tools.policy.mutating and not tools.named(name).only_plans

    async def _changes(
        self, agent_id: AgentId, turn_id: TurnId, *, effect_id: str | None = None
    ) -> tuple[Change, ...]:
        now = await self._instruction_sources.digests(self._agent_places.home_of(agent_id))
        before = self._seen.peek(agent_id)
        for gone in self._seen.put(agent_id, now):
            self._untold.pop(gone, None)
        if before is None or before == now:
            return ()
        worth = await turn_worth(self._reads, agent_id, turn_id)
        noticed = InstructionCheck(
            turn_id=turn_id,
            effect_id=effect_id,
            authority_class=worth,
            tainted=is_tainted(worth),
        )
        told = changes_between(before, now, noticed)
        return tuple(NoteInstructionChange(agent_id=agent_id, event=event) for event in told)
