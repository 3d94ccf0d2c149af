"""Encoded conversations, kept so that a round costs what it adds and not what came before.

Owns:  the input of a request as text, and where endpoints continue from stored responses, how far
       a conversation has come by the end of each message.
Rule 1: two conversations with the same progress hold the same items, reasoning apart: the progress
        is the number of items and a digest over all of them, in order.
Rule 2: what is handed out is never changed by a later request.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Final

import msgspec

from holon.adapters.providers.joined_conversations import JoinedConversations, Piece
from holon.adapters.providers.openai_responses.items import Item, is_reasoning
from holon.model.conversation import ConversationMessage
from holon.model.ids import AgentId
from holon.model.record import Record

LowerMessage = Callable[[ConversationMessage, ConversationMessage | None], Sequence[Item]]


class Progress(Record, frozen=True, kw_only=True):
    """How far a conversation has come; reasoning is not counted."""

    count: int = 0
    digest: bytes = b""

    def behind(self, items: Iterable[msgspec.Raw]) -> "Progress":
        """Return how far it has come behind some more items."""
        return reduce(_behind_one, items, self)


def _behind_one(progress: Progress, item: msgspec.Raw) -> Progress:
    if is_reasoning(item):
        return progress
    digest = hashlib.sha256(progress.digest + bytes(item)).digest()
    return Progress(count=progress.count + 1, digest=digest)


class EncodedMessage(Record, frozen=True, kw_only=True):
    """The items of one message, and how far the conversation has come behind it."""

    items: tuple[msgspec.Raw, ...] = ()
    progress: Progress = Progress()


class EncodedInput(Record, frozen=True, kw_only=True):
    """A body whose last field is the input; its messages only where they may be continued."""

    body: bytes
    messages: tuple[EncodedMessage, ...] = ()


_NOTHING: Final = EncodedMessage()


class ConversationMemo:
    """Remembers how conversations look on the wire, for each agent and set of freeform tools."""

    def __init__(self) -> None:
        self._joined = JoinedConversations(start=_NOTHING)

    def encoded(
        self,
        shape: bytes,
        agent_id: AgentId,
        conversation: tuple[ConversationMessage, ...],
        lower: LowerMessage,
        *,
        freeform: Mapping[str, str],
        is_continued: bool,
    ) -> EncodedInput:
        """Return a body; `lower` is given a message and the one before it."""

        def write(index: int, before: EncodedMessage) -> Piece[EncodedMessage]:
            items = lower(conversation[index], conversation[index - 1] if index else None)
            if not is_continued:
                text = b"," + msgspec.json.encode(items)[1:-1] if items else b""
                return Piece(text, _NOTHING)
            encoded = tuple(msgspec.Raw(msgspec.json.encode(item)) for item in items)
            progress = before.progress.behind(encoded)
            text = b"".join(b"," + bytes(item) for item in encoded)
            return Piece(text, EncodedMessage(items=encoded, progress=progress))

        # A call looks different where its tool is freeform.
        key = (agent_id, tuple(freeform.items()), is_continued)
        joined = self._joined.joined(key, conversation, write)
        with memoryview(joined.text)[1:] as items:  # without the comma before the first
            body = b"".join((shape[:-1], b',"input":[', items, b"]}"))
        return EncodedInput(body=body, messages=tuple(joined.notes) if is_continued else ())
