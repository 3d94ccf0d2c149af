"""`holon transcript`: the turns of an agent.

Owns:  the layout of a turn on a terminal.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from holon.cli.console.runtime_call import Target, agent_options

if TYPE_CHECKING:
    from holon.model.values import JsonValue


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(1, 50),
    default=50,
    show_default=True,
    help="How many turns to show.",
)
@click.option(
    "--before", type=click.IntRange(1), metavar="TURN", help="Only turns before this one."
)
@agent_options
def transcript(target: Target, *, limit: int, before: int | None) -> None:
    """Show the newest turns of an agent, oldest first.

    Input, answers, tool calls with their results, failures and every provider attempt. Long texts
    are truncated; --json contains more of them.

    \b
    Examples:
      holon transcript --limit 3
      holon transcript --agent builder --before 40
      holon transcript --json | jq '.turns[0].entries[].kind'
    """
    page = target.read("transcript", {"limit": limit, "before": before}, part="turns")
    target.show(page, lambda: _lines(page, target.agent_id))


def _lines(page: "JsonValue", agent_id: str) -> Iterator[str]:
    if not page["turns"]:
        yield f"{agent_id} has no turns"
    for turn in reversed(page["turns"]):
        yield from _turn_lines(turn)


def _turn_lines(turn: "JsonValue") -> Iterator[str]:
    from holon.cli.console.output import cell_text, counted, moment_utc, span

    terminal = turn.get("terminal")
    ended = "still open"
    if terminal:
        ended = f"{terminal.get('kind')} after {span(terminal.get('duration_ms'))}"
        if terminal.get("reason"):
            ended += f": {cell_text(terminal['reason'])}"
    opened = moment_utc(turn.get("opened_at"))
    yield f"── turn {turn.get('turn_index')}  {opened}  {cell_text(ended)}"
    for entry in turn.get("entries") or ():
        yield from _entry_lines(entry)
    if turn.get("omitted_entry_count"):
        yield f"  … {counted(turn['omitted_entry_count'], 'more entries')} between these"


def _entry_lines(entry: "JsonValue") -> Iterator[str]:
    from holon.cli.console.output import cell_text, indented

    about = [entry.get("message_kind"), (entry.get("origin") or {}).get("kind")]
    about += [f"round {entry['round']}"] if entry.get("round") else []
    about += [f"asked for {', '.join(entry['tool_names'])}"] if entry.get("tool_names") else []
    said = ", ".join(str(each) for each in about if each)
    yield cell_text(f"{entry.get('kind')}{f' ({said})' if said else ''}")
    yield from indented(str(entry.get("text") or ""))
    for result in entry.get("tool_results") or ():
        yield from _result_lines(result)
    yield from _attempt_lines(entry.get("provider_attempt_timeline"))
    failure = entry.get("failure") or {}
    if failure.get("recovery_hint"):
        yield from indented(f"hint: {failure['recovery_hint']}")


def _result_lines(result: "JsonValue") -> Iterator[str]:
    from holon.cli.console.output import cell_text, indented, span

    how = result.get("error_kind") or result.get("state")
    took = span(result.get("duration_ms"))
    yield "  " + cell_text(f"{result.get('tool_name')}: {how}{f', {took}' if took else ''}")
    yield from indented(str(result.get("input_preview") or ""), by="    > ")
    yield from indented(str(result.get("result_preview") or ""), by="    ")


def _attempt_lines(timeline: "JsonValue") -> Iterator[str]:
    """Return the attempts of a round, unless a single one succeeded."""
    from holon.cli.console.output import cell_text

    attempts = (timeline or {}).get("attempts") or ()
    if len(attempts) < 2 and not any(each.get("failure_kind") for each in attempts):
        return
    for each in attempts:
        told = [each.get("model_ref"), each.get("outcome"), each.get("failure_kind")]
        told.append(each.get("disposition"))
        yield "  " + cell_text("attempt: " + ", ".join(str(part) for part in told if part))
