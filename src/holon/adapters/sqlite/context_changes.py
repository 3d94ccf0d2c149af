"""Writing what an agent reads of its past.

Owns:  the rows of `agent_contexts`.
"""

from holon.adapters.sqlite.change_codec import encode
from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Statements
from holon.model.context_change import RememberContext


class ContextChanges:
    """Writes where an agent's history begins."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("contexts")

    def write(self, change: RememberContext) -> None:
        """Write one move."""
        context = change.context
        self._statements.run(
            self._sql["remember_context"],
            (
                change.agent_id,
                context.history_from_turn,
                context.compression_epoch,
                encode(context.recap),
            ),
        )
