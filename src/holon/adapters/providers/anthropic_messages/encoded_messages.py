"""The conversation as JSON text, made so that a long one costs what its new end costs.

Owns:  joining encoded blocks to alternating messages, and the memo of whole runs of messages.
Rule 1: a message is encoded once (ItemMemo), and a run of unmarked messages is joined once; only a
        run that has just grown, or holds a marked message, is joined again.
Rule 2: a run is reused only for messages equal to its own, one by one.
Rule 3: neighbours of one role become one message. The first and the last message are the user's.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from holon.adapters.providers.item_memo import ItemMemo
from holon.model.conversation import ConversationMessage, UserMessage
from holon.model.json_value import JsonValue

LowerMessage: TypeAlias = Callable[[ConversationMessage, frozenset[int]], Sequence[JsonValue]]

RUN_MESSAGES_COUNT: Final = 32
_RUNS_COUNT_MAX: Final = 256
_NO_MARKS: Final[frozenset[int]] = frozenset()
_OPENING: Final = {
    "user": b'{"role":"user","content":[',
    "assistant": b'{"role":"assistant","content":[',
}
_CLOSING: Final = b"]}"


class _Piece(NamedTuple):
    """Part of the conversation: the blocks of one or more messages, the outermost left open."""

    first_role: str
    last_role: str
    text: bytes


_NOTHING_SAID: Final = _Piece("user", "user", b'{"type":"text","text":"(nothing was said)"}')


class EncodedMessages:
    """The conversations of one endpoint."""

    def __init__(self, lower: LowerMessage) -> None:
        self._lower = lower
        self._items = ItemMemo()
        self._runs: OrderedDict[int, tuple[Sequence[ConversationMessage], _Piece | None]]
        self._runs = OrderedDict()

    def parts(
        self, conversation: Sequence[ConversationMessage], marks: Mapping[int, frozenset[int]]
    ) -> tuple[bytes, ...]:
        """Return the JSON list of messages in parts, so that the caller copies them only once."""
        pieces: list[_Piece] = []
        for start in range(0, len(conversation), RUN_MESSAGES_COUNT):
            run = conversation[start : start + RUN_MESSAGES_COUNT]
            marked = {at - start: marks[at] for at in marks if 0 <= at - start < len(run)}
            is_whole = len(run) == RUN_MESSAGES_COUNT and not marked
            piece = self._known_run(run) if is_whole else self._run(run, marked)
            if piece is not None:
                pieces.append(piece)
        if not pieces or pieces[0].first_role == "assistant":
            pieces.insert(0, _NOTHING_SAID)
        if pieces[-1].last_role == "assistant":
            pieces.append(_NOTHING_SAID)
        opening = _OPENING[pieces[0].first_role]
        return (b"[", opening, *_joined(pieces), _CLOSING, b"]")

    def _known_run(self, run: Sequence[ConversationMessage]) -> _Piece | None:
        key = id(run[-1])
        known = self._runs.get(key)
        if known is None or known[0] != run:
            known = (run, self._run(run, {}))
            self._runs[key] = known
        self._runs.move_to_end(key)
        if len(self._runs) > _RUNS_COUNT_MAX:
            self._runs.popitem(last=False)
        return known[1]

    def _run(
        self, run: Sequence[ConversationMessage], marks: Mapping[int, frozenset[int]]
    ) -> _Piece | None:
        pieces = [
            piece
            for index, message in enumerate(run)
            if (piece := self._message(message, marks.get(index))) is not None
        ]
        if not pieces:
            return None
        return _Piece(pieces[0].first_role, pieces[-1].last_role, b"".join(_joined(pieces)))

    def _message(self, message: ConversationMessage, marks: frozenset[int] | None) -> _Piece | None:
        if marks is None:
            text = b",".join(self._items.items_of(message, self._unmarked))
        else:
            text = b",".join(msgspec.json.encode(block) for block in self._lower(message, marks))
        if not text:
            return None
        role = "user" if isinstance(message, UserMessage) else "assistant"
        return _Piece(role, role, text)

    def _unmarked(self, message: ConversationMessage) -> Sequence[JsonValue]:
        return self._lower(message, _NO_MARKS)


def _joined(pieces: Iterable[_Piece]) -> Iterable[bytes]:
    """Yield the texts of the pieces with what has to stand between them."""
    role: str | None = None
    for piece in pieces:
        if role is not None:
            turns = piece.first_role != role
            yield b"%b,%b" % (_CLOSING, _OPENING[piece.first_role]) if turns else b","
        yield piece.text
        role = piece.last_role
