"""Agent templates by name, for whoever may make agents.

Contract: `entries` is bounded, in a fixed order, and fails nothing.
"""

from collections.abc import Sequence
from typing import Protocol

from holon.model.template import TemplateEntry


class TemplateCatalog(Protocol):
    """Which templates there are."""

    async def entries(self) -> Sequence[TemplateEntry]:
        """Return them by id."""
        ...


class NoTemplates:
    """A host without templates."""

    async def entries(self) -> Sequence[TemplateEntry]:
        """There are none."""
        return ()
