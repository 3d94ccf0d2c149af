"""`holon trigger`: the address at which others wake an agent.

Owns:  listing, showing, replacing and taking back an agent's external trigger, from a terminal.
Rule 1: the address is a secret. It stands on stdout alone, so that it can be piped to where secrets
        are kept; what is said about it stands on stderr.
"""

import sys
from typing import TYPE_CHECKING

import click

from holon.cli import exit_codes
from holon.cli.runtime_call import Target, agent_options
from holon.cli.suggested_commands import with_home

if TYPE_CHECKING:
    from holon.model.json_value import JsonValue


@click.group()
def trigger() -> None:
    """Show, replace and take back the address at which others wake an agent.

    \b
    Examples:
      holon trigger list --agent builder
      holon trigger url --agent builder
      holon trigger rotate --agent builder
    """


@trigger.command("list")
@agent_options
def list_triggers(target: Target) -> None:
    """List the triggers of an agent: who may wake it, and how often that happened.

    No address is shown; that is `holon trigger url`.

    \b
    Examples:
      holon trigger list --agent builder
      holon trigger list --json | jq '.external_triggers[].status'
    """
    found = target.read("external-triggers", part="external_triggers")
    for each in found["external_triggers"]:
        each.pop("trigger_url", None)
    target.show(found, lambda: _table(found))


def _table(found: "JsonValue") -> list[str]:
    from holon.cli.tables import Column, moment, record_lines

    columns = (
        Column("TRIGGER", "external_trigger_id"),
        Column("STATUS", "status"),
        Column("DELIVERS", "delivery_mode"),
        Column("DELIVERED", "delivery_count", is_number=True),
        Column("LAST (UTC)", lambda each: moment(each.get("last_delivered_at"))),
    )
    return record_lines(columns, found["external_triggers"], empty="no triggers")


@trigger.command()
@agent_options
def url(target: Target) -> None:
    """Print the address of an agent's trigger.

    Whoever has it can wake the agent, and nothing else: keep it like a password.

    \b
    Exit codes:
      0  here it is
      1  no runtime runs, or the address was taken back

    \b
    Examples:
      holon trigger url --agent builder
      holon trigger url --agent builder --json | jq -r .url
      curl -fsS -d '{"build": "red"}' "$(holon trigger url --agent builder)"
    """
    answer = target.control("external-trigger", part="external_trigger")
    _show(target, answer["external_trigger"])


@trigger.command()
@agent_options
def rotate(target: Target) -> None:
    """Give an agent's trigger a new address; every earlier one is void.

    \b
    Examples:
      holon trigger rotate --agent builder
    """
    answer = target.control("external-trigger/rotate", part="external_trigger")
    _show(target, answer["external_trigger"])


@trigger.command()
@agent_options
def revoke(target: Target) -> None:
    """Take the address of an agent's trigger back, until it is rotated.

    \b
    Examples:
      holon trigger revoke --agent builder
    """
    answer = target.control("external-trigger/revoke")
    target.show(answer, lambda: [f"{target.agent_id}: nobody can wake it from outside now"])


def _show(target: Target, found: "JsonValue") -> None:
    address = found.get("trigger_url")
    answer = {"agent_id": target.agent_id, "url": address, "external_trigger": found}
    target.show(answer, lambda: [address] if address else [])
    if not address:
        click.echo(f"holon: the trigger of {target.agent_id} is {found.get('status')}", err=True)
        rotate_it = with_home(f"holon trigger rotate --agent {target.agent_id}")
        click.echo(f"       give it a new address with: {rotate_it}", err=True)
        sys.exit(exit_codes.FAILED)
