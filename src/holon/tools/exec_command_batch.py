"""ExecCommandBatch: several short commands, one after the other, in one call.

Owns:  the ExecCommandBatch tool.
Rule 1: items run in order, each to its end. An item that takes too long is ended and reported; none
        becomes a task.
Rule 2: a batch that asks for what an item cannot have is refused before anything runs.
Rule 3: every item has a place in the receipt, also one that never ran.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

import msgspec

from holon.decide.bounded_text import OutputBudget, shortened
from holon.decide.command_end import COMMAND_TIMED_OUT, failure_kind_of, how_it_ended
from holon.decide.command_promotion import batch_run_id, completed_result
from holon.model.command_limits import (
    COMMAND_BATCH_ITEM_MS_DEFAULT,
    COMMAND_BATCH_ITEMS_COUNT_MAX,
    COMMAND_YIELD_MS_MAX,
)
from holon.model.json_value import JsonValue
from holon.model.limits import EVENT_TEXT_CHARS_MAX, KIB, TOOL_ERROR_DETAIL_CHARS_MAX
from holon.model.text_size import one_line
from holon.model.tool import ToolOk, ToolRefused, ToolSpec
from holon.ports.shell import CommandSpawnError
from holon.tools.arguments import decode_arguments, leniently, schema_of
from holon.tools.command_output import looked_at
from holon.tools.fitting_result import ROOM_BYTES, fitting_result
from holon.tools.foreground import (
    CommandAsked,
    checked_command,
    ended_within,
    started,
    without_leftovers,
)
from holon.tools.guidance_texts import guidance_for
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene, refuse

_TOKENS_PER_ITEM_MIN: Final = 1_000
_CMD_SHOWN_BYTES_MAX: Final = 2 * KIB  # of each item; the model knows what it has sent
_ITEM_FRAME_BYTES: Final = 3 * KIB  # of an item beside its command and its output
_ALIASES: Final = (("commands", "items"), ("command", "cmd"), ("cwd", "workdir"))
_SINGLE_COMMAND_FIELDS: Final = ("tty", "accepts_input", "duplicate_policy")


class BatchItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One command of a batch."""

    cmd: Annotated[str, msgspec.Meta(min_length=1, description="The shell command line.")]
    workdir: Annotated[
        str | None,
        msgspec.Meta(description="Directory to run in, inside the workspace; default: its root."),
    ] = None
    shell: Annotated[
        str | None, msgspec.Meta(description="Path of a shell to use instead of the default one.")
    ] = None
    login: Annotated[
        bool, msgspec.Meta(description="Read the login profile first; rarely needed.")
    ] = False
    yield_time_ms: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        msgspec.Meta(
            description="After how many milliseconds it is ended and counts as failed; default"
            " 30000."
        ),
    ] = None
    max_output_tokens: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        msgspec.Meta(
            description="How many tokens of its output to show; default: its share of the usual"
            " room."
        ),
    ] = None


