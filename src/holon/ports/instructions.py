"""Guidance files, found and read.

Contract: `load` looks at the files as they are now, bounded, and never fails because of one: what
cannot be read is a problem in the answer. It looks in the agent's home and at the workspace's
anchor, never in a shell's directory.
"""

from typing import Protocol

from holon.model.instructions import LoadedGuidance


class Instructions(Protocol):
    """Where guidance comes from."""

    async def load(self, *, agent_home: str, workspace_anchor: str | None) -> LoadedGuidance:
        """Return the guidance for an agent in a workspace, in the order of its sources."""
        ...


class NoInstructions:
    """A host without guidance files."""

    async def load(self, *, agent_home: str, workspace_anchor: str | None) -> LoadedGuidance:
        """There are none."""
        del agent_home, workspace_anchor
        return LoadedGuidance()
