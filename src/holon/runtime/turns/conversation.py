"""The room a running turn has for its conversation.

Owns:  one calibration per model, in memory. A restart begins anew: that may cost a cached prefix,
       and never more; the rendering of turns that can change no more: the next turn of an agent
       reads the same ones again, and a wire that remembers how it encoded a message finds the very
       same message; the messages the model has been shown so far. A message that was sent stays the
       very same object, so that a wire which remembers how it encoded one need not do it again; the
       conversation, its budget, and the facts behind every decision to shorten it.
Rule 1: the figure in use stays until the mean has strayed from it: prompts are cut by it, and one
        that changed with every request would change their bytes.
Rule 2: what a model asked of tools in a turn that has ended is shown without secrets. Only the turn
        that made a call reads it as it was written.
Rule 3: what is kept is bounded by its size and, because each turn costs some 3 kB beside its text,
        by count; what was not asked for longest goes first.
Rule 4: it equals `conversation_of` of the past and the turn's log, whenever every call of the log
        has its receipt: which is when the model is asked. Only bodies that came in with the turn
        and are too long for its budget are shown shortened.
Rule 5: where the agent asked for the address of its trigger, the address stands; the log has a mark
        in its place (decide/wake/triggers).
Rule 6: when the turn records a compaction, it is rendered anew from the log, once.
Rule 7: whether and how is decided in decide/turns/compaction and decide/turns/compaction; what was
        decided is recorded before a request is made from it.
Rule 8: the budget is what the prompt leaves: the model's window without tools, frame and margin.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from holon.decide.providers.token_estimate import (
    UNCALIBRATED,
    Calibration,
    bytes_of_tokens,
    calibrated,
    tokens_of_bytes,
)
from holon.decide.text.secrets import Redact, log_without_secrets
from holon.decide.turns.commits import LaneLease, entry_of
from holon.decide.turns.compaction import (
    BaselineOverBudget,
    Fits,
    HistoryFacts,
    ShownHistory,
    TurnSizes,
    compaction_of,
    decide_window,
    plan_history,
)
from holon.decide.turns.conversation import (
    RenderedTurn,
    RoundsRecap,
    append_entry,
    append_recap,
    append_rendered,
    append_turn,
    bytes_of,
    newest_compaction,
    rendered_turn,
)
from holon.decide.turns.failures import over_budget
from holon.decide.turns.replay import receipts_by_place
from holon.decide.turns.step import TurnState
from holon.decide.wake.triggers import log_with_address
from holon.model.agents import AgentContext
from holon.model.commits import AppendTranscript, Change, Commit, RecordEvent
from holon.model.limits import MIB
from holon.model.lru import Lru
from holon.model.providers.prompt_frame import ConversationPosition, ProviderRequest
from holon.model.record import Record
from holon.model.turns.compaction import (
    CALIBRATION_STRAY_PERCENT,
    HISTORY_TURNS_READ_COUNT_MAX,
    RememberContext,
    TurnBaselineOverBudget,
)
from holon.model.turns.conversation import ConversationMessage, UserMessage
from holon.model.turns.tools import ToolSpec
from holon.model.turns.transcript import (
    AssistantRound,
    TranscriptData,
    TranscriptEntry,
    TurnCompaction,
    TurnLog,
)
from holon.model.turns.turn import ModelAnswered, ModelFailed, TurnRecord
from holon.model.values import AgentId, Instant, TurnId
from holon.ports.reads import StoreReads
from holon.prompt.frame import AssembledPrompt
from holon.prompt.sections import CURRENT_INPUT


class TokenCalibrations:
    """Calibrations of one host."""

    def __init__(self) -> None:
        self._means: dict[str, Calibration] = {}
        self._used: dict[str, Calibration] = {}

    def of(self, model_ref: str) -> Calibration:
        """Return what is known about a model's tokens."""
        return self._used.get(model_ref, UNCALIBRATED)

    def hear(self, answer: ModelAnswered | ModelFailed, *, request_bytes: int) -> None:
        """Learn from a round, if whoever answered it said how much it read."""
        if isinstance(answer, ModelAnswered) and answer.timeline is not None:
            model_ref, tokens = answer.timeline.active_model_ref, answer.usage.input_tokens
            if model_ref is not None and not answer.usage.is_estimated:
                self.learn(model_ref, request_bytes=request_bytes, reported_tokens=tokens)

    def learn(self, model_ref: str, *, request_bytes: int, reported_tokens: int) -> None:
        """Take in how many tokens a request turned out to have."""
        old = self._means.get(model_ref, UNCALIBRATED)
        mean = calibrated(old, request_bytes=request_bytes, reported_tokens=reported_tokens)
        self._means[model_ref] = mean
        used = self.of(model_ref).token_millibytes
        strayed = abs(mean.token_millibytes - used) * 100
        if strayed > used * CALIBRATION_STRAY_PERCENT:
            self._used[model_ref] = mean


