"""From a tool's outcome to what the model reads.

Owns:  the model-visible envelope, success and failure alike, within its size.
Rule 1: notes stand beside the result and outlive a result that had to be cut.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from holon.decide.tool_receipt import error_receipt
from holon.model.conversation import ToolUseBlock
from holon.model.json_value import JsonValue
from holon.model.limits import ARGUMENT_NOTES_COUNT_MAX, KIB, TOOL_RESULT_BYTES_MAX
from holon.model.tool import ToolOk, ToolOutcome, ToolRefused
from holon.model.turn import ToolReceipt

# JSON inside a JSON string at most doubles: its quotes and backslashes are escaped once more.
_PREVIEW_BYTES_MAX: Final = (TOOL_RESULT_BYTES_MAX - 32 * KIB) // 2
_NOTE_CHARS_MAX: Final = 300


def receipt_of(use: ToolUseBlock, outcome: ToolOutcome) -> ToolReceipt:
    """Return the receipt of one call."""
    match outcome:
        case ToolOk():
            return ToolReceipt(
                call_id=use.call_id,
                name=use.name,
                content=_bounded(_envelope(use.name, outcome)),
                ends_turn=outcome.ends_turn,
                sleep_reason=outcome.sleep_reason,
                completes_work_item_id=outcome.completes_work_item_id,
            )
        case ToolRefused(error=error):
            return error_receipt(use.call_id, use.name, error)


def _envelope(name: str, outcome: ToolOk) -> dict[str, JsonValue]:
    told: dict[str, JsonValue] = {"ok": True, "tool_name": name, "result": outcome.result}
    if outcome.notes:
        kept = outcome.notes[: 2 * ARGUMENT_NOTES_COUNT_MAX]
        told["notes"] = [note[:_NOTE_CHARS_MAX] for note in kept]
    return told


def _bounded(envelope: Mapping[str, JsonValue]) -> str:
    encoded = msgspec.json.encode(envelope)
    if len(encoded) <= TOOL_RESULT_BYTES_MAX:
        return encoded.decode()
    head = encoded[:_PREVIEW_BYTES_MAX].decode(errors="ignore")
    cut = {name: part for name, part in envelope.items() if name != "result"}
    return msgspec.json.encode({**cut, "truncated": True, "preview": head}).decode()
