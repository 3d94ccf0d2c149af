"""The skills of an agent, as surfaces show them.

Owns:  the view of what it may discover, what it uses, and what was installed for it.
Rule 1: metadata only: the body of a SKILL.md is in no answer.
"""

from collections.abc import Sequence

from holon.model.ids import AgentId
from holon.model.instant import Instant
from holon.model.record import Record
from holon.model.skill import (
    ActivationSource,
    ActivationState,
    LoadReason,
    SkillActivation,
    SkillCatalog,
    SkillScope,
)
from holon.model.skill_ref import SkillFolder


class SkillView(Record, frozen=True, kw_only=True):
    """A skill the agent may discover; `state` where it is in use."""

    name: str
    description: str
    scope: SkillScope
    path: str
    state: ActivationState | None = None


class ActiveSkillView(Record, frozen=True, kw_only=True):
    """A skill the agent uses, and what brought it into use."""

    skill_name: str
    state: ActivationState
    activation_source: ActivationSource
    load_reason: LoadReason
    path: str
    entrypoint_path: str
    activated_at: Instant
    turn_index: int


class AgentSkillsView(Record, frozen=True, kw_only=True):
    """The skills of one agent. `problems` say why others are not among them."""

    agent_id: AgentId
    skills: tuple[SkillView, ...]
    active_skills: tuple[ActiveSkillView, ...]
    installed: tuple[SkillFolder, ...]
    problems: tuple[str, ...]


def agent_skills_view(
    agent_id: AgentId,
    catalog: SkillCatalog,
    active: Sequence[SkillActivation],
    installed: Sequence[SkillFolder],
) -> AgentSkillsView:
    """Put together what is known of an agent's skills."""
    states = {each.entrypoint_path: each.state for each in active}
    return AgentSkillsView(
        agent_id=agent_id,
        skills=tuple(
            SkillView(
                name=entry.name,
                description=entry.description,
                scope=entry.scope,
                path=entry.path,
                state=states.get(entry.path),
            )
            for entry in catalog.entries
        ),
        active_skills=tuple(_active(each) for each in active),
        installed=tuple(installed),
        problems=catalog.problems,
    )


def _active(activation: SkillActivation) -> ActiveSkillView:
    return ActiveSkillView(
        skill_name=activation.skill_name,
        state=activation.state,
        activation_source=activation.source,
        load_reason=activation.load_reason,
        path=activation.path,
        entrypoint_path=activation.entrypoint_path,
        activated_at=activation.activated_at,
        turn_index=activation.turn_index,
    )
