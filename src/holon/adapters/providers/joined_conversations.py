"""Conversations as joined JSON text, kept so that a round costs what it adds.

Owns:  the last conversation of each key (an agent, say) of one endpoint, as one growing text. What
       a new conversation begins with in common with it stays as it is; only the rest is written.
Rule 1: a message stays when it is the same object with the same marks, or equal words of the user
        (a turn's opening is laid out anew each round). Nothing else has the same bytes for sure:
        equal arguments may be `1` here and `true` there.
Rule 2: the memo holds on to the messages it compares with, so no other object can take the place
        of one; it never changes a byte, and a failed write leaves nothing behind.
Rule 3: it is bounded by count and by bytes; what was used longest ago goes first.
"""

from collections.abc import Callable, Hashable, Mapping
from itertools import compress
from operator import is_not
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from holon.model.conversation import ConversationMessage, UserMessage
from holon.model.limits import MIB
from holon.model.lru import Lru

Note = TypeVar("Note")
Marks: TypeAlias = Mapping[int, frozenset[int]]

_CONVERSATIONS_COUNT_MAX: Final = 64
_BYTES_MAX: Final = 32 * MIB
NO_MARKS: Final[Marks] = {}


class Piece(NamedTuple, Generic[Note]):
    """What one message adds to the text, and what has to be known to write on behind it."""

    text: bytes
    note: Note


# Writes a message, given its index and the note of the message before it.
Write: TypeAlias = Callable[[int, Note], Piece[Note]]


class Joined(msgspec.Struct, Generic[Note]):
    """A conversation as text. It goes on growing: copy it out before the next one is asked for."""

    messages: tuple[ConversationMessage, ...] = ()
    marks: Marks = msgspec.field(default_factory=dict)
    text: bytearray = msgspec.field(default_factory=bytearray)
    ends: list[int] = msgspec.field(default_factory=list)  # where the text of each message ends
    notes: list[Note] = msgspec.field(default_factory=list)


class JoinedConversations(Generic[Note]):
    """Remembers how conversations look on the wire; `start` is the note before any message."""

    def __init__(
        self,
        *,
        start: Note,
        conversations_max: int = _CONVERSATIONS_COUNT_MAX,
        bytes_max: int = _BYTES_MAX,
    ) -> None:
        self._start = start
        self._latest: Lru[Hashable, Joined[Note]] = Lru(conversations_max, size_max=bytes_max)

    def joined(
        self,
        key: Hashable,
        conversation: tuple[ConversationMessage, ...],
        write: Write[Note],
        *,
        marks: Marks = NO_MARKS,
    ) -> Joined[Note]:
        """Return the conversation as text, writing only what the last one of its key lacks."""
        joined = self._latest.pop(key) or Joined()
        _keep_shared(joined, conversation, marks)
        note = joined.notes[-1] if joined.notes else self._start
        for index in range(len(joined.ends), len(conversation)):
            text, note = write(index, note)
            joined.text += text
            joined.ends.append(len(joined.text))
            joined.notes.append(note)
        joined.messages, joined.marks = conversation, marks
        self._latest.put(key, joined, len(joined.text))
        return joined


def _keep_shared(
    joined: Joined[Note], conversation: tuple[ConversationMessage, ...], marks: Marks
) -> None:
    """Cut a text back to what it has in common with another conversation."""
    count = _shared_count(joined.messages, conversation)
    if joined.marks != marks:
        differing = joined.marks.items() ^ marks.items()
        count = min(count, *(index for index, _ in differing))
    if count < len(joined.ends):
        del joined.text[joined.ends[count - 1] if count else 0 :]
        del joined.ends[count:]
        del joined.notes[count:]


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
