"""`holon task`: background commands of an agent.

Owns:  starting, listing, showing and stopping tasks, and sending them input.
"""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from holon.cli.console import exit_codes
from holon.cli.console.options import LABEL, OUTPUT_TOKENS, TEXT, YIELD_TIME, with_home
from holon.cli.console.runtime_call import Target, agent_options, calls, page_options, quoted

if TYPE_CHECKING:
    from holon.model.values import JsonValue

_BLOCK_MS_DEFAULT: Final = 30_000
_FIRST_PAUSE_MS: Final = 50
_PAUSE_MS_MAX: Final = 1_000
_TAKES_INPUT: Final = "--tty (accepts_input)"
_NOT_READY: Final = "not_ready"
_TIMEOUT: Final = "timeout"


_task_id = click.argument("task_id", metavar="TASK", type=TEXT)


class _RunsByDefault(click.Group):
    """A group that runs `run` if given its arguments without a command, as in earlier versions."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the command if none was given."""
        has_cmd = any(each == "--cmd" or each.startswith("--cmd=") for each in args)
        if has_cmd and args[0] not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_RunsByDefault)
def task() -> None:
    """Start, list, control and stop the background tasks of an agent.

    \b
    Examples:
      holon task run "Nightly build" --cmd "make nightly"
      holon task "Nightly build" --cmd "make nightly"
      holon task list
      holon task output task_01hx --block
    """


@task.command("run")
@click.argument("summary", type=LABEL)
@click.option("--cmd", required=True, type=TEXT, metavar="COMMAND", help="The command line to run.")
@click.option("--workdir", metavar="DIR", help="The directory, inside the agent's workspace.")
@click.option("--shell", metavar="PATH", help="The shell.")
@click.option("--login", is_flag=True, help="As a login shell.")
@click.option("--tty", is_flag=True, help="Run on a terminal; the task then accepts input.")
@click.option(
    "--yield-time-ms",
    type=YIELD_TIME,
    metavar="MS",
    help="Stored with the task: how long a foreground call would have waited for it.",
)
@click.option(
    "--max-output-tokens",
    type=OUTPUT_TOKENS,
    metavar="TOKENS",
    help="Stored with the task: how much of its output is shown.",
)
@agent_options
def run(target: Target, /, *, summary: str, cmd: str, **how: "JsonValue") -> None:
    """Run a command in the background for an agent.

    The agent receives the result. The task survives this command and a restart of the runtime.

    \b
    Examples:
      holon task run "Nightly build" --cmd "make nightly"
      holon task run "A shell" --cmd bash --tty
      holon task run "Tests" --cmd "pytest -q" --agent builder --json | jq -r .task.task_id
    """
    given = {name: value for name, value in how.items() if value is not None and value is not False}
    answer = target.control("tasks", {"summary": summary, "cmd": cmd, **given}, part="task")
    target.show(answer, lambda: [f"started: {answer['task']['task_id']}"])


def _table(page: "JsonValue") -> list[str]:
    from holon.cli.console.output import Column, moment, record_lines

    columns = (
        Column("TASK", "task_id"),
        Column("STATUS", "status"),
        Column("UPDATED (UTC)", lambda each: moment(each.get("updated_at"))),
        Column("EXIT", "exit_status", is_number=True),
        Column("SUMMARY", "summary", shrinks=True),
    )
    return record_lines(columns, page["tasks"], empty="no tasks")


@task.command("list")
@page_options
@calls("GET tasks", part="tasks", lines=_table)
def list_tasks() -> None:
    """List the tasks of an agent, running ones first.

    \b
    Examples:
      holon task list
      holon task list --agent builder --json | jq '.tasks[] | select(.status == "running")'
    """


def _facts(answer: "JsonValue") -> list[str]:
    from holon.cli.console.output import fact_lines, moment_utc

    command = answer.get("command") or {}
    return fact_lines(
        [
            ("task", answer.get("task_id")),
            ("status", answer.get("status")),
            ("summary", answer.get("summary")),
            ("created", moment_utc(answer.get("created_at"))),
            ("updated", moment_utc(answer.get("updated_at"))),
            ("work item", answer.get("work_item_id")),
            ("command", command.get("cmd")),
            ("in", command.get("workdir")),
            ("exit status", command.get("exit_status")),
            ("result", command.get("result_summary")),
            ("takes input", command.get("input_target")),
            ("output", command.get("output_path")),
        ]
    )


