"""Plain rows of turns for the tests of decisions: messages, rounds, receipts and logs."""

from collections.abc import Iterable
from typing import Final

from holon.decide.turns.step import ToolPolicy
from holon.model.agents import AgentStatus
from holon.model.commits import AppendTranscript, Change, FinishToolCall, StartToolCall
from holon.model.events.reads import AgentSnapshot
from holon.model.providers.attempts import (
    AttemptOutcome,
    AttemptTimeline,
    ProviderAttempt,
    TokenUsage,
)
from holon.model.queue import (
    AdmissionContext,
    AuthorityClass,
    DeliverySurface,
    MessageBody,
    MessageEnvelope,
    MessageKind,
    OperatorOrigin,
    Priority,
    TextBody,
    TrustLevel,
)
from holon.model.turns.conversation import AssistantBlock, TextBlock, ToolUseBlock
from holon.model.turns.transcript import IncomingMessage, RecordedCall, TranscriptEntry, TurnLog
from holon.model.turns.turn import (
    ModelAnswered,
    OperatorInterjected,
    SafePoint,
    StopReason,
    ToolReceipt,
    TurnRecord,
)
from holon.model.values import CallId, MessageId, TurnId, WorkItemId
from tests.decide.sample_rows import AGENT_ID, ITEM, MESSAGE_ID, NOW, agent_in

TURN: Final = TurnRecord(
    turn_id=TurnId("turn_1"),
    agent_id=AGENT_ID,
    turn_index=3,
    message_id=MESSAGE_ID,
    opened_at=NOW,
    work_item_id=ITEM.id,
)
TOOLS: Final = ToolPolicy(
    exposed=frozenset({"Read", "Write", "Sleep", "Complete"}),
    known=frozenset({"Read", "Write", "Sleep", "Complete", "Hidden"}),
    mutating=frozenset({"Write"}),
)
USAGE: Final = TokenUsage(input_tokens=10, output_tokens=3)
ATTEMPT: Final = ProviderAttempt(
    provider="scripted",
    model_ref="scripted/one",
    attempt=1,
    max_attempts=2,
    started_at=NOW,
    completed_at=NOW,
    outcome=AttemptOutcome.RETRIES_EXHAUSTED,
    failure_kind="timeout",
    token_usage=TokenUsage(input_tokens=5),
)
TIMELINE: Final = AttemptTimeline(
    attempts=(ATTEMPT,),
    requested_model_ref="scripted/one",
    active_model_ref="scripted/one",
    aggregated_token_usage=ATTEMPT.token_usage,
)


def prompt(body: MessageBody | None = None) -> MessageEnvelope:
    """An operator's prompt in the interject band."""
    return MessageEnvelope(
        id=MESSAGE_ID,
        agent_id=AGENT_ID,
        created_at=NOW,
        kind=MessageKind.OPERATOR_PROMPT,
        origin=OperatorOrigin(actor_id="ada"),
        trust=TrustLevel.TRUSTED_OPERATOR,
        authority_class=AuthorityClass.OPERATOR_INSTRUCTION,
        priority=Priority.INTERJECT,
        body=body or TextBody(text="hello"),
        delivery_surface=DeliverySurface.CLI_PROMPT,
        admission_context=AdmissionContext.LOCAL_PROCESS,
    )


def use(name: str, call_id: str = "c1") -> ToolUseBlock:
    """The model asks for a tool."""
    return ToolUseBlock(call_id=CallId(call_id), name=name, input={})


def spoke(
    text: str = "", *uses: ToolUseBlock, stop: StopReason = StopReason.END_TURN
) -> ModelAnswered:
    """A round with these words and tool uses."""
    words: tuple[AssistantBlock, ...] = (TextBlock(text=text),) if text else ()
    return ModelAnswered(blocks=(*words, *uses), stop_reason=stop, usage=USAGE)


def ok(name: str = "Read", call_id: str = "c1") -> ToolReceipt:
    """A call that worked."""
    return ToolReceipt(call_id=CallId(call_id), name=name, content="done")


def bad(name: str = "Read", call_id: str = "c1") -> ToolReceipt:
    """A call that did not work."""
    return ToolReceipt(
        call_id=CallId(call_id), name=name, content="no", is_error=True, error_kind="broken"
    )


def slept(call_id: str = "c1", reason: str | None = "night") -> ToolReceipt:
    """A Sleep that worked."""
    return ToolReceipt(
        call_id=CallId(call_id), name="Sleep", content="ok", ends_turn=True, sleep_reason=reason
    )


def completes(item: str = "work_1", call_id: str = "c1") -> ToolReceipt:
    """A CompleteWorkItem that worked."""
    return ToolReceipt(
        call_id=CallId(call_id),
        name="Complete",
        content="ok",
        completes_work_item_id=WorkItemId(item),
    )


def interjected(point: SafePoint = SafePoint.AFTER_PROVIDER_ROUND) -> OperatorInterjected:
    """The operator says something in the middle of the turn."""
    return OperatorInterjected(message_id=MessageId("msg_9"), text="wait", point=point)


def opening(message: MessageEnvelope | None = None) -> TranscriptEntry:
    """The entry a turn opens with."""
    return TranscriptEntry(
        agent_id=AGENT_ID,
        turn_id=TURN.turn_id,
        position=0,
        created_at=NOW,
        data=IncomingMessage(message=message or prompt()),
    )


def opened_log(turn: TurnRecord = TURN) -> TurnLog:
    """The log of a turn in which nothing has happened yet."""
    return TurnLog(turn=turn, entries=(opening(),))


def recorded(log: TurnLog, changes: Iterable[Change]) -> TurnLog:
    """The log as these changes leave it: what a store would read back."""
    entries, calls = list(log.entries), {each.call.effect_id: each for each in log.calls}
    for change in changes:
        match change:
            case AppendTranscript(entry=entry):
                assert entry.position == len(entries)
                entries.append(entry)
            case StartToolCall(call=call):
                assert call.effect_id not in calls
                calls[call.effect_id] = RecordedCall(call=call)
            case FinishToolCall(effect_id=effect_id, receipt=receipt):
                assert calls[effect_id].receipt is None
                calls[effect_id] = RecordedCall(call=calls[effect_id].call, receipt=receipt)
            case _:
                continue
    return TurnLog(turn=log.turn, entries=tuple(entries), calls=tuple(calls.values()))


def running_snapshot() -> AgentSnapshot:
    """An agent in the middle of a turn, with nothing else to do."""
    return AgentSnapshot(agent=agent_in(AgentStatus.AWAKE_RUNNING))
