"""The CreateWorkItem, PickWorkItem, UpdateWorkItem and CompleteWorkItem tools.

Owns:  the four tools. Each change is made by the commit that records the call's result.
Rule 1: a new item waits in the queue; the focus does not move.
Rule 2: a plan is written as a file before the item is recorded. That commit expects nothing but the
        lane's fence, so the call is never planned twice and leaves one file.
Rule 3: only an open item of the agent's own can be picked; a blocked one can, to clear its blocker.
Rule 4: leaving an item that could continue deserves a reason. A missing one is no error, but noted.
Rule 5: an omitted field stays unchanged. A todo list is replaced as a whole.
Rule 6: a new blocker brings a reminder, by default after an hour; null or an empty text clears
        both. Any other change leaves the blocker and its reminder alone.
Rule 7: an update that changes nothing is answered and records nothing: otherwise a model that
        repeats itself would count as making progress.
Rule 8: under a strict schema every field must be sent, and null is the only way to omit one. A null
        blocker together with a null recheck and another change counts as omitted.
Rule 9: completion is the agent's decision; no wait and no running task prevents it. It ends the
        item's waits and reminder and clears the focus.
Rule 10: the report is the text of the round that made the call; it is promoted when the turn ends.
         The round is on record before its tools run, so a missing report is noted here.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, assert_never

import msgspec
from msgspec import UNSET, UnsetType

from holon.decide.budgets.budget import work_item_quota
from holon.decide.work import items
from holon.decide.work.completion import CompletionRound, report_problem
from holon.decide.work.items import (
    ChangePlan,
    WorkItemEdit,
    needs_reminder,
    objective_refusal,
    put_blocker,
    put_revision,
    released_focus,
    waits_after,
)
from holon.model.commits import FocusWorkItem, PutWorkItem, WorkItemAtRevision
from holon.model.limits import LABEL_CHARS_MAX, RECHECK_DEFAULT_MS, TIMER_DURATION_MS_MAX
from holon.model.turns.conversation import text_of
from holon.model.turns.tools import ToolOk, ToolSpec
from holon.model.turns.transcript import AssistantRound
from holon.model.values import IdPrefix, JsonValue, WaitId, WorkItemId, WorkspaceId, later
from holon.model.work import PlanStatus, SchedulingState, WorkItemRecord
from holon.model.workspaces import AGENT_HOME, WORKSPACE_ROOT
from holon.tools.arguments import decode_arguments, guidance_for, leniently, schema_of
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene, refuse
from holon.tools.work.items import (
    BODY_ALIASES,
    ITEM_ALIASES,
    ItemIdText,
    ObjectiveText,
    Seen,
    TodoArguments,
    focus_of,
    own_open_item,
    refused,
    seed_plan,
    seen_now,
    todo_items,
    weighed,
    work_item_view,
)

_NOTHING_NEW: Final = "nothing has changed: the item is already as requested; continue the work"
_NAME: Final = "CompleteWorkItem"


class CreateWorkItemArguments(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The new item."""

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
        request = decode_arguments(arguments, CreateWorkItemArguments)
        if isinstance(request, ToolExecution):
            return request
        if (refusal := objective_refusal(request.objective)) is not None:
            return refused(refusal)
        counts = await ports.reads.work.work_item_counts(scene.agent_id)
        if (full := work_item_quota(counts.open_count)) is not None:
            return refused(full)
        work_item_id = WorkItemId(ports.ids.fresh(IdPrefix.WORK_ITEM))
        plan = await seed_plan(work_item_id, request.plan or "", scene, ports)
        if isinstance(plan, ToolExecution):
            return plan
        item = WorkItemRecord(
            id=work_item_id,
            agent_id=scene.agent_id,
            objective=request.objective,
            created_at=scene.now,
            updated_at=scene.now,
            plan_status=request.plan_status or PlanStatus.DRAFT,
            plan_artifact=plan,
            todo_list=todo_items(request.todo_list or ()),
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


class PickWorkItemArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The item to focus, and the reason."""

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
        """Plan the change of focus."""
        request = decode_arguments(arguments, PickWorkItemArguments)
        if isinstance(request, ToolExecution):
            return request
        item = await own_open_item(request.work_item_id, scene, ports)
        if isinstance(item, ToolExecution):
            return item
        seen, notes = await seen_now(item, await ports.reads.wake.item_waits(item.id), scene, ports)
        left = seen.focus if seen.focus != item.id else None
        if left is not None and not (request.reason or "").strip():
            notes = (*notes, *await _remark(left, ports))
        picked: Seen = msgspec.structs.replace(seen, focus=item.id)
        result: JsonValue = {
            "work_item": work_item_view(picked, include_todo_list=True),
            "previous_work_item_id": left,
            "reason": request.reason,
        }
        return ToolExecution(
            outcome=ToolOk(result=result, notes=notes),
            changes=(FocusWorkItem(agent_id=scene.agent_id, work_item_id=item.id),),
            expects=(WorkItemAtRevision(work_item_id=item.id, revision=item.revision),),
        )


async def _remark(left: WorkItemId, ports: ToolPorts) -> tuple[str, ...]:
    item = await weighed(left, ports)
    if item is None:
        return ()
    if Seen(item=item.item, waits=item.waits).scheduling is not SchedulingState.RUNNABLE:
        return ()
    return (f"you left {left}, which could continue; next time give a `reason`",)


class UpdateWorkItemArguments(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The item, and what to change about it."""

    work_item_id: Annotated[
        ItemIdText, msgspec.Meta(description="The id of an open work item of yours.")
    ]
    objective: Annotated[
        ObjectiveText | None, msgspec.Meta(description="A new objective; left out, it stays.")
    ] = None
    plan_status: Annotated[
        PlanStatus | None,
        msgspec.Meta(description="How far the plan has come: draft, ready or needs_input."),
    ] = None
    todo_list: Annotated[
        TodoArguments | None,
        msgspec.Meta(description="The whole new checklist; it replaces the old one."),
    ] = None
    blocked_by: Annotated[
        Annotated[str, msgspec.Meta(max_length=LABEL_CHARS_MAX)] | UnsetType | None,
        msgspec.Meta(description="What the item waits for; null or an empty text clears it."),
    ] = UNSET
    recheck_after: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=TIMER_DURATION_MS_MAX)] | UnsetType | None,
        msgspec.Meta(
            description="With a blocker: after how many milliseconds you are reminded of it."
        ),
    ] = UNSET


