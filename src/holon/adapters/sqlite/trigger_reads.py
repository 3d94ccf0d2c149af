"""Reading external triggers.

Owns:  one look per delivery: the trigger, its agent, and whether the delivery is known already.
"""

from holon.adapters.sqlite.number_columns import number
from holon.adapters.sqlite.read_session import ReadSession
from holon.adapters.sqlite.statements import Row
from holon.model.agent_status import AgentStatus
from holon.model.ids import AgentId, TriggerId
from holon.model.instant import Instant, from_micros
from holon.model.trigger import EarlierDelivery, TriggerTarget
from holon.model.wake import ExternalTrigger, TriggerDeliveryMode, TriggerStatus, WakeDisposition


class SqliteTriggerReads(ReadSession):
    """The triggers' part of the port."""

    async def trigger_of(self, agent_id: AgentId) -> ExternalTrigger | None:
        """The external trigger of an agent, whatever its status."""
        found = self._one("trigger_of", (agent_id,))
        return None if found is None else _trigger(found)

    async def trigger_target(
        self, trigger_id: TriggerId, *, source_key: str, delivery_key: str | None
    ) -> TriggerTarget | None:
        """A trigger and its agent, as far as one delivery needs them."""
        found = self._one("trigger_target", (trigger_id, source_key, delivery_key))
        if found is None:
            return None
        status, archived, queued, parked, is_parked, earlier, digest = found[9:]
        return TriggerTarget(
            trigger=_trigger(found[:9]),
            agent_status=AgentStatus(str(status)),
            is_archived=bool(archived),
            queued_count=number(queued),
            parked_count=number(parked),
            is_parked=bool(is_parked),
            earlier=None if earlier is None else _earlier(earlier, digest),
        )


def _trigger(row: Row) -> ExternalTrigger:
    trigger_id, agent_id, mode, status, epoch, created_at, revoked_at, delivered_at, count = row
    return ExternalTrigger(
        external_trigger_id=TriggerId(str(trigger_id)),
        target_agent_id=AgentId(str(agent_id)),
        delivery_mode=TriggerDeliveryMode(str(mode)),
        status=TriggerStatus(str(status)),
        epoch=number(epoch),
        created_at=from_micros(number(created_at)),
        revoked_at=_moment(revoked_at),
        last_delivered_at=_moment(delivered_at),
        delivery_count=number(count),
    )


def _earlier(disposition: object, digest: object) -> EarlierDelivery:
    return EarlierDelivery(
        disposition=WakeDisposition(str(disposition)),
        content_digest=None if digest is None else str(digest),
    )


def _moment(value: object) -> Instant | None:
    return from_micros(value) if isinstance(value, int) else None
