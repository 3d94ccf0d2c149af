"""Commands: how one is started, and how it ended.

Owns:  the nouns of command execution, shared by the shell port, the tools and the tasks.
Rule 1: a command is identified by a run id that exists before the process does; everything it
        leaves on disk is found by that id alone.
"""

from collections.abc import Mapping
from enum import StrEnum

from holon.model.command_limits import (
    COMMAND_FILE_BYTES_MAX,
    COMMAND_HANDLES_COUNT_MAX,
    COMMAND_OUTPUT_BYTES_MAX,
    COMMAND_PROCESSES_COUNT_MAX,
    COMMAND_WALL_CLOCK_MS_MAX,
)
from holon.model.instant import Instant
from holon.model.record import Record


class CommandLimits(Record, frozen=True, kw_only=True):
    """What a command may use before it is ended."""

    wall_clock_ms: int = COMMAND_WALL_CLOCK_MS_MAX
    output_bytes: int = COMMAND_OUTPUT_BYTES_MAX
    processes_count: int = COMMAND_PROCESSES_COUNT_MAX
    file_bytes: int = COMMAND_FILE_BYTES_MAX
    handles_count: int = COMMAND_HANDLES_COUNT_MAX


class CommandSpec(Record, frozen=True, kw_only=True):
    """Everything needed to start a command. `workdir` is absolute and has been checked."""

    run_id: str
    cmd: str
    workdir: str
    shell: str | None = None
    login: bool = False
    tty: bool = False
    accepts_input: bool = False
    environment: Mapping[str, str] = {}  # added to the allow-list: HOLON_AGENT_ID and the like
    limits: CommandLimits = CommandLimits()


class StopCause(StrEnum):
    """Why the runtime ended a command, when it did."""

    REQUESTED = "requested"
    WALL_CLOCK = "wall_clock"
    OUTPUT_SIZE = "output_size"
    PROCESSES = "processes"
    OUTPUT_LOST = "output_lost"  # it could not be written: the disk is full, or will not have it


class CommandExit(Record, frozen=True, kw_only=True):
    """How a command ended. Without a status its end was not seen: it is lost."""

    exit_status: int | None
    signal: int | None = None
    stopped: StopCause | None = None


class OutputStream(StrEnum):
    """Where output came from. A terminal has one combined stream."""

    STDOUT = "stdout"
    STDERR = "stderr"
    COMBINED = "combined"


class OutputSpan(Record, frozen=True, kw_only=True):
    """A bounded look at an output file: its beginning, its end, and how much there is in all."""

    stream: OutputStream
    path: str
    head: bytes
    tail: bytes  # empty when the head is all there is
    total_bytes: int


class EndedRun(Record, frozen=True, kw_only=True):
    """What an ended command still has on disk."""

    run_id: str
    ended_at: Instant
    size_bytes: int
