"""What a run did, read off its receipts."""

import json

import msgspec
import pytest

from holon.model.turns.tools import ToolCallState
from holon.model.turns.transcript import RecordedCall, TurnLog
from holon.model.values import JsonValue
from holon.projections.turns.run_result import RunEffects, effects_of
from tests.support.builders import a_receipt, a_tool_call, a_turn

TURN = a_turn()


def a_call(
    name: str,
    result: JsonValue = None,
    *,
    asked: JsonValue = None,
    state: ToolCallState = ToolCallState.SUCCEEDED,
    is_error: bool = False,
) -> RecordedCall:
    call = msgspec.structs.replace(a_tool_call(TURN), name=name, input=asked, state=state)
    content = json.dumps({"ok": not is_error, "result": result})
    receipt = msgspec.structs.replace(a_receipt(call, content=content), is_error=is_error)
    return RecordedCall(call=call, receipt=receipt)


def effects(*calls: RecordedCall) -> RunEffects:
    return effects_of((TurnLog(turn=TURN, calls=calls),))


@pytest.mark.requirement("run-once:effects")
def test_changed_files_are_those_of_the_patches_each_once() -> None:
    found = effects(
        a_call("ApplyPatch", {"changed_paths": ["a", "b"]}),
        a_call("ApplyPatch", {"changed_paths": ["b", "c"]}),
        a_call("ApplyPatch", {"changed_paths": ["never"]}, is_error=True),
        a_call("ListWorkItems", {"changed_paths": ["no patch"]}),
    )
    assert found.changed_files == ("a", "b", "c")


@pytest.mark.requirement("run-once:effects")
@pytest.mark.parametrize(
    ("call", "counts"),
    [
        (a_call("ExecCommand", {"disposition": "completed"}), (1, 0, 1)),
        (a_call("ExecCommand", {"disposition": "promoted_to_task"}), (1, 0, 1)),
        (a_call("ExecCommand", {"disposition": "already_running"}), (1, 0, 0)),
        (a_call("ExecCommand", is_error=True, state=ToolCallState.FAILED), (1, 0, 0)),
        (a_call("ExecCommand", is_error=True, state=ToolCallState.INTERRUPTED), (1, 0, 1)),
        (
            a_call("ExecCommandBatch", {"items": [{"result": {}}, {"status": "skipped"}]}),
            (2, 2, 1),
        ),
        (a_call("ExecCommandBatch", asked={"items": [1, 2, 3]}, is_error=True), (3, 3, 0)),
        (a_call("ExecCommandBatch", asked="nonsense", is_error=True), (0, 0, 0)),
    ],
)
def test_commands_are_counted_as_asked_for_and_as_started(
    call: RecordedCall, counts: tuple[int, int, int]
) -> None:
    found = effects(call)
    assert (found.asked_count, found.batched_count, found.started_count) == counts


def test_a_receipt_that_was_cut_or_is_no_receipt_says_less() -> None:
    call = a_tool_call(TURN)
    cut = RecordedCall(call=msgspec.structs.replace(call, name="ApplyPatch"))
    torn = a_receipt(call, content='{"result": {"changed_pa')
    broken = RecordedCall(call=msgspec.structs.replace(call, name="ExecCommand"), receipt=torn)
    assert effects(cut, broken) == RunEffects(asked_count=1)
