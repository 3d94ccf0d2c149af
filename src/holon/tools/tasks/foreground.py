"""Foreground commands: from the start of a command to the result the model reads.

Owns:  where a command may run, starting it, waiting for it up to a deadline, and ending it when its
       call is cancelled; how much output is read, redacted, and shown in a result.
Rule 1: output is redacted here, where more is read than will be shown; later steps only cut it.
Rule 2: output is budgeted in bytes, but a byte that is no text takes three in JSON, and a control
        character six. A generic receipt would cut such a result blindly and drop the path of the
        output file, so the cut is made here, where both are known.
Rule 3: a directory counts by its real path: a symlink that leaves the execution root is outside.
Rule 4: waiting uses the clock port, so it takes no real time where time is virtual.
Rule 5: whatever ends a call early ends its command too: first gracefully, then by force.
Rule 6: a background command is a task and has an id. Processes a command leaves running without one
        are ended with the command, and the result says so.
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

ROOM_BYTES: Final = TOOL_RESULT_BYTES_MAX - 32 * KIB  # the rest is for the notes beside the result
_JSON_BYTES_PER_BYTE_MAX: Final = 6
_FRAME_BYTES: Final = 16 * KIB  # of a result without its output
_SHOWN_BYTES_MIN: Final = 256
_SERVER_ADVICE: Final = (
    "for a server, run it in the foreground with ExecCommand and a small yield_time_ms, and it goes"
    " on as a task"
)


def looked_at(
    command: RunningCommand, redactor: Redactor, *, bytes_max: int
) -> tuple[OutputSpan, ...]:
    """Read and redact both ends of each stream, at least `bytes_max` bytes of each."""
    far = bytes_max + COMMAND_OUTPUT_MARGIN_BYTES
    spans = command.output(head_bytes=far, tail_bytes=far)
    return tuple(span_without_secrets(span, redactor.redact) for span in spans)


class ResultRenderer(Protocol):
    """Renders a result with a given amount of output."""

    def __call__(self, *, bytes_max: int) -> dict[str, JsonValue]:
        """Return the result with at most `bytes_max` bytes of output."""
        ...


def fitting_result(
    render: ResultRenderer, *, bytes_max: int, room_bytes: int = ROOM_BYTES
) -> dict[str, JsonValue]:
    """Return a result with the requested amount of output, or as much as fits."""
    result = render(bytes_max=bytes_max)
    if _JSON_BYTES_PER_BYTE_MAX * bytes_max + _FRAME_BYTES <= room_bytes:
        return result  # fits even if every byte is escaped
    while bytes_max > _SHOWN_BYTES_MIN and len(msgspec.json.encode(result)) > room_bytes:
        bytes_max //= 2
        result = render(bytes_max=bytes_max)
    return result


class UncheckedCommand(Record, frozen=True, kw_only=True):
    """A requested command, before its checks."""

    run_id: str
    cmd: str
    workdir: str | None = None
    shell: str | None = None
    login: bool = False
    tty: bool = False
    accepts_input: bool = False


async def checked_command(
    unchecked: UncheckedCommand, scene: ToolScene, places: Directories
) -> CommandSpec | ToolExecution:
    """Return the command ready to start, or the refusal that explains why it is not."""
    problem = _unusable_text(unchecked)
    if problem is not None:
        return problem
    workdir = await _resolved_workdir(unchecked.workdir, scene, places)
    if isinstance(workdir, ToolExecution):
        return workdir
    return CommandSpec(
        run_id=unchecked.run_id,
        cmd=unchecked.cmd,
        workdir=workdir,
        shell=unchecked.shell,
        login=unchecked.login,
        tty=unchecked.tty,
        accepts_input=unchecked.accepts_input,
        environment={
            "HOLON_AGENT_ID": scene.agent_id,
            "HOLON_AGENT_HOME": scene.agent_home,
            "HOLON_EFFECT_ID": scene.effect_id,
        },
    )


def _unusable_text(command: UncheckedCommand) -> ToolExecution | None:
    texts = (("cmd", command.cmd), ("workdir", command.workdir), ("shell", command.shell))
    for field, text in texts:
        if text is not None and "\0" in text:
            return refuse(
                "invalid_tool_input",
                f"`{field}` contains a NUL character",
                hint="leave it out, or write it as an escape the shell understands",
                field=field,
            )
    if not command.cmd.strip():
        return refuse("invalid_tool_input", "`cmd` is empty", hint="name a command", field="cmd")
    if len(command.cmd.encode()) > COMMAND_TEXT_BYTES_MAX:
        return refuse(
            "invalid_tool_input",
            f"`cmd` is longer than {COMMAND_TEXT_BYTES_MAX} bytes",
            hint="write the script to a file and run the file",
            field="cmd",
        )
    return None


async def _resolved_workdir(
    workdir: str | None, scene: ToolScene, places: Directories
) -> str | ToolExecution:
    root = await places.resolved(scene.execution_root)
    if root is None:
        return _no_directory(scene.execution_root, "the execution root does not exist any more")
    if not workdir and scene.cwd == scene.execution_root:
        return root
    path = posixpath.normpath(posixpath.join(scene.cwd, workdir or ""))
    resolved = await places.resolved(posixpath.join(scene.cwd, workdir or ""))
    if resolved is None:
        if not (_inside(path, root) or _inside(path, scene.execution_root)):
            return _outside(workdir, root)
        return _no_directory(path, "name a directory that exists")
    return resolved if _inside(resolved, root) else _outside(workdir, root)


def _inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _outside(workdir: str | None, root: str) -> ToolExecution:
    return refuse(
        "execution_root_violation",
        f"{workdir or 'the working directory'} is outside the execution root {root}",
        hint="use a directory inside the execution root, given relative to it",
        field="workdir",
    )


def _no_directory(path: str, hint: str) -> ToolExecution:
    return refuse(
        CommandSpawnError.code, f"there is no directory {path}", hint=hint, field="workdir"
    )


@asynccontextmanager
async def started(shell: Shell, spec: CommandSpec) -> AsyncIterator[RunningCommand]:
    """Start a command; an error in the block ends the command and deletes its files."""
    with anyio.CancelScope(shield=True):  # short, and a half-finished start would leave an orphan
        running = await shell.start(spec)
    try:
        yield running
    except (Exception, anyio.get_cancelled_exc_class()):
        with anyio.CancelScope(shield=True):
            await running.stop()
            await shell.forget(spec.run_id)
        raise


async def ended_within(running: RunningCommand, ms: int, clock: Clock) -> CommandExit | None:
    """Wait for a command; None when it still runs after `ms` milliseconds."""
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
    """End the processes an ended command left running; return notes about them."""
    if not running.left_running:
        return ()
    await running.stop()
    return (f"{LEFTOVERS_ENDED}; {_SERVER_ADVICE}",)


def spawn_refused(error: CommandSpawnError) -> ToolExecution:
    """Return the refusal for a command that could not be started."""
    return refuse(
        error.code,
        error.message,
        hint=error.hint or "check the shell and the working directory",
    )
