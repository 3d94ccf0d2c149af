"""Turn governor: whether a turn may begin, or continue with another round.

Owns:  evaluating the no-progress brake and the budgets, and making their decisions durable.
Rule 1: a message whose turn was deferred has passed the brake before; only budgets can hold it
        again.
Rule 2: counts and holds live in the rows. Only the usage of running turns is in memory, and it can
        be recomputed from their logs.
"""

from datetime import datetime, timedelta
from typing import assert_never

from holon.decide.budgets.budget import (
    BudgetFacts,
    PriceLookup,
    cost_micros_of,
    judge_budget,
    judge_running,
    unpriced_models,
)
from holon.decide.budgets.commits import (
    PendingStart,
    extend_pause_commit,
    hold_message_commit,
    pause_turns_commit,
    review_holds_commit,
    stop_self_starts_commit,
    suppress_start_commit,
    unpause_turns_commit,
)
from holon.decide.budgets.no_progress import (
    DelayStart,
    Start,
    StopSelfStarts,
    SuppressStart,
    decide_start,
    is_self_started,
)
from holon.decide.queue.next_message import Pick
from holon.model.agents import AgentState, TurnRateState
from holon.model.budgets import BudgetHold, BudgetPolicy, UsageStep
from holon.model.commits import Commit
from holon.model.events.reads import AgentSnapshot
from holon.model.limits import BUDGET_WINDOW_MS, USAGE_STEP_MS
from holon.model.providers.attempts import TokenUsage
from holon.model.queue import MessageEnvelope, QueueEntry, TimerOrigin
from holon.model.turns.transcript import AssistantRound, TurnLog
from holon.model.turns.turn import Reentry
from holon.model.values import AgentId, BriefId, IdPrefix
from holon.model.wake import OneShot
from holon.ports.clock import Clock, IdSource
from holon.ports.store import Store
from holon.projections.budgets import MeasureView, PaceView, pace_view, runtime_measures
from holon.runtime.commits import apply_patiently
from holon.runtime.providers.routing import ModelRouting
from holon.runtime.workspaces.place import AgentPlaces

_REACH = timedelta(milliseconds=BUDGET_WINDOW_MS + USAGE_STEP_MS)


