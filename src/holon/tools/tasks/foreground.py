"""A command between its start and the moment the model hears of it.

Owns:  how much of an output is read for a look of some size; how large a result with output in it
       may get, and showing less output where it is larger; finding out where a command may run,
       starting it, waiting for it up to a moment, and seeing to it that a call that is cut off
       leaves no process behind.
Rule 1: every look is freed of secrets here, where more was read than will be shown; whoever shows
        it only cuts.
Rule 2: output is budgeted in bytes, but one byte that is no text takes three in JSON, and a control
        character six. A receipt cuts what is too large without knowing what it holds, and the file
        of output that is shown whole is dropped: so the cut is made here, where both are known.
Rule 3: a directory counts by its real name: a symlink that leads out of the execution root is out.
Rule 4: waiting goes by the clock port, so it takes no real time where time is virtual.
Rule 5: whatever ends a call early ends its command too: first politely, then for certain.
Rule 6: what runs in the background is a task and has an id. What a command leaves running without
        one is ended when the command is, and the model is told.
"""

import posixpath
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Protocol

import anyio
import msgspec

from holon.decide.tasks.commands import LEFTOVERS_ENDED
from holon.decide.text.secrets import span_without_secrets
from holon.model.limits import (
    COMMAND_OUTPUT_MARGIN_BYTES,
    COMMAND_TEXT_BYTES_MAX,
    KIB,
    TOOL_RESULT_BYTES_MAX,
)
from holon.model.record import Record
from holon.model.tasks import CommandExit, CommandSpec, OutputSpan
from holon.model.values import JsonValue
from holon.ports.clock import Clock
from holon.ports.journal import Redactor
from holon.ports.tasks import CommandSpawnError, RunningCommand, Shell
from holon.ports.workspaces import Directories
from holon.tools.tool import ToolExecution, ToolScene, refuse


def looked_at(
    command: RunningCommand, redactor: Redactor, *, bytes_max: int
) -> tuple[OutputSpan, ...]:
    """Look at both ends of each stream, at least as far as `bytes_max` bytes of it may show."""
    far = bytes_max + COMMAND_OUTPUT_MARGIN_BYTES
    spans = command.output(head_bytes=far, tail_bytes=far)
    return tuple(span_without_secrets(span, redactor.redact) for span in spans)


ROOM_BYTES: Final = TOOL_RESULT_BYTES_MAX - 32 * KIB  # beside the result stand its notes
_JSON_BYTES_PER_BYTE_MAX: Final = 6
_FRAME_BYTES: Final = 16 * KIB  # of a result without its output
_SHOWN_BYTES_MIN: Final = 256


class Showing(Protocol):
    """A result, but for how much of the output it shows."""

    def __call__(self, *, bytes_max: int) -> dict[str, JsonValue]:
        """Return the result with so many bytes of output."""
        ...


def fitting_result(
    shown: Showing, *, bytes_max: int, room_bytes: int = ROOM_BYTES
) -> dict[str, JsonValue]:
    """Return the result that shows as much output as asked for, or as fits into the room."""
    result = shown(bytes_max=bytes_max)
    if _JSON_BYTES_PER_BYTE_MAX * bytes_max + _FRAME_BYTES <= room_bytes:
        return result  # whatever it is, it fits
    while bytes_max > _SHOWN_BYTES_MIN and len(msgspec.json.encode(result)) > room_bytes:
        bytes_max //= 2
        result = shown(bytes_max=bytes_max)
    return result


_SERVER_ADVICE: Final = (
    "for a server, run it in the foreground with ExecCommand and a small yield_time_ms, and it goes"
    " on as a task"
)


class CommandAsked(Record, frozen=True, kw_only=True):
    """A command as a model asks for it."""

    run_id: str
    cmd: str
    workdir: str | None = None
    shell: str | None = None
    login: bool = False
    tty: bool = False
    accepts_input: bool = False


