"""Takes wake hints: signals that something changed, which are not messages.

Owns:  parking hints durably. Turning them into a tick is the lane's business, once it is free.
Rule 1: a hint for a stopped agent is refused with the way to resume it; it never resumes anything.
"""

from holon.decide.agent_refusals import refuse_addressee, refuse_unknown
from holon.decide.wake import Coalesce, IgnoreHint, Park, TriggerNow, decide_wake
from holon.model.agent_status import AgentStatus
from holon.model.commit import Commit, ParkWakeHint, RecordEvent
from holon.model.expectation import AgentAdmits, Expect, WakeHintAtRevision
from holon.model.ids import IdPrefix, parse_agent_id
from holon.model.refusal import Refusal
from holon.model.snapshot import AgentSnapshot
from holon.model.wake import WakeDisposition, WakeHint
from holon.model.wake_event import WakeHintIgnored
from holon.ports.clock import Clock
from holon.ports.id_source import IdSource
from holon.ports.store import Store
from holon.runtime.decided_commit import commit_decided


class WakeDesk:
    """Where wake hints arrive."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    async def submit(self, hint: WakeHint) -> WakeDisposition:
        """Take a hint in; say what became of it. Raises RefusedError when the agent is stopped."""
        parse_agent_id(hint.agent_id)
        taken: list[WakeDisposition] = []

        async def decide() -> Commit | Refusal:
            snapshot = await self._store.reads.snapshot(hint.agent_id, now=self._clock.now())
            if snapshot is None:
                return refuse_unknown(hint.agent_id)
            if (refusal := refuse_addressee(snapshot.agent)) is not None:
                return refusal
            disposition, commit = self._judge(snapshot, hint)
            taken.append(disposition)
            return commit

        await commit_decided(self._store, decide)
        return taken[-1]

    def _judge(
        self, snapshot: AgentSnapshot, hint: WakeHint
    ) -> tuple[WakeDisposition, Commit | Refusal]:
        status = snapshot.agent.posture.status
        parked = next((h for h in snapshot.hints if h.source_key == hint.source_key), None)
        decision = decide_wake(
            status,
            busy=status is AgentStatus.AWAKE_RUNNING or bool(snapshot.heads),
            parked=parked,
            parked_count=len(snapshot.hints),
            incoming=hint,
        )
        match decision:
            case TriggerNow(hint=kept):
                return WakeDisposition.TRIGGERED, self._park(kept, None)
            case Coalesce(hint=kept):
                return WakeDisposition.COALESCED, self._park(kept, parked)
            case Park(hint=kept):
                return WakeDisposition.PARKED, self._park(kept, None)
            case IgnoreHint(refusal=refusal) if refusal is not None:
                return WakeDisposition.IGNORED, refusal
            case IgnoreHint(reason=reason):
                return WakeDisposition.IGNORED, self._note(hint, reason)

    def _park(self, hint: WakeHint, parked: WakeHint | None) -> Commit:
        expects: list[Expect] = [AgentAdmits(agent_id=hint.agent_id)]
        if parked is not None:
            expects.append(
                WakeHintAtRevision(
                    agent_id=hint.agent_id,
                    source_key=hint.source_key,
                    revision=parked.revision,
                )
            )
        return Commit(
            commit_id=f"hint:{self._ids.fresh(IdPrefix.REQUEST)}",
            at=hint.updated_at,
            changes=(ParkWakeHint(hint=hint),),
            expects=tuple(expects),
        )

    def _note(self, hint: WakeHint, reason: str) -> Commit:
        event = WakeHintIgnored(source_key=hint.source_key, reason=reason)
        return Commit(
            commit_id=f"hint:{self._ids.fresh(IdPrefix.REQUEST)}",
            at=hint.updated_at,
            changes=(RecordEvent(agent_id=hint.agent_id, event=event),),
        )
