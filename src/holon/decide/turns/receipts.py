"""Tool receipts as the model reads them: command batches and the error envelope.

Owns:  the grouped text of a command batch, rendered from the structured receipt each time it is
       read; the error envelope: one JSON object with ok, tool_name, kind, message and retryable,
       and with hint, field and details where they exist.
Rule 1: a line at the margin is the runtime's: it opens an item or a stream. Command output is
        indented, so that it cannot look like the beginning of another item.
Rule 2: a receipt that is not a complete batch receipt is read as it is.
Rule 3: every failed call, whatever failed it, is answered in this one shape.
Rule 4: the envelope is bounded. Details that are too large are replaced by their beginning and
        their digest; a message that is too long is cut.
"""

import hashlib
from collections.abc import Iterator
from typing import Final

import msgspec

from holon.model.limits import TOOL_ERROR_DETAIL_CHARS_MAX
from holon.model.turns.tools import ToolError
from holon.model.turns.turn import ToolReceipt
from holon.model.values import CallId, JsonValue

_INDENT: Final = "  "


class _Artifact(msgspec.Struct):
    path: str


class _Result(msgspec.Struct):
    exit_status: int | None = None
    stdout_preview: str = ""
    stderr_preview: str = ""
    stdout_artifact: int | None = None
    stderr_artifact: int | None = None
    artifacts: list[_Artifact] = []
    notes: list[str] = []


class _Item(msgspec.Struct):
    index: int
    cmd: str
    status: str
    duration_ms: int | None = None
    error_kind: str | None = None
    error_message: str | None = None
    result: _Result | None = None


class _Batch(msgspec.Struct):
    item_count: int
    completed_count: int
    failed_count: int
    rejected_count: int
    skipped_count: int
    items: list[_Item]


class _Receipt(msgspec.Struct):
    result: _Batch
    notes: list[str] = []


_RECEIPTS: Final = msgspec.json.Decoder(_Receipt)


def batch_text(content: str) -> str:
    """Return the grouped text of a recorded batch receipt."""
    try:
        receipt = _RECEIPTS.decode(content)
    except msgspec.DecodeError:
        return content
    return "\n".join(_lines(receipt))


def _lines(receipt: _Receipt) -> Iterator[str]:
    batch = receipt.result
    counts = (
        (batch.completed_count, "completed"), (batch.failed_count, "failed"),
        (batch.rejected_count, "rejected"), (batch.skipped_count, "skipped"),
    )  # fmt: skip
    counted = ", ".join(f"{count} {status}" for count, status in counts if count)
    yield f"ExecCommandBatch: {batch.item_count} items, {counted}"
    for item in batch.items:
        yield from _item_lines(item)
    yield from (f"note: {_inline(note)}" for note in receipt.notes)


def _item_lines(item: _Item) -> Iterator[str]:
    ended = item.result
    facts = [item.status]
    if ended is not None and ended.exit_status is not None:
        facts.append(f"exit {ended.exit_status}")
    if item.duration_ms is not None and item.status != "skipped":
        facts.append(f"{item.duration_ms} ms")
    yield f"[{item.index}] {', '.join(facts)}: {_inline(item.cmd)}"
    if item.error_kind is not None:
        yield f"error: {item.error_kind}: {_inline(item.error_message or '')}"
    if ended is None:
        return
    yield from _stream_lines("stdout", ended.stdout_preview, _path(ended, ended.stdout_artifact))
    yield from _stream_lines("stderr", ended.stderr_preview, _path(ended, ended.stderr_artifact))
    yield from (f"note: {_inline(note)}" for note in ended.notes)


def _stream_lines(name: str, text: str, path: str | None) -> Iterator[str]:
    if not text and path is None:
        return
    yield f"{name}:" if path is None else f"{name} (truncated, whole in {_inline(path)}):"
    yield from (f"{_INDENT}{line}" for line in text.splitlines())


def _path(ended: _Result, index: int | None) -> str | None:
    known = index is not None and 0 <= index < len(ended.artifacts)
    return ended.artifacts[index or 0].path if known else None


def _inline(text: str) -> str:
    """Return a text as one item's part: what follows its first line is indented."""
    return f"\n{_INDENT}".join(text.splitlines())


def error_receipt(call_id: CallId, name: str, error: ToolError) -> ToolReceipt:
    """Return the receipt that explains to the model why its call failed."""
    bounded = msgspec.structs.replace(
        error,
        message=error.message[:TOOL_ERROR_DETAIL_CHARS_MAX],
        details=_bounded(error.details),
    )
    return ToolReceipt(
        call_id=call_id,
        name=name,
        content=msgspec.json.encode(_envelope(name, bounded)).decode(),
        is_error=True,
        error_kind=bounded.kind,
        error=bounded,
    )


def _envelope(name: str, error: ToolError) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {
        "ok": False,
        "tool_name": name,
        "kind": error.kind,
        "message": error.message,
        "hint": error.hint,
        "field": error.field,
        "retryable": error.retryable,
        "details": error.details,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _bounded(details: JsonValue) -> JsonValue:
    encoded = msgspec.json.encode(details)
    if len(encoded) <= TOOL_ERROR_DETAIL_CHARS_MAX:
        return details
    return {
        "preview": encoded.decode()[:TOOL_ERROR_DETAIL_CHARS_MAX],
        "sha256": hashlib.sha256(encoded).hexdigest(),
    }
