"""Writing what memory search has to know.

Owns:  the rows of `memory_sources` and `turn_evidence`. They are part of the commit they tell of.
"""

from collections.abc import Iterable
from typing import assert_never

from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Statements
from holon.decide.authority import AUTHORITY_ORDER
from holon.model.memory_mark import MemoryMark, SourceChanged, TurnShown


class MemoryMarks:
    """Writes marks."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("memory")

    def write(self, marks: Iterable[MemoryMark], *, at: int) -> None:
        """Write the marks of one change; `at` is the moment of its commit."""
        run = self._statements.run
        for mark in marks:
            match mark:
                case TurnShown(turn_id=turn_id, authority_class=authority):
                    rank = AUTHORITY_ORDER.index(authority)
                    follows = (int(mark.goes_on), mark.root_id)
                    run(self._sql["turn_shown"], (turn_id, rank, *follows))
                case SourceChanged():
                    named = (mark.agent_id, mark.kind.value, mark.source_id)
                    run(self._sql["source_changed"], (*named, mark.turn_id, at))
                    if mark.turns is not None:
                        run(self._sql["source_tells_of"], (*named, *mark.turns))
                case _:
                    assert_never(mark)
