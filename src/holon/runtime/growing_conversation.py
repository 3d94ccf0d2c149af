"""The conversation of a running turn, rendered once and then only added to.

Owns:  the messages the model has been shown so far. A message that was sent stays the very same
       object, so that a wire which remembers how it encoded one need not do it again.
Rule 1: it equals `conversation_of` of the history and the turn's log, whenever every call of the
        log has its receipt: which is when the model is asked.
"""

from collections.abc import Sequence

from holon.decide.conversation_view import append_entry, conversation_of
from holon.decide.turn_replay import receipts_by_place
from holon.model.conversation import ConversationMessage, UserMessage
from holon.model.prompt_frame import ConversationPlace
from holon.model.transcript import TurnLog


class GrowingConversation:
    """What the model reads, growing as its turn goes on."""

    def __init__(self, history: Sequence[TurnLog]) -> None:
        self._messages: list[ConversationMessage] = list(conversation_of(history))
        self._shown_count = 0  # entries of the running turn that are rendered already
        self.turn_start = self._end()

    def _end(self) -> ConversationPlace:
        """Where the next words of the user go: into the last message, or into one of their own."""
        last = self._messages[-1] if self._messages else None
        if isinstance(last, UserMessage):
            index = len(self._messages) - 1
            return ConversationPlace(message_index=index, block_index=len(last.blocks))
        return ConversationPlace(message_index=len(self._messages), block_index=0)

    def shown(self, log: TurnLog) -> tuple[ConversationMessage, ...]:
        """Render what the log has gained since the last look, and return the whole."""
        receipts = receipts_by_place(log)
        for entry in log.entries[self._shown_count :]:
            append_entry(self._messages, entry.data, receipts)
        self._shown_count = len(log.entries)
        return tuple(self._messages)
