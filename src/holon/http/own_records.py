"""The records a path names.

Owns:  finding an agent, and what belongs to it.
Rule 1: a private agent is not there for a reader; the answer is that of an unknown one. An archived
        one can be read by its name, that of a past run too: its history is why it is kept, and
        lists leave it out.
Rule 2: what belongs to another agent does not exist under this one's path, byte for byte.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from holon.decide.agent_identity import is_temporary
from holon.decide.agent_refusals import refuse_unknown
from holon.decide.work_item_commits import unknown_item
from holon.http.plane import Plane
from holon.http.route import Call
from holon.model.agent import AgentIdentity, IdentityStatus, Visibility
from holon.model.brief import BriefRecord
from holon.model.ids import (
    AgentId,
    BriefId,
    MessageId,
    TaskId,
    TimerId,
    WorkItemId,
    parse_agent_id,
    parse_record_id,
)
from holon.model.message import QueueEntry
from holon.model.refusal import Refusal, RefusalCode, RefusedError
from holon.model.task import TaskRecord
from holon.model.wake import TimerRecord
from holon.model.work_item import WorkItemRecord

IdT = TypeVar("IdT", TaskId, TimerId, BriefId)
OwnedT = TypeVar("OwnedT", TaskRecord, TimerRecord, BriefRecord)


def named_agent(call: Call) -> AgentId:
    """The agent the path names, whether it exists or not."""
    return parse_agent_id(call.params["agent_id"])


async def shown_agent(plane: Plane, call: Call) -> AgentId:
    """The agent a read is about; raises RefusedError when a reader sees none."""
    agent_id = call.agent_id(plane.facts.default_agent)
    found = await plane.host.reads.agent(agent_id)
    if found is None or not is_shown(found.identity):
        raise RefusedError(refuse_unknown(agent_id))
    return agent_id


def is_shown(identity: AgentIdentity) -> bool:
    """Whether a reader may see the agent it names."""
    is_past_run = identity.status is IdentityStatus.ARCHIVED and is_temporary(identity)
    return identity.visibility is Visibility.PUBLIC or is_past_run


async def own_task(plane: Plane, call: Call) -> TaskRecord:
    """The task the path names."""
    return await _own(call, "task", TaskId, plane.host.reads.task, RefusalCode.TASK_NOT_FOUND)


async def own_timer(plane: Plane, call: Call) -> TimerRecord:
    """The timer the path names."""
    return await _own(call, "timer", TimerId, plane.host.reads.timer, RefusalCode.TIMER_NOT_FOUND)


async def own_brief(plane: Plane, call: Call) -> BriefRecord:
    """The brief the path names."""
    return await _own(call, "brief", BriefId, plane.host.reads.brief, RefusalCode.BRIEF_NOT_FOUND)


async def own_work_item(plane: Plane, call: Call) -> WorkItemRecord:
    """The work item the path names."""
    agent_id = named_agent(call)
    item_id = WorkItemId(_record_id(call, "work_item_id", "work item id"))
    found = await plane.host.reads.work_item(item_id)
    if found is None or found.agent_id != agent_id:
        raise RefusedError(unknown_item(item_id))
    return found


async def own_message(plane: Plane, call: Call) -> QueueEntry:
    """The message the path names."""
    agent_id = named_agent(call)
    message_id = MessageId(_record_id(call, "message_id", "message id"))
    found = await plane.host.reads.messages(agent_id, [message_id])
    if not found:
        raise _missing(RefusalCode.MESSAGE_NOT_FOUND, "message", message_id)
    return found[0]


async def _own(
    call: Call,
    what: str,
    id_of: Callable[[str], IdT],
    read: Callable[[IdT], Awaitable[OwnedT | None]],
    missing: RefusalCode,
) -> OwnedT:
    agent_id, record_id = named_agent(call), id_of(_record_id(call, f"{what}_id", f"{what} id"))
    found = await read(record_id)
    if found is None or found.agent_id != agent_id:
        raise _missing(missing, what, str(record_id))
    return found


def _record_id(call: Call, name: str, what: str) -> str:
    return parse_record_id(call.params[name], what=what)


def _missing(code: RefusalCode, what: str, record_id: str) -> RefusedError:
    return RefusedError(
        Refusal(
            code=code,
            message=f"there is no {what} {record_id}",
            hint=f"list the agent's {what}s to find its id",
            field=f"{what}_id",
        )
    )
