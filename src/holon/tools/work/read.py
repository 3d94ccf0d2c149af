"""The GetWorkItem and ListWorkItems tools: open work, and recently completed work.

Owns:  both tools. They change nothing.
Rule 1: the current item comes first, then the other open ones, oldest first, then completed ones,
        newest first. What the limit cuts off is counted.
Rule 2: no more rows are read than may be shown, unless only some kind of open item is wanted: then
        the oldest ones are searched, up to a limit, and a note says so when there are more.
"""

from enum import StrEnum
from typing import Annotated, Final, assert_never

import msgspec

from holon.decide.work.projection import readiness_of
from holon.model.limits import (
    PLAN_PREVIEW_LISTED_CHARS_MAX,
    WORK_ITEMS_LISTED_COUNT_DEFAULT,
    WORK_ITEMS_LISTED_COUNT_MAX,
    WORK_ITEMS_SEARCHED_COUNT_MAX,
)
from holon.model.record import Record
from holon.model.turns.tools import ToolOk, ToolSpec
from holon.model.values import JsonValue
from holon.model.work import Readiness
from holon.tools.arguments import decode_arguments, guidance_for, leniently, schema_of
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene
from holon.tools.work.items import (
    ITEM_ALIASES,
    ItemIdText,
    Seen,
    focus_of,
    look_at_plan,
    own_item,
    seen_now,
    work_item_view,
)


class GetWorkItemArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The item to read, and how much of it."""

    work_item_id: Annotated[
        ItemIdText, msgspec.Meta(description="The id of a work item of yours, open or completed.")
    ]
    include_todo_list: Annotated[
        bool, msgspec.Meta(description="Whether to show the whole checklist, not just its counts.")
    ] = False


class GetWorkItem:
    """The tool."""

    only_plans: Final = True

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="GetWorkItem",
            description=guidance_for("get_work_item"),
            input_schema=schema_of(GetWorkItemArguments),
        )

    @leniently(*ITEM_ALIASES)
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Read the item."""
        request = decode_arguments(arguments, GetWorkItemArguments)
        if isinstance(request, ToolExecution):
            return request
        item = await own_item(request.work_item_id, scene, ports)
        if isinstance(item, ToolExecution):
            return item
        seen, notes = await seen_now(item, await ports.reads.wake.item_waits(item.id), scene, ports)
        view = work_item_view(seen, include_todo_list=request.include_todo_list)
        return ToolExecution(outcome=ToolOk(result={"work_item": view}, notes=notes))


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
        request = decode_arguments(arguments, ListWorkItemsArguments)
        if isinstance(request, ToolExecution):
            return request
        listing = await _listing(request, scene, ports)
        views: list[JsonValue] = []
        for seen in listing.shown:
            look = await look_at_plan(
                seen.item, ports.files, agent_home=scene.agent_home, now=scene.now
            )
            views.append(
                work_item_view(
                    msgspec.structs.replace(seen, plan=look.artifact),
                    include_todo_list=request.include_todo_list,
                    preview_chars_max=PLAN_PREVIEW_LISTED_CHARS_MAX,
                )
            )
        result: JsonValue = {
            "filter": request.filter.value,
            "work_items": views,
            "omitted_count": listing.total_count - len(views),
        }
        return ToolExecution(outcome=ToolOk(result=result, notes=listing.notes))


class _Listing(Record, frozen=True, kw_only=True):
    """The items shown, and how many there are."""

    shown: tuple[Seen, ...]
    total_count: int
    notes: tuple[str, ...] = ()


async def _listing(request: ListWorkItemsArguments, scene: ToolScene, ports: ToolPorts) -> _Listing:
    match request.filter:
        case WorkItemFilter.OPEN:
            return await _listed(request.limit, scene, ports, completed=False)
        case WorkItemFilter.ALL:
            return await _listed(request.limit, scene, ports, completed=True)
        case WorkItemFilter.COMPLETED:
            ended = await ports.reads.work.completed_items(scene.agent_id, limit=request.limit)
            counts = await ports.reads.work.work_item_counts(scene.agent_id)
            shown = tuple(Seen(item=item) for item in ended)
            return _Listing(shown=shown, total_count=counts.completed_count)
        case (
            WorkItemFilter.CURRENT
            | WorkItemFilter.QUEUED
            | WorkItemFilter.BLOCKED
            | WorkItemFilter.WAITING_FOR_OPERATOR
            | WorkItemFilter.RUNNABLE
        ):
            return await _searched(request, scene, ports)
        case _:
            assert_never(request.filter)


async def _listed(limit: int, scene: ToolScene, ports: ToolPorts, *, completed: bool) -> _Listing:
    """Return open items up to the limit, followed by completed ones if requested."""
    shown = await _open_items(limit, scene, ports)
    counts = await ports.reads.work.work_item_counts(scene.agent_id)
    if not completed:
        return _Listing(shown=shown, total_count=counts.open_count)
    if room := limit - len(shown):
        ended = await ports.reads.work.completed_items(scene.agent_id, limit=room)
        shown = (*shown, *(Seen(item=item) for item in ended))
    return _Listing(shown=shown, total_count=counts.open_count + counts.completed_count)


async def _searched(
    request: ListWorkItemsArguments, scene: ToolScene, ports: ToolPorts
) -> _Listing:
    searched = await _open_items(WORK_ITEMS_SEARCHED_COUNT_MAX, scene, ports)
    wanted = tuple(seen for seen in searched if _is_wanted(seen, request.filter))
    counts = await ports.reads.work.work_item_counts(scene.agent_id)
    note = f"only the oldest {len(searched)} open items were searched; there are more"
    return _Listing(
        shown=wanted[: request.limit],
        total_count=len(wanted),
        notes=(note,) if counts.open_count > len(searched) else (),
    )


async def _open_items(limit: int, scene: ToolScene, ports: ToolPorts) -> tuple[Seen, ...]:
    focus = await focus_of(scene, ports)
    items = await ports.reads.work.open_items(scene.agent_id, limit=limit)
    return tuple(Seen(item=each.item, waits=each.waits, focus=focus) for each in items)


def _is_wanted(seen: Seen, wanted: WorkItemFilter) -> bool:
    """Whether an open item matches the filter."""
    match wanted:
        case WorkItemFilter.ALL | WorkItemFilter.OPEN:
            return True
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