@task.command("status")
@_task_id
@calls("GET tasks/{task_id}", lines=_facts)
def status() -> None:
    """Show the state of a task, and where its output is stored.

    \b
    Examples:
      holon task status task_01hx
      holon task status task_01hx --json | jq -r .command.output_path
    """


@task.command("output")
@_task_id
@click.option("--block", is_flag=True, help="Wait until the task has ended, or the time is up.")
@click.option(
    "--timeout-ms",
    type=click.IntRange(0),
    metavar="MS",
    show_default=str(_BLOCK_MS_DEFAULT),
    help="The maximum wait of --block.",
)
@agent_options
def output(target: Target, *, task_id: str, block: bool, timeout_ms: int | None) -> None:
    """Print the output of a task so far.

    Of long output only the end is printed; `holon task status` names the file with all of it.

    \b
    Examples:
      holon task output task_01hx
      holon task output task_01hx --block --timeout-ms 60000
      holon task output task_01hx --json | jq .retrieval_status
    """
    if timeout_ms is not None and not block:
        raise click.UsageError("--timeout-ms requires --block")
    wait_ms = _BLOCK_MS_DEFAULT if timeout_ms is None else timeout_ms
    answer = _awaited(target, f"tasks/{quoted(task_id)}/output", wait_ms if block else 0)
    target.show(answer, lambda: _output_lines(answer["task"]))
    if not target.as_json and answer["task"].get("output_truncated"):
        see = with_home(f"holon task status {task_id}{target.agent_flag}")
        click.echo(f"holon: the output is truncated; see {see}", err=True)
    if not target.as_json and answer.get("retrieval_status") in (_NOT_READY, _TIMEOUT):
        click.echo("holon: the task is still running", err=True)


def _awaited(target: Target, tail: str, wait_ms: int) -> "JsonValue":
    """Poll the output until it is complete or the time is up."""
    deadline_ns = time.monotonic_ns() + wait_ms * 1_000_000
    pause_ms = _FIRST_PAUSE_MS
    while True:
        answer = target.read(tail, part="task")
        left_ms = (deadline_ns - time.monotonic_ns()) // 1_000_000
        if answer.get("retrieval_status") != _NOT_READY or not wait_ms:
            return answer
        if left_ms <= 0:
            return {**answer, "retrieval_status": _TIMEOUT}
        time.sleep(min(pause_ms, left_ms) / 1_000)
        pause_ms = min(2 * pause_ms, _PAUSE_MS_MAX)


def _output_lines(shown: "JsonValue") -> Iterator[str]:
    from holon.cli.console.output import indented

    yield from indented(str(shown.get("output_preview") or ""), by="")


@task.command("input")
@_task_id
@click.option("--text", required=True, help="The input; Enter follows it.")
@click.option("--no-enter", is_flag=True, help="Do not send Enter after it.")
@agent_options
def give_input(target: Target, *, task_id: str, text: str, no_enter: bool) -> None:
    """Send input to a task that accepts it.

    \b
    Exit codes:
      0  the task received it
      1  it was refused: the task has ended, or accepts no input

    \b
    Examples:
      holon task input task_01hx --text yes
      holon task input task_01hx --text "print(1)"
      holon task input task_01hx --text q --no-enter
    """
    body = {"input": text if no_enter else f"{text}\n"}
    answer = target.control(f"tasks/{quoted(task_id)}/input", body)
    is_taken = bool(answer.get("accepted_input"))
    target.show(answer, lambda: [_said(answer)] if is_taken else [])
    if is_taken:
        return
    if not target.as_json:
        click.echo(f"holon: {_said(answer)}", err=True)
    click.get_current_context().exit(exit_codes.FAILED)


def _said(answer: "JsonValue") -> str:
    from holon.cli.console.output import cell_text

    # The runtime speaks of the field; here it is set with an option.
    return cell_text(answer.get("summary_text")).replace("accepts_input", _TAKES_INPUT)


def _stopped(answer: "JsonValue") -> list[str]:
    if answer.get("force_stop_requested"):
        return [f"{answer['task_id']}: is being ended by force"]
    if answer.get("stop_requested"):
        return [f"{answer['task_id']}: was asked to end"]
    return [f"{answer['task_id']}: has already ended"]


@task.command("stop")
@_task_id
@calls("POST tasks/{task_id}/stop", part="task_id", lines=_stopped)
def stop() -> None:
    """Stop a task; a second stop kills it.

    \b
    Examples:
      holon task stop task_01hx
    """
