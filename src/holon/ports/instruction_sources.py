"""The files that instruct an agent, as digests.

Contract: `digests` looks at the files of an agent's home as they are now and never fails because of
one: what is not there, or cannot be read, is left out. Keys are paths below the home; a digest is
the SHA-256 of what a prompt, a search or a skill could take from the file, in hex.
"""

from collections.abc import Mapping
from typing import Protocol


class InstructionSources(Protocol):
    """Where instructions lie."""

    async def digests(self, agent_home: str) -> Mapping[str, str]:
        """Return the digest of every instruction source of a home."""
        ...


class NoInstructionSources:
    """A host whose agents have no such files."""

    async def digests(self, agent_home: str) -> Mapping[str, str]:
        """There are none."""
        del agent_home
        return {}
