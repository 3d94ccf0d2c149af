"""Lane commits: from claiming a message to settling it.

Owns:  claim, liveness-only settle, resume, round, tool result and interjection, each as one commit.
Rule 1: every lane commit expects the agent's generation; a stale lane changes nothing.
Rule 2: a tool call is recorded as started in the commit of the round that requested it, before it
        runs; what a tool changes and the call's result are one commit.
"""

from collections.abc import Sequence
from datetime import datetime

from holon.decide.agents.lifecycle import next_status
from holon.decide.wake.hints import answered_operator_waits
from holon.model.agents import AgentSignal, TurnRateState
from holon.model.budgets import UpdateTurnRate
from holon.model.commits import (
    AgentGeneration,
    AgentInStatus,
    AppendTranscript,
    Change,
    ClaimMessage,
    Commit,
    Expect,
    FinishToolCall,
    MarkSeen,
    MessageInState,
    OpenTurn,
    RecordEvent,
    ResumeTurn,
    SetAgentStatus,
    SettleMessage,
    StartToolCall,
)
from holon.model.events.event import ContinuationResolved
from holon.model.events.reads import AgentSnapshot
from holon.model.queue import MessageEnvelope, MessageState, is_contentful
from holon.model.record import Record
from holon.model.turns.conversation import ToolUseBlock, tool_uses_of
from holon.model.turns.tools import ToolCallRecord, ToolCallState, effect_id_of
from holon.model.turns.transcript import (
    AssistantRound,
    ContinuationPrompt,
    IncomingMessage,
    Interjection,
    TranscriptData,
    TranscriptEntry,
)
from holon.model.turns.turn import (
    CallModel,
    Finish,
    LivenessOnly,
    ModelAnswered,
    OperatorInterjected,
    Reentry,
    RoundTiming,
    RunTools,
    SafePoint,
    ToolReceipt,
    TriggerKind,
    TurnRecord,
    TurnStep,
)
from holon.model.values import AgentId, TurnId


class LaneLease(Record, frozen=True, kw_only=True):
    """What a lane holds while it works on a message."""

    agent_id: AgentId
    turn_id: TurnId
    generation: int

    @property
    def fence(self) -> AgentGeneration:
        """The expectation every commit of this lane carries."""
        return AgentGeneration(agent_id=self.agent_id, generation=self.generation)


class ClaimFacts(Record, frozen=True, kw_only=True):
    """What is known when a lane takes a message the model shall see."""

    snapshot: AgentSnapshot
    message: MessageEnvelope
    turn_id: TurnId
    continuation: Reentry
    passed_over: int
    unseen: tuple[MessageEnvelope, ...] = ()
    pace: TurnRateState = TurnRateState()  # to be stored with this turn


def claim_commit(facts: ClaimFacts, *, now: datetime) -> Commit:
    """Take the message, open its turn and show what the model has not seen yet."""
    agent, message = facts.snapshot.agent, facts.message
    agent_id = agent.identity.agent_id
    generation = agent.generation + 1
    turn = TurnRecord(
        turn_id=facts.turn_id,
        agent_id=agent_id,
        turn_index=agent.totals.turn_index + 1,
        message_id=message.id,
        opened_at=now,
        work_item_id=agent.focus.current_work_item_id,
    )
    incoming = IncomingMessage(message=message, unseen=facts.unseen)
    resolved = ContinuationResolved(message_id=message.id, continuation=facts.continuation)
    changes: list[Change] = [
        ClaimMessage(
            agent_id=agent_id,
            message_id=message.id,
            generation=generation,
            passed_over=facts.passed_over,
        ),
        SetAgentStatus(
            agent_id=agent_id,
            status=next_status(agent.posture.status, AgentSignal.RUN_STARTED),
            reason=f"turn {turn.turn_index}",
            wake_reason=message.kind.value,
        ),
        RecordEvent(agent_id=agent_id, event=resolved),
        OpenTurn(turn=turn),
        AppendTranscript(entry=entry_of(turn, position=0, at=now, data=incoming)),
    ]
    if facts.pace != agent.pace:
        changes.append(UpdateTurnRate(agent_id=agent_id, pace=facts.pace))
    if facts.unseen:
        changes.append(MarkSeen(agent_id=agent_id, message_ids=tuple(m.id for m in facts.unseen)))
    if facts.continuation.trigger_kind is TriggerKind.OPERATOR_INPUT:
        changes.extend(answered_operator_waits(facts.snapshot, by=message.id))
    return Commit(
        commit_id=f"claim:{message.id}:{generation}",
        at=now,
        changes=tuple(changes),
        expects=(
            AgentGeneration(agent_id=agent_id, generation=agent.generation),
            AgentInStatus(agent_id=agent_id, statuses=(agent.posture.status,)),
            MessageInState(message_id=message.id, state=MessageState.QUEUED),
        ),
    )


