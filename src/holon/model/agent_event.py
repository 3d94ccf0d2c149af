"""What happens to an agent itself, beside its posture.

Owns:  the events of an agent's own model, of what it will never see, and of the end of its
       identity's use.
"""

from typing import TypeAlias

from holon.model.ids import MessageId
from holon.model.record import Record


class ModelOverrideChanged(
    Record, tag_field="kind", tag="agent_model_override_changed", frozen=True, kw_only=True
):
    """An agent's own model was set, or cleared when `model` is absent."""

    model: str | None = None


class UnseenLetGo(Record, tag_field="kind", tag="unseen_let_go", frozen=True, kw_only=True):
    """More came in than the agent was shown: the oldest will not be, from one to the other."""

    message_count: int
    first_message_id: MessageId
    last_message_id: MessageId


class AgentArchived(Record, tag_field="kind", tag="agent_archived", frozen=True, kw_only=True):
    """An agent is kept for its history only from here on."""

    reason: str


AgentEvent: TypeAlias = ModelOverrideChanged | UnseenLetGo | AgentArchived