class TurnGovernor:
    """Applies the brake and the budgets to the turns of one host."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: IdSource,
        routing: ModelRouting,
        agent_places: AgentPlaces,
        budgets: BudgetPolicy,
        price_of: PriceLookup,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._routing = routing
        self._agent_places = agent_places
        self._budgets = budgets
        self._price_of = price_of
        self._running: dict[AgentId, UsageStep] = {}  # what open turns have used so far

    async def may_start(
        self, snapshot: AgentSnapshot, entry: QueueEntry, reentry: Reentry, pick: Pick
    ) -> TurnRateState | None:
        """Return the counts to store with the turn, or None when it may not begin."""
        now = self._clock.now()
        if (hold := await self._hold(snapshot, now=now)) is not None:
            start = await self._start(snapshot, entry, pick, now=now)
            await self._apply(pause_turns_commit(start, hold))
            return None
        pace = snapshot.agent.pace
        if entry.was_put_off:
            return pace
        decision = decide_start(pace, self_started=is_self_started(entry.message), now=now)
        if isinstance(decision, Start):
            return decision.pace
        start = await self._start(snapshot, entry, pick, now=now)
        match decision:
            case DelayStart(until=until):
                await self._apply(hold_message_commit(start, until=until))
            case StopSelfStarts(pace=pace):
                await self._apply(stop_self_starts_commit(start, reentry, pace=pace))
            case SuppressStart():
                comes_again = await self._comes_again(entry.message)
                await self._apply(suppress_start_commit(start, reentry, comes_again=comes_again))
            case _:
                assert_never(decision)
        return None

    async def hold_between_rounds(self, log: TurnLog, usage: TokenUsage) -> BudgetHold | None:
        """Return the budget that stops a running turn before its next round, or None."""
        now = self._clock.now()
        if self._budgets.is_off:
            return None
        agent_id = log.turn.agent_id
        rounds = (e.data.spoke for e in log.entries if isinstance(e.data, AssistantRound))
        timelines = (each.timeline for each in rounds if each.timeline is not None)
        self._running[agent_id] = UsageStep(
            began_at=now,
            tokens=usage.total_tokens,
            cost_micros=cost_micros_of(timelines, self._price_of),
        )
        return judge_running(await self._facts(agent_id, now=now), now=now)

    async def review(self, snapshot: AgentSnapshot) -> bool:
        """Re-evaluate the budget of a held agent. Returns True: the lane looks again."""
        now = self._clock.now()
        commit_id = self._fresh_commit_id()
        hold = await self._hold(snapshot, now=now)
        if hold is None:
            await self._apply(unpause_turns_commit(commit_id, snapshot, now=now))
        else:
            await self._apply(extend_pause_commit(commit_id, snapshot, hold, now=now))
        return True

    async def review_all(self) -> None:
        """Schedule a review of every hold at a start: the budgets may have been raised."""
        if await self._store.reads.budgets.is_anybody_held():
            commit = review_holds_commit(self._fresh_commit_id(), now=self._clock.now())
            await self._apply(commit)

    def turn_ended(self, agent_id: AgentId) -> None:
        """Forget what an open turn has used: its settlement counts it."""
        self._running.pop(agent_id, None)

    async def rate_limits_of(self, agent: AgentState) -> PaceView:
        """Return an agent's rate limits and usage, also where nothing is limited."""
        now = self._clock.now()
        facts = await self._facts(agent.identity.agent_id, now=now)
        return pace_view(agent.pace, facts, unpriced=self._unpriced(agent), now=now)

    async def runtime_usage(self) -> tuple[MeasureView, ...]:
        """Return the usage and limits of all agents together."""
        now = self._clock.now()
        facts = BudgetFacts(policy=self._budgets, of_runtime=await self._used_by_all(now=now))
        return runtime_measures(facts, now=now)

    def _unpriced(self, agent: AgentState) -> tuple[str, ...]:
        models = map(str, self._routing.configured(agent.model))
        budgets = self._budgets
        return unpriced_models(models, budgets.agent, budgets.runtime, price_of=self._price_of)

    async def _hold(self, snapshot: AgentSnapshot, *, now: datetime) -> BudgetHold | None:
        if self._budgets.is_off:
            return None
        agent_id = snapshot.agent.identity.agent_id
        return judge_budget(await self._facts(agent_id, now=now), now=now)

    async def _facts(self, agent_id: AgentId, *, now: datetime) -> BudgetFacts:
        settled = await self._store.reads.budgets.usage(agent_id, since=now - _REACH)
        running = self._running.get(agent_id)
        return BudgetFacts(
            policy=self._budgets,
            of_agent=(*settled, *(() if running is None else (running,))),
            of_runtime=await self._used_by_all(now=now),
        )

    async def _used_by_all(self, *, now: datetime) -> tuple[UsageStep, ...]:
        settled = await self._store.reads.budgets.usage(None, since=now - _REACH)
        return (*settled, *self._running.values())

    async def _comes_again(self, message: MessageEnvelope) -> bool:
        if not isinstance(message.origin, TimerOrigin):
            return False
        timer = await self._store.reads.wake.timer(message.origin.timer_id)
        return timer is not None and not isinstance(timer.schedule, OneShot)

    async def _start(
        self, snapshot: AgentSnapshot, entry: QueueEntry, pick: Pick, *, now: datetime
    ) -> PendingStart:
        place = await self._agent_places.current(entry.message.agent_id)
        return PendingStart(
            commit_id=self._fresh_commit_id(),
            at=now,
            snapshot=snapshot,
            message=entry.message,
            passed_over=pick.passed_over,
            brief_id=BriefId(self._ids.fresh(IdPrefix.BRIEF)),
            workspace_id=place.workspace_id,
        )

    def _fresh_commit_id(self) -> str:
        return f"pace:{self._ids.fresh(IdPrefix.REQUEST)}"

    async def _apply(self, commit: Commit) -> None:
        """Apply a commit and ignore a refusal: the next look decides from fresh rows anyway."""
        await apply_patiently(self._store, commit, clock=self._clock)
