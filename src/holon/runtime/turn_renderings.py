"""How ended turns look in a conversation, remembered.

Owns:  the rendering of turns that can change no more: the next turn of an agent reads the same ones
       again, and a wire that remembers how it encoded a message finds the very same message.
Rule 1: what a model asked of tools in a turn that has ended is shown without secrets. Only the turn
        that made a call reads it as it was written.
Rule 2: what is kept is bounded by its size and, because each turn costs some 3 kB beside its text,
        by count; what was not asked for longest goes first.
"""

from typing import Final

from holon.decide.conversation_view import RenderedTurn, rendered_turn
from holon.decide.redaction import Redact
from holon.decide.without_secrets import log_without_secrets
from holon.model.ids import TurnId
from holon.model.limits import MIB
from holon.model.lru import Lru
from holon.model.transcript import TurnLog

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
