"""How a command's end becomes its task's end."""

import msgspec
import pytest

from holon.decide.tasks.commands import EndRequest, end_of_task, failure_kind_of, how_it_ended
from holon.model.tasks import CommandExit, StopCause, TaskStatus
from tests.support.builders import a_task

TASK = msgspec.structs.replace(a_task(), summary="make all")
CLEAN = CommandExit(exit_status=0)
TERMINATED = CommandExit(exit_status=None, signal=15, stopped=StopCause.REQUESTED)
LOST = CommandExit(exit_status=None)


@pytest.mark.requirement("task-tools:failure-carries-an-artifact")
@pytest.mark.parametrize(
    ("ended", "asked", "status", "kind"),
    [
        (CLEAN, EndRequest.NOT_REQUESTED, TaskStatus.COMPLETED, None),
        (CommandExit(exit_status=1), EndRequest.NOT_REQUESTED, TaskStatus.FAILED, "command_failed"),
        (
            CommandExit(exit_status=None, signal=9),
            EndRequest.NOT_REQUESTED,
            TaskStatus.FAILED,
            "command_failed",
        ),
        (
            CommandExit(exit_status=None, signal=9, stopped=StopCause.WALL_CLOCK),
            EndRequest.NOT_REQUESTED,
            TaskStatus.FAILED,
            "command_timed_out",
        ),
        (
            CommandExit(exit_status=0, stopped=StopCause.OUTPUT_SIZE),
            EndRequest.NOT_REQUESTED,
            TaskStatus.FAILED,
            "command_output_too_large",
        ),
        (
            CommandExit(exit_status=None, stopped=StopCause.PROCESSES),
            EndRequest.NOT_REQUESTED,
            TaskStatus.FAILED,
            "command_too_many_processes",
        ),
        (LOST, EndRequest.NOT_REQUESTED, TaskStatus.INTERRUPTED, "command_lost"),
        (TERMINATED, EndRequest.TASK_STOP, TaskStatus.CANCELLED, "task_cancelled"),
        (CLEAN, EndRequest.TASK_STOP, TaskStatus.CANCELLED, "task_cancelled"),
        (
            TERMINATED,
            EndRequest.AGENT_STOP,
            TaskStatus.INTERRUPTED,
            "task_interrupted_on_agent_stop",
        ),
    ],
)
def test_who_asked_and_how_it_ended_decide_the_status(
    ended: CommandExit, asked: EndRequest, status: TaskStatus, kind: str | None
) -> None:
    advance = end_of_task(TASK, ended, asked=asked, output="")
    assert advance.status is status
    assert (advance.failure.kind if advance.failure else None) == kind
    assert advance.exit_status == ended.exit_status
    assert advance.result_summary is not None
    assert advance.result_summary.startswith("make all: ")


def test_a_result_says_how_it_ended_before_it_shows_output() -> None:
    advance = end_of_task(TASK, CLEAN, asked=EndRequest.NOT_REQUESTED, output="42 passed\n")
    assert advance.result_summary == "make all: ended with exit status 0\n\n42 passed\n"


def test_an_artifact_holds_the_line_and_none_of_the_output() -> None:
    ended = CommandExit(exit_status=2)
    advance = end_of_task(TASK, ended, asked=EndRequest.NOT_REQUESTED, output="secret stuff")
    assert advance.failure is not None
    assert advance.failure.summary == "make all: ended with exit status 2"
    assert (advance.failure.task_id, advance.failure.exit_status) == (TASK.id, 2)


@pytest.mark.parametrize("cause", [*StopCause, None])
def test_every_cause_has_words_and_a_kind(cause: StopCause | None) -> None:
    ended = CommandExit(exit_status=None, signal=9, stopped=cause)
    assert how_it_ended(ended)
    assert failure_kind_of(ended).startswith("command_")
