"""The ledger of episodes in an agent's home: a copy for people and tools, never the truth.

Contract: episodes are only ever added at the end, each as one whole line of JSON. `last_id` reads
back the newest whole line, so that whoever was cut off can go on where the file stands; a line that
was cut short is taken away before the next is added. No link is followed on the way to the file. An
agent without a home has no ledger. No call keeps the event loop waiting for the disk.

Errors: LedgerError, when the file cannot be read or written.
"""

from collections.abc import Sequence
from typing import Protocol

from holon.model.errors import HolonError
from holon.model.ids import EpisodeId
from holon.model.memory import EpisodeRecord


class LedgerError(HolonError):
    """The ledger cannot be read or written."""

    code = "episode_ledger_unusable"
    hint = "look at .holon/ledger in the agent's home; the episodes themselves are safe"


class EpisodeLedger(Protocol):
    """The ledgers of a host's agents."""

    @property
    def is_kept(self) -> bool:
        """Whether there are any."""
        ...

    async def last_id(self, agent_home: str) -> EpisodeId | None:
        """Return the id of the newest episode that stands in the ledger."""
        ...

    async def append(self, agent_home: str, episodes: Sequence[EpisodeRecord]) -> None:
        """Add episodes at the end, in this order."""
        ...


class NoLedger:
    """A host that keeps no ledgers."""

    is_kept = False

    async def last_id(self, agent_home: str) -> EpisodeId | None:
        """There is none."""
        del agent_home
        return None

    async def append(self, agent_home: str, episodes: Sequence[EpisodeRecord]) -> None:
        """Nothing is kept."""
