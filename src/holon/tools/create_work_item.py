"""CreateWorkItem: set out to do something, durably.

Owns:  the CreateWorkItem tool. The item is opened by the commit that records the call's result.
Rule 1: a new item waits in the queue; the focus stays where it is.
Rule 2: a plan is seeded as a file before the item is recorded. Nothing but the lane's own fence is
        expected of that commit, so the call is never planned twice and leaves one file.
"""

from typing import Annotated, Final

import msgspec

from holon.decide.quotas import work_item_quota
from holon.decide.work_item_changes import objective_refusal
from holon.model.commit import PutWorkItem
from holon.model.ids import IdPrefix, WorkItemId, WorkspaceId
from holon.model.json_value import JsonValue
from holon.model.tool import ToolOk, ToolSpec
from holon.model.work_item import PlanStatus, WorkItemRecord
from holon.model.workspace import AGENT_HOME, WORKSPACE_ROOT
from holon.tools.arguments import decode_arguments, leniently, schema_of
from holon.tools.guidance_texts import guidance_for
from holon.tools.own_work_items import focus_of, refused
from holon.tools.plan_artifact import seed_plan
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene
from holon.tools.work_item_arguments import (
    BODY_ALIASES,
    ObjectiveText,
    TodoArguments,
    todo_items,
)
from holon.tools.work_item_view import Seen, work_item_view


class CreateWorkItemArguments(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What to set out to do."""

    objective: Annotated[
        ObjectiveText, msgspec.Meta(description="What shall be true when it is done.")
    ]
    plan_status: Annotated[
        PlanStatus | None,
        msgspec.Meta(
            description="draft (the default), ready to be carried out, or needs_input from the"
            " operator before anything can go on."
        ),
    ] = None
    plan: Annotated[
        str | None,
        msgspec.Meta(description="First prose of the plan; it becomes the item's plan.md."),
    ] = None
    todo_list: Annotated[
        TodoArguments | None, msgspec.Meta(description="The whole checklist, in order.")
    ] = None


class CreateWorkItem:
    """The tool."""

    only_plans: Final = True

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="CreateWorkItem",
            description=guidance_for("create_work_item"),
            input_schema=schema_of(CreateWorkItemArguments),
            mutates=True,
        )

    @leniently(*BODY_ALIASES)
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Plan the new item."""
        asked = decode_arguments(arguments, CreateWorkItemArguments)
        if isinstance(asked, ToolExecution):
            return asked
        if (refusal := objective_refusal(asked.objective)) is not None:
            return refused(refusal)
        counts = await ports.reads.work_item_counts(scene.agent_id)
        if (full := work_item_quota(counts.open_count)) is not None:
            return refused(full)
        work_item_id = WorkItemId(ports.ids.fresh(IdPrefix.WORK_ITEM))
        plan = await seed_plan(work_item_id, asked.plan or "", scene, ports)
        if isinstance(plan, ToolExecution):
            return plan
        item = WorkItemRecord(
            id=work_item_id,
            agent_id=scene.agent_id,
            objective=asked.objective,
            created_at=scene.now,
            updated_at=scene.now,
            plan_status=asked.plan_status or PlanStatus.DRAFT,
            plan_artifact=plan,
            todo_list=todo_items(asked.todo_list or ()),
            workspace_id=_workspace_id_of(scene),
        )
        seen = Seen(item=item, focus=await focus_of(scene, ports), plan=plan)
        return ToolExecution(
            outcome=ToolOk(result={"work_item": work_item_view(seen, include_todo_list=True)}),
            changes=(PutWorkItem(item=item),),
        )


def _workspace_id_of(scene: ToolScene) -> WorkspaceId:
    """Return the workspace the item is set up in: an agent is always in exactly one."""
    if scene.workspace is not None:
        return scene.workspace.workspace_id
    return AGENT_HOME if scene.execution_root == scene.agent_home else WORKSPACE_ROOT
