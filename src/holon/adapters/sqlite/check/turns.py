"""Invariants of turns and their closures.

Owns:  I9 (tool calls and results), and the half of I11 (closures) that the rows show.
Rule 1: a turn is judged by the conversation it makes: whatever a provider would refuse is a
        violation.
Rule 2: the last round of an open turn may still wait for results; nothing else may.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from holon.adapters.sqlite.check.facts import Facts, Invariant, Violation
from holon.decide.turns.conversation import conversation_of, problems_of
from holon.model.agents import AgentStatus
from holon.model.errors import DecodeError
from holon.model.turns.conversation import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    UserMessage,
    tool_uses_of,
)
from holon.model.turns.tools import ToolCallRecord, ToolCallState
from holon.model.turns.transcript import (
    AssistantRound,
    RecordedCall,
    TranscriptData,
    TranscriptEntry,
    TurnLog,
)
from holon.model.turns.turn import Closure, Completed, Continuable, ToolReceipt, TurnRecord
from holon.model.values import EPOCH, AgentId, CallId, MessageId, TurnId
from holon.wire.codec import decode

# The item's row, or what tells that it once had one: an event, or a log that was cut.
_KNOWN_ITEM: Final = """
select 1 from work_items where agent_id = ?1 and work_item_id = ?2
union all select 1 from event_heads where agent_id = ?1 and floor_seq > 0
union all select 1 from events
    where agent_id = ?1 and json_extract(event, '$.work_item_id') = ?2
    and json_extract(event, '$.kind') = 'work_item_written'
limit 1
"""


class _Turn(NamedTuple):
    turn_id: str
    agent_id: str
    message_id: str
    is_open: bool


def check_calls(facts: Facts) -> Iterator[Violation]:
    """I9: every tool use has its one call, every call its one result, every turn can be sent."""
    stored = facts.texts("select turn_id, agent_id, message_id, state from turns")
    for turn_id, agent_id, message_id, state in stored:
        turn = _Turn(turn_id, agent_id, message_id, is_open=state == "open")
        try:
            log = _log_of(facts, turn)
            faults = [*_position_faults(log), *_pairing_faults(log, is_open=turn.is_open)]
        except DecodeError as error:
            faults = [f"cannot be read: {error}"]
        for fault in faults:
            yield Violation(invariant=Invariant.CALLS_ARE_PAIRED, subject=turn_id, detail=fault)


def _log_of(facts: Facts, turn: _Turn) -> TurnLog:
    """Return what is stored about a turn. Moments are of no interest here and left at the epoch."""
    turn_id, agent_id = TurnId(turn.turn_id), AgentId(turn.agent_id)
    entries = tuple(
        TranscriptEntry(
            agent_id=agent_id,
            turn_id=turn_id,
            position=int(position),
            created_at=EPOCH,
            data=decode(data, TranscriptData),
        )
        for position, data in facts.texts(
            "select position, data from transcript where turn_id = ? order by position", (turn_id,)
        )
    )
    calls = tuple(
        RecordedCall(
            call=ToolCallRecord(
                effect_id=effect_id,
                call_id=CallId(call_id),
                agent_id=agent_id,
                turn_id=turn_id,
                round=int(number),
                position=int(position),
                name=name,
                input=None,
                state=ToolCallState(state),
                started_at=EPOCH,
            ),
            receipt=decode(receipt, ToolReceipt) if receipt else None,
        )
        for effect_id, call_id, number, position, name, state, receipt in facts.texts(
            """select effect_id, call_id, round, position, name, state, receipt from tool_calls
               where turn_id = ? order by round, position""",
            (turn_id,),
        )
    )
    record = TurnRecord(
        turn_id=turn_id,
        agent_id=agent_id,
        turn_index=1,
        message_id=MessageId(turn.message_id),
        opened_at=EPOCH,
    )
    return TurnLog(turn=record, entries=entries, calls=calls)


def _position_faults(log: TurnLog) -> Iterator[str]:
    for expected, entry in enumerate(log.entries):
        if entry.position != expected:
            yield f"its transcript jumps to position {entry.position} where {expected} is due"
            return


def _pairing_faults(log: TurnLog, *, is_open: bool) -> Iterator[str]:
    rounds = [entry.data for entry in log.entries if isinstance(entry.data, AssistantRound)]
    tool_uses = {
        (spoken.round, position): use
        for spoken in rounds
        for position, use in enumerate(tool_uses_of(spoken.spoke.blocks))
    }
    calls = {(each.call.round, each.call.position): each for each in log.calls}
    for place, use in tool_uses.items():
        if place not in calls:
            yield f"{use.name} of round {place[0]} has no call"
        elif (calls[place].call.call_id, calls[place].call.name) != (use.call_id, use.name):
            yield f"{use.name} of round {place[0]} has the call of {calls[place].call.name}"
    for place in calls.keys() - tool_uses.keys():
        yield f"call {calls[place].call.effect_id} answers no tool use"
    last_round = rounds[-1].round if rounds else 0
    pending = [each.call for each in log.calls if each.receipt is None]
    for call in pending:
        if not is_open or call.round != last_round:
            yield f"call {call.effect_id} has no result, though the turn went on without it"
    if not (is_open and pending):
        yield from problems_of(_answered(conversation_of((log,))))


def _answered(conversation: tuple[ConversationMessage, ...]) -> tuple[ConversationMessage, ...]:
    """Let the next turn speak, so that a conversation is judged as it would be sent."""
    if conversation and isinstance(conversation[-1], AssistantMessage):
        return (*conversation, UserMessage(blocks=(TextBlock(text="next"),)))
    return conversation


def check_closures(facts: Facts) -> Iterator[Violation]:
    """I11: a completed agent has settled a turn; a continuable one has the work it names."""
    recorded = facts.texts(
        "select agent_id, last_closure from agents where last_closure is not null"
    )
    for agent_id, text in recorded:
        for fault in _closure_faults(facts, agent_id, text):
            yield Violation(invariant=Invariant.CLOSURES_HOLD, subject=agent_id, detail=fault)
    yield from facts.report(
        Invariant.CLOSURES_HOLD,
        f"""select agent_id, 'is {AgentStatus.AWAKE_RUNNING} without an open turn' from agents a
           where status = '{AgentStatus.AWAKE_RUNNING}' and not exists (
               select 1 from turns t where t.agent_id = a.agent_id and t.state = 'open')""",
    )


def _closure_faults(facts: Facts, agent_id: str, text: str) -> Iterator[str]:
    try:
        closure: Closure = decode(text, Closure)
    except DecodeError as error:
        yield f"its closure cannot be read: {error}"
        return
    match closure:
        case Completed():
            # Settled turns raise the index; their rows may be gone by now.
            unsettled = "select 1 from agents where agent_id = ? and turn_index = 0"
            if any(facts.rows(unsettled, (agent_id,))):
                yield "is completed, but no turn of it has ended"
        case Continuable(work_signal=signal):
            if not any(facts.rows(_KNOWN_ITEM, (agent_id, signal.work_item_id))):
                yield f"is continuable for {signal.work_item_id}, which it never had"
        case _:
            return
