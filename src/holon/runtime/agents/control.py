"""Agent lifecycle control: create, stop, resume, pause, abort and archive agents.

Owns:  the operator's lifecycle mutations: commits plus events, never queued messages.
Rule 1: a control commit takes a new generation, which fences the lane it overtakes.
Rule 2: stop and abort settle the running turn in the same commit; nothing is left half done.
Rule 3: archiving is final, and requires that every row of the agent is finished. The schema checks
        that in the archiving transaction.
Rule 4: a request for the state the agent is already in succeeds without a change, and interrupts no
        lane.
Rule 5: a model that cannot be used as configured is refused here; otherwise the default model would
        silently answer in its place.
"""

from collections.abc import Callable

from holon.decide.agents.control import (
    ControlRequest,
    decide_control,
    is_already,
    model_commit,
    reason_of,
    refuse_target,
)
from holon.decide.agents.lifecycle import refuse_unknown
from holon.decide.events.audit import audited
from holon.decide.turns.failures import operator_abort
from holon.decide.turns.recovery import abort_calls
from holon.decide.turns.replay import cut_off, used_by_turn
from holon.model.agents import AgentIdentity, ModelChoice
from holon.model.commits import Applied, ArchiveAgent, Commit
from holon.model.errors import Refusal
from holon.model.events.reads import AgentSnapshot
from holon.model.providers.attempts import ProviderError
from holon.model.providers.models import BadModelRefError, parse_model_ref
from holon.model.values import AgentId, IdPrefix, parse_agent_id
from holon.ports.clock import Clock, IdSource
from holon.ports.store import Store
from holon.runtime.agents.provisioning import AgentProvisioner
from holon.runtime.commits import commit_decided
from holon.runtime.providers.routing import ModelRouting
from holon.runtime.turns.driver import TurnEnd
from holon.runtime.turns.settler import Settler


class ControlService:
    """Agent lifecycle for one host."""

    def __init__(
        self,
        provisioner: AgentProvisioner,
        interrupt: Callable[[AgentId], None],
        *,
        settler: Settler,
        store: Store,
        clock: Clock,
        ids: IdSource,
        routing: ModelRouting,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._settler = settler
        self._routing = routing
        self._provisioner = provisioner
        self._interrupt = interrupt

    async def create_agent(
        self, identity: AgentIdentity, *, template: str | None = None, key: str | None = None
    ) -> None:
        """Create an agent, asleep, with a home made from the template."""
        await self._provisioner.create(identity, template=template, key=key)

    async def stop(self, agent_id: AgentId) -> None:
        """Stop an agent; its running turn is aborted, its queue is kept. Idempotent."""
        await self._control(agent_id, "stop", cuts_turn=True)

    async def pause(self, agent_id: AgentId) -> None:
        """Hold an agent: messages are still admitted, nothing runs. The running turn is aborted."""
        await self._control(agent_id, "pause", cuts_turn=True)

    async def resume(self, agent_id: AgentId) -> None:
        """Let a stopped or paused agent run again; a no-op for any other."""
        await self._control(agent_id, "resume", cuts_turn=False)

    async def abort_run(self, agent_id: AgentId, *, run_id: str | None = None) -> None:
        """Abort the running turn, or only the one named by `run_id`; the agent keeps running."""
        await self._control(agent_id, "abort", cuts_turn=True, run_id=run_id)

    async def archive(self, agent_id: AgentId, *, reason: str) -> bool:
        """Archive an agent; False when one of its rows is not finished."""
        commit = Commit(
            commit_id=f"archive:{parse_agent_id(agent_id)}",
            at=self._clock.now(),
            changes=(ArchiveAgent(agent_id=agent_id, reason=reason),),
        )
        return isinstance(await self._store.apply(audited(commit)), Applied)

    async def set_model(self, agent_id: AgentId, model: str | None) -> None:
        """Set the agent's own model, or restore the default; a running turn keeps its model.

        Raises BadModelRefError when `model` does not name one, or one that cannot be used.
        """
        if model is not None:
            parse_model_ref(model)

        async def decide() -> Commit | Refusal:
            now = self._clock.now()
            snapshot = await self._store.reads.agents.snapshot(parse_agent_id(agent_id), now=now)
            if snapshot is None:
                return refuse_unknown(agent_id)
            if (refusal := refuse_target(snapshot)) is not None:
                return refusal
            if model is not None:
                self._require_usable(model)
            return model_commit(
                f"control:{self._ids.fresh(IdPrefix.REQUEST)}",
                snapshot,
                model,
                models=self._routing.configured(ModelChoice(override_model=model)),
                now=now,
            )

        await commit_decided(self._store, decide)

    def _require_usable(self, model: str) -> None:
        try:
            self._routing.find(parse_model_ref(model))
        except ProviderError as unusable:
            message = f"{model} cannot be used: {unusable.message}"
            raise BadModelRefError(message, hint=unusable.hint) from None

    async def _control(
        self, agent_id: AgentId, action: str, *, cuts_turn: bool, run_id: str | None = None
    ) -> None:
        request = ControlRequest(
            agent_id=parse_agent_id(agent_id),
            action=action,
            request_id=self._ids.fresh(IdPrefix.REQUEST),
            run_id=run_id,
        )

        async def decide() -> Commit | Refusal | None:
            now = self._clock.now()
            snapshot = await self._store.reads.agents.snapshot(agent_id, now=now)
            if snapshot is None:
                return refuse_unknown(agent_id)
            if (refusal := refuse_target(snapshot)) is not None:
                return refusal
            if is_already(snapshot, request):
                return None
            settled = await self._cut_turn(snapshot, request) if cuts_turn else None
            return decide_control(snapshot, request, settled=settled, now=now)

        done = await commit_decided(self._store, decide)
        if cuts_turn and done is not None:
            self._interrupt(agent_id)

    async def _cut_turn(self, snapshot: AgentSnapshot, request: ControlRequest) -> Commit | None:
        """Return the settlement of the open turn as aborted by the operator, if one is open."""
        turn_id = snapshot.agent.focus.open_turn_id
        log = await self._store.reads.turns.turn_log(turn_id) if turn_id else None
        entry = await self._store.reads.queue.message(log.turn.message_id) if log else None
        if log is None or entry is None:
            return None
        spent = used_by_turn(log)
        end = TurnEnd(
            finish=cut_off(log, operator_abort(reason_of(request))),
            log=log,
            usage=spent.usage,
            round_count=spent.round_count,
            final_round=abort_calls(log),
        )
        return await self._settler.abort_settlement(end, entry.message, snapshot)
