"""Reading which skills agents use.

Owns:  the skills' part of the reads.
"""

from collections.abc import Sequence

from holon.adapters.sqlite.read_session import ReadSession
from holon.adapters.sqlite.statements import Row
from holon.model.ids import AgentId, TurnId
from holon.model.instant import from_micros
from holon.model.limits import SKILL_ACTIVATIONS_READ_COUNT_MAX
from holon.model.skill import ActivationSource, ActivationState, LoadReason, SkillActivation


class SqliteSkillReads(ReadSession):
    """The skills' part of the port."""

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
