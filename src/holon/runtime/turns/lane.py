"""Lane: one agent's loop of look, claim, run the turn, settle, rest.

Owns:  everything an agent does while it is awake, with a throttle on busy turns and a mark of the
       turn that holds the processor. A lane exists only while there is work; an agent at rest has
       no task and no memory.
Rule 1: each look starts from fresh rows; the lane keeps no state between looks.
Rule 2: a fenced lane stops at once; the commit that fenced it determines what comes next.
Rule 3: few lanes look and claim at a time, however many agents have changed rows, so that incoming
        requests are not delayed. Lanes in a turn are not counted; where a turn keeps the processor
        busy, at its beginning and end, the throttle lets many pass one by one.
Rule 4: a bug in a turn, or in its settlement, fails the turn. Any other ends the lane, and its
        agent is left down (Scheduler, rule 5).
Rule 5: the mark is set only while the turn's own code runs, never while it waits. When the process
        hangs or is killed, that identifies the one turn that was executing, and the open turns that
        only waited are not blamed.
Rule 6: a lane leaves the throttle when its busy section begins, so that one which then waits for a
        slow disk delays no other.
Rule 7: the throttle lets a few turns pass together: their commits then share one write to the disk.
"""

from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar, assert_never

import anyio
from anyio.lowlevel import checkpoint

from holon.decide.queue.next_message import Pick, pick_next
from holon.decide.tasks.commands import is_terminal
from holon.decide.turns.closure import (
    ContinuationFacts,
    closure_facts,
    derive_closure,
    item_in_question,
    moot_reason,
    resolve_continuation,
    timer_in_question,
)
from holon.decide.turns.commits import (
    ClaimFacts,
    LaneLease,
    claim_commit,
    liveness_commit,
    resume_commit,
)
from holon.decide.turns.failures import failure_of
from holon.decide.turns.recovery import plan_turn
from holon.decide.turns.replay import cut_off, used_by_turn
from holon.decide.wake.activation import (
    AskOperator,
    ContinueActive,
    EmitHintTick,
    EmitRecheckTick,
    OfferQueued,
    Rest,
    RestUntil,
    ReviewBudget,
    RunQueue,
    StayInactive,
    decide_activation,
)
from holon.model.agents import TurnRateState
from holon.model.commits import Applied
from holon.model.events.briefs import FailureArtifact
from holon.model.events.reads import AgentSnapshot, WeighedItem
from holon.model.limits import LANES_STARTING_COUNT_MAX, UNSEEN_SHOWN_COUNT_MAX
from holon.model.queue import MessageEnvelope, MessageKind, QueueEntry, is_contentful
from holon.model.record import Record
from holon.model.turns.transcript import TurnLog
from holon.model.turns.turn import Continuation, LivenessOnly, Reentry
from holon.model.values import AgentId, IdPrefix, TurnId
from holon.ports.clock import Clock, IdSource
from holon.ports.failpoint import Failpoint, Failpoints
from holon.ports.journal import Journal, LogLevel
from holon.ports.store import Store
from holon.ports.tracer import Tracer
from holon.ports.turns import TurnMark
from holon.runtime.background import raise_unless_bug
from holon.runtime.budgets import TurnGovernor
from holon.runtime.commits import apply_patiently
from holon.runtime.turns.driver import TurnDriver, TurnEnd
from holon.runtime.turns.log import LaneFencedError, opened_log
from holon.runtime.turns.settler import Settler
from holon.runtime.wake.ticks import TickService

T = TypeVar("T")
TOGETHER_COUNT_MAX: Final = 8


class Marked(Generic[T]):
    """An awaitable that sets the turn mark while the wrapped coroutine executes."""

    def __init__(self, work: Coroutine[Any, Any, T], mark: TurnMark, turn_id: TurnId) -> None:
        self._work = work
        self._mark = mark
        self._turn_id = turn_id

    def __await__(self) -> Generator[Any, Any, T]:
        step, thrown = self._work.send, None
        answer: Any = None
        while True:
            self._mark.enter(self._turn_id)
            try:
                awaited = step(answer) if thrown is None else self._work.throw(thrown)
            except StopIteration as ended:
                result: T = ended.value
                return result
            finally:
                self._mark.leave()
            try:
                answer, thrown = (yield awaited), None
            except GeneratorExit:
                self._work.close()
                raise
            except BaseException as error:  # noqa: BLE001 - cancellations are thrown into the coroutine as well
                answer, thrown = None, error


