"""The room a running turn has for its conversation.

Owns:  the conversation, its budget, and the facts behind every decision to shorten it.
Rule 1: whether and how is decided in decide/compaction and decide/history_window; what was decided
        is recorded before a request is made from it.
Rule 2: the budget is what the prompt leaves: the model's window without tools, frame and margin.
"""

import msgspec

from holon.decide.compaction import (
    BaselineOverBudget,
    Fits,
    ShownPast,
    TurnSizes,
    compaction_of,
    decide_window,
)
from holon.decide.failure_artifact import over_budget
from holon.decide.history_window import HistoryFacts, plan_history
from holon.decide.lane_commits import LaneHold, entry_of
from holon.decide.redaction import Redact
from holon.decide.token_estimate import bytes_of_tokens, tokens_of_bytes
from holon.decide.turn_step import TurnState
from holon.decide.without_secrets import log_without_secrets
from holon.model.commit import AppendTranscript, Change, Commit, RecordEvent
from holon.model.compaction_limits import HISTORY_TURNS_READ_COUNT_MAX
from holon.model.context_change import RememberContext
from holon.model.context_event import TurnBaselineOverBudget
from holon.model.ids import AgentId
from holon.model.instant import Instant
from holon.model.prompt_frame import ProviderRequest
from holon.model.record import Record
from holon.model.tool import ToolSpec
from holon.model.transcript import TranscriptEntry, TurnCompaction, TurnLog
from holon.model.turn import ModelFailed, TurnRecord
from holon.ports.store_reads import StoreReads
from holon.prompt.frame import AssembledPrompt
from holon.prompt.sections import CURRENT_INPUT
from holon.runtime.growing_conversation import GrowingConversation
from holon.runtime.turn_renderings import TurnRenderings


async def read_past(
    reads: StoreReads, agent_id: AgentId, *, renderings: TurnRenderings, redact: Redact
) -> ShownPast:
    """Return what an agent's next turn reads of those before it."""
    context = await reads.agent_context(agent_id)
    turns = await reads.recent_turns(
        agent_id, limit=HISTORY_TURNS_READ_COUNT_MAX, from_turn=context.history_from_turn
    )
    shown = (renderings.shown(log, redact) for log in turns)
    return ShownPast(context=context, turns=tuple(shown))


class NoRoom(Record, frozen=True, kw_only=True):
    """The turn cannot go on: how it ends, and what is recorded about it."""

    failed: ModelFailed
    told: tuple[Change, ...]


class ConversationRoom:
    """The conversation of one turn, within its budget."""

    def __init__(
        self,
        prompt: AssembledPrompt,
        past: ShownPast,
        turn: TurnRecord,
        *,
        renderings: TurnRenderings,
        redact: Redact,
        trigger_url: str | None = None,
    ) -> None:
        self._redact = redact  # of what is told later of calls this turn still reads as they are
        self._frame = prompt.frame
        self._past = past
        self._calibration = prompt.budget.calibration
        sections = [each for each in prompt.sections if each.name != CURRENT_INPUT]
        frame_tokens = sum(each.sent_tokens for each in sections)
        tools_bytes = bytes_of_tokens(prompt.budget.tools_tokens, self._calibration)
        self._fixed_bytes = sum(each.sent_bytes for each in sections) + tools_bytes
        self._budget_bytes = bytes_of_tokens(
            prompt.budget.available_tokens - frame_tokens, self._calibration
        )
        self._conversation = GrowingConversation(
            past,
            turn,
            input_bytes_max=prompt.input_bytes_max,
            rendered=renderings.of,
            trigger_url=trigger_url,
        )
        self._past_bytes = self._conversation.past_bytes  # of the turns, before any was let go

    def request(self, log: TurnLog, tools: tuple[ToolSpec, ...]) -> ProviderRequest:
        """Return the request of the next round."""
        return ProviderRequest(
            agent_id=log.turn.agent_id,
            frame=self._frame,
            conversation=self._conversation.shown(log),
            tools=tools,
            turn_start=self._conversation.turn_start,
        )

    def request_bytes(self, log: TurnLog) -> int:
        """Return how large the request of a round is, in the measure budgets are counted in."""
        return self._fixed_bytes + self._sizes(log).shown_bytes

    def _sizes(self, log: TurnLog) -> TurnSizes:
        return self._conversation.sizes(log, budget_bytes=self._budget_bytes)

    def due(self, log: TurnLog, state: TurnState) -> TurnCompaction | NoRoom | None:
        """Return what has to be recorded before the model can be asked again, if anything."""
        chosen = decide_window(self._sizes(log))
        if isinstance(chosen, Fits):
            return None
        if isinstance(chosen, BaselineOverBudget):
            return self._no_room(log, chosen)
        shown = log_without_secrets(log, self._redact)
        return compaction_of(shown, chosen, state=state, past=self._past)

    def ending(
        self, log: TurnLog, final_round: tuple[Change, ...], *, now: Instant
    ) -> tuple[Change, ...]:
        """Return what changes about the past the next turn reads, now that this turn is over."""
        said = (each.entry for each in final_round if isinstance(each, AppendTranscript))
        whole = msgspec.structs.replace(log, entries=(*log.entries, *said))
        facts = HistoryFacts(
            past=self._past,
            past_bytes=self._past_bytes,
            ended=log_without_secrets(whole, self._redact),
            budget_bytes=self._budget_bytes,
        )
        plan = plan_history(facts)
        changes: list[Change] = []
        if plan.compaction is not None:
            changes.append(AppendTranscript(entry=_entry(whole, plan.compaction, at=now)))
        if plan.context is not None:
            moved = RememberContext(agent_id=log.turn.agent_id, context=plan.context)
            changes.append(moved)
        return tuple(changes)

    def _no_room(self, log: TurnLog, over: BaselineOverBudget) -> NoRoom:
        needed = tokens_of_bytes(over.needed_bytes, self._calibration)
        budget = tokens_of_bytes(over.budget_bytes, self._calibration)
        failure = over_budget(
            needed_tokens=needed,
            share_tokens=budget,
            what="what came in, and the newest round of this turn with its results",
        )
        told = TurnBaselineOverBudget(
            turn_id=log.turn.turn_id, needed_tokens=needed, budget_tokens=budget
        )
        return NoRoom(
            failed=ModelFailed(failure=failure),
            told=(RecordEvent(agent_id=log.turn.agent_id, event=told),),
        )


def compaction_commit(
    hold: LaneHold, log: TurnLog, compaction: TurnCompaction, *, now: Instant
) -> Commit:
    """Make a compaction part of the turn."""
    return Commit(
        commit_id=f"compact:{log.turn.turn_id}:{compaction.generation}",
        at=now,
        changes=(AppendTranscript(entry=_entry(log, compaction, at=now)),),
        expects=(hold.fence,),
    )


def _entry(log: TurnLog, compaction: TurnCompaction, *, at: Instant) -> TranscriptEntry:
    position = log.entries[-1].position + 1 if log.entries else 0
    return entry_of(log.turn, position=position, at=at, data=compaction)