def liveness_commit(
    message: MessageEnvelope, continuation: LivenessOnly, *, passed_over: int, now: datetime
) -> Commit:
    """End a message that starts no turn; its content is kept for the next turn to show."""
    return Commit(
        commit_id=f"settle:{message.id}",
        at=now,
        changes=(
            RecordEvent(
                agent_id=message.agent_id,
                event=ContinuationResolved(message_id=message.id, continuation=continuation),
            ),
            SettleMessage(
                agent_id=message.agent_id,
                message_id=message.id,
                state=MessageState.PROCESSED,
                reason="liveness_only",
                unseen=continuation.trigger_kind is not None and is_contentful(message.body),
                passed_over=passed_over,
            ),
        ),
        expects=(MessageInState(message_id=message.id, state=MessageState.QUEUED),),
    )


class TurnCrashes(Record, frozen=True, kw_only=True):
    """How often in a row the process ended inside a turn, and how far the turn had come."""

    count: int
    progress: int


def resume_commit(
    turn: TurnRecord,
    interrupted: Sequence[FinishToolCall],
    *,
    held: int,
    now: datetime,
    crashes: TurnCrashes | None = None,
) -> Commit:
    """Resume a cut-off turn: answer its unfinished calls and fence its old lane."""
    crashes = crashes or TurnCrashes(count=turn.crash_count, progress=turn.crash_progress)
    resume_count = turn.resume_count + 1
    return Commit(
        commit_id=f"resume:{turn.turn_id}:{resume_count}",
        at=now,
        changes=(
            *interrupted,
            ResumeTurn(
                agent_id=turn.agent_id,
                turn_id=turn.turn_id,
                message_id=turn.message_id,
                generation=held + 1,
                resume_count=resume_count,
                crash_count=crashes.count,
                crash_progress=crashes.progress,
            ),
        ),
        expects=(AgentGeneration(agent_id=turn.agent_id, generation=held),),
    )


class RoundFacts(Record, frozen=True, kw_only=True):
    """One model round and what the turn does next because of it."""

    lease: LaneLease
    turn: TurnRecord
    round_number: int
    position: int
    spoke: ModelAnswered
    step: TurnStep
    timing: RoundTiming | None = None
    before: tuple[Change, ...] = ()  # what led to the round and is recorded with it


def round_changes(facts: RoundFacts, *, now: datetime) -> tuple[Change, ...]:
    """The round itself, and the calls it is about to start."""
    return (*facts.before, *_round_changes(facts, now=now))


def _round_changes(facts: RoundFacts, *, now: datetime) -> tuple[Change, ...]:
    round_entry = AssistantRound(round=facts.round_number, spoke=facts.spoke, timing=facts.timing)
    recorded = AppendTranscript(
        entry=entry_of(facts.turn, position=facts.position, at=now, data=round_entry)
    )
    match facts.step:
        case RunTools(refused=refused):
            return (recorded, *_started_calls(facts, refused, now=now))
        case CallModel(nudge=str() as nudge, after_checkpoint=after_checkpoint):
            prompt = entry_of(
                facts.turn,
                position=facts.position + 1,
                at=now,
                data=ContinuationPrompt(text=nudge, after_checkpoint=after_checkpoint),
            )
            return (recorded, AppendTranscript(entry=prompt))
        case CallModel() | Finish():
            return (recorded,)


