"""`holon timer`: what wakes an agent by the clock.

Owns:  creating, listing and cancelling timers from a terminal.
Rule 1: options without a command are those of `create`, as they were in earlier versions.
"""

from typing import TYPE_CHECKING

import click

from holon.cli.page_options import page_options, tell_of_more
from holon.cli.runtime_call import Target, agent_options, quoted

if TYPE_CHECKING:
    from holon.model.json_value import JsonValue


class _CreatesByDefault(click.Group):
    """A group that takes the options of `create` itself."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the command in where there are only its options."""
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["create", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_CreatesByDefault)
def timer() -> None:
    """Wake an agent after a while, once or again and again.

    \b
    Examples:
      holon timer create --after-ms 60000 --summary "Look at the build"
      holon timer --after-ms 60000
    """


@timer.command()
@click.option(
    "--after-ms", type=click.IntRange(1), required=True, metavar="MS", help="When it first fires."
)
@click.option(
    "--every-ms", type=click.IntRange(1), metavar="MS", help="How often it fires from then on."
)
@click.option("--summary", metavar="TEXT", help="What the agent is told when it fires.")
@agent_options
def create(target: Target, *, after_ms: int, every_ms: int | None, summary: str | None) -> None:
    """Set a timer for an agent.

    \b
    Examples:
      holon timer create --after-ms 60000 --summary "Look at the build"
      holon timer create --after-ms 1000 --every-ms 3600000 --agent builder
    """
    asked = {"duration_ms": after_ms, "interval_ms": every_ms, "summary": summary}
    answer = target.control(
        "timers", {name: value for name, value in asked.items() if value is not None}, part="timer"
    )
    target.show(answer, lambda: [_told(answer["timer"])])


@timer.command("list")
@page_options
@agent_options
def list_timers(target: Target, *, limit: int, after: str | None) -> None:
    """List the timers of an agent, those that will fire first.

    \b
    Examples:
      holon timer list
      holon timer list --agent builder --json | jq '.timers[].next_fire_at'
    """
    page = target.read("timers", {"limit": limit, "after": after}, part="timers")
    target.show(page, lambda: _table(page))
    tell_of_more(target, page)


@timer.command()
@click.argument("timer_id", metavar="TIMER")
@agent_options
def cancel(target: Target, *, timer_id: str) -> None:
    """Cancel a timer; it is silent from then on.

    \b
    Examples:
      holon timer cancel timer_01hx
    """
    answer = target.control(f"timers/{quoted(timer_id)}/cancel", part="timer")
    target.show(answer, lambda: [_told(answer["timer"])])


def _told(timer: "JsonValue") -> str:
    from holon.cli.tables import moment

    fires = timer.get("next_fire_at")
    when = f"fires at {moment(fires)} UTC" if fires else str(timer.get("status"))
    return f"{timer['id']}: {when}"


def _table(page: "JsonValue") -> list[str]:
    from holon.cli.tables import Column, moment, screen_cells, span, table_lines

    columns = (
        Column("TIMER"),
        Column("STATUS"),
        Column("NEXT (UTC)"),
        Column("EVERY"),
        Column("FIRED", is_number=True),
        Column("SUMMARY", shrinks=True),
    )
    rows = [
        (
            each.get("id"),
            each.get("status"),
            moment(each.get("next_fire_at")),
            span(each.get("interval_ms")),
            each.get("fire_count"),
            each.get("summary"),
        )
        for each in page["timers"]
    ]
    return table_lines(columns, rows, empty="no timers", cells_max=screen_cells())
