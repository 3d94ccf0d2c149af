"""The conversation of a running turn, kept within its token budget.

Owns:  the messages sent to the model so far, their budget, and the facts behind every decision to
       shorten them; a cache of rendered past turns; one token calibration per model, in memory.
Rule 1: a calibration in use changes only when the measured mean has drifted from it: prompts are
        cut by it, and a figure that changed with every request would change their bytes. A restart
        starts uncalibrated, which costs at most a cached prefix.
Rule 2: tool calls of finished turns are shown without secrets. Only the turn that made a call reads
        it as written.
Rule 3: the cache is bounded by size and, since each turn costs some 3 kB beside its text, by count;
        it evicts the least recently used.
Rule 4: a message that was sent stays the same object, so that a wire which caches encodings per
        message need not encode it again.
Rule 5: the conversation equals `conversation_of` of the past and the turn's log whenever every call
        of the log has its receipt, which holds whenever the model is asked. Only incoming bodies
        that exceed their share of the budget are shown shortened.
Rule 6: where the agent asked for the address of its trigger, the address is inserted; the log holds
        a placeholder (decide/wake/triggers).
Rule 7: when the turn records a compaction, the conversation is rendered again from the log, once.
Rule 8: decide/turns/compaction decides on compactions; one is recorded before a request is built on
        it.
Rule 9: the budget is the model's window without tools, frame and margin.
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

KEPT_BYTES_MAX: Final = 8 * MIB
TURNS_KEPT_COUNT_MAX: Final = 4_096
TURNS_KNOWN_COUNT_MAX: Final = 8_192
TURN_BYTES_MAX: Final = KEPT_BYTES_MAX // 64  # a larger one is rendered each time


class TokenCalibrations:
    """Token calibrations per model, for one host."""

    def __init__(self) -> None:
        self._means: dict[str, Calibration] = {}
        self._used: dict[str, Calibration] = {}

    def of(self, model_ref: str) -> Calibration:
        """Return the calibration of a model."""
        return self._used.get(model_ref, UNCALIBRATED)

    def observe(self, answer: ModelAnswered | ModelFailed, *, request_bytes: int) -> None:
        """Learn from a round whose provider reported its input tokens."""
        if isinstance(answer, ModelAnswered) and answer.timeline is not None:
            model_ref, tokens = answer.timeline.active_model_ref, answer.usage.input_tokens
            if model_ref is not None and not answer.usage.is_estimated:
                self.learn(model_ref, request_bytes=request_bytes, reported_tokens=tokens)

    def learn(self, model_ref: str, *, request_bytes: int, reported_tokens: int) -> None:
        """Update a model's mean with the reported tokens of a request."""
        old = self._means.get(model_ref, UNCALIBRATED)
        mean = calibrated(old, request_bytes=request_bytes, reported_tokens=reported_tokens)
        self._means[model_ref] = mean
        used = self.of(model_ref).token_millibytes
        strayed = abs(mean.token_millibytes - used) * 100
        if strayed > used * CALIBRATION_STRAY_PERCENT:
            self._used[model_ref] = mean


class TurnRenderings:
    """A cache of rendered past turns, for one host."""

    def __init__(
        self, *, bytes_max: int = KEPT_BYTES_MAX, count_max: int = TURNS_KEPT_COUNT_MAX
    ) -> None:
        self._hiding: Lru[TurnId, bool] = Lru(TURNS_KNOWN_COUNT_MAX)  # whether it has secrets
        self._kept: Lru[TurnId, tuple[int, RenderedTurn]] = Lru(count_max, size_max=bytes_max)

    def shown(self, log: TurnLog, redact: Redact) -> TurnLog:
        """Return a finished turn with its secrets redacted; few turns contain any."""
        turn_id = log.turn.turn_id
        if self._hiding.peek(turn_id) is False:
            return log
        hidden = log_without_secrets(log, redact)
        if turn_id not in self._hiding:
            self._hiding.put(turn_id, hidden is not log)
        return hidden

    def of(self, log: TurnLog) -> RenderedTurn:
        """Return the rendering of a finished turn."""
        turn_id, entries_count = log.turn.turn_id, len(log.entries)
        cached = self._kept.get(turn_id)
        if cached is not None and cached[0] == entries_count:
            return cached[1]
        rendered = rendered_turn(log)
        if rendered.size_bytes <= TURN_BYTES_MAX:
            self._kept.put(turn_id, (entries_count, rendered), rendered.size_bytes)
        return rendered


