"""CompleteWorkItem: say that an objective is met.

Owns:  the CompleteWorkItem tool.
Rule 1: completion is the agent's own word; no wait and no running task stands in its way. It ends
        the item's waits and reminder and lets go of the focus.
Rule 2: the report is the text of the round that made the call; it is promoted when the turn ends.
        The round is on record before its tools run, so a missing report is remarked on here.
"""

from typing import Annotated, Final

import msgspec

from holon.decide import work_item_changes
from holon.decide.work_item_commits import put_blocker, released_focus
from holon.decide.work_transition import CompletionRound, report_problem
from holon.model.conversation import text_of
from holon.model.json_value import JsonValue
from holon.model.tool import ToolOk, ToolSpec
from holon.model.transcript import AssistantRound
from holon.model.work_item import WorkItemRecord
from holon.tools.arguments import decode_arguments, leniently, schema_of
from holon.tools.guidance_texts import guidance_for
from holon.tools.own_work_items import own_open_item, seen_now
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene
from holon.tools.work_item_arguments import ITEM_ALIASES, ItemIdText
from holon.tools.work_item_view import work_item_view

_NAME: Final = "CompleteWorkItem"


class CompleteWorkItemArguments(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Which item is done."""

    work_item_id: Annotated[
        ItemIdText, msgspec.Meta(description="The id of an open work item of yours.")
    ]


class CompleteWorkItem:
    """The tool."""

    only_plans: Final = True

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name=_NAME,
            description=guidance_for("complete_work_item"),
            input_schema=schema_of(CompleteWorkItemArguments),
            mutates=True,
        )

    @leniently(*ITEM_ALIASES)
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Plan the end of the item."""
        asked = decode_arguments(arguments, CompleteWorkItemArguments)
        if isinstance(asked, ToolExecution):
            return asked
        item = await own_open_item(asked.work_item_id, scene, ports)
        if isinstance(item, ToolExecution):
            return item
        waits = await ports.reads.item_waits(item.id)
        seen, notes = await seen_now(item, waits, scene, ports)
        done: WorkItemRecord = msgspec.structs.replace(
            work_item_changes.complete(item, now=scene.now),
            plan_artifact=seen.plan or item.plan_artifact,
        )
        planned = put_blocker(done, waits, now=scene.now, wait_id=None)
        ended = msgspec.structs.replace(seen, item=done, waits=())
        result: dict[str, JsonValue] = {
            "work_item": work_item_view(ended, include_todo_list=False),
        }
        problem = report_problem(await _round_of(scene, ports))
        if problem is not None:
            result["warning"] = {"kind": "no_completion_report", "message": problem}
        return ToolExecution(
            outcome=ToolOk(result=result, completes_work_item_id=item.id, notes=notes),
            changes=(*planned.changes, *released_focus(done, focus=seen.focus)),
            expects=planned.expects,
        )


async def _round_of(scene: ToolScene, ports: ToolPorts) -> CompletionRound:
    """What the round that makes this call says, from its record."""
    log = await ports.reads.turn_log(scene.turn_id)
    if log is None:
        return CompletionRound(text="", completions_count=1)
    rounds = (entry.data for entry in reversed(log.entries))
    newest = next((data for data in rounds if isinstance(data, AssistantRound)), None)
    if newest is None:
        return CompletionRound(text="", completions_count=1)
    completing = sum(
        recorded.call.round == newest.round
        and recorded.call.name == _NAME
        and (recorded.receipt is None or not recorded.receipt.is_error)
        for recorded in log.calls
    )
    return CompletionRound(text=text_of(newest.spoke.blocks), completions_count=completing)
