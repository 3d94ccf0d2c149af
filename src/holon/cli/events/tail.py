"""`holon tail`: what an agent reports.

Owns:  how far back it reads, and the layout of one presented event.
Rule 1: the display mode selects the level of detail; raw events are shown by `holon events`.
"""

import time
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final

import click

from holon.cli.console.options import echo_json
from holon.cli.console.runtime_call import Target, agent_options, until_interrupted

if TYPE_CHECKING:
    from holon.cli.events.presented import PresentedEvent
    from holon.client.control_client import Query
    from holon.projections.events.presented import DisplayMode

_PAGES_COUNT_MAX: Final = 8  # of events, looked through for what a mode shows
_PAGE_COUNT: Final = 512
_SPOKEN: Final = ("brief", "assistant_progress")


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(1, 500),
    default=20,
    show_default=True,
    help="How many entries to show.",
)
@click.option("--follow", "-f", "follows", is_flag=True, help="Keep printing new entries.")
@click.option(
    "--display",
    metavar="MODE",
    default="info",
    show_default=True,
    help="How much to show: info (3) results, verbose (4) activity, debug (5) details.",
)
@agent_options
def tail(target: Target, *, limit: int, follows: bool, display: str) -> None:
    """Show the newest reports of an agent, oldest first.

    --follow continues until Ctrl-C, also across a restart of the runtime. --json prints one object,
    with --follow one object per line.

    \b
    Examples:
      holon tail
      holon tail --follow --display verbose
      holon tail --agent builder --limit 5 --json | jq '.events[].summary'
    """
    from holon.projections.events.presented import parse_display_mode

    mode = parse_display_mode(display)
    shown, place = _newest(target, limit, mode)
    if follows:
        with until_interrupted():
            while True:
                for each in chain(shown, _coming(target, place, mode)):
                    _print(each, as_json=target.as_json)
                click.echo("holon: the home was restored; showing its newest entries", err=True)
                shown, place = _newest(target, limit, mode)
    else:
        answer = {"agent_id": target.agent_id, "events": [each.as_json() for each in shown]}
        empty = f"{target.agent_id} has nothing to tell yet"
        target.show(answer, lambda: [line for each in shown for line in _lines(each)] or [empty])


def _newest(
    target: Target, limit: int, mode: "DisplayMode"
) -> tuple[list["PresentedEvent"], "Query"]:
    """Return the events to show, and the cursor to follow from."""
    from holon.cli.events.presented import presented_event
    from holon.projections.events.presented import shows

    shown: list[PresentedEvent] = []
    newest_seq, before_seq, epoch = 0, None, None
    for _ in range(_PAGES_COUNT_MAX):
        query: Query = {"limit": _PAGE_COUNT, "order": "desc", "before_seq": before_seq}
        page = target.read("events", query, part="events")
        newest_seq = newest_seq or int(page.get("newest_seq") or 0)
        epoch = page.get("event_log_epoch")
        seen = [presented_event(each) for each in reversed(page["events"])]
        shown = [*(each for each in seen if shows(mode, each.presented)), *shown]
        before_seq = page.get("oldest_seq")
        if len(shown) >= limit or not page.get("has_older") or before_seq is None:
            break
    return shown[-limit:], {"after_seq": newest_seq, "event_log_epoch": epoch}


def _coming(target: Target, place: "Query", mode: "DisplayMode") -> Iterator["PresentedEvent"]:
    """Yield new events, until the epoch of the event log changes."""
    from holon.cli.events.presented import presented_event
    from holon.client.control_client import ControlError
    from holon.client.event_stream import EPOCH_CHANGED, envelope_of, follow
    from holon.projections.events.presented import shows

    stream = target.path("events/stream")
    try:
        for each in follow(target.client, stream, pause=time.sleep, query=place):
            seen = presented_event(envelope_of(each))
            if shows(mode, seen.presented):
                yield seen
    except ControlError as refusal:
        if refusal.body.code != EPOCH_CHANGED:
            raise


def _print(seen: "PresentedEvent", *, as_json: bool) -> None:
    if as_json:
        echo_json(seen.as_json())
        return
    for line in _lines(seen):
        click.echo(line)


def _lines(seen: "PresentedEvent") -> list[str]:
    from holon.cli.console.output import indented, moment_utc
    from holon.cli.console.terminal_text import one_line

    told = seen.presented
    head = one_line(f"{moment_utc(seen.ts)} {told.title}")
    if seen.answers is not None:
        head += f" (answers {one_line(seen.answers)})"
    if told.visibility.value == "action_required":
        head += " (waits for you)"
    if told.body is None:
        return [f"{head}: {one_line(told.summary)}"]
    # What an agent said begins with its summary; elsewhere the body adds to it.
    said = told.category.value in _SPOKEN
    return [f"{head}:" if said else f"{head}: {one_line(told.summary)}", *indented(told.body)]
