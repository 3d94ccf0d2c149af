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

from holon.decide.agents.lifecycle import refuse_archived, refuse_unknown
from holon.decide.events.audit import audited
from holon.decide.wake.triggers import (
    Deliver,
    creation_commit,
    decide_delivery,
    default_trigger,
    delivery_commit,
    move_commit,
    opens,
    receipt_of,
    refused_commit,
    repeated,
    source_key_of,
    split_token,
    trigger_path,
)
from holon.model.agents import IdentityStatus
from holon.model.commits import Applied, Commit
from holon.model.errors import Refusal, RefusalCode, RefusedError, accepted
from holon.model.values import AgentId, IdPrefix, TriggerId, parse_agent_id
from holon.model.wake import (
    ExternalTrigger,
    TriggerDelivery,
    TriggerReceipt,
    TriggerStatus,
    TriggerTarget,
)
from holon.ports.clock import Clock, IdSource
from holon.ports.store import Store
from holon.ports.wake import TriggerKey
from holon.runtime.commits import DECISIONS_COUNT_MAX, commit_decided

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
            await self._store.apply(audited(creation_commit(self._fresh_trigger(agent_id))))
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
            self._trigger_key.register_secret(f"trigger:{trigger.external_trigger_id}", secret)
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
        return _answered(target, delivery)

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
            earlier = _answered(target, delivery)
            if earlier is not None:
                return earlier
            decision = decide_delivery(target, delivery, now=self._clock.now())
            if not isinstance(decision, Deliver):
                await self._note(target, decision.reason)
                raise RefusedError(decision.refusal)
            commit = delivery_commit(
                name or self._ids.fresh(IdPrefix.REQUEST), target, delivery, decision
            )
            outcome = await self._store.apply(audited(commit))
            name = None
            if isinstance(outcome, Applied) and not outcome.replayed:
                return receipt_of(target.trigger, decision.disposition)
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

    async def _note(self, target: TriggerTarget, reason: str) -> None:
        name, now = self._ids.fresh(IdPrefix.REQUEST), self._clock.now()
        await self._store.apply(audited(refused_commit(name, target.trigger, reason, now=now)))

    def _fresh_trigger(self, agent_id: AgentId) -> ExternalTrigger:
        fresh = TriggerId(self._ids.fresh(IdPrefix.TRIGGER))
        return default_trigger(fresh, agent_id, now=self._clock.now())

    async def _move(self, agent_id: AgentId, status: TriggerStatus) -> ExternalTrigger:
        async def decide() -> Commit | None:
            trigger = await self.ensure(agent_id)
            commit_id = f"control:{self._ids.fresh(IdPrefix.REQUEST)}"
            return move_commit(commit_id, trigger, status, now=self._clock.now())

        await commit_decided(self._store, decide)
        return await self.ensure(agent_id)


def _answered(target: TriggerTarget, delivery: TriggerDelivery) -> TriggerReceipt | None:
    """The receipt of the delivery this one repeats; raises RefusedError when it only claims to."""
    found = repeated(target, delivery)
    return None if found is None else accepted(found)
