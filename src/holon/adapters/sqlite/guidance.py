"""Guidance: the rows of `skill_activations` and `tainted_instructions`.

Owns:  the skill reads; writing skill activations and tainted instructions.
Rule 1: the end of a turn ends turn_active: a completed turn makes it session_active, any other
        drops it, or restores the session_active it had before.
Rule 2: only a change that a source outside the operator's control may have caused moves a row; any
        other change is recorded by its event alone.
"""

from collections.abc import Sequence
from typing import assert_never

from holon.adapters.sqlite.database.statements import (
    ReadSession,
    Row,
    Statements,
    named_queries,
)
from holon.model.commits import (
    SettleTurn,
)
from holon.model.guidance import (
    ActivateSkill,
    ActivationSource,
    ActivationState,
    LoadReason,
    NoteInstructionChange,
    RestoreSkills,
    SkillActivation,
    SkillChange,
)
from holon.model.limits import (
    SKILL_ACTIVATIONS_READ_COUNT_MAX,
)
from holon.model.turns.turn import TerminalKind
from holon.model.values import (
    AgentId,
    TurnId,
    from_micros,
    to_micros,
)


class SqliteSkillReads(ReadSession):
    """The skills agents use."""

    async def active_skills(self, agent_id: AgentId) -> Sequence[SkillActivation]:
        """The skills an agent uses, each once, in order of activation."""
        found = self._all("skill_activations", (agent_id, SKILL_ACTIVATIONS_READ_COUNT_MAX))
        newest: dict[str, SkillActivation] = {}
        for row in found:
            activation = _activation(row)
            shown = newest.get(activation.entrypoint_path)
            if shown is None or _is_sooner_shown(activation, shown):
                newest[activation.entrypoint_path] = activation
        return sorted(newest.values(), key=lambda each: (each.activated_at, each.entrypoint_path))

    async def activations_of(
        self, agent_id: AgentId, entrypoint_path: str
    ) -> Sequence[SkillActivation]:
        """How one skill is in use, by each of the reasons it has."""
        found = self._all("activations_of", (agent_id, entrypoint_path))
        return [_activation(row) for row in found]

    async def has_skills_to_restore(self) -> bool:
        """Whether some session_active skill was made so by a process and not restored since."""
        return self._one("has_skills_to_restore", ()) is not None


def _is_sooner_shown(activation: SkillActivation, shown: SkillActivation) -> bool:
    """Whether the running turn's own use stands for the skill instead of an older, lasting one."""
    is_of_turn = activation.state is ActivationState.TURN_ACTIVE
    return is_of_turn and shown.state is not ActivationState.TURN_ACTIVE


def _activation(row: Row) -> SkillActivation:
    agent_id, entrypoint, reason, name, path, source, state, lasting, turn_id, index, at = row
    assert isinstance(index, int), "the column holds numbers"
    assert isinstance(at, int), "the column holds numbers"
    return SkillActivation(
        agent_id=AgentId(str(agent_id)),
        skill_name=str(name),
        path=str(path),
        entrypoint_path=str(entrypoint),
        load_reason=LoadReason(str(reason)),
        source=ActivationSource(str(source)),
        state=ActivationState(str(state)),
        activated_at=from_micros(at),
        turn_id=TurnId(str(turn_id)),
        turn_index=index,
        is_lasting=bool(lasting),
    )


class SkillChanges:
    """Writes what changes about skills."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._sql = named_queries("skills")

    def write(self, change: SkillChange, *, at: int) -> None:
        """Write one change."""
        del at  # an activation carries its own moment
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
