"""What the model reads about a call that ran."""

import msgspec
import pytest

from holon.model.limits import TOOL_RESULT_BYTES_MAX
from holon.model.turns.conversation import ToolUseBlock
from holon.model.turns.tools import ToolError, ToolOk, ToolRefused
from holon.model.values import CallId, JsonValue, WorkItemId
from holon.tools.tool import receipt_of

USE = ToolUseBlock(call_id=CallId("call_1"), name="Enqueue", input={})


def test_success_is_an_envelope_with_the_result() -> None:
    receipt = receipt_of(USE, ToolOk(result={"enqueued": True}))
    assert msgspec.json.decode(receipt.content) == {
        "ok": True,
        "tool_name": "Enqueue",
        "result": {"enqueued": True},
    }
    assert (receipt.call_id, receipt.name, receipt.is_error) == ("call_1", "Enqueue", False)


def test_what_the_turn_must_know_travels_beside_the_words() -> None:
    done = ToolOk(
        result=None,
        ends_turn=True,
        sleep_reason="tired",
        completes_work_item_id=WorkItemId("work_1"),
    )
    receipt = receipt_of(USE, done)
    assert receipt.ends_turn
    assert receipt.sleep_reason == "tired"
    assert receipt.completes_work_item_id == "work_1"


def test_a_refusal_is_the_shared_error_envelope() -> None:
    refused = ToolRefused(error=ToolError(kind="invalid_tool_input", message="no", field="text"))
    receipt = receipt_of(USE, refused)
    told = msgspec.json.decode(receipt.content)
    assert receipt.is_error
    assert receipt.error_kind == "invalid_tool_input"
    assert told == {
        "ok": False,
        "tool_name": "Enqueue",
        "kind": "invalid_tool_input",
        "message": "no",
        "field": "text",
        "retryable": False,
    }


@pytest.mark.requirement("tools:receipts-are-bounded")
@pytest.mark.parametrize("letter", ["x", "é", '"', "\n", "\x01"])
def test_an_oversized_result_is_cut_to_a_readable_envelope_within_its_size(letter: str) -> None:
    receipt = receipt_of(USE, ToolOk(result=letter * (TOOL_RESULT_BYTES_MAX + 1)))
    told = msgspec.json.decode(receipt.content)
    assert told["ok"] is True
    assert told["truncated"] is True
    assert told["preview"].startswith('{"ok":true,"tool_name":"Enqueue","result":"')
    assert len(receipt.content.encode()) <= TOOL_RESULT_BYTES_MAX


@pytest.mark.parametrize("result", [{"enqueued": True}, "x" * TOOL_RESULT_BYTES_MAX])
def test_notes_stand_beside_the_result_also_when_it_had_to_be_cut(result: JsonValue) -> None:
    receipt = receipt_of(USE, ToolOk(result=result, notes=("'message' was read as 'text'",)))
    assert msgspec.json.decode(receipt.content)["notes"] == ["'message' was read as 'text'"]


def test_notes_without_end_stay_within_the_size() -> None:
    flood = ToolOk(result="\x01" * TOOL_RESULT_BYTES_MAX, notes=("\x01" * 10_000,) * 1_000)
    receipt = receipt_of(USE, flood)
    assert len(receipt.content.encode()) <= TOOL_RESULT_BYTES_MAX
    assert msgspec.json.decode(receipt.content)["truncated"] is True
