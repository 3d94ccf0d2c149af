"""Looks at an agent, for tests of the views made of them."""

from typing import TypedDict, Unpack

from holon.model.agents import (
    AgentFocus,
    AgentIdentity,
    AgentPosture,
    AgentState,
    AgentStatus,
    AgentTotals,
    ModelChoice,
)
from holon.model.events.reads import AgentCounts, AgentSurface, ListedAgent
from holon.model.turns.turn import Closure, TurnTerminal
from holon.model.values import TurnId, WorkItemId, WorkspaceId
from holon.model.wake import WaitRecord
from holon.model.work import WorkItemRecord
from holon.model.workspaces import AccessMode, ActiveWorkspace, ProjectionKind
from tests.support.builders import START, an_identity


class AgentFields(TypedDict, total=False):
    """What may be asked of `an_agent_state`."""

    status: AgentStatus
    open_turn_id: TurnId
    current_work_item_id: WorkItemId
    override_model: str
    last_closure: Closure
    last_terminal: TurnTerminal
    totals: AgentTotals
    identity: AgentIdentity


def an_agent_state(**fields: Unpack[AgentFields]) -> AgentState:
    """An agent that sleeps."""
    return AgentState(
        identity=fields.get("identity", an_identity()),
        generation=1,
        posture=AgentPosture(
            status=fields.get("status", AgentStatus.ASLEEP), since=START, reason="turn_settled"
        ),
        focus=AgentFocus(
            open_turn_id=fields.get("open_turn_id"),
            current_work_item_id=fields.get("current_work_item_id"),
        ),
        totals=fields.get("totals", AgentTotals()),
        model=ModelChoice(override_model=fields.get("override_model")),
        last_closure=fields.get("last_closure"),
        last_terminal=fields.get("last_terminal"),
    )


class ListedFields(TypedDict, total=False):
    """What may be asked of `a_listed_agent`."""

    queued_count: int
    runnable_work_item_id: WorkItemId
    stuck_work_item: WorkItemRecord
    waits: tuple[WaitRecord, ...]


def a_listed_agent(agent: AgentState | None = None, **fields: Unpack[ListedFields]) -> ListedAgent:
    """An agent with nothing to do."""
    return ListedAgent(
        agent=agent or an_agent_state(),
        queued_count=fields.get("queued_count", 0),
        runnable_work_item_id=fields.get("runnable_work_item_id"),
        stuck_work_item=fields.get("stuck_work_item"),
        waits=fields.get("waits", ()),
    )


def a_surface(agent: AgentState | None = None) -> AgentSurface:
    """A look at an agent with nothing in hand."""
    return AgentSurface(listed=a_listed_agent(agent), counts=AgentCounts(events=3))


def a_workspace() -> ActiveWorkspace:
    """A place to work in."""
    return ActiveWorkspace(
        workspace_id=WorkspaceId("ws_1"),
        workspace_anchor="/srv/project",
        execution_root_id="root_1",
        execution_root="/srv/project",
        projection_kind=ProjectionKind.CANONICAL_ROOT,
        access_mode=AccessMode.EXCLUSIVE_WRITE,
        cwd="/srv/project/src",
        occupancy_id="occ_1",
    )