class GrowingConversation:
    """The messages sent to the model, extended as the turn's log grows."""

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
        self._input_bytes_max = input_bytes_max  # of each incoming body of the running turn
        self._seen_count = 0  # entries of the running turn rendered so far
        self._seen_calls_count = 0  # and calls
        self._opening_bytes = 0
        self._round_bytes: list[int] = []
        self._recap_bytes = 0
        self._through_round = 0
        self._open(past)

    def shown(self, log: TurnLog) -> tuple[ConversationMessage, ...]:
        """Render new entries of the log, and return all messages."""
        self._take_in(log)
        return tuple(self._messages)

    def sizes(self, log: TurnLog, *, budget_bytes: int) -> TurnSizes:
        """Return the sizes of all messages."""
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
        """Start with the messages of earlier turns."""
        self._messages: list[ConversationMessage] = []
        append_recap(self._messages, self._turn.agent_id, past.context)
        self.past_bytes = tuple(
            append_rendered(self._messages, self._rendered_past(log)) for log in past.turns
        )
        self._history_bytes = bytes_of(self._messages)
        self.turn_start = self._end()

    def _rendered_past(self, log: TurnLog) -> RenderedTurn:
        """Render a past turn; one with the trigger's address, which may change, is not cached."""
        with_address = log_with_address(log, self._trigger_url)
        return self._rendered(log) if with_address is log else rendered_turn(with_address)

    def _end(self) -> ConversationPosition:
        """Where the next user text goes: into the last message, or into a new one."""
        last = self._messages[-1] if self._messages else None
        if isinstance(last, UserMessage):
            index = len(self._messages) - 1
            return ConversationPosition(message_index=index, block_index=len(last.blocks))
        return ConversationPosition(message_index=len(self._messages), block_index=0)

    def _take_in(self, log: TurnLog) -> None:
        new_entries = log.entries[self._seen_count :]
        if not new_entries:
            return
        log = log_with_address(log, self._trigger_url)
        receipts = receipts_by_place(log.calls[self._seen_calls_count :])
        for entry in new_entries:
            entry_bytes = append_entry(
                self._messages, entry.data, receipts, input_bytes_max=self._input_bytes_max
            )
            self._count(entry.data, entry_bytes)
        self._seen_count, self._seen_calls_count = len(log.entries), len(log.calls)
        if any(isinstance(entry.data, TurnCompaction) for entry in new_entries):
            self._restart(log)

    def _count(self, data: TranscriptData, entry_bytes: int) -> None:
        if isinstance(data, AssistantRound):
            self._round_bytes.append(entry_bytes)
        elif self._round_bytes:
            self._round_bytes[-1] += entry_bytes
        else:
            self._opening_bytes += entry_bytes

    def _restart(self, log: TurnLog) -> None:
        """Render the conversation again, from the newest compaction."""
        newest = newest_compaction(log.entries)
        assert newest is not None, "only a compaction restarts the conversation"
        before = AgentContext(history_from_turn=self._turn.turn_index, recap=newest.history)
        self._open(ShownHistory(context=before))
        append_turn(self._messages, log, input_bytes_max=self._input_bytes_max)
        self._through_round = newest.through_round
        recap = RoundsRecap(turn_id=self._turn.turn_id, compaction=newest)
        self._recap_bytes = append_entry([], recap, {}) if newest.through_round else 0


async def read_past(
    reads: StoreReads, agent_id: AgentId, *, renderings: TurnRenderings, redact: Redact
) -> ShownHistory:
    """Return the past turns that an agent's next turn reads."""
    context = await reads.agents.agent_context(agent_id)
    turns = await reads.turns.recent_turns(
        agent_id, limit=HISTORY_TURNS_READ_COUNT_MAX, from_turn=context.history_from_turn
    )
    shown = (renderings.shown(log, redact) for log in turns)
    return ShownHistory(context=context, turns=tuple(shown))


class WindowExceeded(Record, frozen=True, kw_only=True):
    """The conversation cannot be made to fit: the turn's failure, and what to record about it."""

    failed: ModelFailed
    changes: tuple[Change, ...]


class ConversationWindow:
    """The conversation of one turn within its token budget."""

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
        self._redact = redact  # for summaries of calls; this turn itself reads them unredacted
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
        self._past_bytes = self._conversation.past_bytes  # of past turns, before any was dropped

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
        """Return the size of a round's request, in the measure of budgets."""
        return self._fixed_bytes + self._sizes(log).shown_bytes

    def _sizes(self, log: TurnLog) -> TurnSizes:
        return self._conversation.sizes(log, budget_bytes=self._budget_bytes)

    def due(self, log: TurnLog, state: TurnState) -> TurnCompaction | WindowExceeded | None:
        """Return the compaction due before the next request, if any, or that nothing fits."""
        chosen = decide_window(self._sizes(log))
        if isinstance(chosen, Fits):
            return None
        if isinstance(chosen, BaselineOverBudget):
            return self._window_exceeded(log, chosen)
        shown = log_without_secrets(log, self._redact)
        return compaction_of(shown, chosen, state=state, past=self._past)

    def ending(
        self, log: TurnLog, final_round: tuple[Change, ...], *, now: Instant
    ) -> tuple[Change, ...]:
        """Return the changes to the past that the next turn reads, as this turn ends."""
        appended = (each.entry for each in final_round if isinstance(each, AppendTranscript))
        whole = msgspec.structs.replace(log, entries=(*log.entries, *appended))
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

    def _window_exceeded(self, log: TurnLog, over: BaselineOverBudget) -> WindowExceeded:
        needed = tokens_of_bytes(over.needed_bytes, self._calibration)
        budget = tokens_of_bytes(over.budget_bytes, self._calibration)
        failure = over_budget(
            needed_tokens=needed,
            share_tokens=budget,
            subject="the incoming messages, and the newest round of this turn with its results",
        )
        event = TurnBaselineOverBudget(
            turn_id=log.turn.turn_id, needed_tokens=needed, budget_tokens=budget
        )
        return WindowExceeded(
            failed=ModelFailed(failure=failure),
            changes=(RecordEvent(agent_id=log.turn.agent_id, event=event),),
        )


def compaction_commit(
    lease: LaneLease, log: TurnLog, compaction: TurnCompaction, *, now: Instant
) -> Commit:
    """Return the commit that records a compaction in the turn."""
    return Commit(
        commit_id=f"compact:{log.turn.turn_id}:{compaction.generation}",
        at=now,
        changes=(AppendTranscript(entry=_entry(log, compaction, at=now)),),
        expects=(lease.fence,),
    )


def _entry(log: TurnLog, compaction: TurnCompaction, *, at: Instant) -> TranscriptEntry:
    position = log.entries[-1].position + 1 if log.entries else 0
    return entry_of(log.turn, position=position, at=at, data=compaction)
