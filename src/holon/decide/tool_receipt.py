"""A tool call that did not do what was asked, as the model will read it.

Owns:  the error envelope: one JSON object with ok, tool_name, kind, message and retryable, and with
       hint, field and details where there are any.
Rule 1: every failed call, whoever failed it, is answered in this one shape.
Rule 2: the envelope is bounded. Details that are too large are replaced by their beginning and
        their digest; a message that is too long is cut.
"""

import hashlib

import msgspec

from holon.model.ids import CallId
from holon.model.json_value import JsonValue
from holon.model.limits import TOOL_ERROR_DETAIL_CHARS_MAX
from holon.model.tool import ToolError
from holon.model.turn import ToolReceipt


def error_receipt(call_id: CallId, name: str, error: ToolError) -> ToolReceipt:
    """Return the receipt that tells the model why its call did not work."""
    kept = msgspec.structs.replace(
        error,
        message=error.message[:TOOL_ERROR_DETAIL_CHARS_MAX],
        details=_bounded(error.details),
    )
    return ToolReceipt(
        call_id=call_id,
        name=name,
        content=msgspec.json.encode(_envelope(name, kept)).decode(),
        is_error=True,
        error_kind=kept.kind,
        error=kept,
    )


def _envelope(name: str, error: ToolError) -> dict[str, JsonValue]:
    told: dict[str, JsonValue] = {
        "ok": False,
        "tool_name": name,
        "kind": error.kind,
        "message": error.message,
        "hint": error.hint,
        "field": error.field,
        "retryable": error.retryable,
        "details": error.details,
    }
    return {key: value for key, value in told.items() if value is not None}


def _bounded(details: JsonValue) -> JsonValue:
    encoded = msgspec.json.encode(details)
    if len(encoded) <= TOOL_ERROR_DETAIL_CHARS_MAX:
        return details
    return {
        "preview": encoded.decode()[:TOOL_ERROR_DETAIL_CHARS_MAX],
        "sha256": hashlib.sha256(encoded).hexdigest(),
    }
