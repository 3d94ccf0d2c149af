"""What a surface hands to the door.

Owns:  the ingress request and the receipt for an admitted one.
Rule 1: provenance is filled in by the surface from how the request arrived. What a caller claims
        about itself is kept apart in `claimed_*` and can only lead to a refusal.
"""

from holon.model.ids import AgentId, MessageId, TaskId, WaitId, WorkItemId
from holon.model.json_value import JsonValue, require_json
from holon.model.message import FollowupChain, MessageBody, MessageKind, Priority
from holon.model.provenance import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    Origin,
    TrustLevel,
)
from holon.model.record import Record


class IngressRequest(Record, frozen=True, kw_only=True):
    """One request to become a message."""

    agent_id: AgentId
    kind: MessageKind
    origin: Origin
    body: MessageBody
    surface: DeliverySurface
    admission: AdmissionContext
    priority: Priority = Priority.NORMAL
    idempotency_key: str | None = None
    work_item_id: WorkItemId | None = None  # honoured from runtime-owned ingress only
    task_id: TaskId | None = None
    wait_id: WaitId | None = None
    tick_key: str | None = None
    source_refs: dict[str, str] = {}  # ids beyond the origin's; the runtime's own ingress only
    metadata: JsonValue = None
    correlation_id: str | None = None
    causation_id: str | None = None
    followup: FollowupChain | None = None  # honoured from runtime-owned ingress only
    authority_max: AuthorityClass | None = None  # what led to this is worth no more
    claimed_trust: TrustLevel | None = None
    claimed_authority: AuthorityClass | None = None

    def __post_init__(self) -> None:
        if self.metadata is not None:
            require_json(self.metadata)


class AdmissionReceipt(Record, frozen=True, kw_only=True):
    """The answer to an admitted request. `duplicate` means the key had been used before."""

    agent_id: AgentId
    message_id: MessageId
    duplicate: bool = False
