"""Turn latency: where the time of a turn was spent.

Owns:  the latency of settled turns, folded from the agent's durable events.
Rule 1: queue time lies between two events; context building, the provider and tools report their
        own durations; the rest of the turn's duration is cleanup.
Rule 2: the parts add up to the total. Where clocks disagree, the total is adjusted.
Rule 3: a turn whose beginning is no longer among the events is omitted, never estimated.
Rule 4: no clock is read: the same events give the same figures.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from holon.model.events.event import (
    AuditEvent,
    MessageAdmitted,
    MessageProcessingStarted,
    ProviderDeferred,
    ProviderRoundCompleted,
    RuntimeErrorRecorded,
    ToolExecuted,
    ToolExecutionFailed,
    TurnContextBuilt,
    TurnEnded,
    TurnStarted,
)
from holon.model.providers.attempts import AttemptTimeline, ProviderAttempt
from holon.model.record import Record
from holon.model.turns.turn import TerminalKind
from holon.model.values import MessageId, TurnId


class TurnLatency(Record, frozen=True, kw_only=True):
    """One settled turn. `total_ms` counts from the arrival of its message to its end."""

    turn_id: TurnId
    turn_index: int
    message_id: MessageId
    terminal: TerminalKind
    total_ms: int
    queue_wait_ms: int
    context_build_ms: int
    provider_ms: int
    tools_ms: int
    cleanup_ms: int
    model_rounds: int
    tool_calls: int
    provider_attempts: int


class LatencySpread(Record, frozen=True, kw_only=True):
    """One part of the latency over several turns."""

    total_ms: int
    median_ms: int
    p95_ms: int
    max_ms: int


class LatencyReport(Record, frozen=True, kw_only=True):
    """Several turns, newest first, and each part over all of them."""

    turn_count: int
    event_count: int
    turns: tuple[TurnLatency, ...]
    parts: dict[str, LatencySpread]


_PARTS: Final[dict[str, Callable[[TurnLatency], int]]] = {
    "total": lambda turn: turn.total_ms,
    "queue_wait": lambda turn: turn.queue_wait_ms,
    "context_build": lambda turn: turn.context_build_ms,
    "provider": lambda turn: turn.provider_ms,
    "tools": lambda turn: turn.tools_ms,
    "cleanup": lambda turn: turn.cleanup_ms,
}


def latency_report(events: Sequence[AuditEvent], *, limit: int) -> LatencyReport:
    """Return the latency of the newest turns that begin and end in these events.

    The events are of one agent, oldest first.
    """
    turns = tuple(reversed([*_turns(events)]))[:limit]
    return LatencyReport(
        turn_count=len(turns),
        event_count=len(events),
        turns=turns,
        parts={name: _spread([part(turn) for turn in turns]) for name, part in _PARTS.items()}
        if turns
        else {},
    )


@dataclass(slots=True)
class _OpenTurn:
    """A turn that has not ended, as far as its events were read."""

    message_id: MessageId
    queue_wait_ms: int
    context_build_ms: int = 0
    provider_ms: int = 0
    tools_ms: int = 0
    rounds_count: int = 0
    calls_count: int = 0
    attempts_count: int = 0

    def add(self, event: AuditEvent) -> None:
        """Add one event of the turn."""
        match event.event:
            case TurnContextBuilt(context_build_ms=took_ms):
                self.context_build_ms += took_ms
            case ProviderRoundCompleted() as completed:
                self.context_build_ms += completed.context_build_ms
                self.provider_ms += completed.provider_round_ms
                self.rounds_count += 1
                self.attempts_count += len(_attempts(completed.timeline)) or 1
            case ToolExecuted(duration_ms=took_ms) | ToolExecutionFailed(duration_ms=took_ms):
                self.tools_ms += took_ms or 0
                self.calls_count += 1
            case RuntimeErrorRecorded(timeline=timeline) | ProviderDeferred(timeline=timeline):
                attempts = _attempts(timeline)
                self.provider_ms += _waited_ms(attempts)
                self.attempts_count += len(attempts)
            case _:
                return

    def ended(self, end: TurnEnded) -> TurnLatency:
        """Return the latency of the turn at its end."""
        measured_ms = self.context_build_ms + self.provider_ms + self.tools_ms
        cleanup_ms = max(0, end.duration_ms - measured_ms)
        return TurnLatency(
            turn_id=end.turn_id,
            turn_index=end.turn_index,
            message_id=self.message_id,
            terminal=end.terminal,
            total_ms=self.queue_wait_ms + measured_ms + cleanup_ms,
            queue_wait_ms=self.queue_wait_ms,
            context_build_ms=self.context_build_ms,
            provider_ms=self.provider_ms,
            tools_ms=self.tools_ms,
            cleanup_ms=cleanup_ms,
            model_rounds=self.rounds_count,
            tool_calls=self.calls_count,
            provider_attempts=self.attempts_count,
        )


def _turns(events: Sequence[AuditEvent]) -> Iterable[TurnLatency]:
    """Yield the turns that begin and end in these events, in the order of their ends."""
    admitted: dict[MessageId, datetime] = {}
    waited: dict[MessageId, int] = {}
    turns: dict[TurnId, _OpenTurn] = {}
    for each in events:
        match each.event:
            case MessageAdmitted(message_id=message_id):
                admitted[message_id] = each.created_at
            case MessageProcessingStarted(message_id=message_id):
                waited[message_id] = _ms(admitted.get(message_id, each.created_at), each.created_at)
            case TurnStarted(turn_id=turn_id, message_id=message_id):
                wait_ms = waited.pop(message_id, 0)
                turns[turn_id] = _OpenTurn(message_id=message_id, queue_wait_ms=wait_ms)
            case TurnEnded() as end if end.turn_id in turns:
                yield turns.pop(end.turn_id).ended(end)
            case _:
                turn = turns.get(getattr(each.event, "turn_id", None) or TurnId(""))
                if turn is not None:
                    turn.add(each)


def _attempts(timeline: AttemptTimeline | None) -> tuple[ProviderAttempt, ...]:
    return () if timeline is None else timeline.attempts


def _waited_ms(attempts: Sequence[ProviderAttempt]) -> int:
    """The time from the first attempt to the end of the last, including the waits between."""
    return _ms(attempts[0].started_at, attempts[-1].completed_at) if attempts else 0


def _ms(start: datetime, end: datetime) -> int:
    return max(0, round((end - start).total_seconds() * 1_000))


def _spread(values_ms: list[int]) -> LatencySpread:
    ordered = sorted(values_ms)
    return LatencySpread(
        total_ms=sum(ordered),
        median_ms=_quantile(ordered, percent=50),
        p95_ms=_quantile(ordered, percent=95),
        max_ms=ordered[-1],
    )


def _quantile(ordered: Sequence[int], *, percent: int) -> int:
    """Return the smallest value that at least `percent` of the values do not exceed."""
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(0, rank - 1)]
