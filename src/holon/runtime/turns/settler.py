"""Turn settlement: end a finished turn in one commit.

Owns:  gathering what settlement decides on, and applying its commit.
Rule 1: a settlement is one commit, or the turn is not settled.
Rule 2: a bug while settling costs the turn, not its agent: it is logged, and the turn ends as
        failed in a plain settlement from its durable log: no memory, no work items, no reports. A
        settlement that the database keeps refusing counts as such a bug; the model is not called
        again for it.
"""

from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from functools import partial
from typing import TypeAlias

import anyio

from holon.decide.budgets.budget import PriceLookup, cost_micros_of
from holon.decide.budgets.no_progress import made_any_progress
from holon.decide.events.audit import audited
from holon.decide.memory.working_memory import MemoryFacts, with_memory
from holon.decide.text.secrets import log_without_secrets
from holon.decide.turns.commits import LaneLease
from holon.decide.turns.context_too_long import is_too_long
from holon.decide.turns.failures import failure_of
from holon.decide.turns.recovery import plan_turn
from holon.decide.turns.settlement import SettlementFacts, settle_turn
from holon.model.commits import AppendTranscript, Applied, Commit, CommitOutcome, ConstraintRefused
from holon.model.events.reads import AgentSnapshot, WeighedItem
from holon.model.memory.records import ArchiveEpisode
from holon.model.providers.attempts import AttemptTimeline
from holon.model.queue import MessageEnvelope
from holon.model.turns.transcript import AssistantRound
from holon.model.turns.turn import Finish
from holon.model.values import AgentId, BriefId, IdPrefix, SummaryId, WaitId
from holon.model.work import WorkItemRecord
from holon.ports.clock import Clock, IdSource
from holon.ports.failpoint import Failpoint, Failpoints
from holon.ports.journal import Journal, LogLevel, Redactor
from holon.ports.store import Store
from holon.runtime.background import raise_unless_bug
from holon.runtime.commits import DECISIONS_COUNT_MAX, patiently
from holon.runtime.providers.routing import ModelRouting
from holon.runtime.turns.driver import TurnEnd
from holon.runtime.turns.log import LaneFencedError
from holon.runtime.workspaces.place import AgentPlaces
from holon.tools.registry import ToolRegistry

ArchiveListener: TypeAlias = Callable[[AgentId], None]
_Build: TypeAlias = Callable[[AgentSnapshot], Awaitable[Commit]]


class UnsettleableError(Exception):
    """The database keeps refusing a settlement: the rows would contradict each other."""


