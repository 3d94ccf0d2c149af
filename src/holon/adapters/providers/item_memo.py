"""Encoded conversation items, kept so that a growing conversation is encoded once.

Owns:  the memo of one endpoint. A message that was lowered before costs one lookup.
Rule 1: an entry is found by the identity of the message object it holds on to, so a lookup can
        never return the items of another message.
Rule 2: the memo is bounded; what was used longest ago goes first.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from holon.model.conversation import ConversationMessage
from holon.model.json_value import JsonValue

_MESSAGES_COUNT_MAX: Final = 4_096


class ItemMemo:
    """Remembers how messages look on the wire."""

    def __init__(self, *, messages_max: int = _MESSAGES_COUNT_MAX) -> None:
        self._known: OrderedDict[int, tuple[ConversationMessage, tuple[msgspec.Raw, ...]]]
        self._known = OrderedDict()
        self._messages_max = messages_max

    def items_of(
        self,
        message: ConversationMessage,
        lower: Callable[[ConversationMessage], Sequence[JsonValue]],
    ) -> tuple[msgspec.Raw, ...]:
        """Return the encoded items of a message, lowering it only the first time it is seen."""
        key = id(message)
        found = self._known.get(key)
        if found is not None:
            self._known.move_to_end(key)
            return found[1]
        items = tuple(msgspec.Raw(msgspec.json.encode(item)) for item in lower(message))
        self._known[key] = (message, items)
        if len(self._known) > self._messages_max:
            self._known.popitem(last=False)
        return items
