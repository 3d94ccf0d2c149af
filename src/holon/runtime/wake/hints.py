"""Wake hints: signals that something changed, which are not messages.

Owns:  storing hints durably. The lane turns them into a tick once it is free.
Rule 1: a hint for a stopped agent is refused with the command that resumes it; a hint never
        resumes.
"""

from holon.decide.agents.lifecycle import refuse_recipient, refuse_unknown
from holon.decide.wake.hints import take_hint
from holon.model.commits import Commit
from holon.model.errors import Refusal
from holon.model.values import IdPrefix, parse_agent_id
from holon.model.wake import WakeDisposition, WakeHint
from holon.ports.clock import Clock, IdSource
from holon.ports.store import Store
from holon.runtime.commits import commit_decided


class WakeService:
    """Accepts the wake hints of one host."""

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
        """Store a hint and return its disposition. Raises RefusedError for a stopped agent."""
        parse_agent_id(hint.agent_id)
        dispositions: list[WakeDisposition] = []

        async def decide() -> Commit | Refusal:
            snapshot = await self._store.reads.agents.snapshot(hint.agent_id, now=self._clock.now())
            if snapshot is None:
                return refuse_unknown(hint.agent_id)
            if (refusal := refuse_recipient(snapshot.agent)) is not None:
                return refusal
            commit_id = f"hint:{self._ids.fresh(IdPrefix.REQUEST)}"
            disposition, commit = take_hint(commit_id, snapshot, hint)
            dispositions.append(disposition)
            return commit

        await commit_decided(self._store, decide)
        return dispositions[-1]
