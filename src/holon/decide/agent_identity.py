"""Who a new agent is.

Owns:  the identities agents are born with, and telling those made for one run from others.
"""

from datetime import datetime

from holon.model.agent import AgentIdentity, AgentKind, Ownership, ProfilePreset, Visibility
from holon.model.ids import AgentId, IdPrefix


def public_identity(agent_id: AgentId, *, now: datetime, is_default: bool) -> AgentIdentity:
    """The identity of an agent that everybody sees and nobody supervises."""
    return AgentIdentity(
        agent_id=agent_id,
        kind=AgentKind.DEFAULT if is_default else AgentKind.NAMED,
        visibility=Visibility.PUBLIC,
        ownership=Ownership.SELF_OWNED,
        profile_preset=ProfilePreset.PUBLIC_NAMED,
        created_at=now,
    )


def is_temporary(identity: AgentIdentity) -> bool:
    """Whether an agent was made for one run, which named it itself."""
    is_private = identity.visibility is Visibility.PRIVATE
    return is_private and identity.agent_id.startswith(f"{IdPrefix.TEMPORARY_RUN}_")
