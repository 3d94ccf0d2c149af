"""Instruction watch: detect changes to an agent's instruction files.

Owns:  comparing an agent's instruction sources around tool calls and at the end of turns, and the
       events about what changed.
Rule 1: a change is recorded by the commit of the call's result, or of the turn's end. When that
        call was interrupted, the next one records it.
Rule 2: only calls with an effect outside the database are checked. A difference found before such a
        call was made by the operator or by a background command; it is recorded without a call.
Rule 3: the first check of a process is the baseline. A call interrupted by a crash is on record as
        interrupted; what it wrote is part of that baseline.
Rule 4: baselines are kept for the most recently active agents; an agent inactive for long starts
        with a new baseline.
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
from holon.tools.guidance import least_authority
from holon.tools.registry import ToolRegistry
from holon.tools.tool import ToolExecution


class InstructionWatch:
    """Detects changes in the instruction sources of one host's agents."""

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
        self._unreported: dict[AgentId, tuple[Change, ...]] = {}

    async def begin(self, call: ToolCallRecord) -> None:
        """Compare before a call, so that earlier changes are not attributed to it."""
        if self._is_looked_at(call.name):
            changes = await self._changes(call.agent_id, call.turn_id)
            # An interrupted call may have left some unreported.
            unreported = (*self._unreported.get(call.agent_id, ()), *changes)
            self._unreported[call.agent_id] = unreported[-INSTRUCTIONS_UNREPORTED_COUNT_MAX:]

    async def noticed(self, call: ToolCallRecord, execution: ToolExecution) -> ToolExecution:
        """Return the execution with events for the changes detected."""
        if not self._is_looked_at(call.name):
            return execution
        before = self._unreported.pop(call.agent_id, ())
        during = await self._changes(call.agent_id, call.turn_id, effect_id=call.effect_id)
        if not before and not during:
            return execution
        changes = (*execution.changes, *before, *during)
        return msgspec.structs.replace(execution, changes=changes)

    async def ending(self, log: TurnLog) -> tuple[Change, ...]:
        """Return events for changes since the last check, at the end of a turn with such calls."""
        if not any(self._is_looked_at(each.call.name) for each in log.calls):
            return ()
        before = self._unreported.pop(log.turn.agent_id, ())
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
            self._unreported.pop(gone, None)
        if before is None or before == now:
            return ()
        authority = await least_authority(self._reads, agent_id, turn_id)
        noticed = InstructionCheck(
            turn_id=turn_id,
            effect_id=effect_id,
            authority_class=authority,
            tainted=is_tainted(authority),
        )
        events = changes_between(before, now, noticed)
        return tuple(NoteInstructionChange(agent_id=agent_id, event=event) for event in events)
