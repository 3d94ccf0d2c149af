"""The change that moves what an agent reads of its past.

Owns:  the member of the union `Change` (model/commit) that is about an agent's context.
"""

from holon.model.agent import AgentContext
from holon.model.ids import AgentId
from holon.model.record import Record


class RememberContext(Record, tag=True, frozen=True, kw_only=True):
    """Let earlier turns go: from now on requests begin with this recap and this turn."""

    agent_id: AgentId
    context: AgentContext
