"""The ExecCommand and ExecCommandBatch tools: one shell command, or several in order.

Owns:  both tools. A command that outlasts its call goes on as a task; a batch item does not.
Rule 1: a command is started once, under an id derived from the call; one that outlasts
        `yield_time_ms` is not started again: the same process goes on as a task.
Rule 2: the task is recorded by the commit that records the call's result, so a task id given to the
        model always exists.
Rule 3: a command that is already running is not started a second time unless the model asks for it.
Rule 4: batch items run in order, each to its end. An item that takes too long is ended and
        reported; none becomes a task.
Rule 5: a batch with an option that an item cannot have is refused before anything runs.
Rule 6: every item has an entry in the receipt, also one that never ran.
"""

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, Final, TypeAlias

import msgspec

from holon.decide.budgets.budget import task_quota
from holon.decide.tasks.commands import (
    COMMAND_TIMED_OUT,
    PromotionFacts,
    already_running_result,
    batch_run_id,
    completed_result,
    failure_kind_of,
    how_it_ended,
    promoted_result,
    promoted_task,
    running_duplicate,
    was_lost,
)
from holon.decide.text.bounded import OutputBudget, shortened
from holon.decide.wake.triggers import without_addresses
from holon.model.commits import CreateTask
from holon.model.limits import (
    COMMAND_BATCH_ITEM_MS_DEFAULT,
    COMMAND_BATCH_ITEMS_COUNT_MAX,
    COMMAND_YIELD_MS_DEFAULT,
    COMMAND_YIELD_MS_MAX,
    EVENT_TEXT_CHARS_MAX,
    KIB,
    TOOL_ERROR_DETAIL_CHARS_MAX,
)
from holon.model.queue import TrustLevel
from holon.model.tasks import CommandExit, CommandSpec
from holon.model.text_size import one_line
from holon.model.turns.tools import ToolOk, ToolRefused, ToolSpec
from holon.model.values import IdPrefix, JsonValue, TaskId
from holon.ports.tasks import CommandSpawnError, RunningCommand
from holon.tools.arguments import decode_arguments, guidance_for, leniently, schema_of
from holon.tools.tasks.foreground import (
    ROOM_BYTES,
    UncheckedCommand,
    checked_command,
    ended_within,
    fitting_result,
    looked_at,
    spawn_refused,
    started,
    without_leftovers,
)
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene, refuse
from holon.tools.work.items import refused

_TOKENS_PER_ITEM_MIN: Final = 1_000
_CMD_SHOWN_BYTES_MAX: Final = 2 * KIB  # per item; the model knows what it sent
_ITEM_FRAME_BYTES: Final = 3 * KIB  # of an item without its command and output
_ALIASES: Final = (("commands", "items"), ("command", "cmd"), ("cwd", "workdir"))
_SINGLE_COMMAND_FIELDS: Final = ("tty", "accepts_input", "duplicate_policy")


# Argument types that both tools share.
_CommandLine: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=1, description="The shell command line.")
]
_WorkingDirectory: TypeAlias = Annotated[
    str | None,
    msgspec.Meta(description="Directory to run in, inside the workspace; default: its root."),
]
_ShellPath: TypeAlias = Annotated[
    str | None, msgspec.Meta(description="Path of a shell to use instead of the default one.")
]
_LoginProfile: TypeAlias = Annotated[
    bool, msgspec.Meta(description="Read the login profile first; rarely needed.")
]


class DuplicatePolicy(StrEnum):
    """What to do when the same command is already running."""

    REUSE_RUNNING = "reuse_running"
    START_NEW = "start_new"


class ExecCommandArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The command, and how to run it."""

    cmd: _CommandLine
    workdir: _WorkingDirectory = None
    shell: _ShellPath = None
    login: _LoginProfile = False
    tty: Annotated[bool, msgspec.Meta(description="Give it a terminal of its own.")] = False
    duplicate_policy: Annotated[
        DuplicatePolicy,
        msgspec.Meta(
            description="When the same command already runs as a task: reuse_running shows you that"
            " task, start_new starts another one."
        ),
    ] = DuplicatePolicy.REUSE_RUNNING
    accepts_input: Annotated[
        bool | None,
        msgspec.Meta(description="Keep its input open for TaskInput; default: only with tty."),
    ] = None
    yield_time_ms: Annotated[
        Annotated[int, msgspec.Meta(ge=0)] | None,
        msgspec.Meta(
            description="How many milliseconds to wait for its end before it goes on as a task;"
            " default 10000."
        ),
    ] = None
    max_output_tokens: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        msgspec.Meta(
            description="How many tokens of its output to show; default 8000, at most 64000 unless"
            " configured otherwise."
        ),
    ] = None

    @property
    def foreground_ms(self) -> int:
        """The time the call waits for the command."""
        wait_ms = COMMAND_YIELD_MS_DEFAULT if self.yield_time_ms is None else self.yield_time_ms
        return min(wait_ms, COMMAND_YIELD_MS_MAX)


class ExecCommand:
    """The tool."""

    only_plans: Final = False

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="ExecCommand",
            description=guidance_for("exec_command"),
            input_schema=schema_of(ExecCommandArguments),
            mutates=True,
        )

    @leniently(("command", "cmd"), ("cwd", "workdir"), ("timeout_ms", "yield_time_ms"))
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Run the command until it ends or continues as a task."""
        request = decode_arguments(arguments, ExecCommandArguments)
        if isinstance(request, ToolExecution):
            return request
        command = await checked_command(_command(request, scene), scene, ports.places)
        if isinstance(command, ToolExecution):
            return command
        if request.duplicate_policy is DuplicatePolicy.REUSE_RUNNING:
            twin = running_duplicate(ports.tasks.running(scene.agent_id), command)
            if twin is not None:
                return ToolExecution(outcome=ToolOk(result=already_running_result(twin, command)))
        full = task_quota(
            ports.task_quota,
            of_agent=len(ports.tasks.running(scene.agent_id)),
            of_all=ports.tasks.running_count(),
        )
        if full is not None:  # checked before the start, so that no command is ended half-way
            return refused(full)
        try:
            async with started(ports.shell, command) as running:
                ended = await ended_within(running, request.foreground_ms, ports.clock)
                if ended is None:
                    return await _promoted(request, command, running, scene, ports)
                return await _completed(request, ended, running, ports)
        except CommandSpawnError as error:
            return spawn_refused(error)


def _command(request: ExecCommandArguments, scene: ToolScene) -> UncheckedCommand:
    return UncheckedCommand(
        run_id=scene.effect_id,
        cmd=request.cmd,
        workdir=request.workdir,
        shell=request.shell,
        login=request.login,
        tty=request.tty,
        accepts_input=request.tty if request.accepts_input is None else request.accepts_input,
    )


async def _completed(
    request: ExecCommandArguments, ended: CommandExit, running: RunningCommand, ports: ToolPorts
) -> ToolExecution:
    notes = await without_leftovers(running)
    if was_lost(ended):
        notes = (*notes, f"{how_it_ended(ended)}: look at what it has done before you go on")
    bytes_max = ports.output_budget.bytes_for(request.max_output_tokens)
    spans = looked_at(running, ports.redactor, bytes_max=bytes_max)
    result = fitting_result(partial(completed_result, ended, spans), bytes_max=bytes_max)
    if not result["truncated"]:
        await ports.shell.forget(running.run_id)  # the result contains all of its output
    return ToolExecution(outcome=ToolOk(result=result, notes=notes))


