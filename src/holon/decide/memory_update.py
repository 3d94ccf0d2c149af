"""Working memory after a turn: what the agent is in the middle of, and what has changed in it.

Owns:  the next working memory, its revision, and the delta the next prompt shows.
Rule 1: memory follows from settled evidence alone: the same turn and the same rows give the same
        memory. It moves when a turn is settled and at no other time.
Rule 2: the revision goes up by one when something changed, and not otherwise.
Rule 3: a delta is shown once. It stays pending until a turn that was shown it, and in which a
        provider answered, is settled; what changes meanwhile is added to it.
Rule 4: what the prompt's lasting part shows (`base`) moves with the compression epoch alone.
Rule 5: objectives come from work items, decisions from calls. Words of a turn that was shown
        something from outside are labelled with what that is worth.
"""

from typing import Final

import msgspec

from holon.decide.turn_evidence import TurnEvidence, memory_line, newest_of
from holon.model.ids import WorkspaceId
from holon.model.memory import (
    MemoryDeltaReason,
    MemoryState,
    WorkingMemory,
    WorkingMemoryDelta,
)
from holon.model.memory_limits import (
    MEMORY_DELTA_ENTRIES_COUNT_MAX,
    MEMORY_ENTRIES_COUNT_MAX,
    MEMORY_FILES_COUNT_MAX,
    MEMORY_SUMMARY_CHARS_MAX,
)
from holon.model.message import MessageKind
from holon.model.record import Record
from holon.model.turn import TerminalKind, TurnTerminal
from holon.model.wait import WaitKind, WaitRecord
from holon.model.work_item import TodoState, WorkItemRecord, WorkItemState
from holon.model.workspace import AGENT_HOME, WORKSPACE_ROOT

_WAKES: Final = frozenset(
    {MessageKind.TIMER_TICK, MessageKind.SYSTEM_TICK, MessageKind.CALLBACK_EVENT}
)
_UNVERIFIED: Final = "did not hold: "


class SettledTurn(Record, frozen=True, kw_only=True):
    """A turn at its end, and the rows as its settlement leaves them."""

    terminal: TurnTerminal
    message_kind: MessageKind
    evidence: TurnEvidence
    was_prompted: bool  # a provider answered: the model has seen this turn's prompt
    message_count: int
    item: WorkItemRecord | None = None  # in focus now, and open
    queued: tuple[WorkItemRecord, ...] = ()
    waits: tuple[WaitRecord, ...] = ()
    workspace_id: WorkspaceId | None = None
    compression_epoch: int = 0


def remembered(state: MemoryState, turn: SettledTurn) -> MemoryState:
    """Return what is remembered once the turn is settled; episodes are not looked at."""
    memory = next_memory(state.memory, turn)
    changed = changed_fields(state.memory, memory)
    pending = None if turn.was_prompted else state.pending_delta
    moved = MemoryState(
        revision=state.revision + bool(changed),
        last_prompted_revision=state.revision
        if turn.was_prompted
        else state.last_prompted_revision,
        memory=memory,
        pending_delta=pending,
        base=state.base,
        base_epoch=state.base_epoch,
        builder=state.builder,
        archived_episode_count=state.archived_episode_count,
        authority_class=turn.evidence.authority_class,
    )
    if changed:
        delta = _delta(pending, changed, moved, turn)
        moved = msgspec.structs.replace(moved, pending_delta=delta)
    if turn.compression_epoch != state.base_epoch:
        epoch = turn.compression_epoch
        moved = msgspec.structs.replace(moved, base=memory, base_epoch=epoch)
    return moved


def next_memory(before: WorkingMemory, turn: SettledTurn) -> WorkingMemory:
    """Return what the agent is in the middle of, now that the turn has ended."""
    item, evidence = turn.item, turn.evidence
    item_id = None if item is None else item.id
    kept = before if before.current_work_item_id == item_id else WorkingMemory()
    files = newest_of((*evidence.files, *kept.working_set_files), count_max=MEMORY_FILES_COUNT_MAX)
    return WorkingMemory(
        current_work_item_id=item_id,
        objective=None if item is None else memory_line(item.objective),
        work_summary=summary_of(turn) or kept.work_summary,
        scope_hints=scope_of(turn.workspace_id, files),
        plan=() if item is None else _plan(item),
        todo_list=() if item is None else _todos(item),
        working_set_files=files,
        recent_decisions=newest_of(
            (*evidence.decisions, *before.recent_decisions), count_max=MEMORY_ENTRIES_COUNT_MAX
        ),
        pending_followups=_followups(kept, turn),
        waiting_on=waiting_lines(turn.waits),
    )


def summary_of(turn: SettledTurn) -> str | None:
    """Return the last words of a turn, or how it failed; labelled when others had a word in it."""
    terminal = turn.terminal
    if terminal.kind is not TerminalKind.COMPLETED:
        return f"turn {terminal.turn_index} ended {terminal.kind}"
    said = memory_line(terminal.last_assistant_message or "", chars_max=MEMORY_SUMMARY_CHARS_MAX)
    if not said or turn.evidence.is_instructed:
        return said or None
    label = f"[{turn.evidence.authority_class}] "
    return memory_line(label + said, chars_max=MEMORY_SUMMARY_CHARS_MAX)


