"""The conversation as JSON text, made so that a long one costs what its new end costs.

Owns:  joining encoded blocks to alternating messages.
Rule 1: a message is written once, and again only when its markers move.
Rule 2: neighbours of one role become one message. The first and the last message are the user's.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Final, TypeAlias

import msgspec

from holon.adapters.providers.joined_conversations import JoinedConversations, Marks, Piece
from holon.model.conversation import ConversationMessage, UserMessage
from holon.model.json_value import JsonValue

LowerMessage: TypeAlias = Callable[[ConversationMessage, frozenset[int]], Sequence[JsonValue]]

_UNMARKED: Final[frozenset[int]] = frozenset()
_NOBODY: Final = ""
_OPENING: Final = {
    "user": b'{"role":"user","content":[',
    "assistant": b'{"role":"assistant","content":[',
}
_CLOSING: Final = b"]}"
_SILENCE: Final = _OPENING["user"] + b'{"type":"text","text":"(nothing was said)"}' + _CLOSING
_LEAD: Final = {  # what stands before a role's words, by the role whose words came before
    (_NOBODY, "user"): _OPENING["user"],
    (_NOBODY, "assistant"): _SILENCE + b"," + _OPENING["assistant"],
    ("user", "user"): b",",
    ("user", "assistant"): _CLOSING + b"," + _OPENING["assistant"],
    ("assistant", "user"): _CLOSING + b"," + _OPENING["user"],
    ("assistant", "assistant"): b",",
}
_END: Final = {
    _NOBODY: _SILENCE,
    "user": _CLOSING,
    "assistant": _CLOSING + b"," + _SILENCE,
}


class EncodedMessages:
    """The conversations of one endpoint."""

    def __init__(self, lower: LowerMessage) -> None:
        self._lower = lower
        self._joined = JoinedConversations(start=_NOBODY)

    def between(
        self,
        head: bytes,
        tail: bytes,
        *,
        key: Hashable,
        conversation: tuple[ConversationMessage, ...],
        marks: Marks,
    ) -> bytes:
        """Return the JSON list of messages with something before and behind it, copied once."""

        def write(index: int, spoke_last: str) -> Piece[str]:
            message = conversation[index]
            blocks = self._lower(message, marks.get(index, _UNMARKED))
            if not blocks:
                return Piece(b"", spoke_last)
            speaks = "user" if isinstance(message, UserMessage) else "assistant"
            text = msgspec.json.encode(blocks)[1:-1]
            return Piece(_LEAD[spoke_last, speaks] + text, speaks)

        joined = self._joined.joined(key, conversation, write, marks=marks)
        spoke_last = joined.notes[-1] if joined.notes else _NOBODY
        return b"".join((head, b"[", joined.text, _END[spoke_last], b"]", tail))
