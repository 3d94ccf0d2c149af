"""`holon timer` and `holon trigger`: what wakes an agent.

Owns:  creating, listing and cancelling timers; listing, showing, rotating and revoking an agent's
       external trigger.
Rule 1: `holon timer` with options but without a command means `create`, as in earlier versions.
Rule 2: a trigger address is a secret. It is the only output on stdout, so that it can be piped into
        a secret store; everything else goes to stderr.
"""

import sys
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

import click

from holon.cli.console import exit_codes
from holon.cli.console.options import LABEL, TEXT, TIMER_AFTER, TIMER_EVERY, with_home
from holon.cli.console.runtime_call import Target, agent_options, calls, page_options

if TYPE_CHECKING:
    from holon.model.values import JsonValue


_BAD_SCHEDULE: Final = "bad_schedule"


class _TimerOptions(TypedDict):
    """The options of `create`."""

    after_ms: int | None
    every_ms: int | None
    expression: str | None
    zone: str | None
    summary: str | None


class _CreatesByDefault(click.Group):
    """A group that runs `create` if given its options without a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the command if only its options were given."""
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["create", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_CreatesByDefault)
def timer() -> None:
    """Wake an agent at a time, once or repeatedly.

    \b
    Examples:
      holon timer create --after-ms 60000 --summary "Look at the build"
      holon timer --after-ms 60000
    """


@timer.command()
@click.option("--after-ms", type=TIMER_AFTER, metavar="MS", help="The delay until it first fires.")
@click.option("--every-ms", type=TIMER_EVERY, metavar="MS", help="The interval from then on.")
@click.option(
    "--cron",
    "expression",
    metavar="EXPR",
    help="When it fires: minute, hour, day of the month, month, day of the week.",
)
@click.option(
    "--zone",
    metavar="TZ",
    show_default="UTC",
    help="The time zone of --cron, such as Europe/Berlin.",
)
@click.option(
    "--summary", type=LABEL, metavar="TEXT", help="The text the agent gets when it fires."
)
@agent_options
def create(target: Target, /, **asked: Unpack[_TimerOptions]) -> None:
    """Set a timer for an agent: after a delay, or by a cron expression.

    \b
    Exit codes:
      0  the timer is set
      1  the runtime refused it or cannot be reached
      2  the options contradict each other, or the expression or the zone is invalid

    \b
    Examples:
      holon timer create --after-ms 60000 --summary "Look at the build"
      holon timer create --after-ms 1000 --every-ms 3600000 --agent builder
      holon timer create --cron "30 9 * * mon-fri" --zone Europe/Berlin --summary "Stand-up"
      holon timer create --cron "0 */6 * * *"
    """
    _require_one_form(asked)
    answer = _created(
        target,
        {
            "duration_ms": asked["after_ms"],
            "interval_ms": asked["every_ms"],
            "expression": asked["expression"],
            "zone": asked["zone"],
            "summary": asked["summary"],
        },
    )
    target.show(answer, lambda: _told(answer))


def _require_one_form(asked: _TimerOptions) -> None:
    """Refuse an invalid combination of timer options."""
    if asked["every_ms"] is not None and not (asked["after_ms"] or asked["expression"]):
        raise click.UsageError("--every-ms needs --after-ms: when it first fires")
    if (asked["after_ms"] is None) == (asked["expression"] is None):
        raise click.UsageError("give either --after-ms or --cron")
    if asked["expression"] is None and asked["zone"] is not None:
        raise click.UsageError("--zone requires --cron")
    if asked["expression"] is not None and asked["every_ms"] is not None:
        raise click.UsageError("--every-ms requires --after-ms; --cron repeats anyway")


def _created(target: Target, body: "dict[str, JsonValue]") -> "JsonValue":
    """Create the timer; an invalid schedule is reported as bad usage."""
    from holon.client.control_client import ControlError

    given = {name: value for name, value in body.items() if value is not None}
    try:
        return target.control("timers", given, part="timer")
    except ControlError as error:
        if error.body.code != _BAD_SCHEDULE:
            raise
        hint = f"; {error.body.hint}" if error.body.hint else ""
        raise click.UsageError(f"{error.body.error}{hint}") from None


