"""What a runtime answers about itself, besides its status.

Owns:  the small answers of the runtime routes.
"""

from typing import Literal

from holon.model.record import Record


class ReadinessAnswer(Record, frozen=True, kw_only=True):
    """Requests are taken."""

    ok: Literal[True]
    ready: bool
    pid: int
    version: str


class ShutdownAnswer(Record, frozen=True, kw_only=True):
    """The runtime has begun to end."""

    ok: Literal[True]
    message: str
