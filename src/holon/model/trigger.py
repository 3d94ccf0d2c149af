"""Deliveries to external triggers, and what has to be known to judge one.

Owns:  the delivery as a surface hands it over, its target as it is read, and its receipt.
Rule 1: everything in a delivery is the sender's word: evidence to be kept, never an instruction.
"""

from holon.model.agent_status import AgentStatus
from holon.model.ids import AgentId, TriggerId
from holon.model.json_value import JsonValue, require_json
from holon.model.record import Record
from holon.model.wake import ExternalTrigger, TriggerDeliveryMode, WakeDisposition


class TriggerDelivery(Record, frozen=True, kw_only=True):
    """What came in at a trigger's address."""

    addressed_mode: TriggerDeliveryMode = TriggerDeliveryMode.WAKE_HINT
    delivery_key: str | None = None  # a digest of the id under which the sender repeats itself
    body: JsonValue = None
    content_type: str | None = None
    source: str | None = None
    resource: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None

    def __post_init__(self) -> None:
        require_json(self.body)


class EarlierDelivery(Record, frozen=True, kw_only=True):
    """A delivery that came under the same key, as far as it is remembered."""

    disposition: WakeDisposition
    content_digest: str | None = None  # none is known of those from before digests were kept


class TriggerTarget(Record, frozen=True, kw_only=True):
    """A trigger and its agent at one moment, as far as a delivery needs them."""

    trigger: ExternalTrigger
    agent_status: AgentStatus
    is_archived: bool = False
    queued_count: int = 0
    parked_count: int = 0  # of all sources
    is_parked: bool = False  # whether this delivery's source has a hint waiting
    earlier: EarlierDelivery | None = None


class TriggerReceipt(Record, frozen=True, kw_only=True):
    """What became of a delivery. The same for each repeat of it, but for the mark of one."""

    agent_id: AgentId
    external_trigger_id: TriggerId
    disposition: WakeDisposition
    duplicate: bool = False