def _told(answer: "JsonValue") -> list[str]:
    from holon.cli.console.output import moment_utc

    timer = answer["timer"]
    fires = timer.get("next_fire_at")
    when = f"fires at {moment_utc(fires)}" if fires else str(timer.get("status"))
    return [f"{timer['id']}: {when}"]


def _rhythm(timer: "JsonValue") -> str:
    """Return how it repeats: an interval, or a cron expression with its time zone."""
    from holon.cli.console.output import span

    if timer.get("expression") is None:
        return span(timer.get("interval_ms"))
    return f"{timer['expression']} ({timer.get('zone') or 'UTC'})"


def _timer_table(page: "JsonValue") -> list[str]:
    from holon.cli.console.output import Column, moment, record_lines

    columns = (
        Column("TIMER", "id"),
        Column("STATUS", "status"),
        Column("NEXT (UTC)", lambda each: moment(each.get("next_fire_at"))),
        Column("EVERY", _rhythm),
        Column("FIRED", "fire_count", is_number=True),
        Column("SUMMARY", "summary", shrinks=True),
    )
    return record_lines(columns, page["timers"], empty="no timers")


@timer.command("list")
@page_options
@calls("GET timers", part="timers", lines=_timer_table)
def list_timers() -> None:
    """List the timers of an agent, active ones first.

    \b
    Examples:
      holon timer list
      holon timer list --agent builder --json | jq '.timers[].next_fire_at'
    """


@timer.command()
@click.argument("timer_id", metavar="TIMER", type=TEXT)
@calls("POST timers/{timer_id}/cancel", part="timer", lines=_told)
def cancel() -> None:
    """Cancel a timer; it no longer fires.

    \b
    Examples:
      holon timer cancel timer_01hx
    """


@click.group()
def trigger() -> None:
    """Show, rotate and revoke the address at which external systems wake an agent.

    \b
    Examples:
      holon trigger list --agent builder
      holon trigger url --agent builder
      holon trigger rotate --agent builder
    """


@trigger.command("list")
@agent_options
def list_triggers(target: Target) -> None:
    """List the triggers of an agent, and how often each was used.

    Addresses are masked; see `holon trigger url`.

    \b
    Examples:
      holon trigger list --agent builder
      holon trigger list --json | jq '.external_triggers[].status'
    """
    found = target.read("external-triggers", part="external_triggers")
    for each in found["external_triggers"]:
        each.pop("trigger_url", None)
    target.show(found, lambda: _trigger_table(found))


def _trigger_table(found: "JsonValue") -> list[str]:
    from holon.cli.console.output import Column, moment, record_lines

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

    A holder of the address can wake the agent, and nothing else: protect it like a password.

    \b
    Exit codes:
      0  success
      1  no runtime runs, or the address was revoked

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
    """Rotate an agent's trigger to a new address; all earlier ones become invalid.

    \b
    Examples:
      holon trigger rotate --agent builder
    """
    answer = target.control("external-trigger/rotate", part="external_trigger")
    _show(target, answer["external_trigger"])


@trigger.command()
@agent_options
def revoke(target: Target) -> None:
    """Revoke the address of an agent's trigger until it is rotated.

    \b
    Examples:
      holon trigger revoke --agent builder
    """
    answer = target.control("external-trigger/revoke")
    target.show(
        answer,
        lambda: [f"{target.agent_id}: no outside system can wake it now"],
    )


def _show(target: Target, found: "JsonValue") -> None:
    address = found.get("trigger_url")
    answer = {"agent_id": target.agent_id, "url": address, "external_trigger": found}
    target.show(answer, lambda: [address] if address else [])
    if not address:
        click.echo(f"holon: the trigger of {target.agent_id} is {found.get('status')}", err=True)
        rotate_it = with_home(f"holon trigger rotate --agent {target.agent_id}")
        click.echo(f"       give it a new address with: {rotate_it}", err=True)
        sys.exit(exit_codes.FAILED)
