"""Encoded tool catalogs, kept because tools change far more rarely than they are sent.

Owns:  the memo of one endpoint.
Rule 1: a catalog is found by the identity of the tools it holds on to: never another's.
Rule 2: the memo is bounded; what was used longest ago goes first.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from holon.model.lru import Lru
from holon.model.tool import ToolSpec

_CATALOGS_COUNT_MAX: Final = 32


class ToolCatalogs:
    """Remembers how the tools of one endpoint look on the wire."""

    def __init__(self, *, catalogs_max: int = _CATALOGS_COUNT_MAX) -> None:
        self._known: Lru[tuple[int, ...], tuple[tuple[ToolSpec, ...], msgspec.Raw]]
        self._known = Lru(catalogs_max)

    def encoded(
        self, tools: tuple[ToolSpec, ...], lower: Callable[[ToolSpec], Mapping[str, Any]]
    ) -> msgspec.Raw:
        """Return the JSON list of tools, lowering them only the first time they are seen."""
        key = tuple(map(id, tools))
        found = self._known.get(key)
        if found is None:
            lowered = [lower(tool) for tool in tools]
            found = (tools, msgspec.Raw(msgspec.json.encode(lowered)))
            self._known.put(key, found)
        return found[1]