class Settler:
    """Makes finished turns durable."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: IdSource,
        routing: ModelRouting,
        tools: ToolRegistry,
        agent_places: AgentPlaces,
        redactor: Redactor,
        failpoints: Failpoints,
        journal: Journal,
        price_of: PriceLookup,
        archived: ArchiveListener,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._routing = routing
        self._tools = tools
        self._agent_places = agent_places
        self._redactor = redactor
        self._failpoints = failpoints
        self._journal = journal
        self._price_of = price_of
        self._archived = archived

    async def settle(self, end: TurnEnd, message: MessageEnvelope, lease: LaneLease) -> TurnEnd:
        """Apply the one commit that ends the turn, or raise LaneFencedError.

        Returns the end that was settled. A bug in the plain settlement propagates.
        """
        try:
            whole = partial(self.settlement, end, message, generation=lease.generation)
            await self._settle(whole, lease)
        except Exception as error:  # noqa: BLE001 - named boundary: a bug fails one turn, not the host
            raise_unless_bug(error)
            self._note_crash(error, lease)
            cost_micros = self._cost_micros(end)
            end = await self._plain_end(end, error)
            plain = partial(self._plain_settlement, end, message, lease, cost_micros=cost_micros)
            await self._settle(plain, lease)
        return end

    async def set_aside(self, end: TurnEnd, message: MessageEnvelope, lease: LaneLease) -> None:
        """Settle a turn as failed without its usual reads: one of them may be what hung."""
        cost_micros = self._cost_micros(end)
        plain = partial(self._plain_settlement, end, message, lease, cost_micros=cost_micros)
        await self._settle(plain, lease)

    async def abort_settlement(
        self, end: TurnEnd, message: MessageEnvelope, snapshot: AgentSnapshot
    ) -> Commit:
        """Build the commit that settles a turn an operator interrupts, even despite a bug.

        The caller applies it, and builds it again when the database refuses it.
        """
        lease = LaneLease(
            agent_id=snapshot.agent.identity.agent_id,
            turn_id=end.log.turn.turn_id,
            generation=snapshot.agent.generation,
        )
        try:
            return await self.settlement(end, message, snapshot, generation=lease.generation)
        except Exception as error:  # noqa: BLE001 - named boundary: an operator's stop must succeed
            raise_unless_bug(error)
            self._note_crash(error, lease)
            cost_micros = self._cost_micros(end)
            plain = await self._plain_end(end, error)
            return await self._plain_settlement(
                plain, message, lease, snapshot, cost_micros=cost_micros
            )

    async def _settle(self, build: _Build, lease: LaneLease) -> None:
        outcome: CommitOutcome | None = None
        for _ in range(DECISIONS_COUNT_MAX):
            snapshot = await self._store.reads.agents.snapshot(
                lease.agent_id, now=self._clock.now()
            )
            if snapshot is None:
                break
            commit = await build(snapshot)
            await self._failpoints.reach(Failpoint.SETTLE_BEFORE_COMMIT)
            attempt = partial(self._apply_whole, commit)
            outcome = await patiently(attempt, clock=self._clock)
            await self._failpoints.reach(Failpoint.SETTLE_AFTER_COMMIT)
            if isinstance(outcome, Applied):
                if any(isinstance(change, ArchiveEpisode) for change in commit.changes):
                    self._archived(lease.agent_id)
                return
            if snapshot.agent.generation != lease.generation:
                break
        else:
            if isinstance(outcome, ConstraintRefused):
                raise UnsettleableError(outcome.constraint)
        raise LaneFencedError(f"turn {lease.turn_id} could not be settled by this lane")

    def _note_crash(self, error: Exception, lease: LaneLease) -> None:
        self._journal.note(
            "settlement_crashed",
            "a turn could not be settled as it ended, and is settled as failed (a bug)",
            level=LogLevel.ERROR,
            error=error,
            agent_id=lease.agent_id,
            turn_id=lease.turn_id,
        )

    async def _apply_whole(self, commit: Commit) -> CommitOutcome:
        ticket = self._store.submit(audited(commit))
        with anyio.CancelScope(shield=True):  # a finished turn is never lost to a shutdown
            await ticket.outcome()
        return await ticket.outcome()  # already known: returns without waiting

    async def settlement(
        self,
        end: TurnEnd,
        message: MessageEnvelope,
        snapshot: AgentSnapshot,
        *,
        generation: int,
    ) -> Commit:
        """Build the commit that would settle the turn now."""
        now = self._clock.now()
        turn = end.log.turn
        known = await self._store.reads.memory.remembered(turn.agent_id)
        place = await self._agent_places.current(turn.agent_id)
        recorded = sum(isinstance(change, AppendTranscript) for change in end.final_round)
        last = end.log.entries[-1].position if end.log.entries else -1
        facts = SettlementFacts(
            generation=generation,
            message=message,
            turn=turn,
            finish=end.finish,
            usage=end.usage,
            round_count=end.round_count,
            duration_ms=_duration_ms(end, now),
            next_position=last + 1 + recorded,
            snapshot=snapshot,
            brief_id=BriefId(self._ids.fresh(IdPrefix.BRIEF)),
            bound=await self._bound(end),
            completed=await self._completed(end),
            summary_ids=tuple(
                SummaryId(self._ids.fresh(IdPrefix.SUMMARY)) for _ in end.finish.completions
            ),
            report_brief_ids=tuple(
                BriefId(self._ids.fresh(IdPrefix.BRIEF)) for _ in end.finish.completions
            ),
            wait_id=self._wait_id(end),
            models=self._routing.configured(snapshot.agent.model),
            timeline=end.failed_timeline,
            final_round=end.final_round,
            cost_micros=self._cost_micros(end),
            budget_hold=end.budget_hold,
            moved=made_any_progress(
                end.log.entries, end.log.calls, mutating=self._tools.policy.mutating
            ),
            workspace_id=place.workspace_id,
        )
        return with_memory(
            settle_turn(facts, now=now),
            MemoryFacts(
                state=known.state,
                message=message,
                log=log_without_secrets(end.log, self._redactor.redact),
                snapshot=snapshot,
                bound=facts.bound,
                completed=facts.completed,
                slept=end.finish.slept,
                workspace_id=facts.workspace_id,
            ),
        )

    async def _plain_end(self, end: TurnEnd, error: Exception) -> TurnEnd:
        """Return the turn's end as failed: by its own final failure, or else by the bug."""
        turn_id = end.log.turn.turn_id
        log = await self._store.reads.turns.turn_log(turn_id)
        if log is None:
            raise LaneFencedError(f"turn {turn_id} is gone")
        final_failure = end.finish.failure if end.finish.deferred_until is None else None
        return TurnEnd(
            finish=Finish(failure=final_failure or failure_of(error)),
            log=log,
            usage=end.usage,
            round_count=end.round_count,
            final_round=plan_turn(log).interrupted,  # a log with unanswered calls cannot be sent
            failed_timeline=end.failed_timeline,
        )

    async def _plain_settlement(
        self,
        end: TurnEnd,
        message: MessageEnvelope,
        lease: LaneLease,
        snapshot: AgentSnapshot,
        *,
        cost_micros: int,
    ) -> Commit:
        now = self._clock.now()
        place = await self._agent_places.current(lease.agent_id)
        entries = end.log.entries
        facts = SettlementFacts(
            generation=lease.generation,
            message=message,
            turn=end.log.turn,
            finish=end.finish,
            usage=end.usage,
            round_count=end.round_count,
            duration_ms=_duration_ms(end, now),
            next_position=entries[-1].position + 1 if entries else 0,
            snapshot=snapshot,
            brief_id=BriefId(self._ids.fresh(IdPrefix.BRIEF)),
            wait_id=self._wait_id(end),
            models=self._routing.configured(snapshot.agent.model),
            timeline=end.failed_timeline,
            final_round=end.final_round,
            cost_micros=cost_micros,
            workspace_id=place.workspace_id,
        )
        return settle_turn(facts, now=now)

    def _cost_micros(self, end: TurnEnd) -> int:
        return cost_micros_of(_timelines(end), self._price_of)

    def _wait_id(self, end: TurnEnd) -> WaitId | None:
        if not is_too_long(end.finish.failure):
            return None
        return WaitId(self._ids.fresh(IdPrefix.WAIT))

    async def _bound(self, end: TurnEnd) -> WeighedItem | None:
        """The current state of the item the turn was bound to when it began."""
        work_item_id = end.log.turn.work_item_id
        if work_item_id is None:
            return None
        item = await self._store.reads.work.work_item(work_item_id)
        if item is None:
            return None
        waits = await self._store.reads.wake.item_waits(work_item_id)
        return WeighedItem(item=item, waits=tuple(waits))

    async def _completed(self, end: TurnEnd) -> tuple[WorkItemRecord, ...]:
        """The current state of the items the turn completed."""
        reads = self._store.reads
        found = [await reads.work.work_item(each.work_item_id) for each in end.finish.completions]
        return tuple(item for item in found if item is not None)


def _duration_ms(end: TurnEnd, now: datetime) -> int:
    return max(0, int((now - end.log.turn.opened_at).total_seconds() * 1_000))


def _timelines(end: TurnEnd) -> Iterator[AttemptTimeline]:
    """The attempts of all rounds of the turn, including the final and a failed one."""
    last = (each.entry for each in end.final_round if isinstance(each, AppendTranscript))
    for entry in (*end.log.entries, *last):
        if isinstance(entry.data, AssistantRound) and entry.data.spoke.timeline is not None:
            yield entry.data.spoke.timeline
    if end.failed_timeline is not None:
        yield end.failed_timeline
