"""External triggers: the one address of each agent, and what is delivered there.

Owns:  giving an agent its trigger, rotating and revoking it, and taking deliveries in.
Rule 1: a delivery is acknowledged only after its commit is durable.
Rule 2: a delivery costs one look at rows; deliveries never wait for each other, except for repeats
        of one another, which all get the first one's answer. A key that comes again with another
        body is a conflict, as at every other door.
Rule 3: whoever calls a wrong or void trigger learns nothing. Whoever calls that of a stopped agent
        is refused with the way to resume it; the agent's log tells of it, and nothing else is kept.
"""

from typing import Final

import anyio
import msgspec

from holon.decide.agent_refusals import refuse_archived, refuse_unknown
from holon.decide.trigger_address import default_trigger
from holon.decide.trigger_delivery import (
    Deliver,
    content_digest_of,
    decide_delivery,
    opens,
    refuse_other_content,
    source_key_of,
    split_token,
    trigger_path,
)
from holon.model.agent import IdentityStatus
from holon.model.commit import Commit, CreateTrigger, DeliverTrigger, MoveTrigger, RecordEvent
from holon.model.expectation import AgentAdmits, Applied
from holon.model.ids import AgentId, IdPrefix, TriggerId, parse_agent_id
from holon.model.refusal import Refusal, RefusalCode, RefusedError
from holon.model.trigger import TriggerDelivery, TriggerReceipt, TriggerTarget
from holon.model.trigger_event import CallbackRefused
from holon.model.wake import (
    ExternalTrigger,
    TriggerStatus,
    WakeDisposition,
)
from holon.ports.clock import Clock
from holon.ports.id_source import IdSource
from holon.ports.store import Store
from holon.ports.trigger_key import TriggerKey
from holon.runtime.decided_commit import DECISIONS_COUNT_MAX, commit_decided

_NO_KEY: Final = b""


