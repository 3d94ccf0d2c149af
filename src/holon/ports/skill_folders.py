"""The skills installed for an agent.

Contract: a skill is installed, replaced or removed whole, or not at all (BadSkillRefError,
SourceUnreachableError, RefusedError). What was changed or made by hand since is neither replaced
nor removed without `force`.
"""

from collections.abc import Sequence
from typing import Protocol

from holon.model.skill_ref import BadSkillRefError, InstalledSkill, SkillFolder, SkillRef


class SkillFolders(Protocol):
    """Directories of installed skills."""

    async def install(self, ref: SkillRef, into: str, *, force: bool) -> InstalledSkill:
        """Put a skill into a directory of skills."""
        ...

    async def uninstall(self, name: str, into: str, *, force: bool) -> SkillFolder:
        """Take a skill out of a directory of skills; return what was there."""
        ...

    async def installed(self, into: str) -> Sequence[SkillFolder]:
        """Tell what is in a directory of skills, by name."""
        ...


class NoSkillFolders:
    """A host that installs nothing."""

    async def install(self, ref: SkillRef, into: str, *, force: bool) -> InstalledSkill:
        """Nothing can be installed."""
        del into, force
        raise BadSkillRefError(f"this host cannot install {ref.source}: it has no agent homes")

    async def uninstall(self, name: str, into: str, *, force: bool) -> SkillFolder:
        """Nothing is installed."""
        del into, force
        raise BadSkillRefError(f"this host has no skill {name}: it has no agent homes")

    async def installed(self, into: str) -> Sequence[SkillFolder]:
        """Nothing is installed."""
        del into
        return ()
