"""External triggers: one address per agent, and the deliveries to it.

Owns:  creating, rotating and revoking an agent's trigger, and accepting deliveries.
Rule 1: a delivery is acknowledged only after its commit is durable.
Rule 2: a delivery costs one read; deliveries never wait for each other, except for repeats of one
        another, which all get the first one's answer. A repeated key with another body is a
        conflict, as at every ingress.
Rule 3: a caller of a wrong or void trigger learns nothing. A caller of a stopped agent's trigger is
        refused with the command that resumes it; the agent's log records the refusal and nothing
        else.
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


class TriggerService:
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
        self._in_progress: dict[tuple[TriggerId, str], anyio.Event] = {}

    async def of(self, agent_id: AgentId) -> ExternalTrigger | None:
        """Return the trigger of an agent, if it has one."""
        parse_agent_id(agent_id)
        reads = self._store.reads
        found = await reads.wake.trigger_of(agent_id)
        if found is None:
            agent = await reads.agents.agent(agent_id)
            if agent is None:
                raise RefusedError(refuse_unknown(agent_id))
            if agent.identity.status is IdentityStatus.ARCHIVED:
                raise RefusedError(refuse_archived(agent_id))
        return found

    async def ensure(self, agent_id: AgentId) -> ExternalTrigger:
        """Return the trigger of an agent, creating it if missing. Never a second."""
        found = await self.of(agent_id)
        if found is None:
            await self._store.apply(audited(creation_commit(self._fresh_trigger(agent_id))))
            found = await self.of(agent_id)  # ours, or that of a concurrent caller
        assert found is not None, "an agent that exists has a trigger once it was asked for"
        return found

    async def rotate(self, agent_id: AgentId) -> ExternalTrigger:
        """Give the trigger a new address, also after a revocation; older ones become void."""
        return await self._move(agent_id, TriggerStatus.ACTIVE)

    async def revoke(self, agent_id: AgentId) -> ExternalTrigger:
        """Void the address; the trigger accepts nothing until it is rotated."""
        return await self._move(agent_id, TriggerStatus.REVOKED)

    def url_of(self, trigger: ExternalTrigger) -> str | None:
        """Return the address of a trigger for disclosure; as a secret, it is redacted from now on.

        None when the trigger is revoked, or when nothing can be delivered to this host.
        """
        url = self.address_of(trigger)
        if url is not None:
            _, secret = split_token(url)
            self._trigger_key.register_secret(f"trigger:{trigger.external_trigger_id}", secret)
        return url

    def address_of(self, trigger: ExternalTrigger) -> str | None:
        """Return the address of a trigger, or None when no address would be accepted."""
        key, base_url = self._trigger_key.key(), self._trigger_base_url
        if key is None or base_url is None or trigger.status is not TriggerStatus.ACTIVE:
            return None
        return base_url.rstrip("/") + trigger_path(key, trigger)

    async def open(self, token: str, delivery: TriggerDelivery) -> TriggerTarget | None:
        """Return the target of a delivery with a valid token, or None."""
        trigger_id, secret = split_token(token)
        target = await self._store.reads.wake.trigger_target(
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
        """Return the receipt of the delivery this one repeats, waiting for it if necessary.

        Raises RefusedError when the earlier delivery had another body.
        """
        if delivery.delivery_key is None:
            return None
        under_way = self._in_progress.get(
            (target.trigger.external_trigger_id, delivery.delivery_key)
        )
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
        """Accept a delivery durably; None when the trigger became void in the meantime.

        Raises RefusedError when the agent is stopped, after recording that in its log.
        """
        if delivery.delivery_key is None:
            return await self._deliver(token, delivery, target)
        place = (target.trigger.external_trigger_id, delivery.delivery_key)
        done = self._in_progress.setdefault(place, anyio.Event())
        try:
            return await self._deliver(token, delivery, target)
        finally:
            self._in_progress.pop(place, None)
            done.set()

    async def _deliver(
        self, token: str, delivery: TriggerDelivery, target: TriggerTarget
    ) -> TriggerReceipt | None:
        name = delivery.delivery_key  # a concurrent repeat is then the same commit
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
    """The receipt of the repeated delivery; raises RefusedError when the bodies differ."""
    earlier = repeated(target, delivery)
    return None if earlier is None else accepted(earlier)