class Blocker(StrEnum):
    """What an update does to the blocker."""

    STAYS = "stays"
    SET = "set"
    CLEARED = "cleared"


class UpdateWorkItem:
    """The tool."""

    only_plans: Final = True

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="UpdateWorkItem",
            description=guidance_for("update_work_item"),
            input_schema=schema_of(UpdateWorkItemArguments),
            mutates=True,
        )

    @leniently(
        *ITEM_ALIASES,
        *BODY_ALIASES,
        ("blocker", "blocked_by"),
        ("blocked_on", "blocked_by"),
        ("recheck_after_ms", "recheck_after"),
    )
    async def run(self, arguments: JsonValue, scene: ToolScene, ports: ToolPorts) -> ToolExecution:
        """Plan the revision."""
        request = decode_arguments(arguments, UpdateWorkItemArguments)
        if isinstance(request, ToolExecution):
            return request
        blocker = blocker_of(request)
        if (problem := _problem(request, blocker)) is not None:
            return problem
        item = await own_open_item(request.work_item_id, scene, ports)
        if isinstance(item, ToolExecution):
            return item
        waits = await ports.reads.wake.item_waits(item.id)
        seen, notes = await seen_now(item, waits, scene, ports)
        revised = _revised(item, request, blocker, now=scene.now)
        revised = msgspec.structs.replace(revised, plan_artifact=seen.plan or item.plan_artifact)
        if items.has_same_content(item, revised):
            view = work_item_view(seen, include_todo_list=True)
            unchanged = ToolOk(result={"work_item": view}, notes=(*notes, _NOTHING_NEW))
            return ToolExecution(outcome=unchanged)
        planned: ChangePlan = put_revision(revised)
        if blocker is not Blocker.STAYS:
            fresh = WaitId(ports.ids.fresh(IdPrefix.WAIT)) if needs_reminder(revised) else None
            planned = put_blocker(revised, waits, now=scene.now, wait_id=fresh)
        elif item.blocked_by is not None and request.blocked_by is None:
            notes = (*notes, 'blocked_by stays; to clear it, send "" or null for it alone')
        seen = msgspec.structs.replace(
            seen, item=revised, waits=waits_after(waits, planned.changes)
        )
        view = work_item_view(seen, include_todo_list=True)
        return ToolExecution(
            outcome=ToolOk(result={"work_item": view}, notes=notes),
            changes=planned.changes,
            expects=planned.expects,
        )