KEPT_BYTES_MAX: Final = 8 * MIB
TURNS_KEPT_COUNT_MAX: Final = 4_096
TURNS_KNOWN_COUNT_MAX: Final = 8_192
TURN_BYTES_MAX: Final = KEPT_BYTES_MAX // 64  # a larger one is rendered each time


class TurnRenderings:
    """Renderings of the turns of one host."""

    def __init__(
        self, *, bytes_max: int = KEPT_BYTES_MAX, count_max: int = TURNS_KEPT_COUNT_MAX
    ) -> None:
        self._hiding: Lru[TurnId, bool] = Lru(TURNS_KNOWN_COUNT_MAX)  # whether it has secrets
        self._kept: Lru[TurnId, tuple[int, RenderedTurn]] = Lru(count_max, size_max=bytes_max)

    def shown(self, log: TurnLog, redact: Redact) -> TurnLog:
        """Return a turn that has ended as later ones may read it; few have anything to hide."""
        turn_id = log.turn.turn_id
        if self._hiding.peek(turn_id) is False:
            return log
        hidden = log_without_secrets(log, redact)
        if turn_id not in self._hiding:
            self._hiding.put(turn_id, hidden is not log)
        return hidden

    def of(self, log: TurnLog) -> RenderedTurn:
        """Return how a turn that has ended looks."""
        turn_id, entries_count = log.turn.turn_id, len(log.entries)
        known = self._kept.get(turn_id)
        if known is not None and known[0] == entries_count:
            return known[1]
        rendered = rendered_turn(log)
        if rendered.size_bytes <= TURN_BYTES_MAX:
            self._kept.put(turn_id, (entries_count, rendered), rendered.size_bytes)
        return rendered


