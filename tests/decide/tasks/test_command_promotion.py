"""Which commands are the same, and what a model reads about one."""

from typing import Any

import msgspec
import pytest

from holon.decide.tasks.commands import (
    PromotionFacts,
    already_running_result,
    command_digest,
    completed_result,
    output_paths_of,
    promoted_result,
    promoted_task,
    run_id_of,
    run_ids_of_call,
    running_duplicate,
    spec_of,
)
from holon.model.limits import COMMAND_BATCH_ITEMS_COUNT_MAX
from holon.model.queue import TrustLevel
from holon.model.tasks import (
    CommandExit,
    CommandSpec,
    OutputSpan,
    OutputStream,
    StopCause,
    TaskStatus,
)
from holon.model.values import TaskId
from tests.support.builders import MAIN, START, a_task

COMMAND = CommandSpec(run_id="turn_1.1.0", cmd="make", workdir="/w")


def span(data: bytes, stream: OutputStream = OutputStream.STDOUT) -> OutputSpan:
    """A look that shows everything."""
    return OutputSpan(
        stream=stream, path=f"/{stream.value}", head=data, tail=b"", total_bytes=len(data)
    )


def promoted(command: CommandSpec = COMMAND) -> Any:
    """The record of a command that was promoted."""
    return promoted_task(
        PromotionFacts(
            task_id=TaskId("task_1"),
            agent_id=MAIN,
            command=command,
            shown_cmd=command.cmd,
            trust=TrustLevel.TRUSTED_OPERATOR,
            now=START,
            yield_time_ms=10,
            spans=(span(b"x"), span(b"", OutputStream.STDERR)),
        )
    )


@pytest.mark.requirement("command-tools:running-duplicates-are-reused")
@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"run_id": "other"}, True),
        ({"accepts_input": True}, True),
        ({"environment": {"A": "b"}}, True),
        ({"cmd": "make all"}, False),
        ({"workdir": "/w2"}, False),
        ({"shell": "zsh"}, False),
        ({"login": True}, False),
        ({"tty": True}, False),
    ],
    ids=str,
)
def test_commands_are_the_same_by_what_they_do(changed: dict[str, Any], *, same: bool) -> None:
    other = msgspec.structs.replace(COMMAND, **changed)
    assert (command_digest(other) == command_digest(COMMAND)) is same
    assert (running_duplicate([a_task("task_7"), promoted()], other) is not None) is same


def test_a_command_on_its_way_out_is_no_reason_not_to_start() -> None:
    leaving = msgspec.structs.replace(promoted(), status=TaskStatus.CANCELLING)
    assert running_duplicate([leaving], COMMAND) is None


def test_a_promoted_record_says_what_a_restart_needs() -> None:
    task = promoted()
    assert run_id_of(task) == "turn_1.1.0"
    assert output_paths_of(task) == ("/stdout", "/stderr")
    spec = spec_of(task)
    assert spec is not None
    assert (spec.cmd, spec.workdir, spec.yield_time_ms) == ("make", "/w", 10)
    assert task.recovery.promoted_from_exec_command


@pytest.mark.parametrize("detail", [None, {}, [], "x", {"run_id": 7, "output_paths": "no"}])
def test_a_record_without_these_has_none(detail: Any) -> None:
    task = msgspec.structs.replace(a_task(), detail=detail)
    assert (run_id_of(task), output_paths_of(task), spec_of(task)) == (None, (), None)


@pytest.mark.requirement("command-tools:dispositions-do-not-mix")
def test_each_disposition_has_its_own_fields() -> None:
    task = promoted()
    done = completed_result(CommandExit(exit_status=0), (span(b"x"),), bytes_max=1_000)
    going_on = promoted_result(task, (span(b"x"),), bytes_max=1_000)
    twin = already_running_result(task, COMMAND)
    assert set(done) & set(going_on) == {"disposition"}
    assert set(done) & set(twin) == {"disposition"}
    assert set(going_on) & set(twin) == {"disposition", "task_handle"}
    assert going_on["task_handle"] == {
        "task_id": "task_1",
        "task_kind": "command_task",
        "status": "running",
    }


def test_an_end_by_signal_or_by_a_limit_is_told() -> None:
    ended = CommandExit(exit_status=None, signal=9, stopped=StopCause.WALL_CLOCK)
    told = completed_result(ended, (span(b""),), bytes_max=1_000)
    assert (told["exit_status"], told["signal"], told["stopped"]) == (None, 9, "wall_clock")


def test_only_what_was_cut_has_an_artifact() -> None:
    spans = (span(b"x" * 100), span(b"y", OutputStream.STDERR))
    told = completed_result(CommandExit(exit_status=0), spans, bytes_max=80)
    assert told["artifacts"] == [{"path": "/stdout"}]
    assert told["stdout_artifact"] == 0
    assert "stderr_artifact" not in told


def test_a_terminal_has_one_stream() -> None:
    told = completed_result(
        CommandExit(exit_status=0), (span(b"tty", OutputStream.COMBINED),), bytes_max=1_000
    )
    assert (told["stdout_preview"], told["stderr_preview"]) == ("tty", "")


@pytest.mark.requirement("command-tools:cut-off-command-is-ended")
def test_a_call_names_every_run_it_may_have_started() -> None:
    assert run_ids_of_call("ExecCommand", "t.1.0") == ("t.1.0",)
    batch = run_ids_of_call("ExecCommandBatch", "t.1.0")
    assert batch[:2] == ("t.1.0.0", "t.1.0.1")
    assert len(batch) == COMMAND_BATCH_ITEMS_COUNT_MAX
    assert run_ids_of_call("Sleep", "t.1.0") == ()
