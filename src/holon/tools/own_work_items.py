"""An agent's own work items, as its tools reach them.

Owns:  finding an item for the agent that asks, and seeing it with its waits and its plan.
Rule 1: another agent's item is as unknown as one that never was.
"""

from collections.abc import Sequence

from holon.decide.work_item_commits import open_item, unknown_item
from holon.model.errors import BadIdError
from holon.model.ids import WorkItemId, parse_record_id
from holon.model.refusal import Refusal, RefusalCode
from holon.model.snapshot import WeighedItem
from holon.model.wait import WaitRecord
from holon.model.work_item import WorkItemRecord
from holon.tools.plan_artifact import look_at_plan
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene, refuse
from holon.tools.work_item_view import Seen

_KINDS = {RefusalCode.WORK_ITEM_NOT_FOUND: "unknown_work_item"}


def refused(refusal: Refusal) -> ToolExecution:
    """A refusal of the core, in the words of the tool envelope."""
    kind = _KINDS.get(refusal.code, refusal.code.value)
    return refuse(kind, refusal.message, hint=refusal.hint, field=refusal.field)


async def own_item(
    work_item_id: str, scene: ToolScene, ports: ToolPorts
) -> WorkItemRecord | ToolExecution:
    """The agent's item of this id, whatever its state."""
    try:
        wanted = WorkItemId(parse_record_id(work_item_id, what="work item id"))
    except BadIdError as bad:
        return refuse("invalid_tool_input", str(bad), hint=bad.hint, field="work_item_id")
    item = await ports.reads.work_item(wanted)
    if item is None or item.agent_id != scene.agent_id:
        return refused(unknown_item(wanted))
    return item


async def own_open_item(
    work_item_id: str, scene: ToolScene, ports: ToolPorts
) -> WorkItemRecord | ToolExecution:
    """The agent's item of this id, if it can still be worked on."""
    item = await own_item(work_item_id, scene, ports)
    if isinstance(item, ToolExecution):
        return item
    found = open_item(item, item.id)
    return refused(found) if isinstance(found, Refusal) else found


async def focus_of(scene: ToolScene, ports: ToolPorts) -> WorkItemId | None:
    """What the agent focuses on."""
    agent = await ports.reads.agent(scene.agent_id)
    return None if agent is None else agent.focus.current_work_item_id


async def weighed(work_item_id: WorkItemId, ports: ToolPorts) -> WeighedItem | None:
    """One item with its open waits."""
    item = await ports.reads.work_item(work_item_id)
    if item is None:
        return None
    return WeighedItem(item=item, waits=tuple(await ports.reads.item_waits(item.id)))


async def seen_now(
    item: WorkItemRecord, waits: Sequence[WaitRecord], scene: ToolScene, ports: ToolPorts
) -> tuple[Seen, tuple[str, ...]]:
    """The item as it reads now, and what could not be read of it."""
    look = await look_at_plan(item, ports.files, agent_home=scene.agent_home, now=scene.now)
    focus = await focus_of(scene, ports)
    seen = Seen(item=item, waits=tuple(waits), focus=focus, plan=look.artifact)
    return seen, look.notes
