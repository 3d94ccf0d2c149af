"""Which changes leave a mark for memory search."""

import msgspec
import pytest

from holon.decide.memory.documents import marks_of, turn_of
from holon.model.commits import AppendBrief, AppendTranscript, StartToolCall
from holon.model.memory.index import MemoryKind, SourceChanged, TurnShown
from holon.model.queue import AuthorityClass, MessageEnvelope, MessageKind
from holon.model.turns.transcript import IncomingMessage
from holon.model.values import TurnId
from tests.support.builders import (
    MAIN,
    a_brief,
    a_message,
    a_round,
    a_tool_call,
    a_turn,
    an_agent,
    an_entry,
)

EVIDENCE = AuthorityClass.EXTERNAL_EVIDENCE


def shown(message: MessageEnvelope, *unseen: MessageEnvelope) -> AuthorityClass:
    data = IncomingMessage(message=message, unseen=unseen)
    entry = an_entry(a_turn(), position=0, data=data)
    (mark,) = marks_of(AppendTranscript(entry=entry), turn_id=None)
    assert isinstance(mark, TurnShown)
    return mark.authority_class


@pytest.mark.requirement("memory-index:authority-travels")
def test_a_turn_is_marked_with_the_least_it_was_shown() -> None:
    told = a_message()
    outside = msgspec.structs.replace(told, authority_class=EVIDENCE)
    result = msgspec.structs.replace(
        told, kind=MessageKind.TASK_RESULT, authority_class=AuthorityClass.RUNTIME_INSTRUCTION
    )
    assert shown(told) is AuthorityClass.OPERATOR_INSTRUCTION
    assert shown(told, outside) is EVIDENCE
    assert shown(outside, told) is EVIDENCE
    assert shown(result) is EVIDENCE, "what a task printed is nobody's word"


def test_only_commands_among_calls_are_remembered() -> None:
    call = a_tool_call(a_turn())
    assert marks_of(StartToolCall(call=call), turn_id=None) == ()
    asked = msgspec.structs.replace(call, name="ExecCommandBatch")
    (mark,) = marks_of(StartToolCall(call=asked), turn_id=None)
    assert isinstance(mark, SourceChanged)
    assert (mark.kind, mark.turn_id) == (MemoryKind.TOOL_EXECUTION, call.turn_id)


def test_a_brief_without_a_turn_belongs_to_the_one_its_commit_ends() -> None:
    (mark,) = marks_of(AppendBrief(brief=a_brief()), turn_id=TurnId("turn_7"))
    assert isinstance(mark, SourceChanged)
    assert (mark.agent_id, mark.turn_id) == (MAIN, "turn_7")


def test_most_changes_leave_none() -> None:
    entry = an_entry(a_turn(), position=1, data=a_round())
    assert marks_of(AppendTranscript(entry=entry), turn_id=None) == ()
    assert marks_of(an_agent(), turn_id=None) == ()
    assert turn_of((an_agent(),)) is None
