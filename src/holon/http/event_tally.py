"""What has happened since the start, counted from the audit log.

Owns:  the counters of the metrics that only events tell, and how far the log has been counted.
Rule 1: nothing is counted when it happens: a look at the metrics reads on from where the last one
        ended, a bounded number of pages at most. What is left over is counted by the next look.
Rule 2: what was spent is added up from the steps budgets are judged by, which are kept for a day.
Rule 3: retention has everything counted before it removes something (`count_all`): a counter is
        true however seldom it is read.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

import anyio
from anyio.lowlevel import checkpoint

from holon.model.budget import UsageStep
from holon.model.event import (
    AuditEvent,
    Event,
    MessageAdmitted,
    ProviderDeferred,
    ProviderRoundCompleted,
    RuntimeErrorRecorded,
    ToolExecuted,
    ToolExecutionFailed,
    TurnEnded,
)
from holon.model.limits import EVENT_PAGE_COUNT_MAX
from holon.model.metric_limits import TALLY_PAGES_COUNT_MAX
from holon.model.provider_attempt import AttemptTimeline
from holon.model.trigger_event import CallbackDelivered, CallbackRefused
from holon.model.wake_event import TimerFired
from holon.ports.store_reads import StoreReads


class EventTally:
    """The counters of one runtime, once it has begun."""

    def __init__(self) -> None:
        self.turns: Counter[str] = Counter()  # by how they ended
        self.attempts: Counter[str] = Counter()
        self.deliveries: Counter[str] = Counter()
        self.tools: Counter[bool] = Counter()  # by whether they worked
        self.refused_deliveries = 0
        self.messages = 0
        self.timers = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.cost_micros = 0
        self._counted_seq = 0
        self._steps: dict[datetime, int] = {}  # what the last look saw of each
        self._looking = anyio.Lock()

    async def begin(self, reads: StoreReads, *, now: datetime) -> None:
        """Count from here on: what an earlier process did is not this one's."""
        self._counted_seq = await reads.last_log_seq()
        self._steps = {now: 0} | _costs(await reads.usage(None, since=now))

    async def count_all(self, reads: StoreReads) -> None:
        """Count everything that was recorded, before some of it is pruned."""
        while await self.catch_up(reads):
            await checkpoint()

    async def catch_up(self, reads: StoreReads) -> bool:
        """Count what was recorded since the last look; returns whether some is left over."""
        async with self._looking:
            page: Sequence[AuditEvent] = ()
            for _ in range(TALLY_PAGES_COUNT_MAX):
                page = await reads.log_after(self._counted_seq, limit=EVENT_PAGE_COUNT_MAX)
                for one in page:
                    self._count(one.event)
                    self._counted_seq = one.log_seq
                if len(page) < EVENT_PAGE_COUNT_MAX:
                    break
                await checkpoint()  # others get their turn between two pages
            self._spend(_costs(await reads.usage(None, since=max(self._steps))))
            return len(page) == EVENT_PAGE_COUNT_MAX

    def _count(self, event: Event) -> None:
        match event:
            case TurnEnded(terminal=terminal, usage=usage):
                self.turns[terminal] += 1
                self.input_tokens += usage.input_tokens
                self.output_tokens += usage.output_tokens
            case (
                ProviderRoundCompleted(timeline=AttemptTimeline() as timeline)
                | RuntimeErrorRecorded(timeline=AttemptTimeline() as timeline)
                | ProviderDeferred(timeline=AttemptTimeline() as timeline)
            ):
                self.attempts.update(attempt.outcome for attempt in timeline.attempts)
            case CallbackDelivered(disposition=disposition):
                self.deliveries[disposition] += 1
            case CallbackRefused():
                self.refused_deliveries += 1
            case ToolExecuted() | ToolExecutionFailed():
                self.tools[isinstance(event, ToolExecuted)] += 1
            case MessageAdmitted():
                self.messages += 1
            case TimerFired():
                self.timers += 1
            case _:
                return

    def _spend(self, found: dict[datetime, int]) -> None:
        """Add what each step has grown by; the newest one still grows."""
        self.cost_micros += sum(
            max(0, cost - self._steps.get(began_at, 0)) for began_at, cost in found.items()
        )
        self._steps = found or self._steps


def _costs(steps: Iterable[UsageStep]) -> dict[datetime, int]:
    return {step.began_at: step.cost_micros for step in steps}
