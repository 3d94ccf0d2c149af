"""The conversation of a running turn, rendered once and then only added to.

Owns:  the messages the model has been shown so far. A message that was sent stays the very same
       object, so that a wire which remembers how it encoded one need not do it again.
Rule 1: it equals `conversation_of` of the past and the turn's log, whenever every call of the log
        has its receipt: which is when the model is asked. Only bodies that came in with the turn
        and are too long for its budget are shown shortened.
Rule 2: where the agent asked for the address of its trigger, the address stands; the log has a mark
        in its place (decide/trigger_address).
Rule 3: when the turn records a compaction, it is rendered anew from the log, once.
"""

from collections.abc import Callable

from holon.decide.compaction import ShownPast, TurnSizes
from holon.decide.conversation_size import bytes_of
from holon.decide.conversation_view import (
    RenderedTurn,
    RoundsRecap,
    append_entry,
    append_recap,
    append_rendered,
    append_turn,
    rendered_turn,
)
from holon.decide.recap import newest_compaction
from holon.decide.trigger_address import log_with_address
from holon.decide.turn_replay import receipts_by_place
from holon.model.agent import AgentContext
from holon.model.conversation import ConversationMessage, UserMessage
from holon.model.prompt_frame import ConversationPlace
from holon.model.transcript import AssistantRound, TranscriptData, TurnCompaction, TurnLog
from holon.model.turn import TurnRecord


class GrowingConversation:
    """What the model reads, growing as its turn goes on."""

    def __init__(
        self,
        past: ShownPast,
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

    def _open(self, past: ShownPast) -> None:
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

    def _end(self) -> ConversationPlace:
        """Where the next words of the user go: into the last message, or into one of their own."""
        last = self._messages[-1] if self._messages else None
        if isinstance(last, UserMessage):
            index = len(self._messages) - 1
            return ConversationPlace(message_index=index, block_index=len(last.blocks))
        return ConversationPlace(message_index=len(self._messages), block_index=0)

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
        self._open(ShownPast(context=before))
        append_turn(self._messages, log, input_bytes_max=self._input_bytes_max)
        self._through_round = newest.through_round
        recap = RoundsRecap(turn_id=self._turn.turn_id, compaction=newest)
        self._recap_bytes = append_entry([], recap, {}) if newest.through_round else 0
