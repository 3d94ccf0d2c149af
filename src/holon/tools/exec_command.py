"""ExecCommand: a shell command, in the foreground until it takes too long.

Owns:  the ExecCommand tool.
Rule 1: the command is started once, under an id made of the call's own; a command that outlasts
        `yield_time_ms` is not started again: the same process goes on as a task.
Rule 2: the task is recorded by the commit that records this call's result, so a model that was
        told of a task always finds it.
Rule 3: what already runs is not run a second time unless the model says so.
"""

from enum import StrEnum
from functools import partial
from typing import Annotated, Final

import msgspec

from holon.decide.command_end import how_it_ended, was_lost
from holon.decide.command_promotion import (
    PromotionFacts,
    already_running_result,
    completed_result,
    promoted_result,
    promoted_task,
    running_twin,
)
from holon.decide.quotas import task_quota
from holon.decide.trigger_address import without_addresses
from holon.model.command import CommandExit, CommandSpec
from holon.model.command_limits import COMMAND_YIELD_MS_DEFAULT, COMMAND_YIELD_MS_MAX
from holon.model.commit import CreateTask
from holon.model.ids import IdPrefix, TaskId
from holon.model.json_value import JsonValue
from holon.model.provenance import TrustLevel
from holon.model.tool import ToolOk, ToolSpec
from holon.ports.shell import CommandSpawnError, RunningCommand
from holon.tools.arguments import decode_arguments, leniently, schema_of
from holon.tools.command_output import looked_at
from holon.tools.fitting_result import fitting_result
from holon.tools.foreground import (
    CommandAsked,
    checked_command,
    ended_within,
    spawn_refused,
    started,
    without_leftovers,
)
from holon.tools.guidance_texts import guidance_for
from holon.tools.own_work_items import refused
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene


class DuplicatePolicy(StrEnum):
    """What to do when the same command already runs."""

    REUSE_RUNNING = "reuse_running"
    START_NEW = "start_new"


class ExecCommandArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The command, and how to run it."""

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
        """How long the call waits for the command."""
        asked = COMMAND_YIELD_MS_DEFAULT if self.yield_time_ms is None else self.yield_time_ms
        return min(asked, COMMAND_YIELD_MS_MAX)


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
        """Run the command until it ends or has to go on as a task."""
        asked = decode_arguments(arguments, ExecCommandArguments)
        if isinstance(asked, ToolExecution):
            return asked
        command = await checked_command(_command(asked, scene), scene, ports.places)
        if isinstance(command, ToolExecution):
            return command
        if asked.duplicate_policy is DuplicatePolicy.REUSE_RUNNING:
            twin = running_twin(ports.tasks.running(scene.agent_id), command)
            if twin is not None:
                return ToolExecution(outcome=ToolOk(result=already_running_result(twin, command)))
        full = task_quota(
            ports.task_quota,
            of_agent=len(ports.tasks.running(scene.agent_id)),
            of_all=ports.tasks.running_count(),
        )
        if full is not None:  # now, and not when it goes on as a task: nothing is ended half-way
            return refused(full)
        try:
            async with started(ports.shell, command) as running:
                ended = await ended_within(running, asked.foreground_ms, ports.clock)
                if ended is None:
                    return await _promoted(asked, command, running, scene, ports)
                return await _completed(asked, ended, running, ports)
        except CommandSpawnError as error:
            return spawn_refused(error)


def _command(asked: ExecCommandArguments, scene: ToolScene) -> CommandAsked:
    return CommandAsked(
        run_id=scene.effect_id,
        cmd=asked.cmd,
        workdir=asked.workdir,
        shell=asked.shell,
        login=asked.login,
        tty=asked.tty,
        accepts_input=asked.tty if asked.accepts_input is None else asked.accepts_input,
    )


async def _completed(
    asked: ExecCommandArguments, ended: CommandExit, running: RunningCommand, ports: ToolPorts
) -> ToolExecution:
    notes = await without_leftovers(running)
    if was_lost(ended):
        notes = (*notes, f"{how_it_ended(ended)}: look at what it has done before you go on")
    bytes_max = ports.output_budget.bytes_for(asked.max_output_tokens)
    spans = looked_at(running, ports.redactor, bytes_max=bytes_max)
    result = fitting_result(partial(completed_result, ended, spans), bytes_max=bytes_max)
    if not result["truncated"]:
        await ports.shell.forget(running.run_id)  # everything it wrote is in the result
    return ToolExecution(outcome=ToolOk(result=result, notes=notes))


async def _promoted(
    asked: ExecCommandArguments,
    command: CommandSpec,
    running: RunningCommand,
    scene: ToolScene,
    ports: ToolPorts,
) -> ToolExecution:
    bytes_max = ports.output_budget.bytes_for(asked.max_output_tokens)
    spans = looked_at(running, ports.redactor, bytes_max=bytes_max)
    cause = await ports.reads.message(scene.message_id)
    task = promoted_task(
        PromotionFacts(
            task_id=TaskId(ports.ids.fresh(IdPrefix.TASK)),
            agent_id=scene.agent_id,
            command=command,
            shown_cmd=ports.redactor.redact(without_addresses(command.cmd)),
            trust=cause.message.trust if cause is not None else TrustLevel.UNTRUSTED_EXTERNAL,
            now=ports.clock.now(),
            yield_time_ms=asked.foreground_ms,
            max_output_tokens=asked.max_output_tokens,
            message_id=scene.message_id,
            work_item_id=scene.work_item_id,
            spans=spans,
        )
    )
    ports.tasks.offer(task, running, turn_id=scene.turn_id, effect_id=scene.effect_id)
    result = fitting_result(partial(promoted_result, task, spans), bytes_max=bytes_max)
    return ToolExecution(outcome=ToolOk(result=result), changes=(CreateTask(task=task),))
