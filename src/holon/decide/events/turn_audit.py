"""The audit of turns: events of rounds, tool calls and ends.

Owns:  the events of every change to a turn, its transcript and its tool calls, and the turn to
       which the other events of a commit belong.
Rule 1: telemetry of a round (time, tokens, attempts) and its text are two events: a reader of costs
        gets no text, and a reader of text gets no attempts.
Rule 2: if a commit moves one turn, its events for that turn's agent belong to the turn. If it moves
        several turns, its other events belong to none.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias, assert_never

from holon.model.commits import (
    AppendTranscript,
    Change,
    FinishToolCall,
    OpenTurn,
    ResumeTurn,
    SettleTurn,
    StartToolCall,
)
from holon.model.events.event import (
    AssistantRoundRecorded,
    Event,
    MaxOutputRecovery,
    ProviderRoundCompleted,
    ToolExecuted,
    ToolExecutionFailed,
    ToolStarted,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from holon.model.limits import (
    EVENT_TEXT_CHARS_MAX,
    EVENT_TOOL_NAMES_COUNT_MAX,
    ID_CHARS_MAX,
)
from holon.model.turns.compaction import (
    CheckpointRequested,
    CheckpointResumed,
    TurnCompactionApplied,
)
from holon.model.turns.conversation import text_of, tool_uses_of
from holon.model.turns.tools import ToolCallState
from holon.model.turns.transcript import (
    AssistantRound,
    ContinuationPrompt,
    TranscriptEntry,
    TurnCompaction,
    WorkReminder,
)
from holon.model.turns.turn import ModelAnswered
from holon.model.values import AgentId, TurnId
from holon.model.work import WorkReminderInjected

Audited: TypeAlias = tuple[tuple[AgentId, Event], ...]
TurnChange: TypeAlias = (
    OpenTurn | ResumeTurn | AppendTranscript | StartToolCall | FinishToolCall | SettleTurn
)


class OwnedTurn(NamedTuple):
    """The turn a commit moves, and its agent."""

    agent_id: AgentId
    turn_id: TurnId

    def turn_id_for(self, agent_id: AgentId, event: Event) -> TurnId | None:
        """Return the turn to note with an event; nothing where the event names one itself."""
        is_named = getattr(event, "turn_id", None) is not None
        return None if is_named or agent_id != self.agent_id else self.turn_id


def owned_turn(changes: Iterable[Change]) -> OwnedTurn | None:
    """Return the one turn these changes move, or nothing when they move none or several."""
    moved = {turn for change in changes if (turn := _turn_moved_by(change)) is not None}
    return moved.pop() if len(moved) == 1 else None


def _turn_moved_by(change: Change) -> OwnedTurn | None:
    match change:
        case OpenTurn(turn=turn):
            return OwnedTurn(turn.agent_id, turn.turn_id)
        case AppendTranscript(entry=entry):
            return OwnedTurn(entry.agent_id, entry.turn_id)
        case StartToolCall(call=call):
            return OwnedTurn(call.agent_id, call.turn_id)
        case ResumeTurn() | FinishToolCall() | SettleTurn():
            return OwnedTurn(change.agent_id, change.turn_id)
        case _:
            return None


def turn_events(change: TurnChange) -> Audited:
    """Return the events a change to a turn leaves."""
    match change:
        case OpenTurn(turn=turn):
            return _one(
                turn.agent_id,
                TurnStarted(
                    turn_id=turn.turn_id,
                    turn_index=turn.turn_index,
                    message_id=turn.message_id,
                    work_item_id=turn.work_item_id,
                ),
            )
        case ResumeTurn():
            resumed = TurnResumed(turn_id=change.turn_id, resume_count=change.resume_count)
            return _one(change.agent_id, resumed)
        case AppendTranscript(entry=entry):
            return _transcript_events(entry)
        case StartToolCall(call=call):
            started = ToolStarted(
                effect_id=call.effect_id, turn_id=call.turn_id, tool_name=call.name
            )
            return _one(call.agent_id, started)
        case FinishToolCall():
            return _one(change.agent_id, _tool_event(change))
        case SettleTurn():
            return _one(change.agent_id, _ended_event(change))
        case _:
            assert_never(change)


def _transcript_events(entry: TranscriptEntry) -> Audited:
    match entry.data:
        case AssistantRound(round=number, spoke=spoke, timing=timing):
            recorded = AssistantRoundRecorded(
                turn_id=entry.turn_id,
                round=number,
                stop_reason=spoke.stop_reason,
                tool_call_count=len(tool_uses_of(spoke.blocks)),
                usage=spoke.usage,
                preview=text_of(spoke.blocks)[:EVENT_TEXT_CHARS_MAX],
                tool_names=_tool_names(spoke),
            )
            if timing is None:
                return _one(entry.agent_id, recorded)
            completed = ProviderRoundCompleted(
                turn_id=entry.turn_id,
                round=number,
                token_usage=spoke.usage,
                context_build_ms=timing.context_build_ms,
                provider_round_ms=timing.provider_round_ms,
                provider_started_at=timing.started_at,
                provider_completed_at=timing.completed_at,
                timeline=spoke.timeline,
            )
            return (entry.agent_id, completed), (entry.agent_id, recorded)
        case TurnCompaction() as compaction:
            return _compaction_events(entry, compaction)
        case ContinuationPrompt(after_checkpoint=True):
            return _one(entry.agent_id, CheckpointResumed(turn_id=entry.turn_id))
        case ContinuationPrompt():
            return _one(entry.agent_id, MaxOutputRecovery(turn_id=entry.turn_id))
        case WorkReminder(work_item_id=item_id, after_round=after_round):
            injected = WorkReminderInjected(
                turn_id=entry.turn_id, work_item_id=item_id, after_round=after_round
            )
            return _one(entry.agent_id, injected)
        case _:
            return ()  # the change beside it leaves the rest


def _compaction_events(entry: TranscriptEntry, compaction: TurnCompaction) -> Audited:
    applied = TurnCompactionApplied(
        turn_id=entry.turn_id,
        through_round=compaction.through_round,
        generation=compaction.generation,
    )
    if compaction.request is None:
        return _one(entry.agent_id, applied)
    requested = CheckpointRequested(
        turn_id=entry.turn_id, generation=compaction.generation, delta=compaction.delta
    )
    return (entry.agent_id, applied), (entry.agent_id, requested)


def _tool_names(answer: ModelAnswered) -> tuple[str, ...]:
    names = dict.fromkeys(use.name[:ID_CHARS_MAX] for use in tool_uses_of(answer.blocks))
    return tuple(names)[:EVENT_TOOL_NAMES_COUNT_MAX]


def _tool_event(change: FinishToolCall) -> Event:
    if change.state is ToolCallState.SUCCEEDED:
        return ToolExecuted(
            effect_id=change.effect_id,
            turn_id=change.turn_id,
            tool_name=change.tool_name,
            duration_ms=change.duration_ms or 0,
        )
    return ToolExecutionFailed(
        effect_id=change.effect_id,
        turn_id=change.turn_id,
        tool_name=change.tool_name,
        error_kind=change.receipt.error_kind or change.state,
        duration_ms=change.duration_ms,
        interrupted=change.state is ToolCallState.INTERRUPTED,
        tool_error=change.receipt.error,
    )


def _ended_event(change: SettleTurn) -> TurnEnded:
    return TurnEnded(
        turn_id=change.turn_id,
        turn_index=change.terminal.turn_index,
        terminal=change.terminal.kind,
        duration_ms=change.terminal.duration_ms,
        usage=change.usage,
        reason=change.terminal.reason,
    )


def _one(agent_id: AgentId, event: Event) -> Audited:
    return ((agent_id, event),)
