"""`holon agent`: manage the agents of a running runtime.

Owns:  listing, creating, starting, stopping, pausing and aborting agents, and choosing their
       models; `holon control`, an earlier name of some of these commands.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from holon.cli.agents.templates import as_address, complete_template
from holon.cli.console.completion import complete_agent, complete_model
from holon.cli.console.runtime_call import (
    Target,
    agent_options,
    as_list,
    as_object,
    page_options,
    runtime_options,
)

if TYPE_CHECKING:
    from holon.model.values import JsonValue

_DOWN: Final = ("stopped", "paused")


@click.group()
def agent() -> None:
    """List, create, start and stop agents, and choose their models.

    \b
    Examples:
      holon agent list
      holon agent create builder
      holon agent stop builder
      holon agent model get --agent builder
    """


@agent.command("list")
@page_options
@runtime_options
def list_agents(target: Target, *, limit: int, after: str | None) -> None:
    """List agents by name, with their activity.

    \b
    Examples:
      holon agent list
      holon agent list --json | jq -r '.agents[].identity.agent_id'
    """
    found = target.client.get_json("/agents/list", query={"limit": limit, "after": after})
    agents = [as_object(each, "identity") for each in as_list(found)]
    target.show({"agents": agents}, lambda: _table(agents))


def _table(agents: "JsonValue") -> list[str]:
    from holon.cli.console.output import Column, record_lines, with_moments

    columns = (
        Column("AGENT", lambda each: each["identity"]["agent_id"]),
        Column("STATUS", "status"),
        Column("POSTURE", lambda each: each["scheduling_posture"].get("posture")),
        Column("QUEUED", "pending", is_number=True),
        Column("MODEL", lambda each: each["model"].get("effective_model"), shrinks=True),
        Column(
            "WHY", lambda each: with_moments(each["scheduling_posture"].get("reason")), shrinks=True
        ),
    )
    return record_lines(columns, agents, empty="no agents")


@agent.command()
@click.argument(
    "agent",
    metavar="[NAME]",
    required=False,
    envvar="HOLON_AGENT_ID",
    shell_complete=complete_agent,
)
@runtime_options
def status(target: Target) -> None:
    """Show what an agent does and what it waits for.

    \b
    Examples:
      holon agent status
      holon agent status builder
    """
    from holon.cli.agents.status import show_status

    show_status(target)


@agent.command()
@click.argument("agent", metavar="NAME", shell_complete=complete_agent)
@click.option(
    "--template",
    shell_complete=complete_template,
    help="The template: its id, an absolute path, or a GitHub tree URL.",
)
@runtime_options
def create(target: Target, *, template: str | None) -> None:
    """Create an agent; it sleeps until an event wakes it.

    Its AGENTS.md and skills are copied from a template. If the template or one of its skills cannot
    be used, no agent is created.

    \b
    Examples:
      holon agent create builder
      holon agent create rev --template holon-reviewer
      holon agent create ops --template /srv/templates/ops
      holon agent create ci --template https://github.com/acme/agents/tree/main/templates/ci
    """
    if template is not None:
        from holon.decide.agents.templates import parse_selector

        template = as_address(template)
        parse_selector(template)
    answer = target.control("create", {} if template is None else {"template": template})
    target.show(answer, lambda: [f"created agent {target.agent_id}"])


@agent.command()
@click.argument("agent", metavar="NAME", shell_complete=complete_agent)
@runtime_options
def start(target: Target) -> None:
    """Start a stopped agent; no effect on a running one.

    The same as: holon agent resume.

    \b
    Examples:
      holon agent start builder
    """
    _resume(target, "start")


@agent.command()
@click.argument("agent", metavar="NAME", shell_complete=complete_agent)
@runtime_options
def resume(target: Target) -> None:
    """Resume a paused or stopped agent; no effect on a running one.

    \b
    Examples:
      holon agent resume builder
    """
    _resume(target, "resume")


@agent.command()
@click.argument("agent", metavar="NAME", shell_complete=complete_agent)
@runtime_options
def pause(target: Target) -> None:
    """Pause an agent; it accepts messages, but runs no turn until it is resumed.

    Its running turn is aborted. The pause or stop survives a restart of the runtime.

    \b
    Examples:
      holon agent pause builder
    """
    is_paused = _status_of(target) == "paused"
    _do(target, "pause", "is already paused" if is_paused else "is paused")


@agent.command()
@click.argument("agent", metavar="NAME", shell_complete=complete_agent)
@runtime_options
def stop(target: Target) -> None:
    """Stop an agent; its queue is kept, but no turn runs until it is started.

    Its running turn is aborted. The pause or stop survives a restart of the runtime.

    \b
    Examples:
      holon agent stop builder
    """
    is_down = _status_of(target) == "stopped"
    _do(target, "stop", "is already stopped" if is_down else "is stopped")


@agent.command()
@click.argument("agent", metavar="NAME", shell_complete=complete_agent)
@runtime_options
def abort(target: Target) -> None:
    """Abort the running turn of an agent; the agent stays available.

    \b
    Examples:
      holon agent abort builder
    """
    _do(target, "current-run/abort", "was told to end its turn")


def _resume(target: Target, verb: str) -> None:
    runs = _status_of(target) not in _DOWN
    _do(target, verb, "is already running" if runs else "may run")


def _status_of(target: Target) -> str:
    return str(target.read("status", part="agent")["agent"].get("status"))


def _do(target: Target, tail: str, now: str) -> None:
    answer = target.control(tail)
    target.show(answer, lambda: [f"{target.agent_id} {now}"])


@agent.group()
def model() -> None:
    """Show and choose the model of an agent.

    \b
    Examples:
      holon agent model get --agent builder
      holon agent model set anthropic/claude-sonnet-5-5 --agent builder
      holon agent model clear --agent builder
    """


@model.command("get")
@agent_options
def get_model(target: Target) -> None:
    """Show the model of an agent, and where it was chosen.

    \b
    Examples:
      holon agent model get --agent builder
      holon agent model get --json | jq -r .effective_model
    """
    _show_model(target)


@model.command("set")
@click.argument("ref", metavar="MODEL", shell_complete=complete_model)
@agent_options
def set_model(target: Target, *, ref: str) -> None:
    """Set the model of an agent, from its next turn on.

    A model that is not in the catalog is accepted with a warning; one whose provider is unknown or
    not usable is refused.

    \b
    Exit codes:
      0  the model is set
      1  no runtime runs, or it has no such agent
      2  MODEL is invalid, or the runtime cannot use it

    \b
    Examples:
      holon agent model set anthropic/claude-sonnet-5-5 --agent builder
    """
    from holon.cli.config.provider_access import open_provider_access, warn_if_unlisted
    from holon.model.errors import HolonError
    from holon.model.providers.models import parse_model_ref

    named = parse_model_ref(ref)
    target.control("model", {"model": ref})
    _show_model(target)
    with suppress(HolonError):  # the runtime knows it, and this home's settings do not
        warn_if_unlisted(open_provider_access(target.home).plane, named)


@model.command("clear")
@agent_options
def clear_model(target: Target) -> None:
    """Reset an agent to the runtime's model.

    \b
    Examples:
      holon agent model clear --agent builder
    """
    target.control("model/clear")
    _show_model(target)


def _show_model(target: Target) -> None:
    found = {"agent_id": target.agent_id, **target.read("status", part="model")["model"]}
    target.show(found, lambda: _model_lines(found))


def _model_lines(found: "JsonValue") -> list[str]:
    from holon.cli.console.output import fact_lines

    return fact_lines(
        [
            ("agent", found["agent_id"]),
            ("model", found.get("effective_model")),
            (
                "chosen by",
                {"agent_override": "you, for this agent"}.get(found.get("source"), "the runtime"),
            ),
            ("runtime's own", found.get("runtime_default_model")),
        ]
    )


@click.group()
def control() -> None:
    """Start, stop, pause, resume or abort an agent. An alias of `holon agent`.

    \b
    Examples:
      holon agent stop builder
    """


for each in (start, stop, pause, resume, abort):
    control.add_command(each)
