"""One envelope for every failed call."""

import hashlib

import msgspec
import pytest

from holon.decide.turns.receipts import error_receipt
from holon.model.limits import TOOL_ERROR_DETAIL_CHARS_MAX
from holon.model.turns.tools import ToolError
from holon.model.turns.turn import ToolReceipt
from holon.model.values import CallId


@pytest.mark.requirement("turn:refused-call-gets-an-envelope")
@pytest.mark.requirement("hands:error-object-in-the-transcript")
def test_the_envelope_names_tool_kind_message_and_what_to_do() -> None:
    error = ToolError(
        kind="bad_path",
        message="no such file",
        hint="look first",
        field="path",
        retryable=True,
        details={"path": "/x"},
    )
    receipt = error_receipt(CallId("c1"), "Read", error)
    told = msgspec.json.decode(receipt.content)
    assert receipt == ToolReceipt(
        call_id=CallId("c1"),
        name="Read",
        content=receipt.content,
        is_error=True,
        error_kind="bad_path",
        error=error,
    )
    assert told == {
        "ok": False,
        "tool_name": "Read",
        "kind": "bad_path",
        "message": "no such file",
        "hint": "look first",
        "field": "path",
        "retryable": True,
        "details": {"path": "/x"},
    }


def test_what_is_not_known_is_left_out() -> None:
    told = msgspec.json.decode(
        error_receipt(CallId("c1"), "Read", ToolError(kind="k", message="m")).content
    )
    assert told == {
        "ok": False,
        "tool_name": "Read",
        "kind": "k",
        "message": "m",
        "retryable": False,
    }


@pytest.mark.requirement("turn:envelope-is-bounded")
def test_details_that_are_too_large_become_a_preview_and_a_digest() -> None:
    details = {"log": "é" * TOOL_ERROR_DETAIL_CHARS_MAX}
    error = ToolError(kind="k", message="m" * 5_000, details=details)
    told = msgspec.json.decode(error_receipt(CallId("c1"), "Read", error).content)
    encoded = msgspec.json.encode(details)
    assert told["details"] == {
        "preview": encoded.decode()[:TOOL_ERROR_DETAIL_CHARS_MAX],
        "sha256": hashlib.sha256(encoded).hexdigest(),
    }
    assert len(told["message"]) == TOOL_ERROR_DETAIL_CHARS_MAX
