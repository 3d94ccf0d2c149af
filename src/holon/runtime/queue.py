"""Ingress: a request becomes an admitted, queued message, or is refused.

Owns:  admission as the runtime performs it. Everything that may influence an agent enters here.
Rule 1: the receipt is returned only after the commit is durable.
Rule 2: the same idempotency key yields the same message; with another body it is a conflict.
"""

from holon.decide.events.audit import audited
from holon.decide.queue.admission import Admitted, body_digest, decide_admission
from holon.decide.queue.commits import queue_change
from holon.model.commits import (
    AgentAdmits,
    Applied,
    Commit,
    ConstraintRefused,
    ExpectationFailed,
    KeyAlreadyUsed,
)
from holon.model.errors import Refusal, RefusalCode, RefusedError, StoreBrokenError
from holon.model.events.reads import AdmissionTarget
from holon.model.queue import AdmissionReceipt, IngressRequest
from holon.model.values import AgentId, IdPrefix, MessageId, parse_agent_id
from holon.ports.clock import Clock, IdSource
from holon.ports.failpoint import Failpoint, Failpoints
from holon.ports.store import Store
from holon.runtime.commits import DECISIONS_COUNT_MAX


class Ingress:
    """Admits messages for one host."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: IdSource,
        failpoints: Failpoints,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._failpoints = failpoints
        self._broken: StoreBrokenError | None = None
        self._targets: dict[AgentId, AdmissionTarget] = {}

    def commit_applied(self) -> None:
        """Drop the cached admission targets: any row may have changed."""
        self._targets.clear()

    async def admit(self, request: IngressRequest) -> AdmissionReceipt:
        """Admit a request durably, or raise RefusedError with nothing changed."""
        for _ in range(DECISIONS_COUNT_MAX):
            try:
                admitted = await self.judge(request)
            except RefusedError:
                if (earlier := await self._earlier(request)) is not None:
                    return earlier  # the first attempt was admitted; its response was lost
                raise
            receipt = await self._queue(admitted)
            if receipt is not None:
                return receipt
        raise RefusedError(
            Refusal(
                code=RefusalCode.BUSY,
                message="the agent kept changing while the message was being admitted",
                hint="send it again with the same idempotency key",
            )
        )

    async def judge(self, request: IngressRequest) -> Admitted:
        """Decide on a request without queueing it; raises RefusedError when it is declined.

        Used where a message must be queued together with something else, in one commit.
        """
        if self._broken is not None:
            raise self._broken
        target = self._targets.get(request.agent_id) or await self._look(request.agent_id)
        admission = decide_admission(
            request,
            target,
            message_id=MessageId(self._ids.fresh(IdPrefix.MESSAGE)),
            now=self._clock.now(),
        )
        if isinstance(admission, Refusal):
            raise RefusedError(admission)
        return admission

    async def _look(self, agent_id: AgentId) -> AdmissionTarget | None:
        """Return the facts admission needs of an agent; callers between two commits share a read.

        A stale target does no harm: the commit checks again that the agent admits messages.
        """
        target = await self._store.reads.queue.admission_target(parse_agent_id(agent_id))
        if target is not None:
            self._targets[agent_id] = target
        return target

    async def _earlier(self, request: IngressRequest) -> AdmissionReceipt | None:
        """The receipt of an earlier request with the same key and the same content."""
        if request.idempotency_key is None:
            return None
        earlier = await self._store.reads.queue.keyed(
            request.agent_id, request.surface, request.idempotency_key
        )
        if earlier is None or earlier.body_digest != body_digest(request):
            return None
        return AdmissionReceipt(
            agent_id=request.agent_id, message_id=earlier.message_id, duplicate=True
        )

    async def _queue(self, admitted: Admitted) -> AdmissionReceipt | None:
        message = admitted.message
        commit = Commit(
            commit_id=f"admit:{message.id}",
            at=message.created_at,
            changes=(queue_change(admitted),),
            expects=(AgentAdmits(agent_id=message.agent_id),),
        )
        await self._failpoints.reach(Failpoint.ADMIT_BEFORE_COMMIT)
        try:
            outcome = await self._store.apply(audited(commit))
        except StoreBrokenError as broken:
            self._broken = broken  # durability is unknown from here on: nothing more is admitted
            raise
        await self._failpoints.reach(Failpoint.ADMIT_AFTER_COMMIT)
        match outcome:
            case Applied():
                return AdmissionReceipt(agent_id=message.agent_id, message_id=message.id)
            case KeyAlreadyUsed(message_id=earlier, same_body=True):
                return AdmissionReceipt(
                    agent_id=message.agent_id, message_id=earlier, duplicate=True
                )
            case KeyAlreadyUsed(message_id=earlier):
                raise RefusedError(_key_conflict(earlier))
            case ExpectationFailed() | ConstraintRefused():
                self._targets.pop(message.agent_id, None)
                return None


def _key_conflict(earlier: MessageId) -> Refusal:
    return Refusal(
        code=RefusalCode.IDEMPOTENCY_CONFLICT,
        message=f"the idempotency key was used before, for message {earlier} with another body",
        hint="use a new key for new content, or repeat the same body",
        field="idempotency_key",
    )
