"""The Prometheus metrics: their table, and the counters derived from events.

Owns:  names, kinds, descriptions and labels of all series (the reference page is generated from
       them); the counters that only events provide, and how far the log has been counted.
Rule 1: nothing is counted when it happens: a scrape continues where the last one ended and reads a
        bounded number of pages. The rest is counted by the next scrape.
Rule 2: cost is summed from the steps that budgets use, which are kept for a day.
Rule 3: retention counts everything before it deletes (`count_all`), so that a counter is correct
        however rarely it is read.
Rule 4: a label has a closed set of values, each always reported: the number of series does not
        depend on the load, and none names an agent.
Rule 5: names follow Prometheus conventions: base units, `_total` for counters.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

import anyio
from anyio.lowlevel import checkpoint

from holon.model.agents import AgentStatus
from holon.model.budgets import UsageStep
from holon.model.events.event import (
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
from holon.model.events.reads import TALLY_PAGES_COUNT_MAX
from holon.model.limits import EVENT_PAGE_COUNT_MAX, SURFACE_COUNTED_COUNT_MAX
from holon.model.providers.attempts import AttemptOutcome, AttemptTimeline
from holon.model.turns.turn import TerminalKind
from holon.model.wake import CallbackDelivered, CallbackRefused, TimerFired, WakeDisposition
from holon.ports.reads import StoreReads

Samples: TypeAlias = Mapping[str, float]  # by the label's value; by "" where there is none
REFUSED: Final = "refused"
STATUS_CLASSES: Final = ("1xx", "2xx", "3xx", "4xx", "5xx")
_OUTCOME: Final = "outcome"
_BOUNDED: Final = f"counting stops at {SURFACE_COUNTED_COUNT_MAX}"


class EventCounters:
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
        self._counted_seq = await reads.events.last_log_seq()
        self._steps = {now: 0} | _costs(await reads.budgets.usage(None, since=now))

    async def count_all(self, reads: StoreReads) -> None:
        """Count everything that was recorded, before some of it is pruned."""
        while await self.catch_up(reads):
            await checkpoint()

    async def catch_up(self, reads: StoreReads) -> bool:
        """Count what was recorded since the last look; returns whether some is left over."""
        async with self._looking:
            page: Sequence[AuditEvent] = ()
            for _ in range(TALLY_PAGES_COUNT_MAX):
                page = await reads.events.log_after(self._counted_seq, limit=EVENT_PAGE_COUNT_MAX)
                for one in page:
                    self._count(one.event)
                    self._counted_seq = one.log_seq
                if len(page) < EVENT_PAGE_COUNT_MAX:
                    break
                await checkpoint()  # others get their turn between two pages
            self._spend(_costs(await reads.budgets.usage(None, since=max(self._steps))))
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

    def _spend(self, steps: dict[datetime, int]) -> None:
        """Add what each step has grown by; the newest one still grows."""
        self.cost_micros += sum(
            max(0, cost - self._steps.get(began_at, 0)) for began_at, cost in steps.items()
        )
        self._steps = steps or self._steps


def _costs(steps: Iterable[UsageStep]) -> dict[datetime, int]:
    return {step.began_at: step.cost_micros for step in steps}


class MetricKind(StrEnum):
    """What may be done with a figure."""

    COUNTER = "counter"  # only grows, and begins at 0 when the runtime starts
    GAUGE = "gauge"


class Metric(NamedTuple):
    """One row: a figure, or one for each value of its label."""

    name: str
    says: str
    kind: MetricKind = MetricKind.GAUGE
    label: str | None = None
    values: tuple[str, ...] = ("",)


_COUNTER: Final = MetricKind.COUNTER


def _counter(name: str, says: str) -> Metric:
    return Metric(name, says, _COUNTER)


METRICS: Final = (
    Metric("holon_info", "Which version runs; always 1.", label="version"),
    Metric("holon_uptime_seconds", "How long the runtime has been up."),
    Metric("process_start_time_seconds", "When the runtime started, in seconds since 1970."),
    Metric("process_resident_memory_bytes", "Memory in use."),
    _counter("process_cpu_seconds_total", "Processor time used."),
    Metric(
        "holon_agents",
        f"Public agents by what they are at; {_BOUNDED}.",
        label="posture",
        values=("active", "processing", "waiting"),
    ),
    Metric(
        "holon_agents_by_status",
        "Agents that are not archived, by status.",
        label="status",
        values=tuple(AgentStatus),
    ),
    Metric("holon_lanes_running", "Agents awake."),
    Metric("holon_messages_queued", "Messages that wait for their turn."),
    _counter("holon_messages_admitted_total", "Messages taken in."),
    Metric(
        "holon_turns_total",
        "Turns settled, by how they ended.",
        _COUNTER,
        _OUTCOME,
        tuple(TerminalKind),
    ),
    Metric(
        "holon_tokens_total",
        "Tokens of settled turns, as providers reported them.",
        _COUNTER,
        "direction",
        ("input", "output"),
    ),
    _counter("holon_cost_dollars_total", "What settled turns cost, where prices are known."),
    Metric(
        "holon_provider_attempts_total",
        "Attempts at providers, by how they ended.",
        _COUNTER,
        _OUTCOME,
        tuple(AttemptOutcome),
    ),
    Metric(
        "holon_tool_calls_total",
        "Tool calls, by how they ended.",
        _COUNTER,
        _OUTCOME,
        ("succeeded", "failed"),
    ),
    Metric(
        "holon_trigger_deliveries_total",
        "Deliveries to triggers, by what became of them.",
        _COUNTER,
        "disposition",
        (*WakeDisposition, REFUSED),
    ),
    _counter("holon_timers_fired_total", "Timers that fired."),
    Metric("holon_tasks_active", f"Tasks that are queued or run; {_BOUNDED}."),
    _counter("holon_rescues_total", "Agents only the backstop woke; anything but 0 is a bug."),
    _counter("holon_events_total", "Events ever recorded, earlier runs included."),
    Metric("holon_events_kept", "Events in the log."),
    Metric("holon_event_followers", "Open streams."),
    Metric(
        "holon_http_requests_total",
        "Requests answered, by class of status.",
        _COUNTER,
        "status_class",
        STATUS_CLASSES,
    ),
    Metric("holon_http_connections_open", "Open connections."),
    Metric("holon_store_used_bytes", "How much of the database is in use."),
    Metric("holon_store_database_bytes", "How large the database is."),
    Metric("holon_store_wal_bytes", "How large the log of writes before it is."),
)


def metric_lines(samples: Mapping[str, Samples]) -> Iterator[str]:
    """Yield the figures in the text form, in the order of the table; each row has its own."""
    assert samples.keys() == {metric.name for metric in METRICS}, "every row is measured"
    for metric in METRICS:
        yield f"# HELP {metric.name} {_escaped(metric.says)}"
        yield f"# TYPE {metric.name} {metric.kind}"
        for value, figure in samples[metric.name].items():
            label = "" if metric.label is None else f'{{{metric.label}="{_quoted(value)}"}}'
            yield f"{metric.name}{label} {figure!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', r"\"")
