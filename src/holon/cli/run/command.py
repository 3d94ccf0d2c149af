"""`holon run`: one prompt, one answer.

Owns:  the options, the output and the exit codes of a one-shot run.
Rule 1: only the answer goes to stdout; everything else goes to stderr. With --json there is one
        object on stdout, also if the run could not start.
Rule 2: the exit code gives the outcome, so that a script need not parse the answer.
Rule 3: text output of a model is sanitized for the terminal; --json keeps it unchanged.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

import click

from holon.cli.agents.templates import complete_template
from holon.cli.console import exit_codes
from holon.cli.console.completion import complete_agent, complete_model
from holon.cli.console.options import PathParam, home_option, json_flag, text_of, with_home

if TYPE_CHECKING:
    from holon.cli.run.session import RunOutcome, RunRequest
    from holon.cli.run.view import RunView
    from holon.model.errors import HolonError
    from holon.projections.turns.run_result import RunResult

TRUST_CHOICES: Final = (
    "trusted-operator",
    "trusted-system",
    "trusted-integration",
    "untrusted-external",
)
_DIRECTORY: Final = PathParam(exists=True, file_okay=False, resolve_path=True)


class RunFlags(TypedDict):
    """The options as click passes them."""

    agent: str | None
    create_agent: bool
    template: str | None
    model: str | None
    rounds_max: int | None
    allow_trial_tools: bool
    wait_for_tasks: bool
    trust: str
    workspace_root: str | None
    cwd: str | None
    home: Path
    as_json: bool


@click.command()
@click.argument("text")
@click.option(
    "--agent",
    shell_complete=complete_agent,
    help="Who is asked.  [default: an agent made for this run]",
)
@click.option(
    "--create-agent", is_flag=True, help="Create the agent named by --agent if it does not exist."
)
@click.option(
    "--template",
    shell_complete=complete_template,
    help="The template of a new agent; needs --create-agent.",
)
@click.option(
    "--model",
    shell_complete=complete_model,
    help="The model for this run, as provider/model.",
)
@click.option(
    "--max-rounds",
    "--max-turns",
    "rounds_max",
    type=click.IntRange(min=1),
    help="Limit the number of model requests.",
)
@click.option(
    "--allow-trial-tools",
    is_flag=True,
    help="Let a trial model (local/…) run commands and change files in this run.",
)
@click.option(
    "--no-wait-for-tasks",
    "wait_for_tasks",
    flag_value=False,
    default=True,
    help="End when the agent first sleeps, and leave its background tasks running.",
)
@click.option(
    "--trust",
    type=click.Choice(TRUST_CHOICES),
    default=TRUST_CHOICES[0],
    show_default=True,
    help="The trust level of TEXT: your own, or lower.",
)
@click.option(
    "--workspace-root",
    envvar="HOLON_WORKSPACE_DIR",
    type=_DIRECTORY,
    show_default="--cwd, or the agent's own home",
    help="The directory commands and patches work in.",
)
@click.option(
    "--cwd",
    type=_DIRECTORY,
    show_default="the workspace root",
    help="Where commands start; inside the workspace root.",
)
@home_option
@json_flag
def run(text: str, **flags: Unpack[RunFlags]) -> None:
    """Send one prompt to an agent and print its answer when it has finished.

    Without --agent the run uses a temporary agent, which is archived when no work is left. A named
    agent keeps its history under HOLON_HOME, and the next run continues it. The run waits for the
    agent's background tasks. The text - is read from stdin.

    Ctrl-C aborts the turn and the run; the agent keeps its state, its background tasks keep
    running, and it can be prompted again. A second Ctrl-C ends the process at once.

    \b
    Exit codes:
      0    the agent completed the prompt
      1    the run failed, the model cannot be used, or the rounds are used up; the reason
           is on stderr, and under failure_artifact with --json
      2    the command could not run: bad usage, settings that cannot be read, a home that
           is in use
      3    the agent waits for your answer, or for what waiting_reason says with --json;
           work_left means that it is not done
      130  interrupted with Ctrl-C

    \b
    Examples:
      holon run "What is the capital of France?"
      holon run - < question.txt
      holon run --cwd . "Why does the build fail?"
      holon run --agent ada --create-agent "You look after this machine."
      holon run --agent rev --create-agent --template holon-reviewer "Review the last commit."
      holon run --model anthropic/claude-sonnet-5-5 --max-rounds 20 "Summarize your day."
      holon run --allow-trial-tools "Run the command: date"
      holon run --json "Say hello." | jq .token_usage
    """
    from holon.model.errors import HolonError

    said = text_of(text)
    try:
        end = _carried_out(said, flags)
    except HolonError as error:
        if flags["as_json"]:
            _show_failure(error)
        raise
    except KeyboardInterrupt:
        sys.exit(exit_codes.INTERRUPTED)
    if flags["as_json"] or end.stopped_by is None:
        _show(end.result, as_json=flags["as_json"])
    _tell_how_to_go_on(end)
    sys.exit(_exit_code(end))


def _carried_out(text: str, flags: RunFlags) -> "RunOutcome":
    import anyio

    from holon.adapters.system.processes import become_unreadable
    from holon.cli.run.session import carry_out
    from holon.config.load_settings import load_settings

    become_unreadable()  # commands of the agent run as the same user
    order = _order(text, flags)
    model = flags["model"]
    chosen = {} if model is None else {"model.default": model}
    if flags["allow_trial_tools"]:
        chosen["model.allow_trial_tools"] = "true"
    settings = load_settings(flags["home"], dict(os.environ), chosen)
    return anyio.run(carry_out, settings, order, _view(as_json=flags["as_json"]))


def _order(text: str, flags: RunFlags) -> "RunRequest":
    from holon.cli.run.session import RunRequest
    from holon.model.errors import BadInputError
    from holon.model.queue import TrustLevel
    from holon.model.values import parse_agent_id, require_unicode

    require_unicode(text)
    if not text.strip():
        raise BadInputError("TEXT is empty", hint='give a text: holon run "…"')
    _check_new_agent(flags)
    agent, cwd, root = flags["agent"], flags["cwd"], flags["workspace_root"]
    if cwd is not None and root is not None and not Path(cwd).is_relative_to(root):
        raise BadInputError(
            f"--cwd {cwd} is not inside the workspace root {root}",
            hint="choose a directory inside it, or omit --workspace-root",
        )
    return RunRequest(
        text=text,
        agent_id=None if agent is None else parse_agent_id(agent),
        create_agent=flags["create_agent"],
        template=flags["template"],
        trust=TrustLevel(flags["trust"].replace("-", "_")),
        rounds_max=flags["rounds_max"],
        wait_for_tasks=flags["wait_for_tasks"],
        workspace_root=root or cwd,
        workspace_cwd=cwd,
    )


def _check_new_agent(flags: RunFlags) -> None:
    from holon.decide.agents.templates import parse_selector
    from holon.model.errors import BadInputError

    if flags["create_agent"] and flags["agent"] is None:
        raise BadInputError("--create-agent needs a name", hint="add --agent NAME")
    if flags["template"] is not None and not flags["create_agent"]:
        raise BadInputError("--template is for a new agent", hint="add --agent NAME --create-agent")
    if flags["template"] is not None:
        parse_selector(flags["template"])


def _view(*, as_json: bool) -> "RunView":
    from holon.adapters.system.clock import SystemClock
    from holon.cli.run.view import NoView, view_for

    if as_json:
        return NoView()
    return view_for(sys.stderr, SystemClock(), terminal_kind=os.environ.get("TERM"))


def _show(result: "RunResult", *, as_json: bool) -> None:
    from holon.cli.console.terminal_text import plain

    if as_json:
        from holon.wire.codec import encode

        click.echo(encode(result).decode())
        return
    for text in result.texts:
        click.echo(plain(text))
    if result.failed and result.final_text:
        click.echo(with_home(plain(result.final_text)), err=True)


def _show_failure(error: "HolonError") -> None:
    from holon.decide.turns.failures import failure_of
    from holon.projections.turns.run_result import RunFacts, run_result

    _show(run_result(RunFacts(agent_id=None, failure=failure_of(error))), as_json=True)


def _tell_how_to_go_on(end: "RunOutcome") -> None:
    """Print the work that is left, if any."""
    from holon.cli.console.terminal_text import one_line

    said = _left_over(end)
    if said is not None:
        click.echo(f"holon: {said}; its state is kept. Continue with:", err=True)
        again = with_home(f'holon run --agent {end.result.agent_id} "…"')
        click.echo(f"       {again}", err=True)
    for task in end.running:
        name = one_line(task.summary or task.kind.value)
        click.echo(f"holon: still running: {name} ({task.id})", err=True)


def _left_over(end: "RunOutcome") -> str | None:
    from holon.model.turns.turn import WaitingReason
    from holon.projections.turns.run_result import WORK_LEFT, FinalStatus

    if end.stopped_by is not None:
        return "the agent was stopped"
    if end.result.final_status is FinalStatus.MAX_TURNS_EXCEEDED:
        return "the agent had work left"
    if end.result.final_status is not FinalStatus.WAITING:
        return None
    if end.result.waiting_reason == WaitingReason.AWAITING_OPERATOR_INPUT:
        return "the agent waits for your answer"
    if end.result.waiting_reason == WORK_LEFT:
        return "work is left"
    return f"the agent waits ({end.result.waiting_reason or 'for its turn'})"


def _exit_code(end: "RunOutcome") -> int:
    from holon.cli.run.session import STOP_SIGNALS
    from holon.projections.turns.run_result import FinalStatus

    if end.stopped_by is not None:
        return STOP_SIGNALS[end.stopped_by]
    if end.result.final_status is FinalStatus.WAITING:
        return exit_codes.WAITING
    return exit_codes.FAILED if end.result.failed else exit_codes.OK
