"""`holon work-item`: what an agent has to do.

Owns:  listing, reading, adding, picking and completing work items from a terminal.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from holon.cli.page_options import page_options, tell_of_more
from holon.cli.runtime_call import Target, agent_options, quoted
from holon.cli.typed_values import OBJECTIVE

if TYPE_CHECKING:
    from holon.model.json_value import JsonValue


@click.group("work-item")
def work_item() -> None:
    """See and steer the work items of an agent."""


@work_item.command("list")
@page_options
@agent_options
def list_items(target: Target, *, limit: int, after: str | None) -> None:
    """List the work items of an agent: current, queued, waiting, completed.

    \b
    Examples:
      holon work-item list
      holon work-item list --agent builder --json | jq '.work_items[].objective'
    """
    page = target.read("work-items", {"limit": limit, "after": after}, part="work_items")
    target.show(page, lambda: _table(page))
    tell_of_more(target, page)


@work_item.command("get")
@click.argument("item_id", metavar="ITEM")
@agent_options
def get(target: Target, *, item_id: str) -> None:
    """Show one work item: its state, what it waits for, its plan and its checklist.

    \b
    Examples:
      holon work-item get work_01hx
      holon work-item get work_01hx --json | jq .todo_counts
    """
    answer = target.read(f"work-items/{quoted(item_id)}")
    target.show(answer, lambda: _item_lines(answer))


@work_item.command("create")
@click.argument("objective", type=OBJECTIVE)
@agent_options
def create(target: Target, *, objective: str) -> None:
    """Give an agent something to do, when it comes to it.

    \b
    Examples:
      holon work-item create "Move the docs to the new layout"
      holon work-item create --agent builder "Bump the base image" --json | jq -r .work_item.id
    """
    answer = target.control("work-items", {"objective": objective}, part="work_item")
    target.show(answer, lambda: [_told(answer["work_item"])])


@work_item.command("pick")
@click.argument("item_id", metavar="ITEM")
@agent_options
def pick(target: Target, *, item_id: str) -> None:
    """Make a work item the one the agent is at.

    \b
    Examples:
      holon work-item pick work_01hx
    """
    answer = target.control(f"work-items/{quoted(item_id)}/pick", part="work_item")
    target.show(answer, lambda: [_told(answer["work_item"])])


@work_item.command("complete")
@click.argument("item_id", metavar="ITEM")
@agent_options
def complete(target: Target, *, item_id: str) -> None:
    """Mark a work item as done, for good.

    \b
    Examples:
      holon work-item complete work_01hx
    """
    answer = target.control(f"work-items/{quoted(item_id)}/complete", part="work_item")
    target.show(answer, lambda: [_told(answer["work_item"])])


def _told(item: "JsonValue") -> str:
    from holon.cli.tables import cell_text

    return cell_text(f"{item['id']}: {item.get('focus')}, {item.get('scheduling_state')}")


def _table(page: "JsonValue") -> list[str]:
    from holon.cli.tables import Column, moment, screen_cells, table_lines

    columns = (
        Column("WORK ITEM"),
        Column("FOCUS"),
        Column("STATE"),
        Column("UPDATED (UTC)"),
        Column("OBJECTIVE", shrinks=True),
    )
    rows = [
        (
            each.get("id"),
            each.get("focus"),
            each.get("scheduling_state"),
            moment(each.get("updated_at")),
            each.get("objective"),
        )
        for each in page["work_items"]
    ]
    return table_lines(columns, rows, empty="no work items", cells_max=screen_cells())


def _item_lines(item: "JsonValue") -> Iterator[str]:
    from holon.cli.tables import cell_text, fact_lines, indented, moment

    plan, report = item.get("plan_artifact") or {}, item.get("completion_report") or {}
    facts: list[tuple[str, object]] = [
        ("work item", item.get("id")),
        ("objective", item.get("objective")),
        ("focus", item.get("focus")),
        ("state", item.get("scheduling_state")),
        ("plan status", item.get("plan_status")),
        ("plan", plan.get("path")),
        ("blocked by", item.get("blocked_by")),
        ("looked at again", moment(item.get("recheck_at"))),
        ("created", moment(item.get("created_at"))),
        ("updated", moment(item.get("updated_at"))),
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
