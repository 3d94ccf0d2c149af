"""The rows a one-shot run left behind, gathered for its result.

Owns:  which rows a run's events name, and reading them.
Rule 1: only what the run's own events name belongs to it; what the agent did before does not.
Rule 2: a turn is read only when something in it is needed: its effects, or the last words.
"""

from datetime import datetime
from typing import Final

from holon.decide.closure import closure_facts, derive_closure
from holon.model.brief import BriefRecord
from holon.model.event import (
    BriefCreated,
    Event,
    TaskCreated,
    TaskStatusUpdated,
    ToolStarted,
    TurnEnded,
)
from holon.model.ids import AgentId, TaskId, TurnId
from holon.model.limits import RUN_BRIEFS_READ_COUNT_MAX
from holon.model.work_event import WorkItemWritten
from holon.model.work_item import WorkItemRecord, WorkItemState
from holon.ports.store_reads import StoreReads
from holon.projections.run_result import RunFacts

_WITH_EFFECTS: Final = frozenset({"ApplyPatch", "ExecCommand", "ExecCommandBatch"})


async def gather_facts(
    reads: StoreReads, agent_id: AgentId, told: tuple[Event, ...], *, now: datetime
) -> RunFacts:
    """Read everything a run's events point to."""
    snapshot = await reads.snapshot(agent_id, now=now)
    turns = [await reads.turn_log(turn_id) for turn_id in _turn_ids(told)]
    tasks = [await reads.task(task_id) for task_id in _task_ids(told)]
    return RunFacts(
        agent_id=agent_id,
        events=told,
        closure=None if snapshot is None else derive_closure(closure_facts(snapshot)),
        briefs=await _briefs(reads, agent_id, told),
        turns=tuple(log for log in turns if log is not None),
        tasks=tuple(task for task in tasks if task is not None),
        completed=await _completed(reads, told),
    )


def _turn_ids(told: tuple[Event, ...]) -> list[TurnId]:
    ended = [event.turn_id for event in told if isinstance(event, TurnEnded)]
    acted = {
        event.turn_id
        for event in told
        if isinstance(event, ToolStarted) and event.tool_name in _WITH_EFFECTS
    }
    return [turn_id for turn_id in ended if turn_id in acted or turn_id == ended[-1]]


def _task_ids(told: tuple[Event, ...]) -> list[TaskId]:
    moved = (e.task_id for e in told if isinstance(e, TaskCreated | TaskStatusUpdated))
    return list(dict.fromkeys(moved))


async def _briefs(
    reads: StoreReads, agent_id: AgentId, told: tuple[Event, ...]
) -> tuple[BriefRecord, ...]:
    made = {event.brief_id for event in told if isinstance(event, BriefCreated)}
    if not made:
        return ()
    newest = await reads.briefs(agent_id, limit=min(len(made), RUN_BRIEFS_READ_COUNT_MAX))
    return tuple(brief for brief in newest if brief.id in made)


async def _completed(reads: StoreReads, told: tuple[Event, ...]) -> tuple[WorkItemRecord, ...]:
    done = dict.fromkeys(
        event.work_item_id
        for event in told
        if isinstance(event, WorkItemWritten) and event.state is WorkItemState.COMPLETED
    )
    items = [await reads.work_item(work_item_id) for work_item_id in done]
    return tuple(item for item in items if item is not None)
