"""What happens to an agent itself, beside its posture.

Owns:  the events of an agent's own model and of the end of its identity's use.
"""

from typing import TypeAlias

from holon.model.record import Record


class ModelOverrideChanged(
    Record, tag_field="kind", tag="agent_model_override_changed", frozen=True, kw_only=True
):
    """An agent's own model was set, or cleared when `model` is absent."""

    model: str | None = None


class AgentArchived(Record, tag_field="kind", tag="agent_archived", frozen=True, kw_only=True):
    """An agent is kept for its history only from here on."""

    reason: str


AgentEvent: TypeAlias = ModelOverrideChanged | AgentArchived