class TriggerDesk:
    """The external triggers of one host."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: IdSource,
        trigger_key: TriggerKey,
        trigger_base_url: str | None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._trigger_key = trigger_key
        self._trigger_base_url = trigger_base_url
        self._under_way: dict[tuple[TriggerId, str], anyio.Event] = {}

    async def of(self, agent_id: AgentId) -> ExternalTrigger | None:
        """Return the trigger of an agent, if it was ever given one."""
        parse_agent_id(agent_id)
        reads = self._store.reads
        found = await reads.trigger_of(agent_id)
        if found is None:
            agent = await reads.agent(agent_id)
            if agent is None:
                raise RefusedError(refuse_unknown(agent_id))
            if agent.identity.status is IdentityStatus.ARCHIVED:
                raise RefusedError(refuse_archived(agent_id))
        return found

    async def ensure(self, agent_id: AgentId) -> ExternalTrigger:
        """Return the trigger of an agent, giving it one when it has none. Never a second."""
        found = await self.of(agent_id)
        if found is None:
            await self._store.apply(self._creation(agent_id))
            found = await self.of(agent_id)  # ours, or of whoever was faster
        assert found is not None, "an agent that exists has a trigger once it was asked for"
        return found

    async def rotate(self, agent_id: AgentId) -> ExternalTrigger:
        """Give the trigger a new address, also after it was revoked; every older one is void."""
        return await self._move(agent_id, TriggerStatus.ACTIVE)

    async def revoke(self, agent_id: AgentId) -> ExternalTrigger:
        """Take the address back; the trigger opens nothing until it is rotated."""
        return await self._move(agent_id, TriggerStatus.REVOKED)

    def url_of(self, trigger: ExternalTrigger) -> str | None:
        """Return the address that calls a trigger, to be handed out: a secret, hidden from now on.

        Nothing when the trigger opens nothing, or when nothing can be delivered to this host.
        """
        url = self.address_of(trigger)
        if url is not None:
            _, secret = split_token(url)
            self._trigger_key.handed_out(f"trigger:{trigger.external_trigger_id}", secret)
        return url

    def address_of(self, trigger: ExternalTrigger) -> str | None:
        """Return the address of a trigger, or nothing where none would open it."""
        key, base_url = self._trigger_key.key(), self._trigger_base_url
        if key is None or base_url is None or trigger.status is not TriggerStatus.ACTIVE:
            return None
        return base_url.rstrip("/") + trigger_path(key, trigger)

    async def open(self, token: str, delivery: TriggerDelivery) -> TriggerTarget | None:
        """Return what a delivery is for when its token is right, or nothing."""
        trigger_id, secret = split_token(token)
        target = await self._store.reads.trigger_target(
            trigger_id,
            source_key=source_key_of(trigger_id, delivery.source),
            delivery_key=delivery.delivery_key,
        )
        key = self._trigger_key.key()
        is_open = opens(key or _NO_KEY, trigger_id, secret, target)
        return target if is_open and key is not None else None

    async def earlier(
        self, token: str, delivery: TriggerDelivery, target: TriggerTarget
    ) -> TriggerReceipt | None:
        """Return the receipt of a delivery that this one repeats, once that one has it.

        Raises RefusedError when that one had another body.
        """
        if delivery.delivery_key is None:
            return None
        under_way = self._under_way.get((target.trigger.external_trigger_id, delivery.delivery_key))
        if under_way is not None:
            await under_way.wait()
            again = await self.open(token, delivery)
            if again is None:
                return None
            target = again
        return _repeated(target, delivery)

    async def deliver(
        self, token: str, delivery: TriggerDelivery, target: TriggerTarget
    ) -> TriggerReceipt | None:
        """Take a delivery in durably; nothing when the trigger was shut meanwhile.

        Raises RefusedError when the agent is stopped, once its log tells of it.
        """
        if delivery.delivery_key is None:
            return await self._deliver(token, delivery, target)
        place = (target.trigger.external_trigger_id, delivery.delivery_key)
        done = self._under_way.setdefault(place, anyio.Event())
        try:
            return await self._deliver(token, delivery, target)
        finally:
            self._under_way.pop(place, None)
            done.set()

    async def _deliver(
        self, token: str, delivery: TriggerDelivery, target: TriggerTarget
    ) -> TriggerReceipt | None:
        name = delivery.delivery_key  # a repeat that overtook us is then the same commit
        for _ in range(DECISIONS_COUNT_MAX):
            repeated = _repeated(target, delivery)
            if repeated is not None:
                return repeated
            decision = decide_delivery(target, delivery, now=self._clock.now())
            if not isinstance(decision, Deliver):
                await self._note(target, decision.reason)
                raise RefusedError(decision.refusal)
            change = _delivery_change(target, delivery, decision)
            outcome = await self._store.apply(self._delivery_commit(change, name))
            name = None
            if isinstance(outcome, Applied) and not outcome.replayed:
                return _receipt(target.trigger, decision.disposition)
            again = await self.open(token, delivery)
            if again is None:
                return None
            target = again
        raise RefusedError(
            Refusal(
                code=RefusalCode.BUSY,
                message="the agent kept changing while the delivery was being taken in",
                hint="send it again with the same id",
            )
        )

    def _delivery_commit(self, change: DeliverTrigger, name: str | None) -> Commit:
        told = name or self._ids.fresh(IdPrefix.REQUEST)
        return Commit(
            commit_id=f"deliver:{change.external_trigger_id}:{told}",
            at=change.hint.updated_at,
            changes=(change,),
            expects=(AgentAdmits(agent_id=change.hint.agent_id),),
        )

    async def _note(self, target: TriggerTarget, reason: str) -> None:
        trigger = target.trigger
        refused = CallbackRefused(external_trigger_id=trigger.external_trigger_id, reason=reason)
        await self._store.apply(
            Commit(
                commit_id=f"deliver:{self._ids.fresh(IdPrefix.REQUEST)}",
                at=self._clock.now(),
                changes=(RecordEvent(agent_id=trigger.target_agent_id, event=refused),),
            )
        )

    def _creation(self, agent_id: AgentId) -> Commit:
        now = self._clock.now()
        fresh = TriggerId(self._ids.fresh(IdPrefix.TRIGGER))
        trigger = default_trigger(fresh, agent_id, now=now)
        return Commit(
            commit_id=f"trigger:{trigger.external_trigger_id}:{trigger.epoch}",
            at=now,
            changes=(CreateTrigger(trigger=trigger),),
        )

    async def _move(self, agent_id: AgentId, status: TriggerStatus) -> ExternalTrigger:
        async def decide() -> Commit | None:
            trigger = await self.ensure(agent_id)
            if status is TriggerStatus.REVOKED and trigger.status is status:
                return None
            epoch = trigger.epoch + (status is TriggerStatus.ACTIVE)
            return Commit(
                commit_id=f"control:{self._ids.fresh(IdPrefix.REQUEST)}",
                at=self._clock.now(),
                changes=(
                    MoveTrigger(
                        agent_id=agent_id,
                        external_trigger_id=trigger.external_trigger_id,
                        from_epoch=trigger.epoch,
                        epoch=epoch,
                        status=status,
                    ),
                ),
            )

        await commit_decided(self._store, decide)
        return await self.ensure(agent_id)


def _delivery_change(
    target: TriggerTarget, delivery: TriggerDelivery, decision: Deliver
) -> DeliverTrigger:
    return DeliverTrigger(
        hint=decision.hint,
        external_trigger_id=target.trigger.external_trigger_id,
        epoch=target.trigger.epoch,
        disposition=decision.disposition,
        delivery_key=delivery.delivery_key,
        content_digest=content_digest_of(delivery),
    )


def _repeated(target: TriggerTarget, delivery: TriggerDelivery) -> TriggerReceipt | None:
    """The receipt of the delivery this one repeats; raises RefusedError when it only claims to."""
    if target.earlier is None:
        return None
    refusal = refuse_other_content(target.earlier, delivery)
    if refusal is not None:
        raise RefusedError(refusal)
    receipt = _receipt(target.trigger, target.earlier.disposition)
    return msgspec.structs.replace(receipt, duplicate=True)


def _receipt(trigger: ExternalTrigger, disposition: WakeDisposition) -> TriggerReceipt:
    return TriggerReceipt(
        agent_id=trigger.target_agent_id,
        external_trigger_id=trigger.external_trigger_id,
        disposition=disposition,
    )
