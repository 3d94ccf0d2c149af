"""Work item routes: list, show, create, update, pick, complete.

Owns:  the routes of work items.
Rule 1: creating an item changes records: it creates no message and does not change the focus.
"""

from typing import Final

from msgspec import UnsetType

from holon.decide.work.items import WorkItemEdit
from holon.http.context import HttpContext, named_agent, own_work_item, shown_agent
from holon.http.query import AfterQuery, after_id, next_after
from holon.http.request_headers import REPEATABLE, idempotency_key
from holon.http.route import Access, Call, Route
from holon.model.errors import BadInputError
from holon.model.events.reads import WeighedItem
from holon.model.values import AgentId, WorkItemId
from holon.model.work import TodoItem, WorkItemRecord
from holon.projections.work import WorkItemView, work_item_view
from holon.wire.requests import WorkItemPatch, WorkItemRequest
from holon.wire.responses import WorkItemAnswer, WorkItemPage

_ITEM: Final = "/control/agents/{agent_id}/work-items/{work_item_id}"


class BadPatchError(BadInputError):
    """A change to a work item that says nothing, or says when to look again but not at what."""

    code = "bad_patch"
    hint = "name what changes; recheck_after_ms goes with blocked_by"


async def list_items(context: HttpContext, call: Call) -> WorkItemPage:
    """Page through an agent's work items."""
    agent_id, query = await shown_agent(context, call), call.query_as(AfterQuery)
    after = after_id(query, WorkItemId, what="work item id")
    items = await context.host.reads.work.work_items_page(agent_id, after=after, limit=query.limit)
    focus = await _focus_of(context, agent_id)
    return WorkItemPage(
        work_items=tuple(work_item_view(each, focus=focus) for each in items),
        limit=query.limit,
        next_after=next_after(query, [each.item.id for each in items]),
    )


async def show(context: HttpContext, call: Call) -> WorkItemView:
    """Show one work item."""
    await shown_agent(context, call)
    return await _viewed(context, await own_work_item(context, call))


async def create(context: HttpContext, call: Call) -> WorkItemAnswer:
    """Open an item in the agent's queue."""
    item = await context.host.work.create(
        named_agent(call),
        objective=call.body_as(WorkItemRequest).objective,
        key=idempotency_key(call),
    )
    return WorkItemAnswer(ok=True, work_item=await _viewed(context, item))


async def change(context: HttpContext, call: Call) -> WorkItemAnswer:
    """Say what has changed about an item."""
    request = call.body_as(WorkItemPatch)
    edit = _edit_of(request)
    is_silent = edit == WorkItemEdit() and isinstance(request.blocked_by, UnsetType)
    if is_silent or (
        request.recheck_after_ms is not None and not isinstance(request.blocked_by, str)
    ):
        raise BadPatchError("this changes nothing")
    item = await own_work_item(context, call)
    await context.host.work.edit(
        item.id, edit, blocked_by=request.blocked_by, recheck_after_ms=request.recheck_after_ms
    )
    return await _answer(context, call)


async def pick(context: HttpContext, call: Call) -> WorkItemAnswer:
    """Make an open item the one the agent works on."""
    item = await own_work_item(context, call)
    await context.host.work.focus(item.id)
    return await _answer(context, call)


async def complete(context: HttpContext, call: Call) -> WorkItemAnswer:
    """Mark an item completed."""
    item = await own_work_item(context, call)
    await context.host.work.complete(item.id)
    return await _answer(context, call)


def _edit_of(request: WorkItemPatch) -> WorkItemEdit:
    todos = request.todo_list
    return WorkItemEdit(
        objective=request.objective,
        plan_status=request.plan_status,
        todo_list=None
        if todos is None
        else tuple(TodoItem(text=each.text, state=each.state) for each in todos),
    )


async def _answer(context: HttpContext, call: Call) -> WorkItemAnswer:
    item = await own_work_item(context, call)
    return WorkItemAnswer(ok=True, work_item=await _viewed(context, item))


async def _viewed(context: HttpContext, item: WorkItemRecord) -> WorkItemView:
    waits = tuple(await context.host.reads.wake.item_waits(item.id))
    focus = await _focus_of(context, item.agent_id)
    return work_item_view(WeighedItem(item=item, waits=waits), focus=focus)


async def _focus_of(context: HttpContext, agent_id: AgentId) -> WorkItemId | None:
    agent = await context.host.reads.agents.agent(agent_id)
    return None if agent is None else agent.focus.current_work_item_id


ROUTES: Final[tuple[Route[HttpContext], ...]] = (
    Route(
        method="GET",
        path="/agents/{agent_id}/work-items",
        access=Access.READ,
        summary="The work items of an agent: current, queued, waiting, completed.",
        answer=list_items,
        query=AfterQuery,
        returns=WorkItemPage,
        refusals=(404,),
        tags=("work items",),
    ),
    Route(
        method="GET",
        path="/agents/{agent_id}/work-items/{work_item_id}",
        access=Access.READ,
        summary="Show a work item.",
        answer=show,
        returns=WorkItemView,
        refusals=(404,),
        tags=("work items",),
    ),
    Route(
        method="POST",
        path="/control/agents/{agent_id}/work-items",
        access=Access.CONTROL,
        summary="Create a work item of an agent. Idempotent under an Idempotency-Key.",
        answer=create,
        headers=REPEATABLE,
        takes=WorkItemRequest,
        returns=WorkItemAnswer,
        refusals=(404, 409, 429),
        tags=("work items",),
    ),
    Route(
        method="PATCH",
        path=_ITEM,
        access=Access.CONTROL,
        summary="Update a work item; omitted fields are unchanged.",
        answer=change,
        takes=WorkItemPatch,
        returns=WorkItemAnswer,
        refusals=(404, 409),
        tags=("work items",),
    ),
    Route(
        method="POST",
        path=f"{_ITEM}/pick",
        access=Access.CONTROL,
        summary="Make an open work item the agent's current one.",
        answer=pick,
        returns=WorkItemAnswer,
        refusals=(404, 409),
        tags=("work items",),
    ),
    Route(
        method="POST",
        path=f"{_ITEM}/complete",
        access=Access.CONTROL,
        summary="Complete a work item.",
        answer=complete,
        returns=WorkItemAnswer,
        refusals=(404, 409),
        tags=("work items",),
    ),
)