class ExecCommandBatchArguments(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The commands, in order."""

    items: Annotated[
        list[BatchItem],
        msgspec.Meta(
            min_length=1,
            max_length=COMMAND_BATCH_ITEMS_COUNT_MAX,
            description="The commands, run one after the other.",
        ),
    ]
    stop_on_error: Annotated[
        bool, msgspec.Meta(description="Skip what follows an item that did not succeed.")
    ] = False


class ExecCommandBatch:
    """The tool."""

    only_plans: Final = False

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="ExecCommandBatch",
            description=guidance_for("exec_command_batch"),
            input_schema=schema_of(ExecCommandBatchArguments),
            mutates=True,
        )

    @leniently(*_ALIASES, drops_unknown=False)
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Run the items, unless one of them needs what only a single command has."""
        unsupported = _unsupported_field(arguments)
        if unsupported is not None:
            return unsupported
        return await self._run(arguments, scene, ports)

    @leniently(*_ALIASES)  # again: what is unknown may be dropped now
    async def _run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        asked = decode_arguments(arguments, ExecCommandBatchArguments)
        if isinstance(asked, ToolExecution):
            return asked
        done: list[dict[str, JsonValue]] = []
        for index, item in enumerate(asked.items):
            head: dict[str, JsonValue] = {"index": index, "cmd": _cmd_shown(item)}
            if asked.stop_on_error and any(each["status"] != "completed" for each in done):
                done.append({**head, "status": "skipped"})
                continue
            began_ns = ports.clock.monotonic_ns()
            outcome = await _run_item(index, item, len(asked.items), scene, ports)
            spent_ms = (ports.clock.monotonic_ns() - began_ns) // 1_000_000
            done.append({**head, **outcome, "duration_ms": spent_ms})
        return ToolExecution(
            outcome=ToolOk(result=_receipt(done, stop_on_error=asked.stop_on_error))
        )


def _unsupported_field(arguments: JsonValue) -> ToolExecution | None:
    items = arguments.get("items") if isinstance(arguments, dict) else None
    for index, item in enumerate(items if isinstance(items, list) else ()):
        for name in _SINGLE_COMMAND_FIELDS:
            if isinstance(item, dict) and item.get(name) not in (None, False):
                return refuse(
                    "unsupported_batch_command_field",
                    f"an item of a batch has no `{name}`",
                    hint="run this command with ExecCommand instead",
                    field=f"items[{index}].{name}",
                )
    return None


async def _run_item(
    index: int, item: BatchItem, item_count: int, scene: ToolScene, ports: ToolPorts
) -> dict[str, JsonValue]:
    asked = CommandAsked(
        run_id=batch_run_id(scene.effect_id, index),
        cmd=item.cmd,
        workdir=item.workdir,
        shell=item.shell,
        login=item.login,
    )
    command = await checked_command(asked, scene, ports.places)
    if isinstance(command, ToolExecution):
        return _rejected(command)
    foreground_ms = min(item.yield_time_ms or COMMAND_BATCH_ITEM_MS_DEFAULT, COMMAND_YIELD_MS_MAX)
    bytes_max = _bytes_for(item, item_count, ports.output_budget)
    try:
        async with started(ports.shell, command) as running:
            ended = await ended_within(running, foreground_ms, ports.clock)
            timed_out = ended is None
            if ended is None:
                await running.stop()
                ended = await running.wait()
            notes = await without_leftovers(running)
            spans = looked_at(running, ports.redactor, bytes_max=bytes_max)
            result = fitting_result(
                partial(completed_result, ended, spans),
                bytes_max=bytes_max,
                room_bytes=_room_bytes(item, item_count),
            )
            if not result["truncated"]:
                await ports.shell.forget(running.run_id)
    except CommandSpawnError as error:
        return _failed(error.code, error.message[:TOOL_ERROR_DETAIL_CHARS_MAX])
    result |= {"notes": list(notes)} if notes else {}
    if timed_out:
        return {
            **_failed(COMMAND_TIMED_OUT, f"it was ended after {foreground_ms} ms"),
            "result": result,
        }
    if ended.exit_status != 0:
        return {**_failed(failure_kind_of(ended), how_it_ended(ended)), "result": result}
    return {"status": "completed", "result": result}


def _bytes_for(item: BatchItem, item_count: int, budget: OutputBudget) -> int:
    """What one command may show is shared by the items, though not below a useful size."""
    fair = max(_TOKENS_PER_ITEM_MIN, budget.default_tokens // item_count)
    return budget.bytes_for(min(item.max_output_tokens or fair, budget.tokens_max // item_count))


def _room_bytes(item: BatchItem, item_count: int) -> int:
    """How large the result of one item may get, so that the receipt takes those of all."""
    beside = len(msgspec.json.encode(_cmd_shown(item))) + _ITEM_FRAME_BYTES
    return ROOM_BYTES // item_count - beside


def _cmd_shown(item: BatchItem) -> str:
    return shortened(item.cmd, bytes_max=_CMD_SHOWN_BYTES_MAX).text


def _failed(kind: str, message: str) -> dict[str, JsonValue]:
    return {"status": "failed", "error_kind": kind, "error_message": message}


def _rejected(refusal: ToolExecution) -> dict[str, JsonValue]:
    assert isinstance(refusal.outcome, ToolRefused)
    error = refusal.outcome.error
    said = error.message[:TOOL_ERROR_DETAIL_CHARS_MAX]
    return {"status": "rejected", "error_kind": error.kind, "error_message": said}


def _receipt(done: Sequence[dict[str, JsonValue]], *, stop_on_error: bool) -> JsonValue:
    def count(status: str) -> int:
        return sum(1 for each in done if each["status"] == status)

    return {
        "item_count": len(done),
        "completed_count": count("completed"),
        "failed_count": count("failed"),
        "rejected_count": count("rejected"),
        "skipped_count": count("skipped"),
        "stop_on_error": stop_on_error,
        "items": list(done),
        "summary_text": "\n".join(_line(each) for each in done),
    }


def _line(item: dict[str, JsonValue]) -> str:
    why = f" ({item['error_message']})" if "error_message" in item else ""
    cmd = one_line(str(item["cmd"]), chars_max=EVENT_TEXT_CHARS_MAX)
    return f"[{item['index']}] {item['status']}{why}: {cmd}"
