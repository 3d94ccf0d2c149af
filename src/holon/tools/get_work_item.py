"""GetWorkItem: read one item.

Owns:  the GetWorkItem tool. It changes nothing.
"""

from typing import Annotated, Final

import msgspec

from holon.model.json_value import JsonValue
from holon.model.tool import ToolOk, ToolSpec
from holon.tools.arguments import decode_arguments, leniently, schema_of
from holon.tools.guidance_texts import guidance_for
from holon.tools.own_work_items import own_item, seen_now
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene
from holon.tools.work_item_arguments import ITEM_ALIASES, ItemIdText
from holon.tools.work_item_view import work_item_view


class GetWorkItemArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which item to read, and how much of it."""

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
        asked = decode_arguments(arguments, GetWorkItemArguments)
        if isinstance(asked, ToolExecution):
            return asked
        item = await own_item(asked.work_item_id, scene, ports)
        if isinstance(item, ToolExecution):
            return item
        seen, notes = await seen_now(item, await ports.reads.item_waits(item.id), scene, ports)
        view = work_item_view(seen, include_todo_list=asked.include_todo_list)
        return ToolExecution(outcome=ToolOk(result={"work_item": view}, notes=notes))
