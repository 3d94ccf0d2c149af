"""Skills an agent may find, and those it uses.

Contract of SkillCatalogs: `catalog` names what is there now, metadata only, bounded, in a fixed
order; a skill or a root that cannot be read is a problem in the answer and fails nothing.
Contract of ActiveSkills: what is active for the agent's next prompt, in order of activation.
"""

from collections.abc import Sequence
from typing import Protocol

from holon.model.ids import AgentId
from holon.model.skill import PassedOverRoot, SkillActivation, SkillCatalog


class SkillCatalogs(Protocol):
    """Where skills are found."""

    async def catalog(
        self, *, agent_home: str, workspace_anchor: str | None, with_user_scope: bool
    ) -> SkillCatalog:
        """Return the skills an agent may discover."""
        ...

    async def passed_over(
        self, *, agent_home: str, workspace_anchor: str | None, with_user_scope: bool
    ) -> Sequence[PassedOverRoot]:
        """Return the folders of skills that are there and not used, and what they would add."""
        ...


class ActiveSkills(Protocol):
    """Which skills are in use."""

    async def active_skills(self, agent_id: AgentId) -> Sequence[SkillActivation]:
        """Return the activations that still hold."""
        ...


class NoSkills:
    """A host without skills."""

    async def catalog(
        self, *, agent_home: str, workspace_anchor: str | None, with_user_scope: bool
    ) -> SkillCatalog:
        """There are none."""
        del agent_home, workspace_anchor, with_user_scope
        return SkillCatalog()

    async def passed_over(
        self, *, agent_home: str, workspace_anchor: str | None, with_user_scope: bool
    ) -> Sequence[PassedOverRoot]:
        """There are none."""
        del agent_home, workspace_anchor, with_user_scope
        return ()

    async def active_skills(self, agent_id: AgentId) -> Sequence[SkillActivation]:
        """None is in use."""
        del agent_id
        return ()
