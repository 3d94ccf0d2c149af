"""Writing which skills agents use.

Owns:  the rows of `skill_activations`.
Rule 1: the end of a turn is the end of turn_active: a completed turn makes it session_active, any
        other drops it, or gives back the session_active it had before.
"""

from typing import assert_never

from holon.adapters.sqlite.named_queries import named_queries
from holon.adapters.sqlite.statements import Statements
from holon.model.commit import SettleTurn
from holon.model.instant import to_micros
from holon.model.skill import SkillActivation
from holon.model.skill_change import ActivateSkill, RestoreSkills, SkillChange
from holon.model.turn import TerminalKind


class SkillChanges:
    """Writes what changes about skills."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("skills")

    def write(self, change: SkillChange) -> None:
        """Write one change."""
        match change:
            case ActivateSkill(activation=activation):
                self._activate(activation)
            case RestoreSkills():
                self._statements.run(self._sql["restore_skills"], ())
            case _:
                assert_never(change)

    def settle(self, settled: SettleTurn) -> None:
        """Keep or drop what the turn made active."""
        if settled.terminal.kind is not TerminalKind.COMPLETED:
            self._statements.run(self._sql["drop_turn_skills"], (settled.agent_id,))
        self._statements.run(self._sql["keep_turn_skills"], (settled.agent_id,))

    def _activate(self, activation: SkillActivation) -> None:
        self._statements.run(
            self._sql["activate_skill"],
            (
                activation.agent_id,
                activation.entrypoint_path,
                activation.load_reason.value,
                activation.skill_name,
                activation.path,
                activation.source.value,
                activation.state.value,
                int(activation.is_lasting),
                activation.turn_id,
                activation.turn_index,
                to_micros(activation.activated_at),
            ),
        )