def _started_calls(
    facts: RoundFacts, refused: tuple[ToolReceipt, ...], *, now: datetime
) -> tuple[Change, ...]:
    changes: list[Change] = []
    refusals = {receipt.call_id: receipt for receipt in refused}
    for position, use in enumerate(tool_uses_of(facts.spoke.blocks)):
        call = call_record(facts, use, position=position, now=now)
        changes.append(StartToolCall(call=call))
        if (receipt := refusals.get(use.call_id)) is not None:
            changes.append(finish_call(call, receipt, state=ToolCallState.FAILED))
    return tuple(changes)


def call_record(
    facts: RoundFacts, use: ToolUseBlock, *, position: int, now: datetime
) -> ToolCallRecord:
    """The durable record of one call of this round."""
    return ToolCallRecord(
        effect_id=effect_id_of(
            facts.turn.turn_id, round_number=facts.round_number, position=position
        ),
        call_id=use.call_id,
        agent_id=facts.turn.agent_id,
        turn_id=facts.turn.turn_id,
        round=facts.round_number,
        position=position,
        name=use.name,
        input=use.input,
        state=ToolCallState.STARTED,
        started_at=now,
        work_item_id=facts.turn.work_item_id,
    )


def round_commit(facts: RoundFacts, *, now: datetime) -> Commit:
    """Record a round after which the turn continues."""
    return Commit(
        commit_id=f"round:{facts.turn.turn_id}:{facts.round_number}",
        at=now,
        changes=round_changes(facts, now=now),
        expects=(facts.lease.fence,),
    )


def finish_call(
    call: ToolCallRecord,
    receipt: ToolReceipt,
    *,
    state: ToolCallState,
    duration_ms: int | None = None,
) -> FinishToolCall:
    """Give a call its one result; without a duration it never ran."""
    return FinishToolCall(
        agent_id=call.agent_id,
        turn_id=call.turn_id,
        effect_id=call.effect_id,
        tool_name=call.name,
        state=state,
        receipt=receipt,
        duration_ms=duration_ms,
    )


def tool_done_commit(
    lease: LaneLease,
    finished: FinishToolCall,
    *,
    effects: tuple[Change, ...],
    expects: tuple[Expect, ...],
    now: datetime,
) -> Commit:
    """What a tool changed and the result of its call, together."""
    return Commit(
        commit_id=f"tool:{finished.effect_id}:done",
        at=now,
        changes=(*effects, finished),
        expects=(lease.fence, *expects),
    )


class InterjectionFacts(Record, frozen=True, kw_only=True):
    """An operator message about to enter a running turn."""

    lease: LaneLease
    turn: TurnRecord
    message: MessageEnvelope
    text: str
    point: SafePoint
    position: int
    snapshot: AgentSnapshot


def interjection_commit(facts: InterjectionFacts, *, now: datetime) -> Commit:
    """Let the operator's message into the turn and end it in the queue."""
    message = facts.message
    return Commit(
        commit_id=f"interject:{message.id}",
        at=now,
        changes=(
            SettleMessage(
                agent_id=message.agent_id,
                message_id=message.id,
                state=MessageState.INTERJECTED,
                reason=facts.point.value,
                turn_id=facts.turn.turn_id,
                point=facts.point,
            ),
            AppendTranscript(entry=interjection_entry(facts, now=now)),
            *answered_operator_waits(facts.snapshot, by=message.id),
        ),
        expects=(
            facts.lease.fence,
            MessageInState(message_id=message.id, state=MessageState.QUEUED),
        ),
    )


def interjection_entry(facts: InterjectionFacts, *, now: datetime) -> TranscriptEntry:
    """The transcript entry of an interjection."""
    interjected = OperatorInterjected(
        message_id=facts.message.id, text=facts.text, point=facts.point
    )
    return entry_of(
        facts.turn,
        position=facts.position,
        at=now,
        data=Interjection(message_id=facts.message.id, interjected=interjected),
    )


def entry_of(
    turn: TurnRecord, *, position: int, at: datetime, data: TranscriptData
) -> TranscriptEntry:
    """One transcript entry of a turn."""
    return TranscriptEntry(
        agent_id=turn.agent_id, turn_id=turn.turn_id, position=position, created_at=at, data=data
    )