def waiting_lines(waits: tuple[WaitRecord, ...]) -> tuple[str, ...]:
    """Return what the agent waits for; a rest and a reminder are nothing to wait for."""
    lines = (
        memory_line(f"{wait.kind}: {wait.waiting_for}")
        for wait in waits
        if wait.state.is_open and wait.kind not in (WaitKind.REST, WaitKind.RECHECK)
    )
    return newest_of(lines, count_max=MEMORY_ENTRIES_COUNT_MAX)


def scope_of(workspace_id: WorkspaceId | None, files: tuple[str, ...]) -> tuple[str, ...]:
    """Name the workspace, if it was chosen, and the folders that files lie in."""
    is_chosen = workspace_id not in (None, AGENT_HOME, WORKSPACE_ROOT)
    place = (f"workspace {workspace_id}",) if is_chosen else ()
    folders = (f"{path.rpartition('/')[0]}/" for path in files if "/" in path)
    return newest_of((*place, *folders), count_max=MEMORY_ENTRIES_COUNT_MAX)


def changed_fields(before: WorkingMemory, after: WorkingMemory) -> tuple[str, ...]:
    """Name the parts that differ, in their order."""
    names = WorkingMemory.__struct_fields__
    return tuple(name for name in names if getattr(before, name) != getattr(after, name))


def _delta(
    pending: WorkingMemoryDelta | None,
    changed: tuple[str, ...],
    moved: MemoryState,
    turn: SettledTurn,
) -> WorkingMemoryDelta:
    unshown = () if pending is None else pending.changed_fields
    names = tuple(
        name for name in WorkingMemory.__struct_fields__ if name in changed or name in unshown
    )
    return WorkingMemoryDelta(
        from_revision=moved.revision - 1 if pending is None else pending.from_revision,
        to_revision=moved.revision,
        created_at_turn=turn.terminal.turn_index,
        reason=_reason(names, turn),
        changed_fields=names,
        summary_lines=tuple(_line(name, getattr(moved.memory, name)) for name in names),
    )


def _reason(changed: tuple[str, ...], turn: SettledTurn) -> MemoryDeltaReason:
    if "current_work_item_id" in changed:
        return MemoryDeltaReason.ACTIVE_WORK_CHANGED
    if changed == ("scope_hints",):
        return MemoryDeltaReason.SCOPE_HINTS_CHANGED
    if turn.message_kind is MessageKind.TASK_RESULT:
        return MemoryDeltaReason.TASK_REJOINED
    if turn.message_kind in _WAKES:
        return MemoryDeltaReason.WAKE_RESUMED
    return MemoryDeltaReason.TERMINAL_TURN_COMPLETED


def _line(name: str, value: str | tuple[str, ...] | None) -> str:
    what = name.replace("_", " ")
    if not value:
        return f"{what}: nothing now"
    if isinstance(value, str):
        return memory_line(f"{what}: {value}")
    shown = "; ".join(value[:MEMORY_DELTA_ENTRIES_COUNT_MAX])
    left = len(value) - MEMORY_DELTA_ENTRIES_COUNT_MAX
    more = f" (and {left} more)" if left > 0 else ""
    return memory_line(f"{what}{more}: {shown}")


def _plan(item: WorkItemRecord) -> tuple[str, ...]:
    blocked = () if item.blocked_by is None else (memory_line(f"blocked: {item.blocked_by}"),)
    written = () if item.plan_artifact is None else (memory_line(f"in {item.plan_artifact.path}"),)
    return (f"{item.plan_status}", *written, *blocked)


def _todos(item: WorkItemRecord) -> tuple[str, ...]:
    """What is left of the checklist, in its order."""
    left = [todo for todo in item.todo_list if todo.state is not TodoState.COMPLETED]
    lines = tuple(
        memory_line(f"{todo.state}: {todo.text}") for todo in left[:MEMORY_ENTRIES_COUNT_MAX]
    )
    return newest_of(lines, count_max=MEMORY_ENTRIES_COUNT_MAX)


def _followups(kept: WorkingMemory, turn: SettledTurn) -> tuple[str, ...]:
    """Checks that failed and were not made good since, and other items that wait for their turn."""
    seen: dict[str, bool | None] = {}
    for run in turn.evidence.checks:  # newest first: the last word counts
        seen.setdefault(_unverified(run.cmd), run.ended_well)
    failed = [line for line, ended_well in seen.items() if ended_well is False]
    earlier = (
        line
        for line in kept.pending_followups
        if line.startswith(_UNVERIFIED) and seen.get(line) is None
    )
    others = (
        memory_line(f"work item {item.id}: {item.objective}")
        for item in turn.queued
        if item.state is WorkItemState.OPEN
    )
    return newest_of((*failed, *earlier, *others), count_max=MEMORY_ENTRIES_COUNT_MAX)


def _unverified(cmd: str) -> str:
    return memory_line(f"{_UNVERIFIED}{cmd}")
