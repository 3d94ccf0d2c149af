"""What the store needs of whoever writes for it.

Owns:  the seam between the store and its writer. The real one is a thread; a simulation plugs in
       one that writes at once, on the event loop.
Contract: `submit` keeps order; `run` runs a job on the writer with no transaction open, after all
that was submitted before it; after `close` nothing is accepted. Once it is broken, nothing more is
written or synced by anybody: neither by a job, nor by closing.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from holon.model.audited_commit import AuditedCommit
from holon.model.errors import StoreFullError
from holon.ports.store import CommitObserver, Ticket

T = TypeVar("T")


class Writer(Protocol):
    """The one that writes."""

    @property
    def is_broken(self) -> bool:
        """Whether a failure left in doubt what is on the disk."""
        ...

    @property
    def refused(self) -> StoreFullError | None:
        """Why the newest group could not be written, if that was so."""
        ...

    def submit(self, commit: AuditedCommit) -> Ticket:
        """Take a commit on its way to disk."""
        ...

    async def run(self, job: Callable[[], T]) -> T:
        """Do a piece of maintenance between two groups and return what it returned."""
        ...

    async def look(self) -> None:
        """Look whether the files are still ours and, after a group found no room, for room."""
        ...

    def observe(self, observer: CommitObserver) -> None:
        """Call `observer` after every group, with the agents it touched."""
        ...

    async def close(self) -> None:
        """Finish what was submitted and let go of the connection."""
        ...
