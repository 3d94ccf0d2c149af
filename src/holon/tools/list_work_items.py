"""ListWorkItems: what there is to do, and what was done of late.

Owns:  the ListWorkItems tool. It changes nothing.
Rule 1: the current item comes first, then the other open ones, oldest first, then completed ones,
        newest first. What the limit cuts off is counted.
Rule 2: open items are those the scheduler weighs; completed ones are found through the newest
        events. Where either look was bounded, a note says so.
"""

from enum import StrEnum
from typing import Annotated, Final, assert_never

import msgspec

from holon.decide.readiness import readiness_of
from holon.model.event import WorkItemWritten
from holon.model.ids import WorkItemId
from holon.model.json_value import JsonValue
from holon.model.limits import (
    PLAN_PREVIEW_LISTED_CHARS_MAX,
    WORK_EVENTS_SEARCHED_COUNT_MAX,
    WORK_ITEMS_LISTED_COUNT_DEFAULT,
    WORK_ITEMS_LISTED_COUNT_MAX,
    WORK_ITEMS_WEIGHED_COUNT_MAX,
)
from holon.model.tool import ToolOk, ToolSpec
from holon.model.work_item import Readiness, WorkItemState
from holon.tools.arguments import decode_arguments, leniently, schema_of
from holon.tools.guidance_texts import guidance_for
from holon.tools.plan_artifact import look_at_plan
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene
from holon.tools.work_item_view import Seen, work_item_view


class WorkItemFilter(StrEnum):
    """Which items to list."""

    ALL = "all"
    OPEN = "open"
    COMPLETED = "completed"
    CURRENT = "current"
    QUEUED = "queued"
    BLOCKED = "blocked"
    WAITING_FOR_OPERATOR = "waiting_for_operator"
    RUNNABLE = "runnable"


class ListWorkItemsArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which items to list, and how much of each."""

    filter: Annotated[
        WorkItemFilter, msgspec.Meta(description="Which items to list; open ones by default.")
    ] = WorkItemFilter.OPEN
    limit: Annotated[
        int,
        msgspec.Meta(
            ge=1, le=WORK_ITEMS_LISTED_COUNT_MAX, description="How many items to show at most."
        ),
    ] = WORK_ITEMS_LISTED_COUNT_DEFAULT
    include_todo_list: Annotated[
        bool, msgspec.Meta(description="Whether to show whole checklists, not just their counts.")
    ] = False


class ListWorkItems:
    """The tool."""

    only_plans: Final = True

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="ListWorkItems",
            description=guidance_for("list_work_items"),
            input_schema=schema_of(ListWorkItemsArguments),
        )

    @leniently(("status", "filter"), ("state", "filter"), ("count", "limit"))
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Read the items."""
        asked = decode_arguments(arguments, ListWorkItemsArguments)
        if isinstance(asked, ToolExecution):
            return asked
        found, notes = await _found(asked.filter, scene, ports)
        views: list[JsonValue] = []
        for seen in found[: asked.limit]:
            look = await look_at_plan(seen.item, scene, ports)
            views.append(
                work_item_view(
                    msgspec.structs.replace(seen, plan=look.artifact),
                    include_todo_list=asked.include_todo_list,
                    preview_chars_max=PLAN_PREVIEW_LISTED_CHARS_MAX,
                )
            )
        result: JsonValue = {
            "filter": asked.filter.value,
            "work_items": views,
            "omitted_count": len(found) - len(views),
        }
        return ToolExecution(outcome=ToolOk(result=result, notes=notes))


async def _found(
    wanted: WorkItemFilter, scene: ToolScene, ports: ToolPorts
) -> tuple[list[Seen], tuple[str, ...]]:
    found: list[Seen] = []
    notes: tuple[str, ...] = ()
    if wanted is not WorkItemFilter.COMPLETED:
        found, notes = await _open_items(scene, ports)
    if wanted in (WorkItemFilter.ALL, WorkItemFilter.COMPLETED):
        completed, cut = await _completed_items(scene, ports)
        found, notes = [*found, *completed], (*notes, *cut)
    return [seen for seen in found if _is_wanted(seen, wanted)], notes


async def _open_items(scene: ToolScene, ports: ToolPorts) -> tuple[list[Seen], tuple[str, ...]]:
    snapshot = await ports.reads.snapshot(scene.agent_id, now=scene.now)
    if snapshot is None:
        return [], ()
    focus = snapshot.agent.focus.current_work_item_id
    current = (snapshot.current,) if snapshot.current is not None else ()
    found = [
        Seen(item=each.item, waits=each.waits, focus=focus)
        for each in (*current, *snapshot.queued)
        if each.item.state is WorkItemState.OPEN
    ]
    full = len(snapshot.queued) >= WORK_ITEMS_WEIGHED_COUNT_MAX
    note = f"only {WORK_ITEMS_WEIGHED_COUNT_MAX} open items are looked at; there may be more"
    return found, (note,) if full else ()


async def _completed_items(
    scene: ToolScene, ports: ToolPorts
) -> tuple[list[Seen], tuple[str, ...]]:
    pruned, newest = await ports.reads.event_bounds(scene.agent_id)
    after = max(pruned, newest - WORK_EVENTS_SEARCHED_COUNT_MAX)
    events = await ports.reads.events_after(
        scene.agent_id, after, limit=WORK_EVENTS_SEARCHED_COUNT_MAX
    )
    written = (each.event for each in reversed(events))
    ended: dict[WorkItemId, None] = {
        event.work_item_id: None
        for event in written
        if isinstance(event, WorkItemWritten) and event.state is WorkItemState.COMPLETED
    }
    found = [await ports.reads.work_item(item_id) for item_id in ended]
    seen = [Seen(item=item) for item in found if item is not None]
    note = "only items completed of late are looked at; there may be older ones"
    return seen, (note,) if after > 0 else ()


def _is_wanted(seen: Seen, wanted: WorkItemFilter) -> bool:
    match wanted:
        case WorkItemFilter.ALL:
            return True
        case WorkItemFilter.OPEN:
            return seen.item.state is WorkItemState.OPEN
        case WorkItemFilter.COMPLETED | WorkItemFilter.CURRENT | WorkItemFilter.QUEUED:
            return seen.standing == wanted.value
        case WorkItemFilter.BLOCKED:
            return readiness_of(seen.scheduling) is Readiness.BLOCKED
        case WorkItemFilter.WAITING_FOR_OPERATOR:
            return readiness_of(seen.scheduling) is Readiness.WAITING_FOR_OPERATOR
        case WorkItemFilter.RUNNABLE:
            return readiness_of(seen.scheduling) is Readiness.RUNNABLE
        case _:
            assert_never(wanted)
