"""PickWorkItem: turn to an item.

Owns:  the PickWorkItem tool. The focus moves with the commit that records the call's result.
Rule 1: only an open item of one's own can be picked; a blocked one can, to clear what blocks it.
Rule 2: leaving an item that could go on deserves a reason. None is no error, but it is remarked on.
"""

from typing import Annotated, Final

import msgspec

from holon.model.commit import FocusWorkItem
from holon.model.expectation import WorkItemAtRevision
from holon.model.ids import WorkItemId
from holon.model.json_value import JsonValue
from holon.model.limits import LABEL_CHARS_MAX
from holon.model.tool import ToolOk, ToolSpec
from holon.model.work_item import SchedulingState
from holon.tools.arguments import decode_arguments, leniently, schema_of
from holon.tools.guidance_texts import guidance_for
from holon.tools.own_work_items import own_open_item, seen_now, weighed
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene
from holon.tools.work_item_arguments import ITEM_ALIASES, ItemIdText
from holon.tools.work_item_view import Seen, work_item_view


class PickWorkItemArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which item to turn to."""

    work_item_id: Annotated[
        ItemIdText, msgspec.Meta(description="The id of an open work item of yours.")
    ]
    reason: Annotated[
        Annotated[str, msgspec.Meta(max_length=LABEL_CHARS_MAX)] | None,
        msgspec.Meta(
            description="Why you leave the current item for this one; expected when the current"
            " one could go on."
        ),
    ] = None


class PickWorkItem:
    """The tool."""

    only_plans: Final = True

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="PickWorkItem",
            description=guidance_for("pick_work_item"),
            input_schema=schema_of(PickWorkItemArguments),
            mutates=True,
        )

    @leniently(*ITEM_ALIASES)
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Plan the move of the focus."""
        asked = decode_arguments(arguments, PickWorkItemArguments)
        if isinstance(asked, ToolExecution):
            return asked
        item = await own_open_item(asked.work_item_id, scene, ports)
        if isinstance(item, ToolExecution):
            return item
        seen, notes = await seen_now(item, await ports.reads.item_waits(item.id), scene, ports)
        left = seen.focus if seen.focus != item.id else None
        if left is not None and not (asked.reason or "").strip():
            notes = (*notes, *await _remark(left, ports))
        picked: Seen = msgspec.structs.replace(seen, focus=item.id)
        result: JsonValue = {
            "work_item": work_item_view(picked, include_todo_list=True),
            "previous_work_item_id": left,
            "reason": asked.reason,
        }
        return ToolExecution(
            outcome=ToolOk(result=result, notes=notes),
            changes=(FocusWorkItem(agent_id=scene.agent_id, work_item_id=item.id),),
            expects=(WorkItemAtRevision(work_item_id=item.id, revision=item.revision),),
        )


async def _remark(left: WorkItemId, ports: ToolPorts) -> tuple[str, ...]:
    found = await weighed(left, ports)
    if found is None:
        return ()
    if Seen(item=found.item, waits=found.waits).scheduling is not SchedulingState.RUNNABLE:
        return ()
    return (f"you left {left}, which could go on; next time say why in `reason`",)
