"""UpdateWorkItem: say what has changed about an item.

Owns:  the UpdateWorkItem tool.
Rule 1: what is left out stays. A todo list is replaced as a whole.
Rule 2: a new blocker brings a reminder, by default after an hour; null or an empty text clears
        both. Any other change leaves the blocker and its reminder alone.
Rule 3: an update that says what the item says already is answered and changes nothing: else a model
        that repeats itself would count as one that moves its work.
Rule 4: under a strict schema every field must be sent, and null is the only way to say nothing. A
        null blocker that came with a null recheck and with something else to change says nothing.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, assert_never

import msgspec
from msgspec import UNSET, UnsetType

from holon.decide import work_item_changes
from holon.decide.work_item_changes import Edit, objective_refusal
from holon.decide.work_item_commits import (
    Planned,
    needs_reminder,
    put_blocker,
    put_revision,
    waits_after,
)
from holon.model.ids import IdPrefix, WaitId
from holon.model.instant import later
from holon.model.json_value import JsonValue
from holon.model.limits import LABEL_CHARS_MAX, RECHECK_DEFAULT_MS, TIMER_DURATION_MS_MAX
from holon.model.tool import ToolOk, ToolSpec
from holon.model.work_item import PlanStatus, WorkItemRecord
from holon.tools.arguments import decode_arguments, leniently, schema_of
from holon.tools.guidance_texts import guidance_for
from holon.tools.own_work_items import own_open_item, refused, seen_now
from holon.tools.tool import ToolExecution, ToolPorts, ToolScene, refuse
from holon.tools.work_item_arguments import (
    BODY_ALIASES,
    ITEM_ALIASES,
    ItemIdText,
    ObjectiveText,
    TodoArguments,
    todo_items,
)
from holon.tools.work_item_view import work_item_view

_NOTHING_NEW: Final = "nothing has changed: the item says this already; go on with the work itself"


class UpdateWorkItemArguments(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What to change about which item."""

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
        asked = decode_arguments(arguments, UpdateWorkItemArguments)
        if isinstance(asked, ToolExecution):
            return asked
        blocker = blocker_of(asked)
        if (problem := _problem(asked, blocker)) is not None:
            return problem
        item = await own_open_item(asked.work_item_id, scene, ports)
        if isinstance(item, ToolExecution):
            return item
        waits = await ports.reads.item_waits(item.id)
        seen, notes = await seen_now(item, waits, scene, ports)
        revised = _revised(item, asked, blocker, now=scene.now)
        revised = msgspec.structs.replace(revised, plan_artifact=seen.plan or item.plan_artifact)
        if work_item_changes.says_the_same(item, revised):
            view = work_item_view(seen, include_todo_list=True)
            unchanged = ToolOk(result={"work_item": view}, notes=(*notes, _NOTHING_NEW))
            return ToolExecution(outcome=unchanged)
        planned: Planned = put_revision(revised)
        if blocker is not Blocker.STAYS:
            fresh = WaitId(ports.ids.fresh(IdPrefix.WAIT)) if needs_reminder(revised) else None
            planned = put_blocker(revised, waits, now=scene.now, wait_id=fresh)
        elif item.blocked_by is not None and asked.blocked_by is None:
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


def blocker_of(asked: UpdateWorkItemArguments) -> Blocker:
    """What becomes of the blocker. First matching rule wins."""
    if asked.blocked_by is UNSET:
        return Blocker.STAYS
    if asked.blocked_by is not None:
        return Blocker.SET if asked.blocked_by.strip() else Blocker.CLEARED
    if asked.recheck_after is None and _edits(asked):
        return Blocker.STAYS
    return Blocker.CLEARED


def _edits(asked: UpdateWorkItemArguments) -> bool:
    parts = (asked.objective, asked.plan_status, asked.todo_list)
    return any(part is not None for part in parts)


def _problem(asked: UpdateWorkItemArguments, blocker: Blocker) -> ToolExecution | None:
    if asked.objective is not None and (bad := objective_refusal(asked.objective)) is not None:
        return refused(bad)
    if isinstance(asked.recheck_after, int) and blocker is not Blocker.SET:
        return refuse(
            "invalid_tool_input",
            "recheck_after goes with a blocker that is being set",
            hint="send blocked_by in the same call, or leave recheck_after out",
            field="recheck_after",
        )
    if blocker is Blocker.STAYS and not _edits(asked):
        return refuse(
            "invalid_tool_input",
            "there is nothing to change",
            hint="send objective, plan_status, todo_list or blocked_by; a plan is edited as a file",
        )
    return None


def _revised(
    item: WorkItemRecord, asked: UpdateWorkItemArguments, blocker: Blocker, *, now: datetime
) -> WorkItemRecord:
    """The item after one change: what is said about it, and what blocks it."""
    changed = Edit(
        objective=asked.objective,
        plan_status=asked.plan_status,
        todo_list=None if asked.todo_list is None else todo_items(asked.todo_list),
    )
    edited = work_item_changes.edit(item, changed, now=now)
    match blocker:
        case Blocker.STAYS:
            return edited
        case Blocker.SET:
            delay_ms = asked.recheck_after if isinstance(asked.recheck_after, int) else None
            moved = work_item_changes.block(
                edited,
                blocked_by=str(asked.blocked_by),
                recheck_at=later(now, by_ms=delay_ms or RECHECK_DEFAULT_MS),
                now=now,
            )
        case Blocker.CLEARED:
            moved = work_item_changes.unblock(edited, now=now)
        case _:
            assert_never(blocker)
    return msgspec.structs.replace(moved, revision=edited.revision)  # one call, one revision