class GrowingConversation:
    """What the model reads, growing as its turn goes on."""

    def __init__(
        self,
        past: ShownHistory,
        turn: TurnRecord,
        *,
        input_bytes_max: int | None = None,
        rendered: Callable[[TurnLog], RenderedTurn] = rendered_turn,
        trigger_url: str | None = None,
    ) -> None:
        self._turn = turn
        self._rendered = rendered
        self._trigger_url = trigger_url
        self._input_bytes_max = input_bytes_max  # of each body that came in with the running turn
        self._seen_count = 0  # entries of the running turn that were taken in
        self._seen_calls_count = 0  # and its calls
        self._opening_bytes = 0
        self._round_bytes: list[int] = []
        self._recap_bytes = 0
        self._through_round = 0
        self._open(past)

    def shown(self, log: TurnLog) -> tuple[ConversationMessage, ...]:
        """Render what the log has gained since the last look, and return the whole."""
        self._take_in(log)
        return tuple(self._messages)

    def sizes(self, log: TurnLog, *, budget_bytes: int) -> TurnSizes:
        """Measure what would be shown now."""
        self._take_in(log)
        return TurnSizes(
            budget_bytes=budget_bytes,
            history_bytes=self._history_bytes,
            opening_bytes=self._opening_bytes,
            recap_bytes=self._recap_bytes,
            round_bytes=tuple(self._round_bytes),
            through_round=self._through_round,
        )

    def _open(self, past: ShownHistory) -> None:
        """Begin with what came before the turn."""
        self._messages: list[ConversationMessage] = []
        append_recap(self._messages, self._turn.agent_id, past.context)
        self.past_bytes = tuple(
            append_rendered(self._messages, self._rendered_past(log)) for log in past.turns
        )
        self._history_bytes = bytes_of(self._messages)
        self.turn_start = self._end()

    def _rendered_past(self, log: TurnLog) -> RenderedTurn:
        """What holds the trigger's address is not remembered: another one may be in force soon."""
        own = log_with_address(log, self._trigger_url)
        return self._rendered(log) if own is log else rendered_turn(own)

    def _end(self) -> ConversationPosition:
        """Where the next words of the user go: into the last message, or into one of their own."""
        last = self._messages[-1] if self._messages else None
        if isinstance(last, UserMessage):
            index = len(self._messages) - 1
            return ConversationPosition(message_index=index, block_index=len(last.blocks))
        return ConversationPosition(message_index=len(self._messages), block_index=0)

    def _take_in(self, log: TurnLog) -> None:
        fresh = log.entries[self._seen_count :]
        if not fresh:
            return
        log = log_with_address(log, self._trigger_url)
        receipts = receipts_by_place(log.calls[self._seen_calls_count :])
        for entry in fresh:
            said = append_entry(
                self._messages, entry.data, receipts, input_bytes_max=self._input_bytes_max
            )
            self._count(entry.data, said)
        self._seen_count, self._seen_calls_count = len(log.entries), len(log.calls)
        if any(isinstance(entry.data, TurnCompaction) for entry in fresh):
            self._begin_anew(log)

    def _count(self, data: TranscriptData, said_bytes: int) -> None:
        if isinstance(data, AssistantRound):
            self._round_bytes.append(said_bytes)
        elif self._round_bytes:
            self._round_bytes[-1] += said_bytes
        else:
            self._opening_bytes += said_bytes

    def _begin_anew(self, log: TurnLog) -> None:
        newest = newest_compaction(log.entries)
        assert newest is not None, "only a compaction makes the conversation begin anew"
        before = AgentContext(history_from_turn=self._turn.turn_index, recap=newest.history)
        self._open(ShownHistory(context=before))
        append_turn(self._messages, log, input_bytes_max=self._input_bytes_max)
        self._through_round = newest.through_round
        recap = RoundsRecap(turn_id=self._turn.turn_id, compaction=newest)
        self._recap_bytes = append_entry([], recap, {}) if newest.through_round else 0


async def read_past(
    reads: StoreReads, agent_id: AgentId, *, renderings: TurnRenderings, redact: Redact
) -> ShownHistory:
    """Return what an agent's next turn reads of those before it."""
    context = await reads.agent_context(agent_id)
    turns = await reads.recent_turns(
        agent_id, limit=HISTORY_TURNS_READ_COUNT_MAX, from_turn=context.history_from_turn
    )
    shown = (renderings.shown(log, redact) for log in turns)
    return ShownHistory(context=context, turns=tuple(shown))


class NoRoom(Record, frozen=True, kw_only=True):
    """The turn cannot go on: how it ends, and what is recorded about it."""

    failed: ModelFailed
    told: tuple[Change, ...]


class ConversationRoom:
    """The conversation of one turn, within its budget."""

    def __init__(
        self,
        prompt: AssembledPrompt,
        past: ShownHistory,
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
            subject="what came in, and the newest round of this turn with its results",
        )
        told = TurnBaselineOverBudget(
            turn_id=log.turn.turn_id, needed_tokens=needed, budget_tokens=budget
        )
        return NoRoom(
            failed=ModelFailed(failure=failure),
            told=(RecordEvent(agent_id=log.turn.agent_id, event=told),),
        )


def compaction_commit(
    lease: LaneLease, log: TurnLog, compaction: TurnCompaction, *, now: Instant
) -> Commit:
    """Make a compaction part of the turn."""
    return Commit(
        commit_id=f"compact:{log.turn.turn_id}:{compaction.generation}",
        at=now,
        changes=(AppendTranscript(entry=_entry(log, compaction, at=now)),),
        expects=(lease.fence,),
    )


def _entry(log: TurnLog, compaction: TurnCompaction, *, at: Instant) -> TranscriptEntry:
    position = log.entries[-1].position + 1 if log.entries else 0
    return entry_of(log.turn, position=position, at=at, data=compaction)
