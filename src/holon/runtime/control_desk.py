"""Mutations that are not messages: creating, stopping, resuming, pausing, aborting, archiving.

Owns:  agent lifecycle as the operator drives it: commits plus events, never queued messages.
Rule 1: a control commit takes a new generation, so the lane it overtakes can write nothing more.
Rule 2: stop and abort settle the running turn in the same commit; nothing is left half done.
Rule 3: an agent is archived for good, and only when none of its rows is unfinished. The schema
        looks, in the transaction that archives it.
Rule 4: whoever asks for what is so already is content: nothing changes, and no lane is cut off.
Rule 5: a model that cannot be used as things are configured is refused here; else the default one
        would answer in its place, and nobody would know.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from holon.decide.agent_lifecycle import may_run
from holon.decide.agent_refusals import refuse_archived, refuse_unknown, resume_path
from holon.decide.context_too_long import ended_by_other_models
from holon.decide.desk_commits import StatusRequest, control_commit
from holon.decide.failure_artifact import operator_abort
from holon.decide.recovery_plan import abort_calls
from holon.decide.turn_replay import cut_off, spent_in
from holon.model.agent import AgentIdentity, AgentState, IdentityStatus, ModelChoice
from holon.model.agent_status import AgentSignal, AgentStatus
from holon.model.commit import (
    ArchiveAgent,
    Change,
    Commit,
    ReleaseDeferred,
    SetAgentStatus,
    SetModelOverride,
)
from holon.model.errors import ForbiddenTransitionError
from holon.model.expectation import Applied, Expect, WaitInState
from holon.model.ids import AgentId, IdPrefix, parse_agent_id
from holon.model.limits import ID_CHARS_MAX
from holon.model.model_ref import BadModelRefError, parse_model_ref
from holon.model.provider_errors import ProviderError
from holon.model.refusal import Refusal, RefusalCode
from holon.model.snapshot import AgentSnapshot
from holon.model.wait import WaitState
from holon.ports.clock import Clock
from holon.ports.id_source import IdSource
from holon.ports.store import Store
from holon.runtime.agent_birth import AgentBirth
from holon.runtime.decided_commit import commit_decided
from holon.runtime.model_routing import ModelRouting
from holon.runtime.settler import Settler
from holon.runtime.turn_driver import TurnEnd

# The postures in which there is nothing to do for who asks for this.
_ALREADY: Final[Mapping[str, frozenset[AgentStatus]]] = MappingProxyType(
    {
        "stop": frozenset({AgentStatus.STOPPED}),
        "pause": frozenset({AgentStatus.PAUSED}),
        "resume": frozenset({AgentStatus.BOOTING, *filter(may_run, AgentStatus)}),
    }
)


class ControlDesk:
    """Agent lifecycle for one host."""

    def __init__(
        self,
        births: AgentBirth,
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
        self._births = births
        self._interrupt = interrupt

    async def create_agent(
        self, identity: AgentIdentity, *, template: str | None = None, key: str | None = None
    ) -> None:
        """Bring an agent into being, asleep and ready, with a home made from the template."""
        await self._births.create(identity, template=template, key=key)

    async def stop(self, agent_id: AgentId) -> None:
        """Stop an agent; its running turn is aborted, its queue is kept. A stopped one stays so."""
        await self._control(agent_id, "stop", (AgentSignal.STOP_REQUESTED,), cuts_turn=True)

    async def pause(self, agent_id: AgentId) -> None:
        """Hold an agent: messages are still admitted, nothing runs. The running turn is aborted."""
        await self._control(agent_id, "pause", (AgentSignal.PAUSE_REQUESTED,), cuts_turn=True)

    async def resume(self, agent_id: AgentId) -> None:
        """Let a stopped or paused agent run again; any other runs already."""
        await self._control(agent_id, "resume", (AgentSignal.RESUME_REQUESTED,), cuts_turn=False)

    async def abort_run(self, agent_id: AgentId, *, run_id: str | None = None) -> None:
        """End the running turn, or only this one if one is named; the agent stays up."""
        await self._control(
            agent_id, "abort", (AgentSignal.RUN_SETTLED,), cuts_turn=True, run_id=run_id
        )

    async def archive(self, agent_id: AgentId, *, reason: str) -> bool:
        """Keep an agent for its history only; False when a row of it is not finished."""
        commit = Commit(
            commit_id=f"archive:{parse_agent_id(agent_id)}",
            at=self._clock.now(),
            changes=(ArchiveAgent(agent_id=agent_id, reason=reason),),
        )
        return isinstance(await self._store.apply(commit), Applied)

    async def set_model(self, agent_id: AgentId, model: str | None) -> None:
        """Give the agent its own model, or the default back; a running turn keeps what it has.

        Raises BadModelRefError when `model` does not name one, or one that cannot be used.
        """
        if model is not None:
            parse_model_ref(model)

        async def decide() -> Commit | Refusal:
            now = self._clock.now()
            snapshot = await self._store.reads.snapshot(parse_agent_id(agent_id), now=now)
            if snapshot is None:
                return refuse_unknown(agent_id)
            if _is_archived(snapshot.agent):
                return refuse_archived(agent_id)
            if model is not None:
                self._require_usable(model)
            models = self._routing.configured(ModelChoice(override_model=model))
            fitting = ended_by_other_models(snapshot.waits, models)
            return Commit(
                commit_id=f"control:{self._ids.fresh(IdPrefix.REQUEST)}",
                at=now,
                changes=(
                    SetModelOverride(agent_id=agent_id, model=model),
                    ReleaseDeferred(agent_id=agent_id),  # another model may answer at once
                    *fitting,
                ),
                expects=tuple(
                    WaitInState(wait_id=moved.wait_id, state=WaitState.ACTIVE) for moved in fitting
                ),
            )

        await commit_decided(self._store, decide)

    def _require_usable(self, model: str) -> None:
        try:
            self._routing.find(parse_model_ref(model))
        except ProviderError as unusable:
            message = f"{model} cannot be used: {unusable.message}"
            raise BadModelRefError(message, hint=unusable.hint) from None

    async def _control(
        self,
        agent_id: AgentId,
        action: str,
        signals: tuple[AgentSignal, ...],
        *,
        cuts_turn: bool,
        run_id: str | None = None,
    ) -> None:
        parse_agent_id(agent_id)
        request_id = self._ids.fresh(IdPrefix.REQUEST)

        async def decide() -> Commit | Refusal | None:
            now = self._clock.now()
            snapshot = await self._store.reads.snapshot(agent_id, now=now)
            if snapshot is None:
                return refuse_unknown(agent_id)
            if _is_archived(snapshot.agent):
                return refuse_archived(agent_id)
            if snapshot.agent.posture.status in _ALREADY.get(action, ()):
                return None
            cut, expects = await self._cut_turn(snapshot, action) if cuts_turn else ((), ())
            if action == "abort" and not cut:
                return _no_run(agent_id)
            if run_id is not None and snapshot.agent.focus.open_turn_id != run_id:
                return _another_run(agent_id, run_id)
            request = StatusRequest(
                request_id=request_id,
                action=action,
                signals=signals,
                reason=f"operator asked to {action}",
                also=cut,
            )
            try:
                commit = control_commit(snapshot, request, now=now)
            except ForbiddenTransitionError as forbidden:
                return _forbidden(agent_id, action, forbidden)
            return Commit(
                commit_id=commit.commit_id,
                at=now,
                changes=commit.changes,
                expects=(*commit.expects, *expects),
            )

        done = await commit_decided(self._store, decide)
        if cuts_turn and done is not None:
            self._interrupt(agent_id)

    async def _cut_turn(
        self, snapshot: AgentSnapshot, action: str
    ) -> tuple[tuple[Change, ...], tuple[Expect, ...]]:
        """What settles the open turn, if there is one, as aborted by the operator."""
        turn_id = snapshot.agent.focus.open_turn_id
        log = await self._store.reads.turn_log(turn_id) if turn_id else None
        entry = await self._store.reads.message(log.turn.message_id) if log else None
        if log is None or entry is None:
            return (), ()
        spent = spent_in(log)
        end = TurnEnd(
            finish=cut_off(log, operator_abort(f"operator asked to {action}")),
            log=log,
            usage=spent.usage,
            round_count=spent.round_count,
            final_round=abort_calls(log),
        )
        commit = await self._settler.cutting(end, entry.message, snapshot)
        settled = tuple(c for c in commit.changes if not isinstance(c, SetAgentStatus))
        return settled, commit.expects


def _is_archived(agent: AgentState) -> bool:
    return agent.identity.status is IdentityStatus.ARCHIVED


def _no_run(agent_id: AgentId) -> Refusal:
    return Refusal(
        code=RefusalCode.NO_CURRENT_RUN,
        message=f"agent {agent_id} is not running a turn",
        hint=(
            f"there is nothing to abort; `holon agent status {agent_id}`"
            f" (GET /agents/{agent_id}/status) shows what it does"
        ),
    )


def _another_run(agent_id: AgentId, run_id: str) -> Refusal:
    return Refusal(
        code=RefusalCode.STALE_RUN_ID,
        message=f"agent {agent_id} no longer runs {run_id[:ID_CHARS_MAX]}",
        hint=(
            f"look at `holon agent status {agent_id}` (GET /agents/{agent_id}/status) for the run"
            " that is under way"
        ),
        field="run_id",
    )


def _forbidden(agent_id: AgentId, action: str, forbidden: ForbiddenTransitionError) -> Refusal:
    return Refusal(
        code=RefusalCode.TRANSITION_FORBIDDEN,
        message=f"agent {agent_id} is {forbidden.state}: it cannot {action}",
        hint=(
            f"look at `holon agent status {agent_id}` (GET /agents/{agent_id}/status); a stopped"
            f" agent is resumed with `holon agent resume {agent_id}` (POST {resume_path(agent_id)})"
        ),
    )