async def checked_command(
    asked: CommandAsked, scene: ToolScene, places: Directories
) -> CommandSpec | ToolExecution:
    """Return the command ready to start, or the refusal that says what is wrong with it."""
    problem = _unusable_text(asked)
    if problem is not None:
        return problem
    workdir = await _resolved_workdir(asked.workdir, scene, places)
    if isinstance(workdir, ToolExecution):
        return workdir
    return CommandSpec(
        run_id=asked.run_id,
        cmd=asked.cmd,
        workdir=workdir,
        shell=asked.shell,
        login=asked.login,
        tty=asked.tty,
        accepts_input=asked.accepts_input,
        environment={
            "HOLON_AGENT_ID": scene.agent_id,
            "HOLON_AGENT_HOME": scene.agent_home,
            "HOLON_EFFECT_ID": scene.effect_id,
        },
    )


def _unusable_text(asked: CommandAsked) -> ToolExecution | None:
    for field, text in (("cmd", asked.cmd), ("workdir", asked.workdir), ("shell", asked.shell)):
        if text is not None and "\0" in text:
            return refuse(
                "invalid_tool_input",
                f"`{field}` contains a NUL character",
                hint="leave it out, or write it as an escape the shell understands",
                field=field,
            )
    if not asked.cmd.strip():
        return refuse("invalid_tool_input", "`cmd` is empty", hint="name a command", field="cmd")
    if len(asked.cmd.encode()) > COMMAND_TEXT_BYTES_MAX:
        return refuse(
            "invalid_tool_input",
            f"`cmd` is longer than {COMMAND_TEXT_BYTES_MAX} bytes",
            hint="write the script to a file and run the file",
            field="cmd",
        )
    return None


async def _resolved_workdir(
    asked: str | None, scene: ToolScene, places: Directories
) -> str | ToolExecution:
    root = await places.resolved(scene.execution_root)
    if root is None:
        return _no_directory(scene.execution_root, "the execution root is gone")
    if not asked and scene.cwd == scene.execution_root:
        return root
    path = posixpath.normpath(posixpath.join(scene.cwd, asked or ""))
    found = await places.resolved(posixpath.join(scene.cwd, asked or ""))
    if found is None:
        if not (_inside(path, root) or _inside(path, scene.execution_root)):
            return _outside(asked, root)
        return _no_directory(path, "name a directory that exists")
    return found if _inside(found, root) else _outside(asked, root)


def _inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _outside(asked: str | None, root: str) -> ToolExecution:
    return refuse(
        "execution_root_violation",
        f"{asked or 'the working directory'} leads out of the execution root {root}",
        hint="use a directory inside the execution root, given relative to it",
        field="workdir",
    )


def _no_directory(path: str, hint: str) -> ToolExecution:
    return refuse(
        CommandSpawnError.code, f"there is no directory {path}", hint=hint, field="workdir"
    )


@asynccontextmanager
async def started(shell: Shell, spec: CommandSpec) -> AsyncIterator[RunningCommand]:
    """Start a command; what breaks the block off early ends the command and drops its files."""
    with anyio.CancelScope(shield=True):  # a start is short, and half of one would be an orphan
        running = await shell.start(spec)
    try:
        yield running
    except (Exception, anyio.get_cancelled_exc_class()):
        with anyio.CancelScope(shield=True):
            await running.stop()
            await shell.forget(spec.run_id)
        raise


async def ended_within(running: RunningCommand, ms: int, clock: Clock) -> CommandExit | None:
    """Wait for a command; None when it still runs after so many milliseconds."""
    ended: CommandExit | None = None
    async with anyio.create_task_group() as race:
        race.start_soon(_cancel_at, clock, ms, race.cancel_scope)
        ended = await running.wait()
        race.cancel_scope.cancel()
    return ended


async def _cancel_at(clock: Clock, ms: int, race: anyio.CancelScope) -> None:
    await clock.sleep_for(ms)
    race.cancel()


async def without_leftovers(running: RunningCommand) -> tuple[str, ...]:
    """End what an ended command left running, which nobody could name; return what to say of it."""
    if not running.left_running:
        return ()
    await running.stop()
    return (f"{LEFTOVERS_ENDED}; {_SERVER_ADVICE}",)


def spawn_refused(error: CommandSpawnError) -> ToolExecution:
    """Return what the model reads when a command could not be started."""
    return refuse(
        error.code,
        error.message,
        hint=error.hint or "check the shell and the working directory",
    )
