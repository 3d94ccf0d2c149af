"""Plain turns for the tests of memory: what a turn called, and how it ended."""

from typing import Any, Final

import msgspec

from holon.decide.memory.working_memory import SettledTurn
from holon.decide.turns.evidence import CommandRun, TurnEvidence
from holon.model.memory.records import EpisodeBoundary, EpisodeRecord, TurnMemoryDelta
from holon.model.queue import AuthorityClass, MessageEnvelope, MessageKind
from holon.model.turns.tools import ToolCallRecord, ToolCallState
from holon.model.turns.transcript import RecordedCall, TurnLog
from holon.model.turns.turn import TerminalKind, ToolReceipt, TurnTerminal
from holon.model.values import CallId, EpisodeId, JsonValue, TurnId, WorkItemId
from tests.decide.sample_rows import AGENT_ID, NOW
from tests.decide.turn_rows import TURN, opening, prompt

OUTSIDE: Final = AuthorityClass.EXTERNAL_EVIDENCE
OPERATOR: Final = AuthorityClass.OPERATOR_INSTRUCTION


def call(
    name: str, arguments: JsonValue, result: JsonValue = None, *, position: int = 0
) -> RecordedCall:
    """A call that worked."""
    return RecordedCall(
        call=_record(name, arguments, position, ToolCallState.SUCCEEDED),
        receipt=ToolReceipt(
            call_id=CallId(f"c{position}"),
            name=name,
            content=msgspec.json.encode({"ok": True, "result": result}).decode(),
        ),
    )


def failed_call(name: str, arguments: JsonValue, *, position: int = 0) -> RecordedCall:
    """A call that was refused."""
    return RecordedCall(
        call=_record(name, arguments, position, ToolCallState.FAILED),
        receipt=ToolReceipt(
            call_id=CallId(f"c{position}"),
            name=name,
            content="no",
            is_error=True,
            error_kind="spawn_failed",
        ),
    )


def cut_off_call(name: str, arguments: JsonValue, *, position: int = 0) -> RecordedCall:
    """A call nobody knows the end of."""
    return RecordedCall(call=_record(name, arguments, position, ToolCallState.STARTED))


def ran(cmd: str, exit_status: int = 0, *, position: int = 0) -> RecordedCall:
    """A command that ended in the foreground."""
    result: JsonValue = {"disposition": "completed", "exit_status": exit_status}
    return call("ExecCommand", {"cmd": cmd}, result, position=position)


def patched(*paths: str, position: int = 0) -> RecordedCall:
    """A patch that was applied."""
    result: JsonValue = {"changed_paths": list(paths)}
    return call("ApplyPatch", {"patch": "*** Begin Patch"}, result, position=position)


def log_of(*calls: RecordedCall, message: MessageEnvelope | None = None) -> TurnLog:
    """A turn that answered a message with these calls."""
    return TurnLog(turn=TURN, entries=(opening(message or prompt()),), calls=calls)


def from_outside(kind: MessageKind = MessageKind.WEBHOOK_EVENT) -> MessageEnvelope:
    """A message nobody vouches for."""
    changed: MessageEnvelope = msgspec.structs.replace(prompt(), kind=kind, authority_class=OUTSIDE)
    return changed


def check(cmd: str = "pytest -q", *, ended_well: bool = True) -> CommandRun:
    """A command that verifies something."""
    return CommandRun(cmd=cmd, outcome=f"exit {int(not ended_well)}", ended_well=ended_well)


def terminal(
    text: str = "done", *, index: int = 1, kind: TerminalKind = TerminalKind.COMPLETED
) -> TurnTerminal:
    """How a turn ended."""
    return TurnTerminal(
        turn_id=TurnId(f"turn_{index}"),
        turn_index=index,
        kind=kind,
        completed_at=NOW,
        duration_ms=1,
        last_assistant_message=text,
    )


def settled(text: str = "done", *, index: int = 1, **fields: Any) -> SettledTurn:
    """A turn that ended, with nothing else around it."""
    given = {
        "terminal": terminal(text, index=index),
        "message_kind": MessageKind.OPERATOR_PROMPT,
        "evidence": TurnEvidence(authority_class=OPERATOR),
        "was_prompted": True,
        "message_count": index,
    }
    return SettledTurn(**{**given, **fields})


def turn_delta(index: int = 1, *, item: str | None = None, **fields: Any) -> TurnMemoryDelta:
    """What a turn adds to its episode."""
    given = {
        "turn_index": index,
        "ended_at": NOW,
        "message_count": index,
        "authority_class": OPERATOR,
        "work_item_id": None if item is None else WorkItemId(item),
    }
    return TurnMemoryDelta(**{**given, **fields})


def an_episode(number: int, **fields: Any) -> EpisodeRecord:
    """A finished episode of one turn."""
    given = {
        "id": EpisodeId(f"ep_{number}"),
        "agent_id": AGENT_ID,
        "created_at": NOW,
        "finalized_at": NOW,
        "start_turn_index": number,
        "end_turn_index": number,
        "boundary_reason": EpisodeBoundary.HARD_TURN_CAP,
        "summary": f"episode {number}",
    }
    return EpisodeRecord(**{**given, **fields})


def _record(name: str, arguments: JsonValue, position: int, state: ToolCallState) -> ToolCallRecord:
    return ToolCallRecord(
        effect_id=f"{TURN.turn_id}.1.{position}",
        call_id=CallId(f"c{position}"),
        agent_id=AGENT_ID,
        turn_id=TURN.turn_id,
        round=1,
        position=position,
        name=name,
        input=arguments,
        state=state,
        started_at=NOW,
    )
