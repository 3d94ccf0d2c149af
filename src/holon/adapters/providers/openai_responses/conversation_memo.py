"""Encoded conversations, kept so that a round costs what it adds and not what came before.

Owns:  the last conversation of each agent in encoded form, for one endpoint and one set of freeform
       tools. What a new one shares with it is taken over; the rest is looked up by message.
Rule 1: a message is taken over when it is the same object, or equal words of the user (the turn's
        opening is laid out anew each round). Nothing else could have the same bytes for sure.
Rule 2: the memo is bounded and never changes a byte. It counts on one thing: the message object
        with the results of some calls always follows the message with those calls.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import compress
from operator import is_not
from typing import Final

import msgspec

from holon.adapters.providers.item_memo import ItemMemo
from holon.adapters.providers.openai_responses.items import is_reasoning
from holon.model.conversation import ConversationMessage, UserMessage
from holon.model.ids import AgentId
from holon.model.json_value import JsonValue
from holon.model.record import Record

_AGENTS_COUNT_MAX: Final = 32

LowerMessage = Callable[[ConversationMessage, ConversationMessage | None], Sequence[JsonValue]]


class EncodedConversation(Record, frozen=True, kw_only=True):
    """A conversation as items; `compared` are the items without reasoning."""

    messages: tuple[ConversationMessage, ...]
    items: list[msgspec.Raw]
    compared: list[msgspec.Raw]
    ends: list[tuple[int, int]]  # how many items, and compared ones, each message ends at


class ConversationMemo:
    """Remembers how conversations look on the wire."""

    def __init__(self, *, agents_max: int = _AGENTS_COUNT_MAX) -> None:
        self._messages = ItemMemo()
        self._latest: OrderedDict[AgentId, EncodedConversation] = OrderedDict()
        self._agents_max = agents_max

    def encoded(
        self,
        agent_id: AgentId,
        conversation: tuple[ConversationMessage, ...],
        lower: LowerMessage,
    ) -> EncodedConversation:
        """Return the conversation as items; `lower` is given a message and the one before it."""
        known = self._latest.pop(agent_id, _NOTHING)
        encoded = self._extended(known, conversation, lower)
        self._latest[agent_id] = encoded
        if len(self._latest) > self._agents_max:
            self._latest.popitem(last=False)
        return encoded

    def _extended(
        self,
        known: EncodedConversation,
        conversation: tuple[ConversationMessage, ...],
        lower: LowerMessage,
    ) -> EncodedConversation:
        shared = _shared_count(known.messages, conversation)
        items_end, compared_end = known.ends[shared - 1] if shared else (0, 0)
        items, compared = known.items[:items_end], known.compared[:compared_end]
        ends = known.ends[:shared]
        for index in range(shared, len(conversation)):
            before = conversation[index - 1] if index else None
            own = self._messages.items_of(conversation[index], _behind(before, lower))
            items += own
            compared += [item for item in own if not is_reasoning(item)]
            ends.append((len(items), len(compared)))
        return EncodedConversation(messages=conversation, items=items, compared=compared, ends=ends)


_NOTHING: Final = EncodedConversation(messages=(), items=[], compared=[], ends=[])


def _behind(
    before: ConversationMessage | None, lower: LowerMessage
) -> Callable[[ConversationMessage], Sequence[JsonValue]]:
    def lowered(message: ConversationMessage) -> Sequence[JsonValue]:
        return lower(message, before)

    return lowered


def _shared_count(
    known: tuple[ConversationMessage, ...], ours: tuple[ConversationMessage, ...]
) -> int:
    """Return how many messages two conversations begin with in common."""
    count = min(len(known), len(ours))
    for index in compress(range(count), map(is_not, known, ours)):
        same_words = isinstance(ours[index], UserMessage) and known[index] == ours[index]
        if not same_words:
            return index
    return count
