"""From a tool's outcome to what the model reads.

Owns:  the model-visible envelope, success and failure alike, within its size.
"""

from typing import Final

import msgspec

from holon.decide.tool_receipt import error_receipt
from holon.model.conversation import ToolUseBlock
from holon.model.json_value import JsonValue
from holon.model.limits import KIB, TOOL_RESULT_BYTES_MAX
from holon.model.tool import ToolOk, ToolOutcome, ToolRefused
from holon.model.turn import ToolReceipt

# JSON inside a JSON string at most doubles: its quotes and backslashes are escaped once more.
_PREVIEW_BYTES_MAX: Final = (TOOL_RESULT_BYTES_MAX - KIB) // 2


def receipt_of(use: ToolUseBlock, outcome: ToolOutcome) -> ToolReceipt:
    """Return the receipt of one call."""
    match outcome:
        case ToolOk():
            return ToolReceipt(
                call_id=use.call_id,
                name=use.name,
                content=_bounded({"ok": True, "tool_name": use.name, "result": outcome.result}),
                ends_turn=outcome.ends_turn,
                sleep_reason=outcome.sleep_reason,
                completes_work_item_id=outcome.completes_work_item_id,
            )
        case ToolRefused(error=error):
            return error_receipt(use.call_id, use.name, error)


def _bounded(envelope: JsonValue) -> str:
    encoded = msgspec.json.encode(envelope)
    if len(encoded) <= TOOL_RESULT_BYTES_MAX:
        return encoded.decode()
    head = encoded[:_PREVIEW_BYTES_MAX].decode(errors="ignore")
    cut = {"ok": envelope["ok"], "tool_name": envelope["tool_name"], "truncated": True}
    return msgspec.json.encode({**cut, "preview": head}).decode()
