"""Run result: the outcome of a one-shot run, for people and for scripts.

Owns:  the JSON of `holon run --json`, derived from the rows the run left; the paths patches
       changed, and the counts of commands requested and started.
Rule 1: only receipts count. A truncated receipt reports less, never something else: its batch then
        counts as many items as were requested, and none as started.
Rule 2: a command whose call was interrupted counts as started; its outcome is unknown.
Rule 3: the model is not called again: the settled turns state how they ended.
Rule 4: tokens are what the turns spent, failed attempts included; the timelines are all of them.
Rule 5: the last message to the operator determines the status; a failure remains one, also when
        other work remains.
Rule 6: the text of a finished run is the report of the work it completed, or else its last message.
        Texts of earlier turns are kept before it: the answer to the prompt may be among them.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from holon.decide.turns.failures import ROUND_LIMIT
from holon.model.events.briefs import BriefKind, BriefRecord, FailureArtifact
from holon.model.events.event import (
    AgentStateChanged,
    AssistantRoundRecorded,
    Event,
    MessageProcessingStarted,
    ProviderDeferred,
    ProviderRoundCompleted,
    RuntimeErrorRecorded,
    ToolExecuted,
    ToolExecutionFailed,
    TurnEnded,
)
from holon.model.limits import TERMINAL_TEXT_BYTES_MAX
from holon.model.providers.attempts import AttemptTimeline, TokenUsage
from holon.model.record import Record
from holon.model.tasks import TaskRecord
from holon.model.text_size import utf8_bytes
from holon.model.turns.conversation import text_of, tool_uses_of
from holon.model.turns.tools import ToolCallState
from holon.model.turns.transcript import AssistantRound, RecordedCall, TurnLog
from holon.model.turns.turn import (
    Closure,
    Completed,
    Continuable,
    Failed,
    StopReason,
    waiting_reason_of,
)
from holon.model.values import AgentId, JsonValue
from holon.model.work import WorkItemRecord
from holon.projections.tasks import status_view

_STARTED_DISPOSITIONS = frozenset({"completed", "promoted_to_task"})
# The waiting reason of a run whose agent could continue by itself; others are WaitingReasons.
WORK_LEFT: Final = "work_left"


class RunEffects(Record, frozen=True, kw_only=True):
    """The changed files and the commands of a run."""

    changed_files: tuple[str, ...] = ()
    asked_count: int = 0
    batched_count: int = 0
    started_count: int = 0


class _Item(msgspec.Struct):
    """One item of a batch; it ran if it has a result."""

    result: JsonValue = None


class _Result(msgspec.Struct):
    """The parts of tool results that are read here."""

    disposition: str | None = None
    changed_paths: list[str] = []
    items: list[_Item] = []


class _Receipt(msgspec.Struct):
    result: _Result | msgspec.UnsetType = msgspec.UNSET


class _BatchInput(msgspec.Struct):
    """The input of a batch call."""

    items: list[JsonValue] = []


def effects_of(turns: Sequence[TurnLog]) -> RunEffects:
    """Return the effects of all calls of these turns."""
    calls = [call for log in turns for call in log.calls]
    single = [call for call in calls if call.call.name == "ExecCommand"]
    batches = [call for call in calls if call.call.name == "ExecCommandBatch"]
    patches = [call for call in calls if call.call.name == "ApplyPatch"]
    batched_count = sum(_requested_in(batch) for batch in batches)
    return RunEffects(
        changed_files=tuple(dict.fromkeys(_changed(patches))),
        asked_count=len(single) + batched_count,
        batched_count=batched_count,
        started_count=sum(map(_was_started, single)) + sum(map(_started_in, batches)),
    )


def _changed(patches: Iterable[RecordedCall]) -> Iterable[str]:
    for patch in patches:
        yield from _result_of(patch).changed_paths


def _was_started(single: RecordedCall) -> bool:
    interrupted = single.call.state is ToolCallState.INTERRUPTED
    return interrupted or _result_of(single).disposition in _STARTED_DISPOSITIONS


def _requested_in(batch: RecordedCall) -> int:
    try:
        requested = msgspec.convert(batch.call.input, _BatchInput)
    except msgspec.ValidationError:
        requested = _BatchInput()
    return len(_result_of(batch).items) or len(requested.items)


def _started_in(batch: RecordedCall) -> int:
    return sum(item.result is not None for item in _result_of(batch).items)


def _result_of(recorded: RecordedCall) -> _Result:
    if recorded.receipt is None or recorded.receipt.is_error:
        return _Result()
    try:
        receipt = msgspec.json.decode(recorded.receipt.content, type=_Receipt)
    except msgspec.DecodeError:
        return _Result()
    return receipt.result if isinstance(receipt.result, _Result) else _Result()


class FinalStatus(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    WAITING = "waiting"
    FAILED = "failed"
    MAX_TURNS_EXCEEDED = "max_turns_exceeded"


class RunFacts(Record, frozen=True, kw_only=True):
    """The rows of a run: the new events of its agent's log, and the rows they name."""

    agent_id: AgentId | None  # None when the run failed before creating one
    events: tuple[Event, ...] = ()
    closure: Closure | None = None  # of the agent, at the end
    briefs: tuple[BriefRecord, ...] = ()  # of the run, oldest first
    turns: tuple[TurnLog, ...] = ()  # oldest first; turns without tools may be omitted
    tasks: tuple[TaskRecord, ...] = ()
    completed: tuple[WorkItemRecord, ...] = ()  # items completed by the run, in that order
    failure: FailureArtifact | None = None  # of the run itself, outside any turn


