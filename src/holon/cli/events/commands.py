"""`holon events`: the events of an agent.

Owns:  querying events, and their table.
Rule 1: with --json an event is the runtime's envelope, unchanged; as text it is its presentation.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

import click

from holon.cli.console.options import echo_json
from holon.cli.console.runtime_call import Target, agent_options, until_interrupted

if TYPE_CHECKING:
    from holon.client.control_client import Query
    from holon.model.values import JsonValue

_PAGE_COUNT: Final = 512
_LEVELS: Final = ("action_required", "work_done", "turn_result", "progress", "trace")

_level_option = click.option(
    "--max-level",
    type=click.Choice(_LEVELS),
    default="trace",
    show_default=True,
    help="Omit events less relevant to the operator than this.",
)
_after_option = click.option(
    "--after-seq", type=click.IntRange(0), metavar="SEQ", help="Only events after this one."
)


@click.group()
def events() -> None:
    """Read or follow the raw events of an agent.

    \b
    Examples:
      holon events tail --limit 10
      holon events stream --agent builder
      holon events stream --all
    """


@events.command("tail")
@click.option(
    "--limit",
    type=click.IntRange(1, 512),
    default=50,
    show_default=True,
    help="How many events to read.",
)
@click.option(
    "--order",
    type=click.Choice(["asc", "desc"]),
    show_default="desc; asc with --after-seq",
    help="The oldest (asc) or the newest (desc) first.",
)
@_level_option
@_after_option
@agent_options
def tail(
    target: Target, *, limit: int, order: str | None, max_level: str, after_seq: int | None
) -> None:
    """Show a page of an agent's events.

    --max-level filters the page after it was read, so fewer events than --limit may be shown.

    \b
    Examples:
      holon events tail
      holon events tail --order asc --after-seq 120 --limit 10
      holon events tail --max-level turn_result
      holon events tail --json | jq '.events[].type'
    """
    chosen = order or ("desc" if after_seq is None else "asc")
    query: Query = {
        "limit": limit,
        "order": chosen,
        "after_seq": after_seq,
        "max_level": max_level,
    }
    page = target.read("events", query, part="events")
    target.show(page, lambda: _table(page["events"]))


@events.command("stream")
@click.option(
    "--max-events", type=click.IntRange(1), metavar="N", help="End after this number of events."
)
@click.option(
    "--all", "of_all", is_flag=True, help="Of every agent; --after-seq then counts all events."
)
@_level_option
@_after_option
@agent_options
def stream(
    target: Target, *, max_events: int | None, of_all: bool, max_level: str, after_seq: int | None
) -> None:
    """Follow the events of one or all agents, one JSON object per line.

    Starts after --after-seq, or with the next event. Reconnects without losing or repeating an
    event, until Ctrl-C. (The output is always JSON; --json has no effect.)

    \b
    Exit codes:
      0  --max-events events were received
      1  no runtime runs, events after that number are no longer kept, or the home was restored
         from a backup meanwhile: its events are of another timeline then

    \b
    Examples:
      holon events stream
      holon events stream --after-seq 0 --max-events 10 | jq -r .type
      holon events stream --max-level turn_result
      holon events stream --all
    """
    followed = _followed_all if of_all else _followed
    with until_interrupted():
        for envelope in islice(followed(target, after_seq, max_level), max_events):
            echo_json(envelope)


def _followed(target: Target, after_seq: int | None, max_level: str) -> Iterator["JsonValue"]:
    from holon.client.event_stream import EPOCH, envelope_of, follow

    start, epoch = after_seq, None
    if start is None:
        page = target.read("events", {"limit": 1, "order": "desc"})
        start, epoch = int(page.get("newest_seq") or 0), page.get("event_log_epoch")
    else:  # what lies far back is paged through, then the stream goes on
        has_newer = True
        while has_newer:
            asked: Query = {
                "after_seq": start,
                "order": "asc",
                "limit": _PAGE_COUNT,
                "event_log_epoch": epoch,
                "max_level": max_level,
            }
            page = target.read("events", asked, part="events")
            epoch = page.get("event_log_epoch")
            yield from page["events"]
            start, has_newer = int(page.get("newest_seq") or start), bool(page.get("has_newer"))
    path = target.path("events/stream")
    query: Query = {"after_seq": start, EPOCH: epoch, "max_level": max_level}
    for each in follow(target.client, path, pause=time.sleep, query=query):
        yield envelope_of(each)


def _followed_all(target: Target, after_seq: int | None, max_level: str) -> Iterator["JsonValue"]:
    from holon.client.event_stream import envelope_of, follow

    query: Query = {"after_seq": after_seq, "max_level": max_level}
    for each in follow(target.client, "/events/stream", pause=time.sleep, query=query):
        yield envelope_of(each)


def _table(envelopes: Sequence["JsonValue"]) -> list[str]:
    from holon.cli.console.output import Column, moment, screen_cells, table_lines
    from holon.cli.events.presented import presented_event

    columns = (
        Column("SEQ", is_number=True),
        Column("WHEN (UTC)"),
        Column("KIND"),
        Column("WHAT", shrinks=True),
    )
    rows = [
        (each.event_seq, moment(each.ts), each.presented.source_event_kind, each.presented.summary)
        for each in map(presented_event, envelopes)
    ]
    return table_lines(columns, rows, empty="no events", cells_max=screen_cells())