def blocker_of(request: UpdateWorkItemArguments) -> Blocker:
    """Return what an update does to the blocker. First matching rule wins."""
    if request.blocked_by is UNSET:
        return Blocker.STAYS
    if request.blocked_by is not None:
        return Blocker.SET if request.blocked_by.strip() else Blocker.CLEARED
    if request.recheck_after is None and _edits(request):
        return Blocker.STAYS
    return Blocker.CLEARED


def _edits(request: UpdateWorkItemArguments) -> bool:
    parts = (request.objective, request.plan_status, request.todo_list)
    return any(part is not None for part in parts)


def _problem(request: UpdateWorkItemArguments, blocker: Blocker) -> ToolExecution | None:
    if request.objective is not None and (bad := objective_refusal(request.objective)) is not None:
        return refused(bad)
    if isinstance(request.recheck_after, int) and blocker is not Blocker.SET:
        return refuse(
            "invalid_tool_input",
            "recheck_after goes with a blocker that is being set",
            hint="send blocked_by in the same call, or leave recheck_after out",
            field="recheck_after",
        )
    if blocker is Blocker.STAYS and not _edits(request):
        return refuse(
            "invalid_tool_input",
            "there is nothing to change",
            hint="send objective, plan_status, todo_list or blocked_by; a plan is edited as a file",
        )
    return None


def _revised(
    item: WorkItemRecord, request: UpdateWorkItemArguments, blocker: Blocker, *, now: datetime
) -> WorkItemRecord:
    """Return the item after an update of its fields and its blocker."""
    changed = WorkItemEdit(
        objective=request.objective,
        plan_status=request.plan_status,
        todo_list=None if request.todo_list is None else todo_items(request.todo_list),
    )
    edited = items.edit(item, changed, now=now)
    match blocker:
        case Blocker.STAYS:
            return edited
        case Blocker.SET:
            delay_ms = request.recheck_after if isinstance(request.recheck_after, int) else None
            moved = items.block(
                edited,
                blocked_by=str(request.blocked_by),
                recheck_at=later(now, by_ms=delay_ms or RECHECK_DEFAULT_MS),
                now=now,
            )
        case Blocker.CLEARED:
            moved = items.unblock(edited, now=now)
        case _:
            assert_never(blocker)
    return msgspec.structs.replace(moved, revision=edited.revision)  # one call, one revision


class CompleteWorkItemArguments(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The item to complete."""

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
        """Plan the completion of the item."""
        request = decode_arguments(arguments, CompleteWorkItemArguments)
        if isinstance(request, ToolExecution):
            return request
        item = await own_open_item(request.work_item_id, scene, ports)
        if isinstance(item, ToolExecution):
            return item
        waits = await ports.reads.wake.item_waits(item.id)
        seen, notes = await seen_now(item, waits, scene, ports)
        done: WorkItemRecord = msgspec.structs.replace(
            items.complete(item, now=scene.now),
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
    """Return the recorded text of the round that makes this call."""
    log = await ports.reads.turns.turn_log(scene.turn_id)
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
