"""What came of a one-shot run, for people and for scripts.

Owns:  the JSON of `holon run --json`, derived from the run's events and its last brief.
Rule 1: nothing is asked of the model again: the settled turn says how it ended.
Rule 2: tokens are what the turns spent, failed attempts included; the timelines are all of them.
"""

from collections.abc import Iterable
from enum import StrEnum

from holon.model.brief import BriefKind, BriefRecord, FailureArtifact
from holon.model.closure import ClosureOutcome, WaitingReason
from holon.model.event import (
    AgentStateChanged,
    AssistantRoundRecorded,
    ClosureDecided,
    Event,
    MessageProcessingStarted,
    ProviderDeferred,
    ProviderRoundCompleted,
    RuntimeErrorRecorded,
    ToolExecuted,
    ToolExecutionFailed,
    TurnEnded,
)
from holon.model.ids import AgentId
from holon.model.provider_attempt import AttemptTimeline, TokenUsage
from holon.model.record import Record


class FinalStatus(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    WAITING = "waiting"
    FAILED = "failed"


class CacheUsage(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How much of the input the provider had in its cache."""

    read: int
    creation: int
    hit_rate: float


class RunResult(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One run, whole."""

    agent_id: AgentId
    final_status: FinalStatus
    final_text: str
    waiting_reason: WaitingReason | None
    sleep_reason: str | None
    failure_artifact: FailureArtifact | None
    message_count: int
    model_rounds: int
    tool_calls: int
    token_usage: TokenUsage
    input_tokens: int
    output_tokens: int
    provider_cache_usage: CacheUsage
    provider_attempt_timeline: tuple[AttemptTimeline, ...]


def run_result(agent_id: AgentId, events: Iterable[Event], brief: BriefRecord | None) -> RunResult:
    """Sum up a run from everything its agent's log gained by it."""
    told = tuple(events)
    closure = next((e for e in reversed(told) if isinstance(e, ClosureDecided)), None)
    usage = TokenUsage()
    for turn in (event for event in told if isinstance(event, TurnEnded)):
        usage = usage.plus(turn.usage)
    return RunResult(
        agent_id=agent_id,
        final_status=_status(closure, brief),
        final_text=brief.text if brief is not None else "",
        waiting_reason=closure.waiting_reason if closure is not None else None,
        sleep_reason=_sleep_reason(told),
        failure_artifact=brief.failure if brief is not None else None,
        message_count=_count(told, MessageProcessingStarted),
        model_rounds=_count(told, AssistantRoundRecorded),
        tool_calls=_count(told, ToolExecuted, ToolExecutionFailed),
        token_usage=usage,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        provider_cache_usage=_cache_usage(usage),
        provider_attempt_timeline=tuple(_timelines(told)),
    )


def _status(closure: ClosureDecided | None, brief: BriefRecord | None) -> FinalStatus:
    """The brief speaks first: a failure stays one, also when other work remains."""
    if brief is not None and brief.kind is BriefKind.FAILURE:
        return FinalStatus.FAILED
    if closure is None or closure.outcome is ClosureOutcome.COMPLETED:
        return FinalStatus.COMPLETED
    if closure.outcome is ClosureOutcome.FAILED:
        return FinalStatus.FAILED
    return FinalStatus.WAITING


def _sleep_reason(told: tuple[Event, ...]) -> str | None:
    moved = next((e for e in reversed(told) if isinstance(e, AgentStateChanged)), None)
    return moved.reason if moved is not None else None


def _count(told: tuple[Event, ...], *kinds: type[Record]) -> int:
    return sum(isinstance(event, kinds) for event in told)


def _cache_usage(usage: TokenUsage) -> CacheUsage:
    share = usage.cache_read_tokens / usage.input_tokens if usage.input_tokens else 0.0
    return CacheUsage(
        read=usage.cache_read_tokens,
        creation=usage.cache_creation_tokens,
        hit_rate=round(share, 4),
    )


def _timelines(told: tuple[Event, ...]) -> Iterable[AttemptTimeline]:
    for event in told:
        match event:
            case ProviderRoundCompleted(timeline=AttemptTimeline() as timeline):
                yield timeline
            case RuntimeErrorRecorded(timeline=AttemptTimeline() as timeline):
                yield timeline
            case ProviderDeferred(timeline=AttemptTimeline() as timeline):
                yield timeline
            case _:
                continue
