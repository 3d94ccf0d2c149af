"""`holon run`: one prompt, one answer, and out.

Owns:  the words, the JSON and the exit codes of a one-shot run.
Rule 1: the answer goes to stdout and nothing else does; everything about it goes to stderr.
Rule 2: a run that failed ends with 1, so that a script need not read the answer to know.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holon.cli import exit_codes
from holon.cli.options import home_option, json_option

if TYPE_CHECKING:
    from holon.config.load_settings import Settings
    from holon.projections.run_result import RunResult


@click.command()
@click.argument("text")
@click.option("--agent", default="main", show_default=True, help="Who is asked; made if need be.")
@click.option("--model", help="The model for this run, as provider/model.")
@click.option(
    "--workspace-root",
    envvar="HOLON_WORKSPACE_DIR",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    show_default="the agent's own home",
    help="Where commands run and files change.",
)
@home_option
@json_option
def run(
    text: str, agent: str, model: str | None, workspace_root: str | None, home: Path, as_json: bool
) -> None:
    """Ask an agent one thing and print what it says when it has come to rest.

    The agent keeps its identity and its history under HOLON_HOME: the next run goes on from there.

    \b
    Exit codes:
      0  the agent answered (or waits for something, and said so)
      1  the turn failed; the reason is on stderr, and under failure_artifact with --json
      2  the command could not run: bad usage, bad settings, a home that is in use

    \b
    Examples:
      holon run "What is a holon?"
      holon run --model anthropic/claude-sonnet-5-5 "Summarize your day."
      holon run --workspace-root . "What does this project do?"
      holon run --json "Say hello." | jq .token_usage
    """
    import anyio

    from holon.config.load_settings import load_settings

    flags = {} if model is None else {"model.default": model}
    settings = load_settings(home, dict(os.environ), flags)
    result = anyio.run(_answered, settings, agent, text, workspace_root)
    _show(result, as_json=as_json)
    sys.exit(exit_codes.FAILED if result.final_status == "failed" else exit_codes.OK)


async def _answered(
    settings: "Settings", agent: str, text: str, workspace_root: str | None
) -> "RunResult":
    from holon.adapters.system.clock import SystemClock
    from holon.model.ids import parse_agent_id
    from holon.serve.configured_host import open_configured_host
    from holon.serve.one_shot import run_once

    agent_id = parse_agent_id(agent)
    environ = dict(os.environ)
    async with open_configured_host(settings, environ, workspace_root=workspace_root) as served:
        if served.plane.note is not None:
            click.echo(f"holon: {served.plane.note}", err=True)
        return await run_once(served.host, SystemClock(), agent_id=agent_id, text=text)


def _show(result: "RunResult", *, as_json: bool) -> None:
    from holon.wire.codec import encode

    if as_json:
        click.echo(encode(result).decode())
        return
    click.echo(result.final_text, err=result.final_status == "failed")
