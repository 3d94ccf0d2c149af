"""What a run's tool calls did to the workspace, read off their receipts.

Owns:  the paths patches changed, and the counts of commands asked for and started.
Rule 1: only what a receipt says counts. A receipt that was cut short says less, never something
        else: then a batch counts as many items as were asked for, and none as started.
Rule 2: a command whose call was cut off was started; how far it came is not known.
"""

from collections.abc import Iterable, Sequence

import msgspec

from holon.model.json_value import JsonValue
from holon.model.record import Record
from holon.model.tool import ToolCallState
from holon.model.transcript import RecordedCall, TurnLog

_STARTED_DISPOSITIONS = frozenset({"completed", "promoted_to_task"})


class RunEffects(Record, frozen=True, kw_only=True):
    """Files and commands of a run."""

    changed_files: tuple[str, ...] = ()
    asked_count: int = 0
    batched_count: int = 0
    started_count: int = 0


class _Item(msgspec.Struct):
    """One item of a batch; it ran when there is a result of it."""

    result: JsonValue = None


class _Result(msgspec.Struct):
    """The parts of tool results that are read here."""

    disposition: str | None = None
    changed_paths: list[str] = []
    items: list[_Item] = []


class _Receipt(msgspec.Struct):
    result: _Result | msgspec.UnsetType = msgspec.UNSET


class _Asked(msgspec.Struct):
    """A batch as the model asked for it."""

    items: list[JsonValue] = []


def effects_of(turns: Sequence[TurnLog]) -> RunEffects:
    """Add up what the calls of these turns did."""
    calls = [call for log in turns for call in log.calls]
    single = [call for call in calls if call.call.name == "ExecCommand"]
    batches = [call for call in calls if call.call.name == "ExecCommandBatch"]
    patches = [call for call in calls if call.call.name == "ApplyPatch"]
    batched_count = sum(_asked_in(batch) for batch in batches)
    return RunEffects(
        changed_files=tuple(dict.fromkeys(_changed(patches))),
        asked_count=len(single) + batched_count,
        batched_count=batched_count,
        started_count=sum(map(_was_started, single)) + sum(map(_started_in, batches)),
    )


def _changed(patches: Iterable[RecordedCall]) -> Iterable[str]:
    for patch in patches:
        yield from _result_of(patch).changed_paths


def _was_started(single: RecordedCall) -> bool:
    cut_off = single.call.state is ToolCallState.INTERRUPTED
    return cut_off or _result_of(single).disposition in _STARTED_DISPOSITIONS


def _asked_in(batch: RecordedCall) -> int:
    try:
        asked = msgspec.convert(batch.call.input, _Asked)
    except msgspec.ValidationError:
        asked = _Asked()
    return len(_result_of(batch).items) or len(asked.items)


def _started_in(batch: RecordedCall) -> int:
    return sum(item.result is not None for item in _result_of(batch).items)


def _result_of(recorded: RecordedCall) -> _Result:
    if recorded.receipt is None or recorded.receipt.is_error:
        return _Result()
    try:
        receipt = msgspec.json.decode(recorded.receipt.content, type=_Receipt)
    except msgspec.DecodeError:
        return _Result()
    return receipt.result if isinstance(receipt.result, _Result) else _Result()
