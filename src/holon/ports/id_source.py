"""Fresh identifiers.

Contract: `fresh` never returns the same text twice for one database, also across restarts; ids sort
roughly by the time they were made, and have the form `<prefix>_<lower-case letters and digits>`.
"""

from typing import Protocol

from holon.model.ids import IdPrefix


class IdSource(Protocol):
    """The only maker of ids."""

    def fresh(self, prefix: IdPrefix) -> str:
        """Return a new id of this kind."""
        ...
