"""Where the time of a turn went.

Owns:  the latency of settled turns, from their durable moments and durations.
Rule 1: the parts are what was measured: waiting in the queue, building context, the provider,
        tools, and cleaning up after the last of them. What no part accounts for is `other_ms`.
Rule 2: no clock is read: the same rows give the same figures.
Rule 3: a moment before its cause, after a clock was set back, counts as no time at all.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from holon.model.ids import MessageId, TurnId
from holon.model.provider_attempt import ProviderAttempt
from holon.model.record import Record
from holon.model.transcript import AssistantRound, IncomingMessage, RuntimeFailure, TurnLog
from holon.model.turn import RoundTiming, TerminalKind


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
    other_ms: int
    model_rounds: int
    tool_calls: int
    provider_attempts: int


class LatencySpread(Record, frozen=True, kw_only=True):
    """One part over several turns."""

    total_ms: int
    median_ms: int
    p95_ms: int
    max_ms: int


class LatencyReport(Record, frozen=True, kw_only=True):
    """Several turns, newest first, and each part over all of them."""

    turn_count: int
    turns: tuple[TurnLatency, ...]
    parts: dict[str, LatencySpread]


_PARTS: Final[dict[str, Callable[[TurnLatency], int]]] = {
    "total": lambda turn: turn.total_ms,
    "queue_wait": lambda turn: turn.queue_wait_ms,
    "context_build": lambda turn: turn.context_build_ms,
    "provider": lambda turn: turn.provider_ms,
    "tools": lambda turn: turn.tools_ms,
    "cleanup": lambda turn: turn.cleanup_ms,
    "other": lambda turn: turn.other_ms,
}


def latency_report(logs: Sequence[TurnLog]) -> LatencyReport:
    """Return where the time of these turns went; open ones are left out."""
    turns = tuple(found for log in logs if (found := turn_latency(log)) is not None)
    return LatencyReport(
        turn_count=len(turns),
        turns=turns,
        parts={name: _spread([part(turn) for turn in turns]) for name, part in _PARTS.items()}
        if turns
        else {},
    )


def turn_latency(log: TurnLog) -> TurnLatency | None:
    """Return where the time of one turn went, or nothing while it is open."""
    turn, terminal = log.turn, log.turn.terminal
    if terminal is None:
        return None
    rounds = [entry.data for entry in log.entries if isinstance(entry.data, AssistantRound)]
    lost = _attempts_in_vain(log)
    timings = [each.timing for each in rounds if each.timing is not None]
    arrived_at = _arrived_at(log)
    parts_ms = {
        "queue_wait_ms": _ms(arrived_at, turn.opened_at),
        "context_build_ms": sum(timing.context_build_ms for timing in timings),
        "provider_ms": sum(timing.provider_round_ms for timing in timings) + _waited_ms(lost),
        "tools_ms": _tools_ms(log),
        "cleanup_ms": _ms(_last_work_at(log, timings, lost), terminal.completed_at),
    }
    total_ms = _ms(arrived_at, terminal.completed_at)
    return TurnLatency(
        turn_id=turn.turn_id,
        turn_index=turn.turn_index,
        message_id=turn.message_id,
        terminal=terminal.kind,
        total_ms=total_ms,
        other_ms=max(0, total_ms - sum(parts_ms.values())),
        model_rounds=len(rounds),
        tool_calls=len(log.calls),
        provider_attempts=sum(_attempt_count(each) for each in rounds) + len(lost),
        **parts_ms,
    )


def _attempt_count(spoken: AssistantRound) -> int:
    timeline = spoken.spoke.timeline
    return 1 if timeline is None else len(timeline.attempts)


def _arrived_at(log: TurnLog) -> datetime:
    for entry in log.entries:
        if isinstance(entry.data, IncomingMessage):
            return entry.data.message.created_at
    return log.turn.opened_at


def _attempts_in_vain(log: TurnLog) -> tuple[ProviderAttempt, ...]:
    """Every attempt of the round that failed the turn."""
    failures = (entry.data for entry in log.entries if isinstance(entry.data, RuntimeFailure))
    timelines = (failure.timeline for failure in failures if failure.timeline is not None)
    return tuple(attempt for timeline in timelines for attempt in timeline.attempts)


def _waited_ms(attempts: Sequence[ProviderAttempt]) -> int:
    """From the first attempt to the end of the last: what lies between was a wait for them."""
    return _ms(attempts[0].started_at, attempts[-1].completed_at) if attempts else 0


def _tools_ms(log: TurnLog) -> int:
    """Calls of one round begin together and run one after the other; those cut off have no end."""
    total_ms, free_at = 0, log.turn.opened_at
    for each in log.calls:
        if each.call.finished_at is not None:
            total_ms += _ms(max(each.call.started_at, free_at), each.call.finished_at)
            free_at = max(free_at, each.call.finished_at)
    return total_ms


def _last_work_at(
    log: TurnLog, timings: Sequence[RoundTiming], lost: Sequence[ProviderAttempt]
) -> datetime:
    ends = [*(timing.completed_at for timing in timings), *(each.completed_at for each in lost)]
    ends += [each.call.finished_at for each in log.calls if each.call.finished_at is not None]
    return max(ends, default=log.turn.opened_at)


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
    """Return the smallest value that so many percent do not exceed."""
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(0, rank - 1)]
