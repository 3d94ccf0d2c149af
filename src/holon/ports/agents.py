"""Agent homes and templates.

Contract of AgentHomes:
- `make` builds a home whole and puts it in its place, or raises (BadTemplateError,
  BadSkillRefError, SourceUnreachableError, HomeOccupiedError, AgentHomeError) and leaves nothing;
- the home is provisional until `keep`: `discard` removes a provisional one, and `provisional` names
  those an ended process left. A directory that existed before is never provisional: `make` without
  a template completes it, `make` with one refuses it;
- `complete` adds what a home lacks and changes nothing that exists;
- `temporary` names agents that were made for one run and have a home here, oldest first and a
  bounded number of them; `remove` takes such a home away in one step as seen from outside, and
  never follows a link.

Contract of TemplateCatalog: `entries` is bounded, in a fixed order, and never fails.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from holon.model.agents import BadTemplateError, TemplateEntry
from holon.model.errors import BadInputError, HolonError
from holon.model.values import AgentId


class AgentHomeError(HolonError):
    """The home of an agent cannot be made."""

    code = "agent_home_unusable"
    hint = "check the permissions and the space under HOLON_HOME"


class SourceUnreachableError(HolonError):
    """A template or skill could not be fetched; nothing was made."""

    code = "source_unreachable"
    hint = "check the address and the network, then try again"


class HomeOccupiedError(BadInputError):
    """A directory stands where the home of a new agent would be."""

    code = "agent_home_occupied"


class AgentHomes(Protocol):
    """Where the homes of a host's agents are made."""

    async def make(self, agent_id: AgentId, *, template: str | None, at: datetime) -> None:
        """Make the home of an agent that is about to be born."""
        ...

    async def keep(self, agent_id: AgentId) -> None:
        """The agent is born: its home is no longer provisional."""
        ...

    async def discard(self, agent_id: AgentId) -> None:
        """The agent was not born: take its provisional home away."""
        ...

    async def provisional(self) -> Sequence[AgentId]:
        """Name the agents whose homes are provisional."""
        ...

    async def complete(self, agent_id: AgentId, *, template: str | None) -> None:
        """Add what the home of an agent lacks; its AGENTS.md comes from the template."""
        ...

    async def temporary(self) -> Sequence[AgentId]:
        """Name the agents made for one run whose homes are here."""
        ...

    async def remove(self, agent_id: AgentId) -> None:
        """Take the home of an agent made for one run away for good."""
        ...


class NoHomes:
    """A host whose agents have no files."""

    async def make(self, agent_id: AgentId, *, template: str | None, at: datetime) -> None:
        """Make nothing; refuse a template, which would be lost."""
        del agent_id, at
        if template is not None:
            raise BadTemplateError("this host has no templates", hint="leave the template out")

    async def keep(self, agent_id: AgentId) -> None:
        """No home exists that could be kept."""

    async def discard(self, agent_id: AgentId) -> None:
        """No home exists that could be removed."""

    async def provisional(self) -> Sequence[AgentId]:
        """No home is provisional."""
        return ()

    async def complete(self, agent_id: AgentId, *, template: str | None) -> None:
        """No home exists that could be completed."""

    async def temporary(self) -> Sequence[AgentId]:
        """No home is temporary."""
        return ()

    async def remove(self, agent_id: AgentId) -> None:
        """No home exists that could be removed."""


class TemplateCatalog(Protocol):
    """The templates agents can be made from."""

    async def entries(self) -> Sequence[TemplateEntry]:
        """Return them by id."""
        ...


class NoTemplates:
    """A host without templates."""

    async def entries(self) -> Sequence[TemplateEntry]:
        """No template exists."""
        return ()
