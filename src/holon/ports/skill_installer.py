"""Skills, put where an agent finds them.

Contract: `install` makes `<into>/<name>` appear whole or raises BadSkillRefError and leaves `into`
as it was. One that is already there under that name is not touched: it is refused.
"""

from typing import Protocol

from holon.model.skill_ref import InstalledSkill, SkillRef


class SkillInstaller(Protocol):
    """Where skills come from."""

    async def install(self, ref: SkillRef, into: str) -> InstalledSkill:
        """Put one skill into a directory of skills."""
        ...
