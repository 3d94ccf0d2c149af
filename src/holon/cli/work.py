"""`holon work-item`: the work items of an agent.

Owns:  listing, showing, creating, updating, picking and completing work items.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from holon.cli.console.options import LABEL, OBJECTIVE, TEXT, TIMER_AFTER
from holon.cli.console.runtime_call import Target, agent_options, calls, page_options, quoted

if TYPE_CHECKING:
    from holon.model.values import JsonValue

_item_id = click.argument("item_id", metavar="ITEM", type=TEXT)
_PLAN_STATUSES: Final = ("draft", "ready", "needs_input")


@click.group("work-item")
def work_item() -> None:
    """List and manage the work items of an agent.

    \b
    Examples:
      holon work-item list --agent builder
      holon work-item create "Move the docs to the new layout"
      holon work-item pick work_01hx
    """


def _told(answer: "JsonValue") -> list[str]:
    from holon.cli.console.output import cell_text

    item = answer["work_item"]
    how = dict.fromkeys(str(item.get(part)) for part in ("focus", "scheduling_state"))
    return [cell_text(f"{item['id']}: {', '.join(how)}")]  # a completed one is both at once


def _table(page: "JsonValue") -> list[str]:
    from holon.cli.console.output import Column, moment, record_lines

    columns = (
        Column("WORK ITEM", "id"),
        Column("FOCUS", "focus"),
        Column("STATE", "scheduling_state"),
        Column("UPDATED (UTC)", lambda each: moment(each.get("updated_at"))),
        Column("OBJECTIVE", "objective", shrinks=True),
    )
    return record_lines(columns, page["work_items"], empty="no work items")


def _item_lines(item: "JsonValue") -> Iterator[str]:
    from holon.cli.console.output import cell_text, fact_lines, indented, moment_utc

    plan, report = item.get("plan_artifact") or {}, item.get("completion_report") or {}
    facts: list[tuple[str, object]] = [
        ("work item", item.get("id")),
        ("objective", item.get("objective")),
        ("focus", item.get("focus")),
        ("state", item.get("scheduling_state")),
        ("plan status", item.get("plan_status")),
        ("plan", plan.get("path")),
        ("blocked by", item.get("blocked_by")),
        ("looked at again", moment_utc(item.get("recheck_at"))),
        ("created", moment_utc(item.get("created_at"))),
        ("updated", moment_utc(item.get("updated_at"))),
    ]
    waits = item.get("active_wait_conditions") or ()
    facts.extend(("waits for", f"{wait['waiting_for']} ({wait['kind']})") for wait in waits)
    yield from fact_lines(facts)
    marks = {"completed": "[x]", "in_progress": "[~]"}
    for todo in item.get("todo_list") or ():
        yield f"  {marks.get(todo.get('state'), '[ ]')} {cell_text(todo.get('text'))}"
    if report:
        yield "report:"
        yield from indented(str(report.get("text") or ""))


@work_item.command("list")
@page_options
@calls("GET work-items", part="work_items", lines=_table)
def list_items() -> None:
    """List the work items of an agent: current, queued, waiting, completed.

    \b
    Examples:
      holon work-item list
      holon work-item list --agent builder --json | jq '.work_items[].objective'
    """


@work_item.command("get")
@_item_id
@calls("GET work-items/{item_id}", lines=_item_lines)
def get() -> None:
    """Show a work item: its state, what it waits for, its plan and its checklist.

    \b
    Examples:
      holon work-item get work_01hx
      holon work-item get work_01hx --json | jq .todo_counts
    """


@work_item.command("create")
@click.argument("objective", type=OBJECTIVE)
@calls("POST work-items", part="work_item", lines=_told)
def create() -> None:
    """Add a work item to an agent.

    \b
    Examples:
      holon work-item create "Move the docs to the new layout"
      holon work-item create --agent builder "Bump the base image" --json | jq -r .work_item.id
    """


@work_item.command("pick")
@_item_id
@calls("POST work-items/{item_id}/pick", part="work_item", lines=_told)
def pick() -> None:
    """Make a work item the agent's current one.

    \b
    Examples:
      holon work-item pick work_01hx
    """


@work_item.command("complete")
@_item_id
@calls("POST work-items/{item_id}/complete", part="work_item", lines=_told)
def complete() -> None:
    """Complete a work item. This is final.

    \b
    Examples:
      holon work-item complete work_01hx
    """


@work_item.command("update")
@_item_id
@click.option("--objective", type=OBJECTIVE, metavar="TEXT", help="The new objective.")
@click.option("--plan-status", type=click.Choice(_PLAN_STATUSES), help="The state of its plan.")
@click.option("--blocked-by", type=LABEL, metavar="TEXT", help="What blocks it.")
@click.option("--unblock", is_flag=True, help="Remove the block.")
@click.option(
    "--recheck-after-ms",
    type=TIMER_AFTER,
    metavar="MS",
    help="With --blocked-by: when the agent is reminded of it.",
)
@agent_options
def update(
    target: Target,
    /,
    *,
    item_id: str,
    blocked_by: str | None,
    unblock: bool,
    **changes: "JsonValue",
) -> None:
    """Update a work item; omitted fields are unchanged.

    \b
    Examples:
      holon work-item update work_01hx --objective "Move the docs, and the images"
      holon work-item update work_01hx --blocked-by "the release" --recheck-after-ms 3600000
      holon work-item update work_01hx --unblock
    """
    if unblock and blocked_by is not None:
        raise click.UsageError("give --blocked-by or --unblock, not both")
    if changes["recheck_after_ms"] is not None and blocked_by is None:
        raise click.UsageError("--recheck-after-ms requires --blocked-by")
    body = {name: value for name, value in changes.items() if value is not None}
    if unblock or blocked_by is not None:
        body["blocked_by"] = blocked_by
    if not body:
        raise click.UsageError("give at least one change; see holon work-item update --help")
    tail = f"work-items/{quoted(item_id)}"
    answer = target.control(tail, body, part="work_item", method="PATCH")
    target.show(answer, lambda: _told(answer))