class TurnThrottle:
    """Spreads the busy sections of one host's turns over event loop passes."""

    def __init__(self) -> None:
        self._entry = anyio.Lock(fast_acquire=True)
        self._turn_count = 0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Count a turn while it runs."""
        self._turn_count += 1
        try:
            yield
        finally:
            self._turn_count -= 1

    async def pass_through(self) -> None:
        """Return when the lane may continue; with many open turns, other ready tasks go first."""
        if self._turn_count > TOGETHER_COUNT_MAX:
            async with self._entry:
                await checkpoint()


class _Turn(Record, frozen=True, kw_only=True):
    """A turn that may begin."""

    message: MessageEnvelope
    pick: Pick
    reentry: Reentry
    pace: TurnRateState


class _Claimed(Record, frozen=True, kw_only=True):
    """An open turn that this lane continues."""

    message: MessageEnvelope
    lease: LaneLease
    log: TurnLog


class Lane:
    """Runs agents for one host, one at a time per agent."""

    def __init__(
        self,
        *,
        ticks: TickService,
        drive: Callable[[LaneLease], TurnDriver],
        settler: Settler,
        governor: TurnGovernor,
        store: Store,
        clock: Clock,
        ids: IdSource,
        tracer: Tracer,
        failpoints: Failpoints,
        journal: Journal,
        turn_mark: TurnMark,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._tracer = tracer
        self._failpoints = failpoints
        self._journal = journal
        self._turn_mark = turn_mark
        self._ticks = ticks
        self._drive = drive
        self._settler = settler
        self._governor = governor
        self._looking = anyio.Semaphore(LANES_STARTING_COUNT_MAX, fast_acquire=True)
        self._throttle = TurnThrottle()

    async def run(
        self,
        agent_id: AgentId,
        *,
        before_look: Callable[[], None],
        may_go_on: Callable[[], bool],
    ) -> None:
        """Work until the rows give no reason to continue.

        `before_look` is called before each look at the rows, so that a commit which lands during
        or after the look is known to be news. `may_go_on` is asked before that: a host that is
        about to end claims nothing more.
        """
        try:
            while may_go_on():
                async with self._looking:
                    result = may_go_on() and await self._look(agent_id, before_look)
                if isinstance(result, _Claimed):
                    await self._run_turn(result)
                elif not result:
                    return
        except LaneFencedError as fenced:
            self._journal.note("lane_fenced", str(fenced), agent_id=agent_id)

    async def _look(self, agent_id: AgentId, before_look: Callable[[], None]) -> _Claimed | bool:
        """Return a turn to run, or else whether to look again."""
        before_look()
        now = self._clock.now()
        snapshot = await self._store.reads.agents.snapshot(agent_id, now=now)
        if snapshot is None:
            return False
        decision = decide_activation(snapshot, now=now)
        match decision:
            case RunQueue():
                return await self._run_queue(snapshot)
            case ReviewBudget():
                return await self._governor.review(snapshot)
            case EmitHintTick():
                return await self._ticks.emit_hint_tick(snapshot, decision)
            case ContinueActive() | OfferQueued():
                return await self._ticks.emit_work_tick(snapshot, decision)
            case EmitRecheckTick():
                return await self._ticks.emit_recheck_tick(snapshot, decision)
            case AskOperator():
                return await self._ticks.ask_operator(snapshot, decision)
            case StayInactive() | RestUntil() | Rest():
                return False
            case _:
                assert_never(decision)

    async def _run_queue(self, snapshot: AgentSnapshot) -> _Claimed | bool:
        if snapshot.claimed_message_id is not None:
            return await self._resume_turn(snapshot) or True
        pick = pick_next(snapshot.heads, passed_over=snapshot.passed_over)
        if pick is None:
            return False
        entry = await self._store.reads.queue.message(pick.message_id)
        if entry is None:
            return True
        return await self._dispatch(snapshot, entry, pick) or True

    async def _dispatch(
        self, snapshot: AgentSnapshot, entry: QueueEntry, pick: Pick
    ) -> _Claimed | None:
        message = entry.message
        continuation = await self._continuation(snapshot, entry)
        match continuation:
            case LivenessOnly():
                now, passed_over = self._clock.now(), pick.passed_over
                commit = liveness_commit(message, continuation, passed_over=passed_over, now=now)
                await apply_patiently(self._store, commit, clock=self._clock)
            case Reentry():
                pace = await self._governor.may_start(snapshot, entry, continuation, pick)
                if pace is not None:
                    turn = _Turn(message=message, pick=pick, reentry=continuation, pace=pace)
                    return await self._claim(snapshot, turn)
            case _:
                assert_never(continuation)
        return None

    async def _continuation(self, snapshot: AgentSnapshot, entry: QueueEntry) -> Continuation:
        message, task = entry.message, None
        if message.kind is MessageKind.TASK_RESULT and message.task_id is not None:
            task = await self._store.reads.tasks.task(message.task_id)
        facts = ContinuationFacts(
            kind=message.kind,
            contentful=is_contentful(message.body),
            task_terminal=task is not None and is_terminal(task.status),
            ends_wait=message.wait_id is not None,
            prior=derive_closure(closure_facts(snapshot)),
            was_put_off=entry.was_put_off,
            moot=await self._mootness(entry),
        )
        return resolve_continuation(facts)

    async def _mootness(self, entry: QueueEntry) -> str | None:
        reads = self._store.reads
        timer_id, item_id = timer_in_question(entry), item_in_question(entry)
        timer = None if timer_id is None else await reads.wake.timer(timer_id)
        item = None if item_id is None else await reads.work.work_item(item_id)
        offered = None
        if item is not None:
            offered = WeighedItem(item=item, waits=tuple(await reads.wake.item_waits(item.id)))
        return moot_reason(entry, timer=timer, offered=offered)

    async def _claim(self, snapshot: AgentSnapshot, turn: _Turn) -> _Claimed | None:
        message = turn.message
        unseen = await self._store.reads.queue.unseen(
            message.agent_id, limit=UNSEEN_SHOWN_COUNT_MAX
        )
        facts = ClaimFacts(
            snapshot=snapshot,
            message=message,
            turn_id=TurnId(self._ids.fresh(IdPrefix.TURN)),
            continuation=turn.reentry,
            passed_over=turn.pick.passed_over,
            unseen=tuple(unseen),
            pace=turn.pace,
        )
        commit = claim_commit(facts, now=self._clock.now())
        outcome = await apply_patiently(self._store, commit, clock=self._clock)
        await self._failpoints.reach(Failpoint.CLAIM_AFTER_COMMIT)
        if outcome != Applied():  # a replayed claim belongs to an earlier look
            return None
        lease = LaneLease(
            agent_id=message.agent_id,
            turn_id=facts.turn_id,
            generation=snapshot.agent.generation + 1,
        )
        return _Claimed(message=message, lease=lease, log=opened_log(commit))

    async def _resume_turn(self, snapshot: AgentSnapshot) -> _Claimed | None:
        """Continue the open turn that recovery or a cancelled lane left."""
        agent = snapshot.agent
        turn_id, claimed = agent.focus.open_turn_id, snapshot.claimed_message_id
        entry = await self._store.reads.queue.message(claimed) if claimed else None
        log = await self._store.reads.turns.turn_log(turn_id) if turn_id else None
        if entry is None or log is None:
            raise LaneFencedError("a claim without an open turn")
        if interrupted := plan_turn(log).interrupted:
            commit = resume_commit(
                log.turn, interrupted, held=agent.generation, now=self._clock.now()
            )
            await apply_patiently(self._store, commit, clock=self._clock)
            return None  # the next look finds the turn ready to continue
        lease = LaneLease(
            agent_id=agent.identity.agent_id,
            turn_id=log.turn.turn_id,
            generation=agent.generation,
        )
        return _Claimed(message=entry.message, lease=lease, log=log)

    async def _run_turn(self, claimed: _Claimed) -> None:
        lease = claimed.lease
        tracer, throttle = self._tracer, self._throttle
        with throttle.turn(), tracer.turn(lease.agent_id, lease.turn_id) as span:
            await throttle.pass_through()
            try:
                end = await self._marked(self._drive_turn(claimed.log, lease), lease)
            finally:
                self._governor.turn_ended(lease.agent_id)  # its settlement counts its usage
            await throttle.pass_through()
            end = await self._marked(self._settler.settle(end, claimed.message, lease), lease)
            span.ended(end.finish, end.usage, end.round_count)

    def _marked(self, work: Coroutine[Any, Any, TurnEnd], lease: LaneLease) -> Marked[TurnEnd]:
        return Marked(work, self._turn_mark, lease.turn_id)

    async def _drive_turn(self, log: TurnLog, lease: LaneLease) -> TurnEnd:
        try:
            return await self._drive(lease).run(log)
        except Exception as error:  # noqa: BLE001 - named boundary: a bug fails one turn, not the host
            raise_unless_bug(error)
            self._journal.note(
                "turn_crashed",
                "a turn failed unexpectedly (a bug)",
                level=LogLevel.ERROR,
                error=error,
                agent_id=lease.agent_id,
                turn_id=lease.turn_id,
            )
            return await self._crashed_end(lease, failure_of(error))

    async def _crashed_end(self, lease: LaneLease, failure: FailureArtifact) -> TurnEnd:
        """Return the end of a turn that a bug interrupted, from its stored log."""
        log = await self._store.reads.turns.turn_log(lease.turn_id)
        if log is None:
            raise LaneFencedError(f"turn {lease.turn_id} is gone")
        spent = used_by_turn(log)
        return TurnEnd(
            finish=cut_off(log, failure),
            log=log,
            usage=spent.usage,
            round_count=spent.round_count,
            final_round=plan_turn(log).interrupted,
        )
