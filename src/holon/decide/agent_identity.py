"""Who a new agent is.

Owns:  the identities agents are born with.
"""

from datetime import datetime

from holon.model.agent import AgentIdentity, AgentKind, Ownership, ProfilePreset, Visibility
from holon.model.ids import AgentId


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