async def _promoted(
    request: ExecCommandArguments,
    command: CommandSpec,
    running: RunningCommand,
    scene: ToolScene,
    ports: ToolPorts,
) -> ToolExecution:
    bytes_max = ports.output_budget.bytes_for(request.max_output_tokens)
    spans = looked_at(running, ports.redactor, bytes_max=bytes_max)
    cause = await ports.reads.queue.message(scene.message_id)
    task = promoted_task(
        PromotionFacts(
            task_id=TaskId(ports.ids.fresh(IdPrefix.TASK)),
            agent_id=scene.agent_id,
            command=command,
            shown_cmd=ports.redactor.redact(without_addresses(command.cmd)),
            trust=cause.message.trust if cause is not None else TrustLevel.UNTRUSTED_EXTERNAL,
            now=ports.clock.now(),
            yield_time_ms=request.foreground_ms,
            max_output_tokens=request.max_output_tokens,
            message_id=scene.message_id,
            work_item_id=scene.work_item_id,
            spans=spans,
        )
    )
    ports.tasks.offer(task, running, turn_id=scene.turn_id, effect_id=scene.effect_id)
    result = fitting_result(partial(promoted_result, task, spans), bytes_max=bytes_max)
    return ToolExecution(outcome=ToolOk(result=result), changes=(CreateTask(task=task),))


class BatchItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One command of a batch."""

    cmd: _CommandLine
    workdir: _WorkingDirectory = None
    shell: _ShellPath = None
    login: _LoginProfile = False
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
        """Run the items, unless one has an option that only ExecCommand supports."""
        unsupported = _unsupported_field(arguments)
        if unsupported is not None:
            return unsupported
        return await self._run(arguments, scene, ports)

    @leniently(*_ALIASES)  # a second pass, which drops unknown fields
    async def _run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        request = decode_arguments(arguments, ExecCommandBatchArguments)
        if isinstance(request, ToolExecution):
            return request
        done: list[dict[str, JsonValue]] = []
        for index, item in enumerate(request.items):
            head: dict[str, JsonValue] = {"index": index, "cmd": _cmd_shown(item)}
            if request.stop_on_error and any(each["status"] != "completed" for each in done):
                done.append({**head, "status": "skipped"})
                continue
            began_ns = ports.clock.monotonic_ns()
            outcome = await _run_item(index, item, len(request.items), scene, ports)
            spent_ms = (ports.clock.monotonic_ns() - began_ns) // 1_000_000
            done.append({**head, **outcome, "duration_ms": spent_ms})
        return ToolExecution(
            outcome=ToolOk(result=_receipt(done, stop_on_error=request.stop_on_error))
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
    unchecked = UncheckedCommand(
        run_id=batch_run_id(scene.effect_id, index),
        cmd=item.cmd,
        workdir=item.workdir,
        shell=item.shell,
        login=item.login,
    )
    command = await checked_command(unchecked, scene, ports.places)
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
    """An item's share of the output budget, though not below a useful size."""
    fair = max(_TOKENS_PER_ITEM_MIN, budget.default_tokens // item_count)
    return budget.bytes_for(min(item.max_output_tokens or fair, budget.tokens_max // item_count))


def _room_bytes(item: BatchItem, item_count: int) -> int:
    """The maximum size of an item's result, so that the receipt has room for all."""
    overhead = len(msgspec.json.encode(_cmd_shown(item))) + _ITEM_FRAME_BYTES
    return ROOM_BYTES // item_count - overhead


def _cmd_shown(item: BatchItem) -> str:
    return shortened(item.cmd, bytes_max=_CMD_SHOWN_BYTES_MAX).text


def _failed(kind: str, message: str) -> dict[str, JsonValue]:
    return {"status": "failed", "error_kind": kind, "error_message": message}


def _rejected(refusal: ToolExecution) -> dict[str, JsonValue]:
    assert isinstance(refusal.outcome, ToolRefused)
    error = refusal.outcome.error
    message = error.message[:TOOL_ERROR_DETAIL_CHARS_MAX]
    return {"status": "rejected", "error_kind": error.kind, "error_message": message}


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
