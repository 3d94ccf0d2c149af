"""Writing what became of the files that instruct agents.

Owns:  the rows of `tainted_instructions`.
Rule 1: only a change that somebody from outside may be behind moves a row; of any other the event
        is all there is.
"""

from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Statements
from holon.model.instruction_change import NoteInstructionChange


class InstructionChanges:
    """Writes which sources are to be looked at by the operator."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("instructions")

    def write(self, change: NoteInstructionChange, *, at: int) -> None:
        """Write one change."""
        told = change.event
        if told.tainted:
            self._statements.run(
                self._sql["note_tainted"], (change.agent_id, told.path, told.turn_id, at)
            )
