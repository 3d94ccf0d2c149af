"""Views of an agent's skills.

Owns:  the view of discoverable, active and installed skills; and the summary shown with the agent.
Rule 1: metadata only: the body of a SKILL.md is in no answer.
Rule 2: the summary is bounded, states the total, and reads no installed file.
"""

from collections.abc import Sequence

import msgspec

from holon.model.guidance import (
    ActivationSource,
    ActivationState,
    LoadReason,
    PassedOverRoot,
    SkillActivation,
    SkillCatalog,
    SkillEntry,
    SkillFolder,
    SkillScope,
)
from holon.model.limits import AGENT_ROWS_SHOWN_COUNT_MAX
from holon.model.record import Record
from holon.model.text_size import one_line
from holon.model.values import AgentId, Instant


class SkillView(Record, frozen=True, kw_only=True):
    """A discoverable skill, with its `state` if it is active."""

    name: str
    description: str
    scope: SkillScope
    path: str
    state: ActivationState | None = None


class ActiveSkillView(Record, frozen=True, kw_only=True):
    """An active skill, and how it was activated."""

    skill_name: str
    state: ActivationState
    activation_source: ActivationSource
    load_reason: LoadReason
    path: str
    entrypoint_path: str
    activated_at: Instant
    turn_index: int


class AgentSkillsView(Record, frozen=True, kw_only=True):
    """The skills of one agent. `problems` explain why others are missing.

    Of many problems only the first are listed; `problems_count` counts all of them.
    """

    agent_id: AgentId
    skills: tuple[SkillView, ...]
    active_skills: tuple[ActiveSkillView, ...]
    installed: tuple[SkillFolder, ...]
    problems: tuple[str, ...]
    problems_count: int
    passed_over: tuple[PassedOverRoot, ...] = ()  # unused folders, and the skills they contain


class SkillsSummary(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The first discoverable and active skills of an agent, with their totals."""

    discoverable_count: int = 0
    active_count: int = 0
    discoverable_skills: tuple[SkillView, ...] = ()
    active_skills: tuple[ActiveSkillView, ...] = ()


def agent_skills_view(
    agent_id: AgentId,
    catalog: SkillCatalog,
    active: Sequence[SkillActivation],
    installed: Sequence[SkillFolder],
    passed_over: Sequence[PassedOverRoot],
) -> AgentSkillsView:
    """Return the view of an agent's skills."""
    return AgentSkillsView(
        agent_id=agent_id,
        skills=_found(catalog.entries, active),
        active_skills=tuple(_active(each) for each in active),
        installed=tuple(installed),
        problems=catalog.problems,
        problems_count=catalog.problems_count,
        passed_over=tuple(passed_over),
    )


def skills_summary(catalog: SkillCatalog, active: Sequence[SkillActivation]) -> SkillsSummary:
    """Return the summary of an agent's discoverable and active skills."""
    shown = tuple(
        msgspec.structs.replace(entry, description=one_line(entry.description))
        for entry in catalog.entries[:AGENT_ROWS_SHOWN_COUNT_MAX]
    )
    return SkillsSummary(
        discoverable_count=len(catalog.entries),
        active_count=len(active),
        discoverable_skills=_found(shown, active),
        active_skills=tuple(_active(each) for each in active[:AGENT_ROWS_SHOWN_COUNT_MAX]),
    )


def _found(
    entries: Sequence[SkillEntry], active: Sequence[SkillActivation]
) -> tuple[SkillView, ...]:
    states = {each.entrypoint_path: each.state for each in active}
    return tuple(
        SkillView(
            name=entry.name,
            description=entry.description,
            scope=entry.scope,
            path=entry.path,
            state=states.get(entry.path),
        )
        for entry in entries
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