class CacheUsage(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Input tokens read from and written to the provider's cache; `hit_rate` is of all input."""

    read: int
    creation: int
    cacheable: int
    hit_rate: float


class RunResult(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The result of one run. Fields that do not apply are null."""

    agent_id: AgentId | None
    final_status: FinalStatus
    waiting_reason: str | None
    final_text: str
    texts: tuple[str, ...]  # all results, oldest first, without failures
    raw_final_text: str | None  # the model's last message, unmodified
    sleep_reason: str | None
    failure_artifact: FailureArtifact | None
    tasks: tuple[dict[str, JsonValue], ...]
    message_count: int
    changed_files: tuple[str, ...]  # by patches; changes by commands are unknown
    token_usage: TokenUsage
    input_tokens: int
    output_tokens: int
    provider_cache_usage: CacheUsage
    provider_attempt_timeline: tuple[AttemptTimeline, ...]
    model_rounds: int
    tool_calls: int
    shell_commands: int  # actually started
    exec_command_items: int  # requested, in batches and alone
    batched_exec_command_items: int

    @property
    def is_over(self) -> bool:
        """Whether the agent has nothing left to continue."""
        return self.final_status in (FinalStatus.COMPLETED, FinalStatus.FAILED)

    @property
    def failed(self) -> bool:
        """Whether the run did not reach its goal."""
        return self.final_status in (FinalStatus.FAILED, FinalStatus.MAX_TURNS_EXCEEDED)


def run_result(facts: RunFacts) -> RunResult:
    """Return the result of a run."""
    events = facts.events
    last = facts.briefs[-1] if facts.briefs else None
    failure = facts.failure or (last.failure if last is not None else None)
    status = _status(facts, last)
    final_text = _final_text(facts, status)
    effects, usage = effects_of(facts.turns), _usage(events)
    return RunResult(
        agent_id=facts.agent_id,
        final_status=status,
        waiting_reason=_waiting_reason(facts.closure),
        final_text=final_text,
        texts=_texts(facts, status, final_text),
        raw_final_text=_raw_final_text(facts.turns),
        sleep_reason=_sleep_reason(events),
        failure_artifact=failure,
        tasks=tuple(status_view(task) for task in facts.tasks),
        message_count=_count(events, MessageProcessingStarted),
        changed_files=effects.changed_files,
        token_usage=usage,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        provider_cache_usage=_cache_usage(usage),
        provider_attempt_timeline=tuple(_timelines(events)),
        model_rounds=_count(events, AssistantRoundRecorded),
        tool_calls=_count(events, ToolExecuted, ToolExecutionFailed),
        shell_commands=effects.started_count,
        exec_command_items=effects.asked_count,
        batched_exec_command_items=effects.batched_count,
    )


def _waiting_reason(closure: Closure | None) -> str | None:
    if isinstance(closure, Continuable):
        return WORK_LEFT
    return None if closure is None else waiting_reason_of(closure)


def _status(facts: RunFacts, last: BriefRecord | None) -> FinalStatus:
    if facts.failure is not None:
        return FinalStatus.FAILED
    if last is not None and last.kind is BriefKind.FAILURE:
        at_limit = last.failure is not None and last.failure.kind == ROUND_LIMIT
        return FinalStatus.MAX_TURNS_EXCEEDED if at_limit else FinalStatus.FAILED
    match facts.closure:
        case None | Completed():
            return FinalStatus.COMPLETED
        case Failed():
            return FinalStatus.FAILED
        case _:
            return FinalStatus.WAITING


def _final_text(facts: RunFacts, status: FinalStatus) -> str:
    if facts.failure is not None:
        return facts.failure.summary
    reports = [item.result_summary for item in facts.completed if item.result_summary]
    if reports and status is FinalStatus.COMPLETED:
        return reports[-1]
    last = facts.briefs[-1:]
    if last and last[0].kind is BriefKind.RESULT and not last[0].text.strip():
        return _last_result(facts.briefs)
    return last[0].text if last else ""


def _texts(facts: RunFacts, status: FinalStatus, final_text: str) -> tuple[str, ...]:
    """The result texts of all turns in order, plus the final text if it is not among them."""
    results = (brief.text for brief in facts.briefs if brief.kind is BriefKind.RESULT)
    texts = tuple(text for text in results if text.strip())
    is_answer = status in (FinalStatus.COMPLETED, FinalStatus.WAITING)
    is_new = final_text.strip() and final_text not in texts
    return (*texts, final_text) if is_answer and is_new else texts


def _last_result(briefs: Sequence[BriefRecord]) -> str:
    """The newest non-empty result: an agent may end a turn without text."""
    results = (brief.text for brief in reversed(briefs) if brief.kind is BriefKind.RESULT)
    return next((text for text in results if text.strip()), "")


def _raw_final_text(turns: Sequence[TurnLog]) -> str | None:
    ended = [log for log in reversed(turns) if log.turn.terminal is not None]
    messages = ((log, _last_message(log)) for log in ended)
    return next((_whole(text, log) for log, text in messages if text), None)


def _last_message(log: TurnLog) -> str | None:
    return None if log.turn.terminal is None else log.turn.terminal.last_assistant_message


def _whole(text: str, log: TurnLog) -> str:
    """The last message as in the transcript: a turn's end stores long ones shortened."""
    if utf8_bytes(text) < TERMINAL_TEXT_BYTES_MAX // 2:
        return text
    rounds = (e.data.spoke for e in log.entries if isinstance(e.data, AssistantRound))
    whole = truncated = ""
    for spoke in rounds:
        part = text_of(spoke.blocks)
        whole = truncated + part if part.strip() else whole
        continues = spoke.stop_reason is StopReason.MAX_TOKENS and not tool_uses_of(spoke.blocks)
        truncated = whole if continues else ""
    return whole or text


def _usage(events: tuple[Event, ...]) -> TokenUsage:
    usage = TokenUsage()
    for turn in (event for event in events if isinstance(event, TurnEnded)):
        usage = usage.plus(turn.usage)
    return usage


def _sleep_reason(events: tuple[Event, ...]) -> str | None:
    moved = next((e for e in reversed(events) if isinstance(e, AgentStateChanged)), None)
    return moved.reason if moved is not None else None


def _count(events: tuple[Event, ...], *kinds: type[Record]) -> int:
    return sum(isinstance(event, kinds) for event in events)


def _cache_usage(usage: TokenUsage) -> CacheUsage:
    share = usage.cache_read_tokens / usage.input_tokens if usage.input_tokens else 0.0
    return CacheUsage(
        read=usage.cache_read_tokens,
        creation=usage.cache_creation_tokens,
        cacheable=usage.cache_read_tokens + usage.cache_creation_tokens,
        hit_rate=round(share, 4),
    )


def _timelines(events: tuple[Event, ...]) -> Iterable[AttemptTimeline]:
    for event in events:
        match event:
            case ProviderRoundCompleted(timeline=AttemptTimeline() as timeline):
                yield timeline
            case RuntimeErrorRecorded(timeline=AttemptTimeline() as timeline):
                yield timeline
            case ProviderDeferred(timeline=AttemptTimeline() as timeline):
                yield timeline
            case _:
                continue
