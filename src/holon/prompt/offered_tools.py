"""The tools on offer, as every prompt counts them.

Owns:  how large a catalog is, and what tells it from another. Both are the same for every turn of a
       host, so they are found once.
"""

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from holon.model.record import Record
from holon.model.tool import ToolSpec


class OfferedTools(Record, frozen=True, kw_only=True):
    """A catalog, its size in bytes, and its digest."""

    specs: tuple[ToolSpec, ...]
    size_bytes: int
    sha256: str


def offered_tools(specs: Sequence[ToolSpec]) -> OfferedTools:
    """Measure a catalog."""
    encoded = msgspec.json.encode(specs)
    return OfferedTools(
        specs=tuple(specs), size_bytes=len(encoded), sha256=sha256(encoded).hexdigest()
    )
