"""Instruction files and skills: reading, activation state and installation.

Contract of InstructionSources: `digests` reads the files of an agent's home as they are now and
never fails because of one: a missing or unreadable file is left out. Keys are paths below the home;
a digest is the SHA-256, in hex, of what a prompt, a search or a skill could take from the file.

Contract of Instructions: `load` reads the files as they are now, bounded, and never fails because
of one: an unreadable file is a problem in the answer. It looks in the agent's home and at the
workspace's anchor, never in a shell's directory.

Contract of SkillCatalogs: `catalog` lists the current skills, metadata only, bounded, in a fixed
order; an unreadable skill or root is a problem in the answer and fails nothing.

Contract of ActiveSkills: the skills active for the agent's next prompt, in order of activation.

Contract of SkillFolders: a skill is installed, replaced or removed whole, or not at all
(BadSkillRefError, SourceUnreachableError, RefusedError). A skill that was changed since its
installation, or was not installed, is neither replaced nor removed without `force`.

Contract of SkillInstaller: `install` makes `<into>/<name>` appear whole or raises BadSkillRefError
and leaves `into` as it was. An existing skill of that name is refused, not touched.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from holon.model.guidance import (
    BadSkillRefError,
    InstalledSkill,
    LoadedGuidance,
    PassedOverRoot,
    SkillActivation,
    SkillCatalog,
    SkillFolder,
    SkillRef,
)
from holon.model.values import AgentId


class InstructionSources(Protocol):
    """Where instructions lie."""

    async def digests(self, agent_home: str) -> Mapping[str, str]:
        """Return the digest of every instruction source of a home."""
        ...


class NoInstructionSources:
    """A host whose agents have no such files."""

    async def digests(self, agent_home: str) -> Mapping[str, str]:
        """No source exists."""
        del agent_home
        return {}


class Instructions(Protocol):
    """Where guidance comes from."""

    async def load(self, *, agent_home: str, workspace_anchor: str | None) -> LoadedGuidance:
        """Return the guidance for an agent in a workspace, in the order of its sources."""
        ...


class NoInstructions:
    """A host without guidance files."""

    async def load(self, *, agent_home: str, workspace_anchor: str | None) -> LoadedGuidance:
        """No instructions exist."""
        del agent_home, workspace_anchor
        return LoadedGuidance()


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
        """Return the skill folders that exist and are not used, and what they would add."""
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
        """No skills exist."""
        del agent_home, workspace_anchor, with_user_scope
        return SkillCatalog()

    async def passed_over(
        self, *, agent_home: str, workspace_anchor: str | None, with_user_scope: bool
    ) -> Sequence[PassedOverRoot]:
        """No skills are active."""
        del agent_home, workspace_anchor, with_user_scope
        return ()

    async def active_skills(self, agent_id: AgentId) -> Sequence[SkillActivation]:
        """None is in use."""
        del agent_id
        return ()


class SkillFolders(Protocol):
    """Directories of installed skills."""

    async def install(self, ref: SkillRef, into: str, *, force: bool) -> InstalledSkill:
        """Put a skill into a directory of skills."""
        ...

    async def uninstall(self, name: str, into: str, *, force: bool) -> SkillFolder:
        """Take a skill out of a directory of skills; return what was there."""
        ...

    async def installed(self, into: str) -> Sequence[SkillFolder]:
        """Return what is in a directory of skills, by name."""
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


class SkillInstaller(Protocol):
    """Where skills come from."""

    async def install(self, ref: SkillRef, into: str) -> InstalledSkill:
        """Put one skill into a directory of skills."""
        ...
