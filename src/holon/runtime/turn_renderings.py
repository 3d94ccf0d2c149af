"""How ended turns look in a conversation, remembered.

Owns:  the rendering of turns that can change no more: the next turn of an agent reads the same ones
       again, and a wire that remembers how it encoded a message finds the very same message.
Rule 1: what a model asked of tools in a turn that has ended is shown without secrets. Only the turn
        that made a call reads it as it was written.
Rule 2: what is kept is bounded by its size and, because each turn costs some 3 kB beside its text,
        by count; what was not asked for longest goes first.
"""

from collections import OrderedDict
from typing import Final

from holon.decide.conversation_view import RenderedTurn, rendered_turn
from holon.decide.redaction import Redact
from holon.decide.without_secrets import log_without_secrets
from holon.model.ids import TurnId
from holon.model.limits import MIB
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
        self._bytes_max = bytes_max
        self._count_max = count_max
        self._bytes = 0
        self._hiding: OrderedDict[TurnId, bool] = OrderedDict()  # whether it has secrets to hide
        self._kept: OrderedDict[TurnId, tuple[int, RenderedTurn]] = OrderedDict()

    def shown(self, log: TurnLog, redact: Redact) -> TurnLog:
        """Return a turn that has ended as later ones may read it; few have anything to hide."""
        turn_id = log.turn.turn_id
        if turn_id not in self._hiding:
            hidden = log_without_secrets(log, redact)
            self._hiding[turn_id] = hidden is not log
            while len(self._hiding) > TURNS_KNOWN_COUNT_MAX:
                self._hiding.popitem(last=False)
            return hidden
        return log_without_secrets(log, redact) if self._hiding[turn_id] else log

    def of(self, log: TurnLog) -> RenderedTurn:
        """Return how a turn that has ended looks."""
        turn_id, entries_count = log.turn.turn_id, len(log.entries)
        known = self._kept.get(turn_id)
        if known is not None and known[0] == entries_count:
            self._kept.move_to_end(turn_id)
            return known[1]
        rendered = rendered_turn(log)
        if rendered.size_bytes <= TURN_BYTES_MAX:
            self._keep(turn_id, entries_count, rendered)
        return rendered

    def _keep(self, turn_id: TurnId, entries_count: int, rendered: RenderedTurn) -> None:
        self._forget(turn_id)
        self._kept[turn_id] = (entries_count, rendered)
        self._bytes += rendered.size_bytes
        while self._bytes > self._bytes_max or len(self._kept) > self._count_max:
            self._forget(next(iter(self._kept)))

    def _forget(self, turn_id: TurnId) -> None:
        known = self._kept.pop(turn_id, None)
        if known is not None:
            self._bytes -= known[1].size_bytes
